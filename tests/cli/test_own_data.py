"""Your own data from the command line: train, evaluate, predict."""

import csv
import json
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import magnetite as mt
from magnetite import cli
from tests.cli.test_app import call

CIRCUITS = Path(__file__).parents[1] / "data" / "hls-dfg"
SMALL = ["--set", "model.width=16", "--set", "model.layers=1", "--set", "encoding.k=4", "--epochs", "1"]


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> Path:
    """A run on thirty circuits with two targets."""
    folder = tmp_path_factory.mktemp("own") / "run"
    arguments = ["train", "--data", CIRCUITS, "--target", "dsp,lut", *SMALL, "--out", folder]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["magnetite", *map(str, arguments)])
        with pytest.raises(SystemExit) as caught:
            cli.main()
    assert not caught.value.code
    return folder


def test_predictions_are_those_of_the_test_split(trained, tmp_path, monkeypatch, capsys):
    answers = tmp_path / "answers.csv"
    code, _, stderr = call(monkeypatch, capsys, "predict", trained, CIRCUITS, "--out", answers)
    assert code == 0, stderr
    with answers.open() as file:
        rows = list(csv.DictReader(file))
    assert [int(row["graph"]) for row in rows] == list(range(30))
    task = mt.Run(trained).config.task
    test = task.targets.masks["test"]
    found = torch.tensor([[float(row["dsp"]), float(row["lut"])] for row in rows])
    errors = (found - task.targets.values)[test].square().mean(0).sqrt()
    metrics = mt.Run(trained).metrics["test"]
    assert errors.tolist() == pytest.approx([metrics["rmse/dsp"], metrics["rmse/lut"]], rel=1e-4)


@pytest.mark.parametrize("extension", ["parquet", "json"])
def test_answers_in_other_formats(trained, tmp_path, monkeypatch, capsys, extension):
    from pyarrow import parquet

    path = tmp_path / f"answers.{extension}"
    assert call(monkeypatch, capsys, "predict", trained, CIRCUITS, "--out", path)[0] == 0
    rows = parquet.read_table(path).to_pylist() if extension == "parquet" else json.loads(path.read_text())
    assert len(rows) == 30
    assert set(rows[0]) == {"graph", "dsp", "lut"}


def test_a_moved_run_predicts_the_same(trained, tmp_path):
    graphs = mt.Run(trained).config.task.data_set.graphs
    before = mt.Run(trained).predict(graphs)
    moved = trained.rename(tmp_path / "moved")
    try:
        assert torch.equal(mt.Run(moved).predict(graphs), before)
    finally:
        moved.rename(trained)


def test_a_run_is_evaluated_and_resumed(trained, monkeypatch, capsys):
    assert call(monkeypatch, capsys, "evaluate", trained)[0] == 0
    assert call(monkeypatch, capsys, "train", "supervised", "--resume", "--out", trained)[0] == 0


def test_changed_data_are_refused(tmp_path, monkeypatch, capsys):
    def write(shift: float) -> None:
        graphs = mt.Digraphs.from_edges([np.array([[0, 1], [1, 2]])] * 20)
        graphs.replace(graph_features={"y": torch.arange(20.0) + shift}).save(tmp_path / "data.safetensors")

    write(0)
    arguments = ["train", "--data", tmp_path / "data.safetensors", *SMALL, "--out", tmp_path / "run"]
    assert call(monkeypatch, capsys, *arguments)[0] == 0
    write(1)
    code, _, stderr = call(monkeypatch, capsys, "evaluate", tmp_path / "run")
    assert code == 2
    assert "are not those of the run" in stderr
    assert stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train", "--data", "nowhere"], "nowhere does not exist"),
        (["train", "--data", CIRCUITS, "--target", "area"], "area"),
        (["train", "--data", CIRCUITS, "--target", "dsp", "--level", "edge"], "level"),
        (["train", "--data", CIRCUITS, "--target", "dsp", "--splits", "0.5,0.5"], "splits"),
        (["train", "--data", CIRCUITS, "--target", "dsp", "--preset", "best"], "preset"),
        (["train", "supervised"], "data"),
        (["data", "supervised", "--out", "x"], "unknown task"),
        (["predict", "nowhere", CIRCUITS, "--out", "a.csv"], "nowhere"),
        (["predict", "nowhere", CIRCUITS, "--out", "a.txt"], "extension"),
    ],
)
def test_errors_are_one_line(tmp_path, monkeypatch, capsys, arguments, message):
    monkeypatch.chdir(tmp_path)
    code, _, stderr = call(monkeypatch, capsys, *arguments)
    assert code == 2
    assert message in stderr
    assert stderr.count("\n") == 1
    assert not list(tmp_path.iterdir())
