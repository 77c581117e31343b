import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import pytest
import torch
from typer.testing import CliRunner

from magnetite.cli import app
from magnetite.io import storage
from magnetite.io.storage import DamagedFile
from magnetite.tasks import Distances, Sorting
from magnetite.tasks.shards import read, write

from ..kills import after_every_kill

SMALL = Distances(target="reachability", train=50, per_size=10, shard_size=20)


def contents(folder) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("task", [SMALL, Sorting(train=50, valid=20, test=20, shard_size=20)])
def test_written_data_are_the_generated_data(task, tmp_path):
    manifest = json.loads(write(task, tmp_path).read_text())
    assert manifest["seed"] == 0 and manifest["parameters"]["shard_size"] == 20
    assert list(manifest["files"]) == sorted(path.name for path in tmp_path.glob("*.safetensors"))
    for split in ("train", "valid", "test"):
        for number, kept in enumerate(read(tmp_path, split)):
            generated = task.shard(split, number)
            assert kept.tensors().keys() == generated.tensors().keys()
            assert all(torch.equal(tensor, generated.tensors()[name]) for name, tensor in kept.tensors().items())
            assert manifest["files"][f"{split}-{number:05d}.safetensors"]["graphs"] == len(kept)


def test_two_runs_write_the_same_bytes(tmp_path):
    for folder in ("one", "two"):
        write(SMALL, tmp_path / folder)
    assert contents(tmp_path / "one") == contents(tmp_path / "two")


def test_splits_written_one_after_the_other_are_the_same(tmp_path):
    write(SMALL, tmp_path / "one")
    for split in ("test", "train", "valid"):
        write(SMALL, tmp_path / "two", [split])
    assert contents(tmp_path / "one") == contents(tmp_path / "two")


def test_damaged_and_half_written_shards_are_replaced(tmp_path):
    write(SMALL, tmp_path)
    before = contents(tmp_path)
    (tmp_path / "train-00001.safetensors").write_bytes(before["train-00001.safetensors"][:-3])
    (tmp_path / "valid-00000.safetensors").unlink()
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    (tmp_path / f".magnetite-{storage._machine()}-{dead.pid}-00000000.safetensors").write_bytes(b"half")
    with pytest.raises(DamagedFile):
        list(read(tmp_path, "train"))
    generated = []
    write(SMALL, tmp_path, progress=lambda split, graphs: generated.append((split, graphs)))
    assert contents(tmp_path) == before
    assert len(generated) == len(before) - 1


def test_another_data_set_is_rejected(tmp_path):
    write(SMALL, tmp_path, ["valid"])
    with pytest.raises(ValueError, match="seed 0 instead of 1"):
        write(Distances(target="reachability", train=50, per_size=10, shard_size=20, seed=1), tmp_path)
    with pytest.raises(ValueError, match="task Distances instead of Sorting"):
        write(Sorting(), tmp_path)
    with pytest.raises(ValueError, match="no complete split 'train'"):
        list(read(tmp_path, "train"))
    with pytest.raises(ValueError, match="has no manifest"):
        list(read(tmp_path / "nowhere", "train"))


@pytest.mark.parametrize("name", ["train-00000.safetensors", ".mine.safetensors", "thesis.tex", "manifest.json"])
def test_a_folder_with_foreign_files_is_left_alone(name, tmp_path):
    (tmp_path / name).write_text("years of work")
    with pytest.raises(ValueError, match=f"{name}.*(choose a new or empty folder|choose another folder)"):
        write(SMALL, tmp_path)
    assert contents(tmp_path) == {name: b"years of work"}


def test_foreign_files_beside_a_data_set_are_left_alone(tmp_path):
    write(SMALL, tmp_path, ["valid"])
    others = [".mine.safetensors", ".train-00000-abc.safetensors", "thesis.tex"]
    for name in others:
        (tmp_path / name).write_text("years of work")
    write(SMALL, tmp_path, ["test"])
    assert all((tmp_path / name).read_text() == "years of work" for name in others)
    (tmp_path / "train-00001.safetensors").write_text("years of work")
    with pytest.raises(ValueError, match=r"train-00001.safetensors is not a shard of this data set: move it away"):
        write(SMALL, tmp_path, ["train"])
    assert (tmp_path / "train-00001.safetensors").read_text() == "years of work"


def test_without_a_manifest_only_shards_of_the_same_data_are_kept(tmp_path):
    write(SMALL, tmp_path)
    before = contents(tmp_path)
    (tmp_path / "manifest.json").unlink()
    for other in (replace(SMALL, seed=1), replace(SMALL, target="adjacency"), Sorting()):
        with pytest.raises(ValueError, match="choose a new or empty folder"):
            write(other, tmp_path)
    write(SMALL, tmp_path)
    assert contents(tmp_path) == before


