"""Training on a folder of one's own, and predictions from the folder of the run."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import magnetite as mt
from magnetite.tasks import Supervised
from magnetite.training.config import configuration
from magnetite.training.loop import Trainer
from magnetite.training.trained import Run, train
from tests.tasks.own_data import paths, with_targets
from tests.training.conftest import logged, parameters

ROOT = Path(__file__).parents[2]
HLS = ROOT / "tests" / "data" / "hls-dfg"
SMALL = {"optim.epochs": 2, "optim.warmup": 0.5, "model.width": 16, "model.layers": 1, "encoding.k": 4}


@pytest.mark.usefixtures("one_thread")
def test_a_folder_is_trained_on_and_predicted(tmp_path):
    task = Supervised(HLS, target=("dsp", "cp"))
    run = train(task, out=tmp_path / "run", device="cpu", settings={**SMALL, "optim.batch": 10})
    metrics = run.metrics["test"]
    assert {"rmse", "rmse/dsp", "rmse/cp", "mape"} <= metrics.keys()
    moved = (tmp_path / "run").rename(tmp_path / "moved")
    found = Run(moved).predict(HLS)
    assert found.shape == (30, 2) and torch.equal(found, Run(moved).predict(task.data_set.graphs))
    error = (found - task.targets.values)[task.targets.masks["test"]].square().mean(0).sqrt()
    assert float(error.mean()) == pytest.approx(metrics["rmse"], rel=1e-4)
    assert Run(moved).config.task.options()["data"] == str(HLS)  # read again, with the same fingerprint


@pytest.mark.usefixtures("one_thread")
def test_text_classes_come_back_from_a_run(tmp_path):
    for number in range(12):
        (tmp_path / "data").mkdir(exist_ok=True)
        (tmp_path / "data" / f"g{number}.txt").write_text("a b\n" if number % 2 else "a b\nb c\nc a\n")
    labels = "".join(f"g{number},{'short' if number % 2 else 'round'}\n" for number in range(12))
    (tmp_path / "data" / "labels.csv").write_text(f"graph,shape\n{labels}")
    task = Supervised(tmp_path / "data", target="shape", kind="classification")
    run = train(task, out=tmp_path / "run", device="cpu", settings={**SMALL, "optim.lr": 0.01, "optim.epochs": 15})
    graphs = mt.Digraphs.concat([mt.read(tmp_path / "data" / f"g{number}.txt") for number in (1, 2)])
    assert set(Run(run.folder).predict(graphs)) <= {"short", "round"}
    table = run.schema.table(run.outputs(graphs))
    assert list(table) == ["shape", "shape_probability_round", "shape_probability_short"]


def flow(nodes: int, edges: int, noise: float, seed: int) -> mt.Digraphs:
    """Edges from low to high places, except for a few."""
    random = np.random.default_rng(seed)
    place, ends = random.random(nodes), random.integers(0, nodes, (2, edges))
    ends = ends[:, abs(place[ends[0]] - place[ends[1]]) > 0.2]
    forward = (place[ends[0]] < place[ends[1]]) ^ (random.random(ends.shape[1]) < noise)
    return mt.Digraphs.from_edges(np.where(forward, ends, ends[::-1]), num_nodes=nodes)


@pytest.mark.usefixtures("one_thread")
def test_the_direction_of_a_flow_is_in_the_magnetic_laplacian_alone(tmp_path):
    task = Supervised(flow(40, 700, 0.02, seed=0), level="link", target="direction")
    settings = {"optim.epochs": 20, "optim.warmup": 2, "optim.lr": 5e-3, "model.local": 0, "model.layers": 1,
                "model.width": 32, "model.dropout": 0.0}  # fmt: skip
    found = {}
    for encoding, more in (("magnetic", {"encoding.q": 0.1}), ("laplacian", {})):
        run = train(task, encoding=encoding, out=tmp_path / encoding, device="cpu", settings={**settings, **more})
        found[encoding] = run.metrics["test"]["auc"]
    assert found["magnetic"] > 0.9 and abs(found["laplacian"] - 0.5) < 0.15


def task_of(level: str) -> Supervised:
    if level == "link":
        return Supervised(flow(16, 90, 0.1, seed=1), level="link", target="existence", folds=3)
    return Supervised(with_targets(paths(40)), level=level, target="y")


class Killed(BaseException):
    """What stands for the end of the process."""


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize("level", ["graph", "node", "link"])
def test_a_killed_run_of_own_data_continues_to_the_same_bytes(level, tmp_path, monkeypatch):
    settings = {**SMALL, "optim.batch": 3, "run.checkpoint_minutes": 0.0, "optim.epochs": 4}
    whole = train(task_of(level), out=tmp_path / "whole", device="cpu", settings=settings)

    def killed(self, block, step, original=Trainer.step):
        original(self, block, step)
        if self.progress.step == 3:
            raise Killed

    monkeypatch.setattr(Trainer, "step", killed)
    with pytest.raises(Killed):
        train(task_of(level), out=tmp_path / "parts", device="cpu", settings=settings)
    monkeypatch.undo()
    parts = train(task_of(level), out=tmp_path / "parts", device="cpu", settings=settings, resume=True)
    assert parameters(tmp_path / "parts") == parameters(tmp_path / "whole") and parts.metrics == whole.metrics
    assert logged(tmp_path / "parts", "valid") == logged(tmp_path / "whole", "valid")


KILL = """
import os, signal, sys
from magnetite import cli
from magnetite.training.config import configuration
from magnetite.training.loop import Trainer
def step(self, block, number, original=Trainer.step):
    original(self, block, number)
    if self.progress.step == 3:
        os.kill(os.getpid(), signal.SIGKILL)
