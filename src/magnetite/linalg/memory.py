"""The memory of a device, and the refusal of results that could never fit into it."""

import ctypes
import math
from collections.abc import Iterator
from contextlib import contextmanager
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


TRIM, MMAPS, FEWEST, USUAL = -1, -4, 0, 65536
"""Parameters of glibc's `mallopt`: memory to keep at the end of the heap, and the number of blocks that are mapped."""


@contextmanager
def kept_memory() -> Iterator[None]:
    """Let the process keep memory that is freed, for loops that allocate the same large tensors again and again.

    By default, glibc maps every block of more than 32 MiB anew, and Linux clears its pages at first use, which takes a
    large part of a training step on a large graph. Afterwards the memory goes back to the system. Without glibc nothing
    changes.

    >>> with kept_memory():
    ...     torch.ones(2).sum().item()
    2.0
    """
    try:
        library = ctypes.CDLL(None)
        set_option, give_back = library.mallopt, library.malloc_trim
    except (OSError, AttributeError, TypeError):  # another system or another C library
        yield
        return
    set_option(MMAPS, FEWEST)
    set_option(TRIM, -1)
    try:
        yield
    finally:
        set_option(TRIM, 128 * 1024)
        set_option(MMAPS, USUAL)
        give_back(ctypes.c_size_t(0))
