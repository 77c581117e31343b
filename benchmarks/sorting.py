"""Generation of sorting networks on one core, against a plain NumPy generator on sets of inputs.

    python benchmarks/sorting.py              # writes results/benchmark-sorting.json

The plain generator holds all 2^p inputs as rows of an array and keeps the distinct ones after every comparator. Both
run in one process; the medians of interleaved rounds are reported.
"""

import argparse
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

from magnetite.io.record import Record
from magnetite.sorting import generate

ROUNDS = 3
CASES: list[tuple[str, range, int, int]] = [
    ("7", range(7, 8), 20, 20_000),
    ("11", range(11, 12), 20, 20_000),
    ("7–11", range(7, 12), 40, 20_000),
    ("16", range(16, 17), 4, 1_000),
]
"""Name, lengths, number of networks of the plain generator, number of ours (for rounds that are long enough)."""


def plain(length: int, rng: np.random.Generator) -> list[tuple[int, int]]:
    """All 2^p inputs as rows; after every comparator the distinct ones are kept, until p + 1 are left."""
    rows = ((np.arange(2**length)[:, None] >> np.arange(length)) & 1).astype(np.int8)
    wires = np.arange(length)
    network: list[tuple[int, int]] = []
    while len(rows) > length + 1:
        low, high = sorted(rng.choice(wires, 2, replace=False).tolist())
        if network and network[-1] == (low, high):
            continue
        network.append((low, high))
        rows[:, [low, high]] = np.sort(rows[:, [low, high]], axis=1)
        rows = np.unique(rows, axis=0)
        wires = (rows != np.sort(rows, axis=1)).any(0).nonzero()[0]
        if len(network) > 512:
            return plain(length, rng)
    return network


def plain_networks(lengths: Sequence[int], count: int, seed: int) -> float:
    """The mean number of comparators, to show that both generators sample the same distribution."""
    rng = np.random.default_rng(seed)
    return float(np.mean([len(plain(lengths[number % len(lengths)], rng)) for number in range(count)]))


def our_networks(lengths: Sequence[int], count: int, seed: int) -> float:
    """The mean number of comparators of ours."""
    return float(generate(count, lengths, seed).sizes.double().mean())


def seconds(work: Callable[[Sequence[int], int, int], float], lengths: Sequence[int], count: int, seed: int) -> tuple:
    """Seconds per network, and the mean number of comparators."""
    start = time.perf_counter()
    comparators = work(lengths, count, seed)
    return (time.perf_counter() - start) / count, comparators


def main() -> None:
    """Print a table and write it as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("results"), help="folder for the JSON")
    options = parser.parse_args()
    record = Record("benchmark-sorting", seed=0)
    torch.set_num_threads(1)
    our_networks(range(7, 12), 10, record.seed)  # compile
    table = Table(
        "length", "plain NumPy", "magnetite", "ratio", "comparators (plain, ours)", title="one network, one core"
    )
    figures = {}
    for name, lengths, few, many in CASES:
        rounds = [
            (
                seconds(plain_networks, lengths, few, record.seed + turn),
                seconds(our_networks, lengths, many, record.seed + turn),
            )
            for turn in range(ROUNDS)
        ]
        theirs, ours = median(left[0] for left, _ in rounds), median(right[0] for _, right in rounds)
        sizes = [float(np.mean([turn[side][1] for turn in rounds])) for side in (0, 1)]
        table.add_row(
            name,
            f"{theirs * 1e3:.1f} ms",
            f"{ours * 1e6:.2f} µs",
            f"{theirs / ours:,.0f}×",
            f"{sizes[0]:.0f}, {sizes[1]:.0f}",
        )
        figures[name] = {"plain_s": theirs, "magnetite_s": ours, "ratio": theirs / ours, "comparators": sizes}
    Console().print(table)
    record.write(options.out, figures)


if __name__ == "__main__":
    main()
