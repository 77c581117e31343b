"""A compiled objective has the loss and the gradients of the plain one, at sizes where compilers change their plans."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.training.compiled import CASES

ROOT = Path(__file__).parent.parent.parent


@pytest.mark.parametrize(
    ("device", "graphs"),
    [pytest.param("cpu", 40, marks=pytest.mark.slow), pytest.param("cuda", 2000, marks=pytest.mark.gpu)],
)
def test_compiled_gradients_are_those_of_plain_operations(device, graphs):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}
    command = [sys.executable, "-m", "tests.training.compiled", device, str(graphs)]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    differences = json.loads(done.stdout.splitlines()[-1])
    assert list(differences) == list(CASES)
    assert {name for name, value in differences.items() if not value < 1e-3} == set(), differences
