"""How much memory encodings may take."""

import math
from pathlib import Path

import torch

FREE_SHARE = {"cuda": 0.75, "cpu": 0.25}
"""Of the memory that is free, what encodings may take; a processor holds them twice while it joins them."""

MEMORY, CONTROL_GROUP = Path("/proc/meminfo"), Path("/sys/fs/cgroup")
"""Where Linux says how much memory there is, and how much of it a container or a job may have."""


def room(device: torch.device, processes: int = 1) -> float:
    """Bytes for the encodings of one of the processes, which have a GPU each, or share a machine.

    The rest of what is free is for the model, and for what encodings take while they are computed.
    """
    free = torch.cuda.mem_get_info(device)[0] if device.type == "cuda" else _free_of_machine() / processes
    return FREE_SHARE[device.type] * free


def _free_of_machine() -> float:
    """Bytes that are free on the machine and for this job; without end, where the system does not say."""
    free = math.inf
    if MEMORY.exists():
        free = 1024 * _number(MEMORY, "MemAvailable:")
    limit = CONTROL_GROUP / "memory.max"
    if limit.exists() and (most := limit.read_text(encoding="utf-8").strip()) != "max":
        used = int((CONTROL_GROUP / "memory.current").read_text(encoding="utf-8"))
        free = min(free, int(most) - used + _number(CONTROL_GROUP / "memory.stat", "inactive_file"))
    return free


def _number(path: Path, name: str) -> int:
    """The number beside a name."""
    return next(int(line.split()[1]) for line in path.read_text(encoding="utf-8").splitlines() if line.startswith(name))
