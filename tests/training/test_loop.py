import json
import math
import shutil

import pytest
import torch

from magnetite import training
from magnetite.io.storage import write_json
from magnetite.training import runs
from magnetite.training.config import configuration
from magnetite.training.encodings import names_known
from magnetite.training.loop import Trainer
from tests.training.conftest import logged, tiny

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.mark.parametrize("encoding", [name for name in names_known() if name != "pair-walks"])
def test_every_encoding_trains(trainer, tmp_path, encoding):
    lists_pairs = encoding in ("sparse-walks", "relatives", "sparse-bias")
    changes = ["model.length_scaled=false", "model.attention=sparse", "model.readout=mean"] * lists_pairs
    run = trainer(tiny(encoding, "optim.epochs=0.34", *changes), tmp_path)
    run.run()
    figures = run.evaluate(run.evaluation_data("test"))
    assert run.progress.step == 2
    assert math.isfinite(figures["loss"])
    assert 0 <= figures["accuracy"] <= 1


@pytest.mark.parametrize("model", ["gnn", "magnet"])
def test_every_model_trains(trainer, tmp_path, model):
    run = trainer(tiny("magnetic", f"model.name={model}", "model.width=32", "optim.epochs=0.34"), tmp_path)
    run.run()
    assert run.progress.step == 2


def test_training_lowers_the_loss(trainer, tmp_path):
    changes = {"task": {"train": 64, "per_size": 5}, "model": {"width": 32, "layers": 1}, "optim": {"epochs": 20}}
    config = configuration("distances", "magnetic", "quick", {**changes, "run": {"log_every": 5}})
    trainer(config, tmp_path).run()
    losses = [line["loss"] for line in logged(tmp_path, "train")]
    assert losses[-1] < 0.9 * losses[0]


@pytest.mark.gpu
@pytest.mark.parametrize("precision", ["32-true", "bf16-mixed"])
@pytest.mark.parametrize("model", ["transformer", "pairs"])
def test_a_captured_run_equals_an_eager_one(tmp_path, model, precision):
    from lightning.fabric import Fabric

    losses = []
    for captured in ("true", "false"):
        options = ("model.width=64", "optim.epochs=2", f"run.capture={captured}")
        if model == "pairs":
            changes = {"task": {"train": 640, "per_size": 5}, "model": {"layers": 1}, "run": {"log_every": 2}}
            config = configuration("distances", "magnetic", "quick", changes, options)
        else:
            config = tiny("none", f"model.name={model}", *options)
        folder = tmp_path / captured
        folder.mkdir()
        run = Trainer(config, folder, Fabric(accelerator="cuda", devices=1, precision=precision))
        run.run()
        assert bool(getattr(run.update_step, "graphs", None)) == (captured == "true")
        losses.append([line["loss"] for line in logged(folder, "train")])
    assert losses[0] == pytest.approx(losses[1], rel=1e-3)


def test_the_best_model_of_a_run_is_loaded_from_its_folder(trainer, tmp_path):
    run = trainer(tiny("none", "optim.epochs=0.34"), tmp_path)
    run.run()
    loaded = training.load(tmp_path)
    assert all(torch.equal(tensor, run.model.state_dict()[name]) for name, tensor in loaded.state_dict().items())


def test_pools_give_the_batches_of_resident_data(trainer, tmp_path):
    for mode in ("resident", "pooled"):
        trainer(tiny("magnetic", f"data.mode={mode}", "data.pool=40"), tmp_path / mode).run()
    assert logged(tmp_path / "pooled", "train") == logged(tmp_path / "resident", "train")


def test_patience_ends_a_run(trainer, tmp_path):
    run = trainer(tiny("none", "optim.epochs=50", "optim.lr=1e-9", "run.patience=2"), tmp_path)
    run.run()
    assert run.progress.step == 18  # best at the first evaluation, worse at the second and third
    assert run.progress.best_step == 6


def test_a_run_is_a_folder_that_can_be_measured_again(tmp_path, capsys):
    config = tiny("none", "optim.epochs=0.17")
    result = runs.train(config, tmp_path / "run", runs.Machine())["result"]
    assert result["graphs_seen"] == 20
    assert result["hash"] == config.hash
    runs.evaluate(tmp_path / "run", "test", runs.Machine())
    again = json.loads((tmp_path / "run" / "evaluation-test.json").read_text())["result"]["figures"]
    assert again["test"] == result["figures"]["test"]
    assert "test 16" in capsys.readouterr().out
    figures = runs.evaluate(
        tmp_path / "run", "test", runs.Machine(), ["task.longest=18", "task.valid_longest=16", "task.test=4"]
    )
    assert {"accuracy/17", "accuracy/18"} & figures.keys() and "accuracy/16" not in figures
    assert (tmp_path / "run" / "evaluation-test-longest-18-valid-longest-16-test-4.json").exists()
    with pytest.raises(ValueError, match=r"model.width cannot be set in an evaluation"):
        runs.evaluate(tmp_path / "run", "test", runs.Machine(), ["model.width=8"])
    with pytest.raises(ValueError, match="unknown split 'all': choose one of train, valid, test, known"):
        runs.evaluate(tmp_path / "run", "all", runs.Machine())
    with pytest.raises(ValueError, match="already contains a run"):
        runs.train(config, tmp_path / "run", runs.Machine())
    with pytest.raises(ValueError, match=r"was started with optim.lr"):
        runs.train(tiny("none", "optim.epochs=0.17", "optim.lr=0.1"), tmp_path / "run", runs.Machine(), resume=True)
    with pytest.raises(ValueError, match=r"was started with encoding.walks.steps=None, not 3"):
        runs.train(tiny("walks", "optim.epochs=0.17"), tmp_path / "run", runs.Machine(), resume=True)
    shutil.rmtree(tmp_path / "run" / "checkpoints")
    with pytest.raises(ValueError, match="no trained model"):
        runs.evaluate(tmp_path / "run", "test", runs.Machine())


def test_a_run_of_a_version_with_fewer_options_is_continued(tmp_path):
    config = tiny("magnetic", "optim.epochs=0.17")
    runs.train(config, tmp_path / "run", runs.Machine())
    tables = runs.read_tables(tmp_path / "run")
    del tables["model"]["repeats"], tables["encoding"]["magnetic"]["attention_biases"], tables["data"]["neighbours"]
    write_json(tmp_path / "run" / runs.CONFIG, tables)
    runs.train(config, tmp_path / "run", runs.Machine(), resume=True)
    with pytest.raises(ValueError, match=r"was started with model.repeats=None, not 2"):
        runs.train(
            tiny("magnetic", "optim.epochs=0.17", "model.repeats=2"), tmp_path / "run", runs.Machine(), resume=True
        )
