"""Cells of compact networks and of multi-q encodings, and `known-networks`, at toy size."""

import json

import torch

from magnetite.training import runs
from magnetite.training.config import configuration
from magnetite.training.models import build_model
from paper import known, multi_q, networks
from paper.cells import Request, train_missing

SMALL = ["task.train=40", "task.valid=10", "task.test=10", "optim.epochs=0.5", "optim.batch=20", "model.width=16"]


def test_every_cell_can_be_built_and_has_its_own_hash(tmp_path):
    request = Request(out=tmp_path)
    cells = networks.cells() + networks.quick_cells() + multi_q.cells()
    configs = [cell.config(request) for cell in cells]
    assert len({config.hash for config in configs}) == len({cell.name for cell in cells}) == len(cells)
    with torch.device("meta"):
        for config in configs:
            assert build_model(config.task, config.encoding, config.model, 0).parameter_count


def test_a_model_of_compact_networks_is_evaluated_on_known_ones(tmp_path, capsys):
    cell = networks.quick_cells()[-1]
    given = cell.config(Request(out=tmp_path))
    config = configuration("sorting", "magnetic", "quick", cell.changes, [*SMALL, "encoding.k=4"])
    assert config.model.repeats == given.model.repeats
    result = runs.train(config, tmp_path / "run", runs.Machine())["result"]
    figures = result["figures"]
    assert {"accuracy/compact", "accuracy/merging"} <= figures["test"].keys()
    known.main([tmp_path / "run"], tmp_path, "cpu")
    row = json.loads((tmp_path / "known-networks.json").read_text())["result"]["rows"][0]
    assert row["balanced accuracy"] == figures["known"]["balanced_accuracy"]
    assert "one removed" in capsys.readouterr().out


def test_the_table_has_a_column_of_known_networks(tmp_path):
    cell = networks.quick_cells()[0]
    small = {"task": {"train": 40, "valid": 10, "test": 10}, "optim": {"epochs": 0.5, "batch": 20}}
    changes = {name: {**cell.changes.get(name, {}), **small.get(name, {})} for name in (*cell.changes, *small)}
    cell = type(cell)(cell.name, cell.task, cell.encoding, changes, cell.preset)
    request = Request(out=tmp_path, runs=tmp_path / "runs", device="cpu")
    metrics = train_missing([cell], request)[cell.name].metrics
    assert set(networks.COLUMNS) - {"accuracy/random"} <= metrics.keys()


def test_the_multi_q_data_are_those_of_its_paper():
    task = multi_q.cells()[0].config(Request()).task
    assert [(part.sizes, part.count) for part in map(task.split, ("train", "valid", "test"))] == [
        (range(16, 64), 400_000),
        (range(16, 64), 20_000),
        (range(64, 72), 5_000),
    ]
    sizes = task.shard("test", 0).graphs.sizes
    assert len(sizes) == 5_000 and 64 <= int(sizes.max()) <= 71
