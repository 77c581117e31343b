"""Checkpoints: a kill at any moment leaves one to resume from, and damage is named."""

import os
import shutil

import pytest
import torch

from magnetite.io.storage import DamagedFile
from magnetite.nn import DigraphTransformer, GraphHead
from magnetite.training.checkpoints import Checkpoints, Progress

from ..kills import after_every_kill


def model_of(value: float) -> tuple[DigraphTransformer, torch.optim.Optimizer]:
    """A small model, all of whose parameters and optimiser states follow from `value`."""
    model = DigraphTransformer(8, 1, GraphHead(1), heads=1)
    for parameter in model.parameters():
        parameter.data.fill_(value)
        parameter.grad = torch.full_like(parameter, value)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.0, weight_decay=0.0)
    optimizer.step()
    return model, optimizer


def restored(folder) -> float:
    """The value of the checkpoint; an error if its files do not belong together."""
    model, optimizer = model_of(-1.0)
    progress = Checkpoints(folder).restore(model, optimizer)
    found = {float(parameter.detach().flatten()[0]) for parameter in model.parameters()}
    found |= {round(float(entry["exp_avg"].flatten()[0]) * 10, 4) for entry in optimizer.state.values()}
    assert found == {progress.seconds}
    if progress.best_step:
        loaded, _ = model_of(-1.0)
        Checkpoints(folder).load_best(loaded, progress.best_step)
    return progress.seconds


def save(folder, value: float, step: int, best: int = 0) -> None:
    model, optimizer = model_of(value)
    if best:
        Checkpoints(folder).save_best(model, best)
    Checkpoints(folder).save_last(model, optimizer, Progress(step=step, best_step=best, seconds=value))


@pytest.mark.parametrize(("step", "best"), [(10, 10), (20, 20)])
def test_a_kill_at_any_moment_leaves_a_checkpoint(tmp_path, monkeypatch, step, best):
    """A second save at the same step, or at a later one, with the best model or without."""
    folder = tmp_path / "checkpoints"
    save(folder, 1.0, step=10, best=best and 10)
    found = []
    monkeypatch.setattr(os, "fsync", lambda handle: None)
    for _ in after_every_kill(lambda: save(folder, 2.0, step, best), folder):
        found.append(restored(folder))
        again = tmp_path / "again"  # the resumed run cleans up and saves the same once more
        shutil.copytree(folder, again)
        Checkpoints(again).clean()
        assert restored(again) == found[-1]
        save(again, 2.0, step, best)
        assert restored(again) == 2.0
        names = {f"last-{step:08d}"} | ({f"best-{best:08d}"} if best else set())
        assert {path.name for path in again.iterdir()} == names
        shutil.rmtree(again)
    assert found == sorted(found) and set(found) == {1.0, 2.0} and len(found) > 20


def test_the_best_model_is_the_one_that_the_last_checkpoint_names(tmp_path):
    save(tmp_path, 1.0, step=4, best=4)
    Checkpoints(tmp_path).save_best(model_of(2.0)[0], 6)  # killed before the checkpoint that refers to it
    assert Checkpoints(tmp_path).best_step() == 4
    shutil.rmtree(tmp_path / "last-00000004")
    assert Checkpoints(tmp_path).best_step() == 6


def test_files_of_two_saves_are_rejected(tmp_path):
    save(tmp_path / "one", 1.0, step=1)
    save(tmp_path / "two", 2.0, step=1)
    for names in (["model.json", "model.safetensors"], ["optimizer.safetensors"], ["state.json"]):
        shutil.copytree(tmp_path / "one", tmp_path / "mixed")
        for name in names:
            shutil.copy(tmp_path / "two" / "last-00000001" / name, tmp_path / "mixed" / "last-00000001" / name)
        with pytest.raises(DamagedFile, match=r"cannot be resumed \(the files of .* are of several saves\)"):
            restored(tmp_path / "mixed")
        shutil.rmtree(tmp_path / "mixed")


def test_messages_promise_only_what_is_there(tmp_path, monkeypatch):
    from magnetite.training import checkpoints

    one, many = Checkpoints(tmp_path / "one"), Checkpoints(tmp_path / "many")
    assert "there is no checkpoint yet" in one.advice()
    save(one.folder, 1.0, step=4)
    assert one.advice().endswith("last-00000004")
    (one.folder / "last-00000004" / "state.json").write_text("{}")
    with pytest.raises(DamagedFile, match=r"cannot be resumed .*: train again with another --out$"):
        restored(one.folder)
    save(many.folder, 1.0, step=4, best=4)
    shutil.copytree(many.folder / "last-00000004", many.folder / "last-00000005")  # killed before 4 was removed
    (many.folder / "last-00000005" / "state.json").write_text("{}")
    with pytest.raises(DamagedFile, match=r"remove .*last-00000005 to continue from step 4.* uses its best model"):
        restored(many.folder)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(checkpoints, "write_tensors", full)
    with pytest.raises(OSError, match=r"No space left on device\): there is no earlier one; free some space and start"):
        save(tmp_path / "new", 1.0, step=1)
    with pytest.raises(OSError, match=r"the previous one is intact; .* continue with --resume from step 5"):
        save(many.folder, 2.0, step=6)
