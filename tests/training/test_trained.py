"""Training on a folder of one's own, and predictions from the folder of the run."""

from pathlib import Path

import pytest
import torch

import magnetite as mt
from magnetite.tasks import Supervised
from magnetite.training.trained import Run, train

HLS = Path(__file__).parents[1] / "data" / "hls-dfg"
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
