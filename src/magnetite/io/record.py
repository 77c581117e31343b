"""Provenance of results: the command, seed, commit, device, versions and time stored with every result."""

import os
import platform
import shlex
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import torch

from magnetite.io.storage import DamagedFile, read_json, remove_leftovers, write_json
from magnetite.kernels._compat import available_cores
from magnetite.version import __version__

ADVICE = "delete it and measure it again"
"""What to do with a damaged result."""


class Record:
    """The record of a measurement: create it before the work starts, write it when the work is done.

    Args:
        name: Name of the result and of its file.
        seed: Seed of the measurement.

    >>> Record("doctest", seed=0).content({"answer": 42})["result"]
    {'answer': 42}
    """

    def __init__(self, name: str, seed: int):
        self.name, self.seed = name, seed
        self.commit = commit()  # now, because the source tree may change while this process runs
        self.started = time.perf_counter()

    def content(self, result: Any) -> dict[str, Any]:
        """The result with its provenance."""
        return {
            "name": self.name,
            "command": command(sys.orig_argv),
            "seed": self.seed,
            "commit": self.commit,
            "device": device(),
            "versions": {"magnetite": __version__, "torch": torch.__version__, "numpy": np.__version__},
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
            "seconds": round(time.perf_counter() - self.started, 2),
            "result": result,
        }

    def write(self, folder: Path, result: Any) -> Path:
        """Write `<name>.json` to the folder, atomically."""
        path = folder / f"{self.name}.json"
        write_json(path, self.content(result))
        remove_leftovers(folder)
        return path


def read_record(path: Path) -> dict[str, Any]:
    """Read a result with its provenance, as written by `Record`."""
    content = read_json(path, "result", ADVICE)
    if not isinstance(content.get("result"), dict):
        raise DamagedFile(f"{path} is not a valid result (it has no object 'result'): {ADVICE}")
    return content


MEASURING = ("src", "benchmarks", "paper", "tests/fuzz")
"""Folders of the clone whose files affect results."""


def commit() -> str:
    """The git commit of the source tree, with `+changes` if files were edited; 'installed' outside a clone.

    The environment variable MAGNETITE_COMMIT takes precedence, for machines with a copy of the tree without git.
    """
    if "MAGNETITE_COMMIT" in os.environ:
        return os.environ["MAGNETITE_COMMIT"]
    clone = _clone()
    if clone is None:
        return "installed"
    try:
        head = _git(clone, "rev-parse", "HEAD")
        return head + ("+changes" if _git(clone, "status", "--porcelain", "--", *MEASURING) else "")
    except (OSError, subprocess.CalledProcessError):
        return "installed"


def command(words: list[str]) -> str:
    """The command of a process, without the folders of the interpreter and of installed scripts.

    >>> command(["/usr/bin/python3", "-m", "paper", "table-fair"])
    'python -m paper table-fair'
    >>> command(["/venv/bin/python", "/venv/bin/magnetite", "bench", "eigen"])
    'magnetite bench eigen'
    """
    if len(words) > 1 and Path(words[1]).name == "magnetite":
        return shlex.join(["magnetite", *words[2:]])
    # Code after -c is that of a test runner or of a worker process.
    return shlex.join(["python", *words[1:]]) if "-c" not in words else "python -c …"


def device() -> str:
    """The name of the GPU if there is one, otherwise of the processor, with the number of cores and threads."""
    if torch.cuda.is_available():
        return torch.cuda.get_device_name()
    return f"{_processor()}, {available_cores()} cores, {torch.get_num_threads()} threads"


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _clone() -> Path | None:
    """The top folder of magnetite's own clone; None if this package lies elsewhere, say in a user's repository."""
    package = Path(__file__).resolve().parent.parent
    root = package.parent.parent
    project = root / "pyproject.toml"
    if package != root / "src" / "magnetite" or not (root / ".git").exists() or not project.is_file():
        return None
    return root if 'name = "magnetite"' in project.read_text(encoding="utf-8").splitlines() else None


def _git(clone: Path, *arguments: str) -> str:
    # Variables of git may point to another repository; without optional locks, `git status` writes nothing.
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    environment = {**kept, "GIT_OPTIONAL_LOCKS": "0"}
    command = ["git", *arguments]
    return subprocess.run(
        command, cwd=clone, env=environment, check=True, capture_output=True, text=True
    ).stdout.strip()
