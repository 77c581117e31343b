import subprocess
import sys
from pathlib import Path

SCRIPT = """
import sys
from magnetite.code import build_files
from magnetite.workers.local import LocalWorkers

main = sys.modules["__main__"]
print("started")
print([len(graphs) for _, graphs in build_files([__file__, __file__], workers=2)])
with LocalWorkers(abs, 2) as pool:
    waiting = [pool.submit([-number]) for number in range(3)]
    print([wait() for wait in waiting])
assert sys.modules["__main__"] is main

def f(x):
    return x
"""


def test_a_script_without_a_guard_builds_graphs_in_several_processes(tmp_path: Path):
    (tmp_path / "script.py").write_text(SCRIPT)
    found = subprocess.run(
        [sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
    )
    assert found.returncode == 0, found.stderr
    assert found.stdout.splitlines() == ["started", "[1, 1]", "[[0], [1], [2]]"]
