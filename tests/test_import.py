import json
import subprocess
import sys

HEAVY = ("torch_geometric", "matplotlib", "lightning", "starlette", "ray", "numba", "pyarrow", "scipy", "networkx")
"""Each takes longer to import than all of magnetite; benchmarks/encodings.py measures the time itself."""

PROGRAM = """
import sys, json
import torch
before = set(sys.modules)
import magnetite
print(json.dumps(sorted({name.split(".")[0] for name in set(sys.modules) - before})))
"""


def test_importing_magnetite_loads_nothing_heavy():
    run = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert not set(HEAVY) & set(json.loads(run.stdout))
