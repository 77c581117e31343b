"""The plans of recurrent networks and of short comparisons: names, seeds, and a toy training of each cell."""

from dataclasses import replace

import pytest

from magnetite.training.config import merge
from paper import recurrent, short
from paper.cells import Cell, Request, train_missing
from paper.fair import cells_of

pytestmark = pytest.mark.usefixtures("one_thread")

SMALL = {
    "sorting": {"train": 60, "valid": 12, "test": 9, "train_longest": 7, "valid_longest": 8, "longest": 9},
    "distances": {"train": 60, "per_size": 1, "protocol": "paper"},
}


def toy(cell: Cell) -> Cell:
    """The same cell with few graphs, for seconds on a CPU."""
    changes = {
        "task": SMALL[cell.task],
        "model": {"width": 32},
        "optim": {"batch": 20, "epochs": 1.0, "warmup": 0.5},
        "run": {"precision": "32-true", "evaluate_every": 1.0},
    }
    if cell.config(Request()).task.options().get("inputs"):
        changes["task"] = {**changes["task"], "inputs": 2}
    return replace(cell, changes=merge(cell.changes, changes), share=1.0)


@pytest.mark.parametrize("plan", [recurrent, short])
def test_every_cell_has_a_name_and_a_configuration_of_its_own(plan):
    cells = cells_of(plan.groups())
    hashes = {cell.config(Request()).hash for cell in cells}
    assert len(hashes) == len({cell.name for cell in cells}) == len(cells)


def test_the_first_of_the_longest_trainings_come_first():
    names = [cell.name for cell in cells_of(recurrent.groups())]
    assert names[:3] == ["recurrent-sorting", "recurrent-sorting-seed1", "recurrent-sorting-seed2"]


@pytest.mark.parametrize("name", ["recurrent-sorting", "recurrent-known-inputs", "recurrent-known-whole"])
def test_cells_can_be_trained(name, tmp_path, monkeypatch):
    monkeypatch.setattr("magnetite.tasks.sorting.KNOWN_VARIANTS", 4)
    (cell,) = (cell for cell in cells_of(recurrent.groups()) if cell.name == name)
    request = Request(tmp_path / "results", runs=tmp_path / "runs", device="cpu")
    result = train_missing([toy(cell)], request)[name]
    metrics = recurrent.REAL if "known" in name else {"": "accuracy/9"}
    assert all(result.has(metric) for metric in metrics.values())
