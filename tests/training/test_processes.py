"""Runs in separate processes: one that is killed, and one on two processes."""

import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.training.conftest import logged, parameters

SETTINGS = """
import sys
from pathlib import Path
import torch
torch.set_num_threads(1)
from tests.training.conftest import tiny
from magnetite.training import runs
folder, resume, devices, *overrides = sys.argv[1:]
runs.train(tiny("magnetic", *overrides), Path(folder), runs.Machine("cpu", int(devices)), resume == "resume")
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


def test_a_run_killed_at_any_step_continues_to_the_same_result(tmp_path):
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


def test_two_processes_are_one_with_twice_the_batch(tmp_path):
    overrides = ["model.dropout=0.0", "encoding.dropout=0.0", "task.places=0", "run.log_every=1"]
    finish(start(tmp_path / "one", False, 1, *overrides))
    finish(start(tmp_path / "two", False, 2, *overrides))
    one, two = ([line["loss"] for line in logged(tmp_path / name, "train")] for name in ("one", "two"))
    assert len(one) == 12
    assert one == pytest.approx(two, rel=1e-5)
    valid = [logged(tmp_path / name, "valid")[-1] for name in ("one", "two")]
    assert valid[0]["loss"] == pytest.approx(valid[1]["loss"], rel=1e-5)
