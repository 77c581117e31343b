"""How a result was obtained: seed, commit, device, versions and time, written beside every figure in `results/`."""

import os
import platform
import subprocess
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import torch

from magnetite.io.storage import DamagedFile, read_json, write_json
from magnetite.version import __version__

ADVICE = "remove it, and it is measured again"
"""What to do with a damaged result."""


class Record:
    """A measured result under way: made when the work starts, written when it is done.

    >>> Record("doctest", seed=0).content({"answer": 42})["result"]
    {'answer': 42}
    """

    def __init__(self, name: str, seed: int):
        self.name, self.seed = name, seed
        self.commit = commit()  # now: the tree may move on while this process measures what it loaded
        self.started = time.perf_counter()

    def content(self, result: Any) -> dict[str, Any]:
        """The result with its provenance."""
        return {
            "name": self.name,
            "seed": self.seed,
            "commit": self.commit,
            "device": device(),
            "versions": {"magnetite": __version__, "torch": torch.__version__, "numpy": np.__version__},
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
            "seconds": round(time.perf_counter() - self.started, 2),
            "result": result,
        }

    def write(self, folder: Path, result: Any) -> Path:
        """Write `<name>.json` into the folder, in one step."""
        path = folder / f"{self.name}.json"
        write_json(path, self.content(result))
        return path


def read_record(path: Path) -> dict[str, Any]:
    """A result with its provenance, as `Record` wrote it."""
    content = read_json(path, "result", ADVICE)
    if not isinstance(content.get("result"), dict):
        raise DamagedFile(f"{path} is no result (it has no table 'result'): {ADVICE}")
    return content


MEASURING = ("src", "benchmarks", "experiments")
"""Folders whose changes a result may depend on."""


def commit() -> str:
    """The commit of the source tree, `+changes` if it was edited since; outside a checkout 'installed'.

    A machine that got a copy of the tree is told the commit by the environment variable MAGNETITE_COMMIT.
    """
    if "MAGNETITE_COMMIT" in os.environ:
        return os.environ["MAGNETITE_COMMIT"]
    here = Path(__file__).parent
    try:
        head = _git(here, "rev-parse", "HEAD")
        return head + ("+changes" if _git(here, "status", "--porcelain", "--", *MEASURING) else "")
    except (OSError, subprocess.CalledProcessError):
        return "installed"


def device() -> str:
    """The GPU if there is one, else the processor and its cores."""
    if torch.cuda.is_available():
        return torch.cuda.get_device_name()
    return f"{_processor()}, {len(os.sched_getaffinity(0))} cores, {torch.get_num_threads()} threads"


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _git(folder: Path, *arguments: str) -> str:
    top = subprocess.run(
        ["git", "rev-parse", "--show-toplevel"], cwd=folder, check=True, capture_output=True, text=True
    )
    answer = subprocess.run(["git", *arguments], cwd=top.stdout.strip(), check=True, capture_output=True, text=True)
    return answer.stdout.strip()
