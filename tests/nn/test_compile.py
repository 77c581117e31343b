"""torch.compile takes every model as one graph, and compiles it once per shape of a batch."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.nn.compiled import SHAPES
from tests.nn.zoo import ZOO

ROOT = Path(__file__).parent.parent.parent

QUICK = [
    "magnetic, multi-q, SignNet with GNN",
    "SPE, biases",
    "SPE, pairs",
    "walks, pairs",
    "two encoders, pre-norm",
    "SAT++",
    "MagNet",
    "linear attention, DirGNN",
    "sparse attention, walks",
]
"""Models that together use nearly every module."""


def check(backend: str, names: list[str], device: str = "cpu", error: float = 1e-5) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}
    command = [sys.executable, "-m", "tests.nn.compiled", backend, device, *names]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    reports = json.loads(done.stdout.splitlines()[-1])
    assert list(reports) == names
    assert {name: report["compilations"] for name, report in reports.items()} == dict.fromkeys(names, len(SHAPES))
    assert {name: report for name, report in reports.items() if not report["difference"] < error} == {}
    if device == "cuda":
        assert {name: report for name, report in reports.items() if not report["captured"] < error} == {}


def test_models_are_one_graph_and_compiled_once_per_shape():
    check("eager", QUICK)


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_every_model_is_one_graph_and_compiled_once_per_shape(backend):
    check(backend, [name for name, row in ZOO.items() if row.compiles])


@pytest.mark.gpu
def test_models_are_compiled_and_captured_on_a_gpu():
    check("inductor", ["magnetic", "walks", "SPE, pairs", "SAT++"], device="cuda", error=1e-4)
