"""Shared by benchmarks: random graphs, timing, the check for a GPU; memory bandwidth and options of GPU kernels."""

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

import magnetite as mt
from magnetite.io.record import Record

REPEATS = 20
"""Number of repetitions on a GPU between two synchronisations."""


def needs_gpu() -> None:
    """End with one line and exit code 2 without a GPU, before results of one are replaced."""
    if not torch.cuda.is_available():
        print(
            f"{Path(sys.argv[0]).name}: needs a GPU with CUDA, and torch finds none: run it on such a machine",
            file=sys.stderr,
        )
        raise SystemExit(2)


def begun(name: str, text: str | None, graphs: int) -> tuple[argparse.Namespace, str, Record]:
    """Options, device and record; without a GPU, the name of the record ends in `-cpu`."""
    parser = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("results"))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--graphs", type=int, default=graphs)
    options = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    return options, device, Record(name if device == "cuda" else f"{name}-cpu", options.seed)


def seconds(work: Callable[[], None], device: str, rounds: int) -> float:
    """Seconds of the fastest of several rounds, after a warm-up."""
    best = float("inf")
    for _ in range(rounds + 1):
        start = time.perf_counter()
        for _ in range(REPEATS if device == "cuda" else 1):
            work()
        if device == "cuda":
            torch.cuda.synchronize()
        best = min(best, (time.perf_counter() - start) / (REPEATS if device == "cuda" else 1))
    return best


def least_seconds(
    sides: dict[str, Callable[[], int]], rounds: int, clock: Callable[[], float] = time.perf_counter
) -> tuple[dict[str, float], dict[str, int]]:
    """Shortest time of each side in interleaved rounds, and its failures."""
    best = dict.fromkeys(sides, float("inf"))
    failures = {}
    for _ in range(rounds):
        for name, side in sides.items():
            start = clock()
            failures[name] = side()
            best[name] = min(best[name], clock() - start)
    return best, failures


def random_digraphs(rng: np.random.Generator, low: int, high: int, count: int) -> mt.Digraphs:
    """Erdős–Rényi digraphs of mean degree 2 without self-loops."""
    sizes = rng.integers(low, high + 1, count).tolist()
    matrices = [(rng.random((n, n)) < 2 / (n - 1)) & ~np.eye(n, dtype=bool) for n in sizes]
    return mt.Digraphs.from_edges([np.stack(matrix.nonzero()) for matrix in matrices], sizes)


def bandwidth(device: str) -> float:
    """Bytes per second that a copy reads and writes."""
    source = torch.zeros(2**28 if device == "cuda" else 2**24, device=device)
    target = torch.empty_like(source)
    return 2 * source.numel() * source.element_size() / seconds(lambda: target.copy_(source), device, 3)
