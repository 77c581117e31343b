"""How long work takes, and how fast memory is: what several benchmarks of GPU kernels measure."""

import time
from collections.abc import Callable

import torch

PLAYS = 20
"""How often a GPU does the same before it is waited for."""


def seconds(work: Callable[[], None], device: str, rounds: int) -> float:
    """The best of some rounds, after a warm-up."""
    best = float("inf")
    for _ in range(rounds + 1):
        start = time.perf_counter()
        for _ in range(PLAYS if device == "cuda" else 1):
            work()
        if device == "cuda":
            torch.cuda.synchronize()
        best = min(best, (time.perf_counter() - start) / (PLAYS if device == "cuda" else 1))
    return best


def bandwidth(device: str) -> float:
    """Bytes a second that a copy reads and writes."""
    source = torch.zeros(2**28 if device == "cuda" else 2**24, device=device)
    target = torch.empty_like(source)
    return 2 * source.numel() * source.element_size() / seconds(lambda: target.copy_(source), device, 3)
