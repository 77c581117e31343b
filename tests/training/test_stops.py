"""Runs that are stopped, that fail, or whose files are damaged: progress is kept, and errors name the cause."""

import math
import os
import signal
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from magnetite.cli import app
from magnetite.io.storage import DamagedFile, read_json, write_json
from magnetite.training import runs
from magnetite.training.loop import Interrupted, Trainer
from tests.training.conftest import logged, parameters, tiny

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.mark.parametrize("mode", ["resident", "fresh"])
def test_a_stopped_run_continues_to_the_same_result(trainer, tmp_path, mode, monkeypatch):
    config = tiny("magnetic", f"data.mode={mode}", "data.pool=40")
    whole = trainer(config, tmp_path / "whole")
    whole.run()

    def stop_at_five(self, block, step, original=Trainer.step):
        original(self, block, step)
        if self.progress.step == 5:
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(Trainer, "step", stop_at_five)
    with pytest.raises(Interrupted):
        trainer(config, tmp_path / "parts").run()
    monkeypatch.undo()
    second = trainer(config, tmp_path / "parts", resume=True)
    first = second.progress.elapsed
    second.run()
    assert 0 < first < second.progress.elapsed
    assert parameters(tmp_path / "parts") == parameters(tmp_path / "whole")
    for kind in ("train", "valid"):
        assert logged(tmp_path / "parts", kind) == logged(tmp_path / "whole", kind)


class Killed(BaseException):
    pass


@pytest.mark.parametrize("which", [1, 2])
def test_a_run_killed_during_a_validation_does_it_again(trainer, tmp_path, monkeypatch, which):
    config = tiny("magnetic", "run.checkpoint_minutes=1e-9", "run.log_every=1")
    whole = trainer(config, tmp_path / "whole")
    whole.run()
    calls = []

    def killed(self, data, tune=False, original=Trainer.evaluate):
        calls.append(data)
        if len(calls) == which:
            raise Killed
        return original(self, data, tune)

    monkeypatch.setattr(Trainer, "evaluate", killed)
    with pytest.raises(Killed):
        trainer(config, tmp_path / "parts").run()
    monkeypatch.undo()
    trainer(config, tmp_path / "parts", resume=True).run()
    assert parameters(tmp_path / "parts") == parameters(tmp_path / "whole")
    assert logged(tmp_path / "parts", "valid") == logged(tmp_path / "whole", "valid")


def edited(path, **changes):
    content = read_json(path, "state", "")
    return {**content, "progress": {**content["progress"], **changes}}


def test_a_stopped_run_may_continue_with_another_data_mode(trainer, tmp_path):
    for mode in ("resident", "pooled", "fresh"):
        runs._claim(tiny("none", f"data.mode={mode}"), tmp_path / mode, resume=False)
    config = runs.resumed_config(tmp_path / "resident", "sorting", "none", ["data.mode=pooled", "data.pool=40"])
    assert (config.data.mode, config.data.pool, config.optim.epochs) == ("pooled", 40, tiny("none").optim.epochs)
    runs._claim(config, tmp_path / "resident", resume=True)
    for one, other in (("fresh", "pooled"), ("pooled", "fresh")):
        with pytest.raises(ValueError, match=f"was started with data.mode='{one}'"):
            runs._claim(tiny("none", f"data.mode={other}"), tmp_path / one, resume=True)
    with pytest.raises(ValueError, match=r"was started with data.pool"):
        runs._claim(tiny("none", "data.mode=fresh", "data.pool=3"), tmp_path / "fresh", resume=True)


def test_the_time_of_a_run_is_that_of_all_its_parts(tmp_path, capsys):
    config = tiny("none", "optim.epochs=0.17")
    runs.train(config, tmp_path / "run", runs.Machine())
    state = tmp_path / "run" / "checkpoints" / "last-00000001" / "state.json"
    content = read_json(state, "state", "")
    content["progress"]["elapsed"] += 1000
    write_json(state, content)
    result = runs.train(config, tmp_path / "run", runs.Machine(), resume=True)
    assert 1000 < result["seconds"] < 2000
    assert "generating and encoding" in capsys.readouterr().err


