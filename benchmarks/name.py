"""Time of `magnetite name` on files of the standard library, with start-up, in a process of its own.

python benchmarks/name.py
"""

import argparse
import shlex
import subprocess
import sys
import time
from pathlib import Path

from magnetite.io.record import Record

LIBRARY = Path(argparse.__file__).parent
FILES = ("argparse.py", "typing.py", "inspect.py", "textwrap.py")
REPEATS = 3


def seconds(path: Path, model: str) -> tuple[float, int]:
    """Wall time of the command, and number of functions."""
    command = [sys.executable, "-m", "magnetite", "name", str(path), "--json", *shlex.split(model)]
    begin = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return time.perf_counter() - begin, len(done.stdout.splitlines())


def main() -> None:
    """Measure each file several times and keep the best, since other processes only make it slower."""
    model = " ".join(sys.argv[1:])
    record = Record("benchmark-name", seed=0)
    rows = []
    for name in FILES:
        runs = [seconds(LIBRARY / name, model) for _ in range(REPEATS)]
        best = min(each for each, _ in runs)
        rows.append(
            {"file": name, "functions": runs[0][1], "seconds": round(best, 2), "runs": [each for each, _ in runs]}
        )
        print(f"{name}: {runs[0][1]} functions, {best:.2f} s")
    if not model:
        print(record.write(Path("results"), {"rows": rows, "python": sys.version.split()[0]}))


if __name__ == "__main__":
    main()
