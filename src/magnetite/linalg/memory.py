"""The memory of a device, and the refusal of results that could never fit into it."""

import math
from pathlib import Path

import torch

MEMORY, CONTROL_GROUP = Path("/proc/meminfo"), Path("/sys/fs/cgroup")
"""Files in which Linux reports the memory, and the limits of a container or a job."""


def total_memory(device: torch.device) -> float:
    """Number of bytes that a device has, or that a job may use; infinite if unknown."""
    if device.type == "cuda":
        return float(torch.cuda.get_device_properties(device).total_memory)
    total = math.inf
    try:
        lines = MEMORY.read_text(encoding="utf-8").splitlines()
        total = 1024.0 * next(int(line.split()[1]) for line in lines if line.startswith("MemTotal:"))
        total = min(total, float(int((CONTROL_GROUP / "memory.max").read_text(encoding="utf-8"))))
    except (OSError, ValueError, StopIteration):  # another system, or a group without a limit
        pass
    return total


def check_memory(needed: float | int, device: torch.device, what: str, advice: str) -> None:
    """Raise a `ValueError` if something needs more memory than the device has in total.

    >>> check_memory(2**70, torch.device("cpu"), "MagneticLaplacian(k=1000000)", "choose a smaller k")
    Traceback (most recent call last):
    ValueError: MagneticLaplacian(k=1000000) needs 1,099,511,627,776 GiB of memory, ... has ... GiB: choose a smaller k
    """
    # Without a look at the system for anything small.
    if needed > 2**28 and needed > (total := total_memory(device)):
        sizes = f"needs {needed / 2**30:,.0f} GiB of memory, and {device.type} has {total / 2**30:,.1f} GiB"
        raise ValueError(f"{what} {sizes}: {advice}")