def test_a_run_that_was_stopped_before_its_first_checkpoint_starts_again(trainer, tmp_path):
    config = tiny("none", "optim.epochs=0.34")
    trainer(config, tmp_path / "whole").run()
    trainer(config, tmp_path / "parts", resume=True).run()
    assert parameters(tmp_path / "parts") == parameters(tmp_path / "whole")


def test_a_run_continues_with_its_own_settings(tmp_path, monkeypatch):
    config = tiny("none", "optim.epochs=0.34")
    runs.write_json(tmp_path / runs.CONFIG, config.to_dict())
    calls = []
    monkeypatch.setattr(runs, "train", lambda *given: calls.append(given))
    outcome = CliRunner().invoke(app, ["train", "sorting", "--out", str(tmp_path), "--resume", "--device", "cpu"])
    assert outcome.exit_code == 0, outcome.output
    (found, folder, _, resume), *others = calls
    assert (found.hash, folder, resume, others) == (config.hash, tmp_path, True, [])
    arguments = ["train", "sorting", "--preset", "quick", "--out", str(tmp_path), "--resume", "--device", "cpu"]
    assert CliRunner().invoke(app, arguments).exit_code == 0
    assert calls[1][0].hash != config.hash  # a setting that was typed counts, even if it is the default
    with pytest.raises(ValueError, match="is a run of sorting, not of distances"):
        runs.resumed_config(tmp_path, "distances", "none")


def test_a_loss_that_is_not_finite_keeps_the_last_good_state(trainer, tmp_path, monkeypatch):
    config = tiny()
    run = trainer(config, tmp_path)
    loss = type(config.task).loss
    monkeypatch.setattr(
        type(config.task), "loss", lambda *args: loss(*args) * (math.nan if run.progress.step >= 5 else 1.0)
    )
    with pytest.raises(
        FloatingPointError, match=r"loss became nan before step 6.*lower optim.lr.*last good checkpoint"
    ):
        run.run()
    monkeypatch.undo()
    good = trainer(config, tmp_path, resume=True)
    assert good.progress.step == 4
    assert all(bool(parameter.isfinite().all()) for parameter in good.model.parameters())


def test_a_loss_that_is_never_finite_promises_no_checkpoint(trainer, tmp_path, monkeypatch):
    run = trainer(tiny("none"), tmp_path)
    monkeypatch.setattr(type(run.config.task), "loss", lambda self, outputs, batch: outputs.sum() * math.nan)
    with pytest.raises(FloatingPointError, match=r"loss became nan before step 2.*there is no checkpoint yet"):
        run.run()


def test_a_full_disk_keeps_the_last_good_state(trainer, tmp_path, monkeypatch):
    from magnetite.training import checkpoints

    def full(path, *_):
        Path(path).write_bytes(b"half")
        raise OSError(28, "No space left on device")

    original = checkpoints.write_tensors
    monkeypatch.setattr(
        checkpoints, "write_tensors", lambda path, *rest: (full if run.progress.step > 2 else original)(path, *rest)
    )
    run = trainer(tiny(), tmp_path)
    with pytest.raises(OSError, match=r"could not be written .*No space left.*the previous one is intact.*--resume"):
        run.run()
    assert [path.name for path in (tmp_path / "checkpoints").iterdir()] == ["last-00000002"]
    monkeypatch.undo()
    assert trainer(tiny(), tmp_path, resume=True).progress.step == 2


