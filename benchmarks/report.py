"""What every benchmark writes beside its figures."""

import importlib.metadata
import os
import platform
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import torch

PACKAGES = ("magnetite", "numpy", "scipy", "numba", "torch", "torch_geometric")


def header(seed: int) -> dict:
    """Seed, commit, device, load, versions and time."""
    return {
        "seed": seed,
        "commit": _commit(),
        "device": f"{_processor()}, {torch.get_num_threads()} threads of {os.cpu_count()} cores",
        "load_average": os.getloadavg()[0],
        "versions": {"python": platform.python_version(), **{name: _version(name) for name in PACKAGES}},
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _commit() -> str:
    call = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty", "--abbrev=12"]
    return subprocess.run(call, capture_output=True, text=True, check=False).stdout.strip()


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "absent"
