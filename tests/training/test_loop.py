import json
import math
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from magnetite import training
from magnetite.cli import app
from magnetite.storage import DamagedFile
from magnetite.training import session
from magnetite.training.encodings import ENCODINGS
from magnetite.training.interruptions import Interrupted
from magnetite.training.loop import Trainer
from magnetite.training.presets import configuration
from tests.training.conftest import tiny

pytestmark = pytest.mark.usefixtures("one_thread")


def logged(folder: Path, kind: str) -> list[dict]:
    lines = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    return [
        {name: value for name, value in line.items() if name != "graphs_per_second"}
        for line in lines
        if line["kind"] == kind
    ]


def parameters(folder: Path) -> dict[str, bytes]:
    """What the checkpoints of a run hold, byte for byte; only the time that it took may differ."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted((folder / "checkpoints").rglob("*.safetensors"))
    }


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_every_encoding_trains(trainer, tmp_path, encoding):
    run = trainer(tiny(encoding, "optim.epochs=0.34"), tmp_path)
    run.run()
    figures = run.evaluate(run.evaluation_data("test"))
    assert run.position.step == 2
    assert math.isfinite(figures["loss"])
    assert 0 <= figures["accuracy"] <= 1


@pytest.mark.parametrize("model", ["gnn", "magnet", "relations"])
def test_every_model_trains(trainer, tmp_path, model):
    run = trainer(tiny("magnetic", f"model.name={model}", "model.width=32", "optim.epochs=0.34"), tmp_path)
    run.run()
    assert run.position.step == 2


def test_a_training_lowers_its_loss(trainer, tmp_path):
    changes = {"task": {"train": 64, "per_size": 5}, "model": {"width": 32, "layers": 1}, "optim": {"epochs": 20}}
    config = configuration("playground", "magnetic", "quick", {**changes, "run": {"log_every": 5}})
    trainer(config, tmp_path).run()
    losses = [line["loss"] for line in logged(tmp_path, "train")]
    assert losses[-1] < 0.9 * losses[0]


@pytest.mark.gpu
@pytest.mark.parametrize("precision", ["32-true", "bf16-mixed"])
@pytest.mark.parametrize("model", ["transformer", "relations", "pairs"])
def test_a_captured_training_goes_as_one_that_is_not(tmp_path, model, precision):
    from lightning.fabric import Fabric

    losses = []
    for captured in ("true", "false"):
        options = ("model.width=64", "optim.epochs=2", f"run.capture={captured}")
        if model == "pairs":
            changes = {"task": {"train": 640, "per_size": 5}, "model": {"layers": 1}, "run": {"log_every": 2}}
            config = configuration("playground", "magnetic", "quick", changes, options)
        else:
            config = tiny("none", f"model.name={model}", *options)
        folder = tmp_path / captured
        folder.mkdir()
        run = Trainer(config, folder, Fabric(accelerator="cuda", devices=1, precision=precision))
        run.run()
        assert bool(getattr(run.update, "graphs", None)) == (captured == "true")
        losses.append([line["loss"] for line in logged(folder, "train")])
    assert losses[0] == pytest.approx(losses[1], rel=1e-3)


@pytest.mark.slow
def test_networks_of_twice_the_length_are_judged_after_minutes(trainer, tmp_path):
    run = trainer(configuration("sorting", "none", "quick"), tmp_path)
    run.run()
    figures = run.evaluate(run.evaluation_data("test"))
    assert min(figures[f"accuracy/{length}"] for length in range(10, 17)) > 0.85


@pytest.mark.parametrize("mode", ["resident", "fresh"])
def test_a_stopped_training_goes_on_to_the_same_result(trainer, tmp_path, mode, monkeypatch):
    config = tiny("magnetic", f"data.mode={mode}", "data.pool=40")
    whole = trainer(config, tmp_path / "whole")
    whole.run()

    def stop_at_five(self, block, step, original=Trainer.step):
        original(self, block, step)
        if self.position.step == 5:
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(Trainer, "step", stop_at_five)
    with pytest.raises(Interrupted):
        trainer(config, tmp_path / "parts").run()
    monkeypatch.undo()
    second = trainer(config, tmp_path / "parts", resume=True)
    first = second.position.elapsed
    second.run()
    assert 0 < first < second.position.elapsed
    assert parameters(tmp_path / "parts") == parameters(tmp_path / "whole")
    for kind in ("train", "valid"):
        assert logged(tmp_path / "parts", kind) == logged(tmp_path / "whole", kind)


def test_a_training_that_was_stopped_before_its_first_checkpoint_begins_again(trainer, tmp_path):
    config = tiny("none", "optim.epochs=0.34")
    trainer(config, tmp_path / "whole").run()
    trainer(config, tmp_path / "parts", resume=True).run()
    assert parameters(tmp_path / "parts") == parameters(tmp_path / "whole")


def test_a_run_goes_on_by_its_own_settings(tmp_path, monkeypatch):
    config = tiny("none", "optim.epochs=0.34")
    session.write_json(tmp_path / session.CONFIG, config.to_dict())
    asked = []
    monkeypatch.setattr(session, "train", lambda *given: asked.append(given))
    outcome = CliRunner().invoke(app, ["train", "sorting", "--out", str(tmp_path), "--resume", "--device", "cpu"])
    assert outcome.exit_code == 0, outcome.output
    (found, folder, _, resume), *others = asked
    assert (found.hash, folder, resume, others) == (config.hash, tmp_path, True, [])
    arguments = ["train", "sorting", "--preset", "quick", "--out", str(tmp_path), "--resume", "--device", "cpu"]
    assert CliRunner().invoke(app, arguments).exit_code == 0
    assert asked[1][0].hash != config.hash  # a setting that was typed counts, even if it is the default
    with pytest.raises(ValueError, match="is of sorting, not of playground"):
        session.settings_of(tmp_path, "playground", "none")


def test_the_best_model_of_a_training_is_loaded_from_its_folder(trainer, tmp_path):
    run = trainer(tiny("none", "optim.epochs=0.34"), tmp_path)
    run.run()
    loaded = training.load(tmp_path)
    assert all(torch.equal(tensor, run.model.state_dict()[name]) for name, tensor in loaded.state_dict().items())


def test_pools_give_the_batches_of_resident_data(trainer, tmp_path):
    for mode in ("resident", "pooled"):
        trainer(tiny("magnetic", f"data.mode={mode}", "data.pool=40"), tmp_path / mode).run()
    assert logged(tmp_path / "pooled", "train") == logged(tmp_path / "resident", "train")


def test_patience_ends_a_training(trainer, tmp_path):
    run = trainer(tiny("none", "optim.epochs=50", "optim.lr=1e-9", "run.patience=2"), tmp_path)
    run.run()
    assert run.position.step == 18  # best at the first evaluation, worse at the second and third
    assert run.position.best_step == 6


def test_a_loss_that_is_no_number_keeps_the_last_good_state(trainer, tmp_path, monkeypatch):
    config = tiny()
    run = trainer(config, tmp_path)
    loss = type(config.task).loss
    monkeypatch.setattr(
        type(config.task), "loss", lambda *args: loss(*args) * (math.nan if run.position.step >= 5 else 1.0)
    )
    with pytest.raises(FloatingPointError, match=r"loss became nan before step 6.*lower optim.lr.*last good state"):
        run.run()
    monkeypatch.undo()
    good = trainer(config, tmp_path, resume=True)
    assert good.position.step == 4
    assert all(bool(parameter.isfinite().all()) for parameter in good.model.parameters())


def test_a_full_disk_keeps_the_last_good_state(trainer, tmp_path, monkeypatch):
    from magnetite.training import checkpoints

    def full(path, *_):
        Path(path).write_bytes(b"half")
        raise OSError(28, "No space left on device")

    original = checkpoints.write_tensors
    monkeypatch.setattr(
        checkpoints, "write_tensors", lambda path, *rest: (full if run.position.step > 2 else original)(path, *rest)
    )
    run = trainer(tiny(), tmp_path)
    with pytest.raises(OSError, match=r"could not be written .*No space left.*the one before it is whole.*--resume"):
        run.run()
    assert [path.name for path in (tmp_path / "checkpoints").iterdir()] == ["last-00000002"]
    monkeypatch.undo()
    assert trainer(tiny(), tmp_path, resume=True).position.step == 2


@pytest.mark.parametrize(
    ("file", "damage", "message"),
    [
        ("model.safetensors", lambda path: path.write_bytes(path.read_bytes()[:-5]), "not a whole safetensors file"),
        ("optimizer.safetensors", lambda path: path.write_bytes(b"x" * 200), "not a whole safetensors file"),
        ("model.json", lambda path: path.write_text("{"), "no description of a model"),
        ("state.json", lambda path: path.write_text('{"version": "0"}'), "was written by magnetite 0"),
        ("state.json", lambda path: path.unlink(), "no position of a training"),
        ("optimizer.safetensors", lambda path: path.unlink(), "does not exist"),
    ],
)
def test_a_damaged_checkpoint_is_named(trainer, tmp_path, file, damage, message):
    trainer(tiny("none", "optim.epochs=0.17"), tmp_path).run()
    damage(tmp_path / "checkpoints" / "last-00000001" / file)
    with pytest.raises((ValueError, OSError), match=message):
        trainer(tiny("none", "optim.epochs=0.17"), tmp_path, resume=True)


def test_a_foreign_checkpoint_is_refused(trainer, tmp_path):
    trainer(tiny("none", "optim.epochs=0.17"), tmp_path).run()
    with pytest.raises(DamagedFile, match="another model than the configuration describes"):
        trainer(tiny("magnetic", "optim.epochs=0.17"), tmp_path, resume=True)


SETTINGS = """
import sys
from pathlib import Path
import torch
torch.set_num_threads(1)
from tests.training.conftest import tiny
from magnetite.training import session
folder, resume, devices, *overrides = sys.argv[1:]
session.train(tiny("magnetic", *overrides), Path(folder), session.Machine("cpu", int(devices)), resume == "resume")
"""


def start(folder: Path, resume: bool, devices: int, *overrides: str) -> subprocess.Popen:
    script = folder.parent / "train.py"
    script.write_text(SETTINGS)
    root = Path(__file__).parents[2]
    arguments = [sys.executable, str(script), str(folder), "resume" if resume else "start", str(devices), *overrides]
    path = os.pathsep.join([str(root / "src"), str(root)])
    return subprocess.Popen(
        arguments, env={**os.environ, "PYTHONPATH": path}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )


def finish(process: subprocess.Popen) -> None:
    output, _ = process.communicate(timeout=600)
    assert process.returncode == 0, output.decode()


@pytest.mark.slow
def test_killed_at_any_step_it_goes_on_to_the_same_result(tmp_path):
    overrides = ["optim.epochs=6", "run.log_every=1"]
    finish(start(tmp_path / "whole", False, 1, *overrides))
    killed = start(tmp_path / "parts", False, 1, *overrides)
    log = tmp_path / "parts" / "log.jsonl"
    lines = random.randint(2, 20)
    while not log.exists() or len(log.read_text().splitlines()) < lines:
        assert killed.poll() is None, killed.communicate()[0].decode()
        time.sleep(0.01)
    killed.kill()
    killed.communicate()
    assert not (tmp_path / "parts" / "result.json").exists()
    finish(start(tmp_path / "parts", True, 1, *overrides))
    assert parameters(tmp_path / "parts") == parameters(tmp_path / "whole")
    results = [
        json.loads((tmp_path / name / "result.json").read_text())["result"]["figures"] for name in ("whole", "parts")
    ]
    assert results[0] == results[1]


@pytest.mark.slow
def test_two_processes_are_one_with_twice_the_batch(tmp_path):
    overrides = ["model.dropout=0.0", "encoding.dropout=0.0", "run.log_every=1"]
    finish(start(tmp_path / "one", False, 1, *overrides))
    finish(start(tmp_path / "two", False, 2, *overrides))
    one, two = ([line["loss"] for line in logged(tmp_path / name, "train")] for name in ("one", "two"))
    assert len(one) == 12
    assert one == pytest.approx(two, rel=1e-5)
    valid = [logged(tmp_path / name, "valid")[-1] for name in ("one", "two")]
    assert valid[0]["loss"] == pytest.approx(valid[1]["loss"], rel=1e-5)


def test_a_run_is_a_folder_that_can_be_measured_again(tmp_path, capsys):
    config = tiny("none", "optim.epochs=0.17")
    result = session.train(config, tmp_path / "run", session.Machine())["result"]
    assert result["graphs_seen"] == 20
    assert result["hash"] == config.hash
    session.evaluate(tmp_path / "run", "test", session.Machine())
    again = json.loads((tmp_path / "run" / "evaluation-test.json").read_text())["result"]["figures"]
    assert again["test"] == result["figures"]["test"]
    assert "test 16" in capsys.readouterr().out
    with pytest.raises(ValueError, match="holds a run already"):
        session.train(config, tmp_path / "run", session.Machine())
    with pytest.raises(ValueError, match=r"was started with optim.lr"):
        session.train(
            tiny("none", "optim.epochs=0.17", "optim.lr=0.1"), tmp_path / "run", session.Machine(), resume=True
        )
    shutil.rmtree(tmp_path / "run" / "checkpoints")
    with pytest.raises(ValueError, match="no trained model"):
        session.evaluate(tmp_path / "run", "test", session.Machine())
