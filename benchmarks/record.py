"""Measured figures as JSON under results/, with what is needed to measure them again."""

import platform
import subprocess
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from magnetite.storage import write_json

ROOT = Path(__file__).parent.parent


def record(name: str, seed: int, figures: dict[str, Any]) -> None:
    """Write `results/<name>.json`."""
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True).stdout.strip()
    packages = ("numba", "numpy", "torch")
    content = {
        "seed": seed,
        "commit": commit or None,
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "device": device(),
        "versions": {"python": platform.python_version(), **{package: version(package) for package in packages}},
        "figures": figures,
    }
    write_json(ROOT / "results" / f"{name}.json", content)


def device() -> str:
    """The processor, and the accelerator if there is one."""
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    processor = f"{names[0] if names else platform.processor()} × {torch.get_num_threads()} threads"
    return f"{processor}, {torch.cuda.get_device_name()}" if torch.cuda.is_available() else processor