@pytest.mark.parametrize(
    ("file", "damage", "message"),
    [
        ("model.safetensors", lambda path: path.write_bytes(path.read_bytes()[:-5]), "safetensors file"),
        ("optimizer.safetensors", lambda path: path.write_bytes(b"x" * 200), "safetensors file"),
        ("model.json", lambda path: path.write_text("{"), "description of a model"),
        ("state.json", lambda path: write_json(path, {"version": "0"}), "was written by magnetite 0"),
        ("state.json", lambda path: path.write_text('{"version": "0"}'), "it has no checksum"),
        ("state.json", lambda path: path.unlink(), r"cannot be resumed \(.*state.json does not exist\): train again"),
        (
            "state.json",
            lambda path: path.write_text(path.read_text().replace('"step": 1', '"step": 2')),
            "edited or dam",
        ),
        ("state.json", lambda path: write_json(path, edited(path, step="1")), "numbers"),
        ("state.json", lambda path: path.write_bytes(b"\xff"), r"state.json is .*progress of a run \(.*utf-8"),
        ("state.json", lambda path: path.write_text("[]"), "progress of a run"),
        ("model.json", lambda path: path.unlink(), r"cannot be resumed \(.*model.json does not exist\): train again"),
        ("model.safetensors", lambda path: path.unlink(), r"cannot be resumed \(.*does not exist.*\): train again"),
        ("optimizer.safetensors", lambda path: path.unlink(), r"cannot be resumed \(.*does not exist.*\): train again"),
    ],
)
def test_a_damaged_checkpoint_is_named(trainer, tmp_path, file, damage, message):
    trainer(tiny("none", "optim.epochs=0.17"), tmp_path).run()
    damage(tmp_path / "checkpoints" / "last-00000001" / file)
    with pytest.raises((ValueError, OSError), match=message):
        trainer(tiny("none", "optim.epochs=0.17"), tmp_path, resume=True)


def test_a_foreign_checkpoint_is_rejected(trainer, tmp_path):
    trainer(tiny("none", "optim.epochs=0.17"), tmp_path).run()
    with pytest.raises(DamagedFile, match="a model of another configuration"):
        trainer(tiny("magnetic", "optim.epochs=0.17"), tmp_path, resume=True)


@pytest.mark.parametrize("settings", [["optim.average=0.5"], ["optim.clipped=update", "optim.average=0.9"]])
def test_a_stopped_run_with_an_average_continues_to_the_same_bytes(trainer, tmp_path, monkeypatch, settings):
    config = tiny("none", *settings)
    whole = trainer(config, tmp_path / "whole")
    whole.run()

    def stop_at_five(self, block, step, original=Trainer.step):
        original(self, block, step)
        if self.progress.step == 5:
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(Trainer, "step", stop_at_five)
    with pytest.raises(Interrupted):
        trainer(config, tmp_path / "parts").run()
    monkeypatch.undo()
    trainer(config, tmp_path / "parts", resume=True).run()
    assert parameters(tmp_path / "parts") == parameters(tmp_path / "whole")
    assert logged(tmp_path / "parts", "valid") == logged(tmp_path / "whole", "valid")
    assert [path for path in parameters(tmp_path / "whole") if path.endswith("average.safetensors")]


def test_averages_are_evaluated_and_saved_as_the_best_model(trainer, tmp_path):
    made = trainer(tiny("none", "optim.average=0.9", "optim.epochs=1"), tmp_path / "run")
    made.run()
    best = dict(made.model.named_parameters())  # loaded after the last step
    assert all(torch.equal(best[name], value) for name, value in made.average.values.items())
    found = made.evaluate(made.valid)
    assert found["loss"] == pytest.approx(logged(tmp_path / "run", "valid")[-1]["loss"], rel=1e-5)


def test_a_run_with_an_average_is_not_resumed_without_it(trainer, tmp_path):
    trainer(tiny("none", "optim.average=0.9", "optim.epochs=0.34"), tmp_path / "run").run()
    with pytest.raises(DamagedFile, match="cannot be resumed"):
        trainer(tiny("none", "optim.epochs=0.34"), tmp_path / "run", resume=True)
