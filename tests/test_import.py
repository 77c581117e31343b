import json
import subprocess
import sys
from pathlib import Path

import pytest

import magnetite as mt

HEAVY = {
    "hypothesis", "lightning", "matplotlib", "networkx", "numba", "pyarrow", "ray", "scipy", "starlette",
    "torch._dynamo", "torch._inductor", "torch_geometric",
}  # fmt: skip
"""Each takes longer to import than all of magnetite; benchmarks/encodings.py measures the time itself."""

PROGRAM = """
import sys, json
import torch
before = set(sys.modules)
import magnetite, {module}
print(json.dumps(sorted(set(sys.modules) - before)))
"""


@pytest.mark.parametrize("module", ["magnetite", "magnetite.testing"])
def test_importing_magnetite_loads_nothing_heavy(module):
    program = PROGRAM.format(module=module)
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert not HEAVY & set(json.loads(run.stdout))


def test_the_package_is_typed_and_its_public_names_exist():
    assert (Path(mt.__file__).parent / "py.typed").exists()
    assert all(hasattr(mt, name) for name in mt.__all__)
