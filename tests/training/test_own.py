"""A task or an encoding of your own takes one file; no other file has to change."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from magnetite import training
from magnetite.cli import app
from tests.training import own_encoding, own_task

pytestmark = pytest.mark.usefixtures("one_thread")


def call(*arguments: object) -> str:
    outcome = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert outcome.exit_code == 0, outcome.output or outcome.exception
    return outcome.output


def test_a_task_of_your_own_trains_from_the_command_line(monkeypatch, tmp_path):
    own_task.register(monkeypatch)
    assert "dense" in call("train", "--help")
    shown = call("train", "dense", "--help")
    assert "--loops" in shown and "--no-loops" in shown and "Number of nodes of each graph." in shown
    run = tmp_path / "run"
    call("train", "dense", "--nodes", 5, "--loops", "--task-seed", 3, "--device", "cpu", "--out", run)
    config = json.loads((run / "config.json").read_text())
    assert config["task"] == {"name": "dense", "nodes": 5, "count": 60, "loops": True, "seed": 3, "shard_size": 100}
    result = json.loads((run / "result.json").read_text())["result"]
    assert result["graphs_seen"] == 120 and 0 <= result["figures"]["test"]["accuracy"] <= 1
    call("evaluate", run, "--split", "test", "--device", "cpu")
    again = json.loads((run / "evaluation-test.json").read_text())["result"]["figures"]["test"]
    assert again == result["figures"]["test"]
    call("data", "dense", "--nodes", 5, "--out", tmp_path / "data")
    assert json.loads((tmp_path / "data" / "manifest.json").read_text())["task"] == "Dense"


def test_an_encoding_of_your_own_trains_and_encodes(monkeypatch, tmp_path):
    own_task.register(monkeypatch)
    own_encoding.register(monkeypatch)
    run = tmp_path / "run"
    call("train", "dense", "--encoding", "magnetic+degrees", "--set", "encoding.power=2", "--set",
         "encoding.degrees.scale=0.5", "--device", "cpu", "--out", run)  # fmt: skip
    config = json.loads((run / "config.json").read_text())
    assert config["encoding"]["degrees"] == {"power": 2.0, "encoder": "degrees", "scale": 0.5}
    model = training.load(run)
    assert model.position.encodings()["degrees"] == own_encoding.Degrees(2.0)
    (tmp_path / "graph.txt").write_text("0 1\n0 2\n1 2\n")
    call("encode", tmp_path / "graph.txt", "--encoding", "degrees", "--out", tmp_path / "degrees.npz")
    found = np.load(tmp_path / "degrees.npz")["values"]
    np.testing.assert_allclose(found**2, [[2, 0], [1, 1], [0, 2]], atol=1e-6)