def test_a_shard_in_the_place_of_another_is_not_used(tmp_path):
    write(SMALL, tmp_path / "one")
    before = contents(tmp_path / "one")
    write(replace(SMALL, seed=1), tmp_path / "two")
    names = ["train-00000.safetensors", "train-00001.safetensors"]
    swaps = [(names[0], before[names[1]]), (names[0], (tmp_path / "two" / names[0]).read_bytes())]
    for verify in (True, False):
        for name, content in swaps:
            (tmp_path / "one" / name).write_bytes(content)
            with pytest.raises(DamagedFile, match=r"train-00000.safetensors is not the shard that manifest.json lists"):
                list(read(tmp_path / "one", "train", verify))
            write(SMALL, tmp_path / "one")
            assert contents(tmp_path / "one") == before
    (tmp_path / "one" / "manifest.json").write_bytes((tmp_path / "two" / "manifest.json").read_bytes())
    with pytest.raises(DamagedFile, match="is not the shard that"):
        list(read(tmp_path / "one", "train"))


def test_an_edited_manifest_is_named(tmp_path):
    path = write(SMALL, tmp_path, ["valid"])
    path.write_text(path.read_text().replace('"seed": 0', '"seed": 1'))
    with pytest.raises(DamagedFile, match=r"manifest.json .*edited or damaged\): choose another folder"):
        write(replace(SMALL, seed=1), tmp_path)


def test_a_folder_in_use_is_refused_or_waited_for(tmp_path):
    with storage.locked(tmp_path / storage.LOCK, "x"), pytest.raises(storage.InUse, match=f"pid {os.getpid()}"):
        write(SMALL, tmp_path)
    assert contents(tmp_path) == {}


def test_every_kill_leaves_a_data_set_that_can_be_completed(tmp_path):
    task, folder = Distances(target="adjacency", train=4, shard_size=2), tmp_path / "data"
    write(task, tmp_path / "whole", ["train"])
    folder.mkdir()
    kills = 0
    for _ in after_every_kill(lambda: write(task, folder, ["train"]), folder):
        write(task, folder, ["train"])
        assert contents(folder) == contents(tmp_path / "whole")
        kills += 1
    assert kills > 20


@pytest.mark.parametrize("content", ["{", "[]", "{}"])
def test_a_damaged_manifest_is_named(content, tmp_path):
    (tmp_path / "manifest.json").write_text(content)
    with pytest.raises(DamagedFile, match=r"manifest\.json"):
        write(SMALL, tmp_path)
    assert [path.name for path in tmp_path.glob("[!.]*")] == ["manifest.json"]


@pytest.mark.parametrize("name", ["sorting", "distances"])
def test_killed_and_run_again_gives_the_same_bytes(name, tmp_path):
    program = f"""
from pathlib import Path
from magnetite.cli.data import data
import sys
data("{name}", {{"train": 12_000, "shard_size": 200}}, Path(sys.argv[1]), ["train"])
"""
    command = [sys.executable, "-c", program]
    undisturbed = subprocess.run([*command, str(tmp_path / "one")], capture_output=True)
    assert undisturbed.returncode == 0
    killed = subprocess.Popen([*command, str(tmp_path / "two")], stdout=subprocess.DEVNULL)
    while killed.poll() is None and len(list((tmp_path / "two").glob("train-*"))) < 5:
        time.sleep(0.002)
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    assert 5 <= len(list((tmp_path / "two").glob("train-*"))) < 60
    assert subprocess.run([*command, str(tmp_path / "two")], capture_output=True).returncode == 0
    assert contents(tmp_path / "one") == contents(tmp_path / "two")


def run(*arguments: str):
    return CliRunner().invoke(app, ["data", *arguments])


def test_the_command(tmp_path):
    result = run("sorting", "--out", str(tmp_path), "--train", "20", "--valid", "10", "--test", "10", "--seed", "7")
    assert result.exit_code == 0, result.output
    assert "train" in result.output
    assert json.loads((tmp_path / "manifest.json").read_text())["seed"] == 7
    labels = next(read(tmp_path, "test")).graphs.graph_features["label"]
    assert labels.numel() == 30


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["sums"], "unknown task 'sums': choose one of distances, sorting"),
        (["distances", "--target", "colour"], "unknown target 'colour'"),
        (["distances", "--split", "all"], "unknown split 'all'"),
        (["distances", "--train", "0"], "train must be a positive integer, got 0"),
    ],
)
def test_bad_input_is_named_and_nothing_written(arguments, message, tmp_path):
    result = run(*arguments, "--out", str(tmp_path / "new"))
    assert isinstance(result.exception, ValueError) and message in str(result.exception)
    assert not (tmp_path / "new").exists()


def test_an_option_of_another_task_is_rejected(tmp_path):
    result = run("sorting", "--per-size", "3", "--out", str(tmp_path / "new"))
    assert result.exit_code == 2 and "--per-size" in result.output


def test_options_that_do_not_change_the_data_are_not_offered():
    shown = run("sorting", "--help").output
    assert "--train-longest" in shown and "--places" not in shown
