"""The plan of fair comparisons: both forms, three seeds, and every cell can be trained."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import magnetite as mt
from magnetite.batching import Batch
from magnetite.tasks.base import Examples
from magnetite.training.config import Config, merge
from magnetite.training.models import build_model
from paper import fair
from paper.cells import Cell, Request, train_missing

pytestmark = pytest.mark.usefixtures("one_thread")

SORTING = {"train": 60, "valid": 12, "test": 8, "train_longest": 7, "valid_longest": 8, "longest": 9}
SMALL = {"train": 40, "per_size": 1}


def toy(cell: Cell) -> Cell:
    """The same cell with few graphs and a small model, for seconds on a CPU."""
    sizes: dict = {"width": 32} if cell.changes.get("model", {}).get("name") in ("gnn", "magnet") else {
        "width": 32, "layers": 1,
    }  # fmt: skip
    changes = {
        "task": SORTING if cell.task == "sorting" else SMALL,
        "model": sizes,
        "optim": {"batch": 20, "epochs": 1.0, "warmup": 0.5},
        "run": {"precision": "32-true", "evaluate_every": 1.0},
    }
    return replace(cell, changes=merge(cell.changes, changes), share=1.0)


def test_every_cell_has_a_configuration_and_a_name_of_its_own(tmp_path):
    made, request = fair.cells_of(fair.groups()), Request(tmp_path)
    first = [cell for cell in made if "-seed" not in cell.name]
    assert len(made) == len({cell.name for cell in made}) == 3 * len(first)
    assert len({cell.config(request).hash for cell in first}) == len(first)
    seeds = [fair.seeded(first[0], seed).config(request) for seed in fair.SEEDS]
    assert [config.run.seed for config in seeds] == [0, 1, 2] and len({config.hash for config in seeds}) == 3


def test_the_first_seed_of_ours_is_what_figures_have_trained():
    request = Request(Path(__file__).parents[2] / "results")
    for name in ("playground-reachability-dag-magnetic", "sorting-magnetic-q0.25", "sorting-gnn-directed-3"):
        (cell,) = (cell for group in fair.groups() for cell in group.cells if cell.name == name)
        assert cell.result(request) is not None, name


def test_the_authors_form_differs_from_ours_in_what_the_paper_leaves_open(tmp_path):
    def tables(cell: Cell) -> dict:
        return cell.config(Request(tmp_path)).to_dict()

    def differences(first: dict, second: dict) -> dict:
        found = {}
        for table in ("task", "model", "optim", "data", "run"):
            found |= {key: value for key, value in second[table].items() if value != first[table].get(key)}
        for name, options in second["encoding"].items():
            found |= {key: value for key, value in options.items() if value != first["encoding"].get(name, {}).get(key)}
        return found

    cells = {cell.name: cell for group in fair.groups() for cell in group.cells}
    common = {"init": "fan-in", "clipped": "update"}
    attention = {"inner_dropout": True, **common}
    eigen = {"attention_dropout": 0.15, "attention_biases": False, "parallel": "once"}
    playground = {"self_loops": True, "dropout": 0.1}
    expected = {
        "playground-reachability-dag-magnetic": {**playground, **attention, **eigen, "q": "Relative(0.1)"},
        "playground-reachability-dag-laplacian": {**playground, **attention, **eigen, "absolute_first": True},
        "playground-reachability-dag-walks": {**playground, **attention, "hidden": 8, "node_layers": 1},
        "playground-reachability-dag-svd": {**playground, **attention, "signs": "independent"},
        "playground-reachability-dag-magnet": {"self_loops": True, **common, "order": 1, "real_start": True},
        "sorting-magnetic": {"base": 26.0, **attention, **eigen},
        "sorting-sinusoidal": {"base": 26.0, **attention},
    }
    for name, options in expected.items():
        assert differences(tables(cells[name]), tables(fair.authors(cells[name]))) == options, name
    relative = fair.authors(cells["playground-reachability-dag-relative-walks"])
    assert list(tables(relative)["encoding"]) == ["relative-walks"]


def one_batch(config: Config, examples: Examples) -> Batch:
    position = build_model(config.task, config.encoding, config.model, 0).position
    encodings = {} if position is None else position.encodings()
    encoded = {name: encoding(examples.graphs) for name, encoding in encodings.items()}
    query = None if examples.targets is None else examples.targets.query()
    return mt.batch(examples.graphs, query=query, **encoded)


@pytest.mark.filterwarnings("ignore::magnetite.linalg.potential.PotentialWarning")  # the sweep has such potentials
def test_every_cell_can_take_a_step_at_toy_size(tmp_path):
    """All models and encodings of the plan, one cell of each: a loss with finite gradients."""
    data: dict = {}
    first = [toy(cell) for cell in fair.cells_of(fair.groups()) if "-seed" not in cell.name]
    kinds = {}  # targets and kinds of graphs do not change a model
    for cell in first:
        others = {name: options for name, options in cell.changes.items() if name not in ("task", "run")}
        kinds[cell.task, cell.preset, cell.encoding, json.dumps(others, sort_keys=True)] = cell
    for cell in kinds.values():
        config = cell.config(Request(tmp_path))
        task = (cell.task, *config.task.variant)
        if task not in data:
            data[task] = config.task.shard("train", 0)
        some = data[task].graphs[:6]
        examples = Examples(some, None if data[task].targets is None else data[task].targets[:6])
        model = build_model(config.task, config.encoding, config.model, 0)
        batch = one_batch(config, examples)
        loss = config.task.loss(model(batch), batch)
        loss.backward()
        found = [parameter.grad for parameter in model.parameters() if parameter.grad is not None]
        assert found and all(bool(gradient.isfinite().all()) for gradient in found), cell.name
        assert bool(torch.isfinite(loss)), cell.name


def test_a_part_of_the_plan_at_toy_size_from_training_to_the_table(tmp_path, monkeypatch, capsys):
    plan = {cell.name: cell for cell in fair.cells_of(fair.groups())}
    chosen = ["authors-playground-reachability-dag-svd", "authors-sorting-laplacian-seed1", "general-with-average"]
    toys = [toy(plan[name]) for name in chosen]
    request = Request(tmp_path / "results", runs=tmp_path / "runs", device="cpu")
    assert sorted(train_missing(toys, request)) == sorted(chosen)
    monkeypatch.setattr(fair, "cells_of", lambda _: toys)
    fair.figure(Request(tmp_path / "results", runs=tmp_path / "runs", device="cpu", train=False))
    assert "3 cells trained, 0 not run" in capsys.readouterr().out
    tables = json.loads((tmp_path / "results" / "table-fair.json").read_text())["result"]["tables"]
    found = tables["main encodings, reachability and directed distance"]["authors-playground-reachability-dag-svd"]
    assert len(found["f1"]) == 1 and found["rmse"] == []
