"""Every task on two processes of this machine: the training is that of one process, however they are started."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from magnetite.code import corpus
from magnetite.tasks import TASKS
from tests.code.code2_folder import own_functions
from tests.tasks.own_data import paths, with_targets
from tests.training.conftest import logged
from tests.training.test_processes import finish

ROOT = Path(__file__).parents[2]
SCRIPT = """
import json, sys
from pathlib import Path
import torch
torch.set_num_threads(1)
from magnetite.training import runs
from magnetite.training.config import configuration
folder, devices, task, encoding, changes = sys.argv[1:]
config = configuration(task, encoding or None, "quick", json.loads(changes))
runs.train(config, Path(folder), runs.Machine("cpu", int(devices)))
"""
SMALL = {
    "model": {"name": "transformer", "width": 16, "layers": 1, "heads": 2, "dropout": 0.0},
    "optim": {"batch": 16, "epochs": 2, "warmup": 0.5},
    "encoding": {"k": 3, "dropout": 0.0},
    "run": {"log_every": 1, "checkpoint_minutes": 10.0},
}
GENERATED = {
    "distances": {"train": 64, "per_size": 8, "target": "reachability"},
    "sorting": {"train": 32, "valid": 8, "test": 8, "train_longest": 7, "valid_longest": 8, "places": 0},
}
OWN = {
    "graph": {"target": "y"},
    "node": {"target": "c", "kind": "classification"},
    "link": {"target": "existence"},
}


def data_of(task: str, folder: Path) -> dict:
    """Options of a small task, with its data if it does not generate them."""
    name, _, level = task.partition("-")
    if name in GENERATED:
        return GENERATED[name]
    if name == "supervised":
        graphs = with_targets(paths(80, low=6, high=9))
        graphs.replace(node_features={"c": graphs.node_features["c"]}).save(folder / "graphs.safetensors")
        return {"data": str(folder / "graphs.safetensors"), "level": level, **OWN[level]}
    assert name == "naming"
    functions = [text for each, text in own_functions() if text.startswith("def ") and not each.startswith("_")]
    for number in range(12):
        (folder / "source" / f"package{number}").mkdir(parents=True)
        (folder / "source" / f"package{number}" / "__init__.py").write_text("\n\n".join(functions[number::24]))
    corpus.write(folder / "source", folder / "corpus", corpus.Settings(shares=(0.6, 0.2, 0.2)), workers=1)
    sizes = {"words": 60, "attributes": 80, "subwords": 50, "max_nodes": 60}
    return {"data": str(folder / "corpus"), "attribute_dropout": 0.0, **sizes}


def start(folder: Path, devices: int, task: str, options: dict, launcher=(), **variables: str) -> subprocess.Popen:
    """Start training in one process, which starts the others, or by a launcher."""
    script = folder.parent / "train.py"
    script.write_text(SCRIPT)
    name = task.partition("-")[0]
    model = {**SMALL["model"], **({"local": 1} if name == "naming" else {})}
    changes = {**SMALL, "model": model, "task": options}
    encoding = "" if name == "naming" else "magnetic"
    arguments = [*(launcher or [sys.executable]), str(script), str(folder), str(devices), name, encoding]
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    environment = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", **variables}
    return subprocess.Popen(
        [*arguments, json.dumps(changes)], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )


def assert_same(one: Path, two: Path) -> None:
    """The losses of both runs are equal, and the second was one of two processes."""
    losses = [[line["loss"] for line in logged(folder, "train")] for folder in (one, two)]
    assert losses[0]
    assert losses[0] == pytest.approx(losses[1], rel=1e-4)
    assert [json.loads((each / "result.json").read_text())["result"]["processes"] for each in (one, two)] == [1, 2]


EVERY = ["supervised-graph", "supervised-node", "supervised-link", "distances", "sorting", "naming"]


def test_every_task_is_tested():
    assert {task.partition("-")[0] for task in EVERY} == set(TASKS)


@pytest.mark.parametrize(
    "task", [task if task == "supervised-graph" else pytest.param(task, marks=pytest.mark.slow) for task in EVERY]
)
def test_two_processes_train_as_one(task, tmp_path):
    options = data_of(task, tmp_path)
    finish(start(tmp_path / "one", 1, task, options))
    finish(start(tmp_path / "two", 2, task, options))
    assert_same(tmp_path / "one", tmp_path / "two")


@pytest.mark.slow
@pytest.mark.parametrize("launcher", ["torchrun", "slurm"])
def test_processes_of_a_launcher_train_as_one(launcher, tmp_path):
    options = data_of("supervised-graph", tmp_path)
    finish(start(tmp_path / "one", 1, "supervised-graph", options))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    if launcher == "torchrun":
        command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-port", port]
        running = [start(tmp_path / "two", 2, "supervised-graph", options, command)]
    else:  # the variables that srun sets for each of its tasks
        shared = {
            "SLURM_JOB_ID": "4711", "SLURM_JOB_NAME": "train", "SLURM_NTASKS": "2", "SLURM_NTASKS_PER_NODE": "2",
            "SLURM_NNODES": "1", "SLURM_NODEID": "0", "SLURM_NODELIST": "127.0.0.1", "MASTER_PORT": port,
            "MASTER_ADDR": "127.0.0.1",
        }  # fmt: skip
        running = [
            start(tmp_path / "two", 2, "supervised-graph", options, **shared, SLURM_PROCID=rank, SLURM_LOCALID=rank)
            for rank in ("0", "1")
        ]
    for process in running:
        finish(process)
    assert_same(tmp_path / "one", tmp_path / "two")


def test_a_launcher_of_more_processes_than_devices_is_an_error(monkeypatch):
    from magnetite.training.runs import Machine

    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(ValueError, match=r"torchrun started 2 processes, but --devices 1 × --machines 1 are 1"):
        Machine("cpu").fabric("32-true")