Trainer.step = step
cli.main()
"""


@pytest.mark.usefixtures("one_thread")
def test_kill_9_and_predictions_of_a_moved_run_in_another_process(tmp_path):
    graphs = flow(16, 90, 0.1, seed=1)
    graphs.save(tmp_path / "web.safetensors")
    settings = {**SMALL, "optim.batch": 3, "run.checkpoint_minutes": 0.0, "optim.epochs": 4}
    task = Supervised(tmp_path / "web.safetensors", level="link", target="direction", folds=3)
    whole = train(task, out=tmp_path / "whole", device="cpu", settings=settings)
    changes = [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]
    command = ["train", "--data", str(tmp_path / "web.safetensors"), "--level", "link", "--target", "direction",
               "--folds", "3", "--device", "cpu", *changes, "--out", str(tmp_path / "parts")]  # fmt: skip
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
    python = [sys.executable, "-c"]
    ended = subprocess.run([*python, KILL, *command], env=environment, capture_output=True, timeout=300)
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    train(task, out=tmp_path / "parts", device="cpu", settings=settings, resume=True)
    assert parameters(tmp_path / "parts") == parameters(tmp_path / "whole")
    assert Run(tmp_path / "parts").metrics == whole.metrics
    expected = whole.predict(graphs)
    (tmp_path / "parts").rename(tmp_path / "moved")
    predict = ["predict", str(tmp_path / "moved"), str(tmp_path / "web.safetensors"), "--out", str(tmp_path / "a.json")]
    ended = subprocess.run(
        [*python, "from magnetite import cli; cli.main()", *predict, "--device", "cpu"], env=environment, timeout=300
    )
    rows = json.loads((tmp_path / "a.json").read_text())
    assert ended.returncode == 0 and torch.equal(torch.tensor([row["direction_probability"] for row in rows]), expected)


def test_warm_up_and_validation_follow_the_epochs():
    edges = [np.array([[0, 1], [1, 2]])] * 40
    graphs = mt.Digraphs.from_edges(edges).replace(graph_features={"y": torch.randn(40)})
    task = Supervised(graphs, target="y")
    for config in (
        configuration(task, "none", "quick", {"optim": {"epochs": 80}}),
        configuration(task, "none", "quick", overrides=["optim.epochs=80"]),
    ):
        assert (config.optim.epochs, config.optim.warmup, config.run.evaluate_every) == (80, 4, 2)
