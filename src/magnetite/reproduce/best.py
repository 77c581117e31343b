"""What the presets `best` reach, what each of their changes is worth, and what might be better."""

from collections.abc import Mapping
from typing import Any

from magnetite.reproduce.cells import Cell, Request, figure, train_missing
from magnetite.reproduce.playground import finish
from magnetite.reproduce.sorting import by_length
from magnetite.tasks import Sorting
from magnetite.training.presets import merge, preset_tables, variants

SHORTER = 1 / 3
"""The share of the training that is enough to compare changes."""

CHOOSING: dict[str, dict[str, Any]] = {"task": {"train_longest": 10, "valid_longest": 12}}
"""What candidates for `best` are judged by: two lengths beyond those trained on, and none of the test's."""

DISTANCES = {"task": {"target": "directed-distance", "acyclic": True}}


def best_cells(task: str, encoding: str, changes: Mapping[str, Mapping[str, Any]]) -> list[Cell]:
    """The preset at full length; then shorter, with all of its changes and without each of them.

    >>> [cell.name for cell in best_cells("sorting", "none", {})][:3]
    ['best-sorting', 'best-sorting-shorter', 'best-sorting-without-relations']
    """
    name = f"best-{task}"
    cells = [
        Cell(name, task, encoding, changes, "best"),
        Cell(f"{name}-shorter", task, encoding, changes, "best", SHORTER),
    ]
    return cells + [
        Cell(f"{name}-without-{change}", task, encoding, merge(changes, tables), "best", SHORTER)
        for change, tables in variants(task, "best", "without").items()
    ]


def sorting_cells() -> list[Cell]:
    """Sorting networks."""
    return best_cells("sorting", "none", {})


def tried_cells() -> list[Cell]:
    """What `best` for sorting networks was chosen from, shorter; the first is what it is.

    >>> [cell.name for cell in tried_cells()][0]
    'tried-sorting-fast'
    """
    return [
        Cell(f"tried-sorting-{name}", "sorting", "none", merge(CHOOSING, changes), "best", SHORTER)
        for name, changes in variants("sorting", "best", "tried").items()
    ]


def quick_cells() -> list[Cell]:
    """Minutes on two cores: relations of wires, and the paper's attention over nodes with its optimiser."""
    optim = preset_tables("sorting", "magnetic", "paper")["optim"]
    learning = {option: optim[option] for option in ("lr", "betas", "clip")}
    attention = {"model": {"name": "transformer", "width": 64, "layers": 2}, "optim": learning}
    return [
        Cell("quick-sorting-relations", "sorting", "none", {}, "quick"),
        Cell("quick-sorting-attention", "sorting", "magnetic", attention, "quick"),
    ]


def distance_cells() -> list[Cell]:
    """Directed distances in DAGs."""
    return best_cells("playground", "walks", DISTANCES)


def reproduce_sorting(request: Request) -> None:
    """Accuracy and F1 by length."""
    by_length("figure-best-sorting", sorting_cells(), request)


def reproduce_quick(request: Request) -> None:
    """Accuracy and F1 by length, after minutes."""
    by_length("figure-quick-sorting", quick_cells(), request)


def reproduce_tried(request: Request) -> None:
    """Accuracy and AUC at the two lengths of validation."""
    record, cells = request.record("figure-tried-sorting"), tried_cells()
    results = train_missing(cells, request)
    lengths = Sorting(**CHOOSING["task"]).split("valid").sizes
    columns = {f"{measure} {length}": f"{measure}/{length}" for measure in ("accuracy", "auc") for length in lengths}
    rows = {cell.name: [figure(results, cell.name, name) for name in columns.values()] for cell in cells}
    finish(record, rows, list(columns), results, request)


def reproduce_distance(request: Request) -> None:
    """Errors of distances."""
    record, cells = request.record("figure-best-distance"), distance_cells()
    results = train_missing(cells, request)
    measures = ("rmse", "mae")
    rows = {cell.name: [figure(results, cell.name, measure) for measure in measures] for cell in cells}
    finish(record, rows, measures, results, request)
