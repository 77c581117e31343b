"""The folder of a run: never another's, never of two processes, never with an edited configuration."""

import multiprocessing
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest
import torch

import magnetite as mt
from magnetite.io.storage import LOCK, DamagedFile, InUse, locked, write_json
from magnetite.training import runs
from tests.training.conftest import tiny

pytestmark = pytest.mark.usefixtures("one_thread")

SHORT = ("none", "optim.epochs=0.17")


def contents(folder) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.mark.parametrize("name", ["checkpoints/last-00000001/model.json", "thesis.tex", ".hidden", "log.jsonl"])
def test_a_folder_with_other_files_is_left_alone(tmp_path, name):
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).write_text("years of work")
    first = name.partition("/")[0]
    with pytest.raises(ValueError, match=f"contains other files, such as {first}: choose a new or empty folder"):
        runs.train(tiny(*SHORT), tmp_path, runs.Machine())
    assert contents(tmp_path) == {name: b"years of work"}


@pytest.mark.parametrize("resume", [False, True])
def test_a_foreign_configuration_is_left_alone(tmp_path, resume):
    (tmp_path / "config.json").write_text('{"editor": "dark"}')
    with pytest.raises(ValueError, match=r"already contains a run|has no checksum"):
        runs.train(tiny(*SHORT), tmp_path, runs.Machine(), resume=resume)
    assert contents(tmp_path) == {"config.json": b'{"editor": "dark"}'}


def test_a_run_that_cannot_take_a_step_leaves_the_folder_free(tmp_path):
    with pytest.raises(ValueError, match=r"optim\.batch must be at most"):
        runs.train(tiny(*SHORT, "optim.batch=1000000"), tmp_path / "run", runs.Machine())
    runs.train(tiny(*SHORT), tmp_path / "run", runs.Machine())


@pytest.mark.parametrize("encoding", ["walks", "magnetic+walks"])
def test_a_graph_too_large_for_an_encoding_makes_no_folder(tmp_path, encoding):
    edges = np.arange(9000)
    graph = mt.Digraphs.from_edges(np.stack([edges[:-1], edges[1:]]))
    graph = graph.replace(node_features={"x": torch.rand(9000), "y": torch.rand(9000)})
    task = mt.tasks.Supervised(graph, level="node", target="y")
    with pytest.raises(ValueError, match="RandomWalk supports graphs of at most 8192 nodes, got 9000"):
        mt.train(task, encoding, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_resuming_nothing_makes_no_folder(tmp_path):
    with pytest.raises(FileNotFoundError, match="does not exist: give the folder of a run"):
        runs.train(tiny(*SHORT), tmp_path / "new", runs.Machine(), resume=True)
    assert not (tmp_path / "new").exists()


def test_a_run_in_use_is_refused(tmp_path):
    with locked(tmp_path / LOCK, "x"):
        for resume in (False, True):
            if resume:
                write_json(tmp_path / runs.CONFIG, tiny(*SHORT).to_dict())
            before = contents(tmp_path)
            with pytest.raises(InUse, match=rf"is in use by another process \(pid {os.getpid()}\)"):
                runs.train(tiny(*SHORT), tmp_path, runs.Machine(), resume=resume)
            assert contents(tmp_path) == before


def _claim(folder, start, outcomes):
    start.wait()
    try:
        with locked(folder / LOCK, str(folder)):
            runs._claim(tiny(*SHORT), folder, resume=False)
        outcomes.put("won")
    except (ValueError, OSError) as error:
        outcomes.put(str(error))


def test_of_two_processes_with_one_new_folder_one_wins(tmp_path):
    context = multiprocessing.get_context("spawn")
    start, outcomes = context.Barrier(2), context.Queue()
    workers = [context.Process(target=_claim, args=(tmp_path / "new", start, outcomes)) for _ in range(2)]
    for worker in workers:
        worker.start()
    found = [outcomes.get(), outcomes.get()]
    for worker in workers:
        worker.join()
    assert found.count("won") == 1
    (other,) = (line for line in found if line != "won")
    assert "is in use by another process" in other or "already contains a run" in other


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("finished") / "run"
    runs.train(tiny(*SHORT), folder, runs.Machine())
    return folder


@pytest.fixture
def run(finished, tmp_path, capsys):
    shutil.copytree(finished, tmp_path / "run")
    capsys.readouterr()
    return tmp_path / "run"


def test_a_run_leaves_its_own_files_only(run):
    assert {path.name for path in run.iterdir()} <= {
        "config.json", "log.jsonl", "result.json", "checkpoints", "tensorboard",
    }  # fmt: skip


def test_an_edited_configuration_is_refused(run):
    path = run / runs.CONFIG
    path.write_text(path.read_text().replace('"width": 32', '"width": 64'))
    for work in (
        lambda: runs.evaluate(run, "test", runs.Machine()),
        lambda: runs.train(tiny(*SHORT), run, runs.Machine(), resume=True),
    ):
        with pytest.raises(DamagedFile, match=r"config.json .*edited or damaged\): settings are changed with --set"):
            work()
    assert not list(run.glob("evaluation-*"))


@pytest.mark.parametrize("setting", ["model.width=64", "model.heads=2", "model.layers=2"])
def test_the_configuration_of_another_run_is_refused(run, setting):
    write_json(run / runs.CONFIG, tiny(*SHORT, setting).to_dict())
    with pytest.raises(DamagedFile, match="holds a model of another configuration"):
        runs.evaluate(run, "test", runs.Machine())


def test_a_damaged_model_is_one_line(run):
    for path in run.glob("checkpoints/best-*/model.json"):
        path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(DamagedFile, match=r"model.json is not a valid description of a model"):
        runs.evaluate(run, "test", runs.Machine())


def test_leftovers_of_a_killed_run_are_removed_and_a_damaged_log_is_mended(run, capsys):
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    from magnetite.io.storage import PREFIX, _machine

    for folder in (run, run / "checkpoints"):
        (folder / f"{PREFIX}{_machine()}-{dead.pid}-00000000").mkdir()
        (folder / f"{PREFIX}{_machine()}-{dead.pid}-00000001.json").touch()
    lines = (run / "log.jsonl").read_bytes()
    (run / "log.jsonl").write_bytes(lines + b'\xff\xfe{"kind": "train", "st')
    runs.train(tiny(*SHORT), run, runs.Machine(), resume=True)
    assert not list(run.rglob(f"{PREFIX}*"))
    assert (run / "log.jsonl").read_bytes() == lines
    capsys.readouterr()


def test_default_folder_is_new_unless_a_run_has_not_ended(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    config, found = tiny(*SHORT), []
    for _ in range(2):
        found.append(runs.default_folder(config, "quick"))
        found[-1].mkdir(parents=True)
        (found[-1] / "config.json").touch()
        assert runs.default_folder(config, "quick") == found[-1]  # where training is refused: it must be resumed
        (found[-1] / "result.json").touch()
    assert [folder.name for folder in found] == [found[0].name, f"{found[0].name}-2"]
    assert runs.default_folder(config, "quick", resume=True) == found[1]


def test_no_metric_is_cut_off_in_a_narrow_terminal(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    runs.print_metrics({"test": {f"metric{number}": 0.12345 for number in range(9)}}, "a run")
    assert "…" not in (text := capsys.readouterr().out) and "metric8" in text
