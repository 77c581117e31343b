"""Transforms for PyG against PyG's own, one graph at a time and over a whole data set, in one process.

    python benchmarks/transforms.py            # writes results/benchmark-transforms.json

"one" calls the transform on one `Data` after the other, as a `pre_transform` is called; "set" is `transform.encode` of
an `InMemoryDataset`. PyG's `AddLaplacianEigenvectorPE` and `AddRandomWalkPE`, which have no such pass, get the same
graphs, k and number of steps. "magnetic" has the default potential, "relative" `Relative(0.25)`. The fastest of several
interleaved rounds is reported, in CPU time, which other processes hardly change: of the calling thread for "one", and
of the whole process for "set", which works in a pool of one thread.
"""

import argparse
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from timing import least_seconds, random_digraphs
from torch_geometric.data import Data, InMemoryDataset
from torch_geometric.transforms import AddLaplacianEigenvectorPE, AddRandomWalkPE

import magnetite as mt
from magnetite.io.record import Record
from magnetite.transforms import AddDirectedWalkPE, AddMagneticLaplacianPE, AddSVDPE

K, STEPS = 8, 3
RANGES = {"16-30": (16, 30, 300), "50-60": (50, 60, 150), "100-150": (100, 150, 60)}


class Stored(InMemoryDataset):
    """Graphs as PyG stores them."""

    def __init__(self, items: list[Data]):
        super().__init__(None)
        self.data, self.slices = self.collate(items)


def one_by_one(transform: Callable[[Data], Data], items: list[Data]) -> int:
    """Encode all; returns the number of failures."""
    failures = 0
    for item in items:
        try:
            transform(item)
        except Exception:
            failures += 1
    return failures


def together(transform: AddMagneticLaplacianPE, dataset: Stored) -> int:
    """Encode all; a failure would raise an error."""
    transform.encode(dataset)
    return 0


def measure(rng: np.random.Generator, low: int, high: int, count: int, rounds: int) -> dict[str, object]:
    """Milliseconds per graph, ratios and failures of one size range."""
    items = random_digraphs(rng, low, high, count).to_pyg()
    dataset = Stored(items)
    ours = {
        "magnetic": AddMagneticLaplacianPE(K),
        "relative": AddMagneticLaplacianPE(K, q=mt.Relative(0.25)),
        "walks": AddDirectedWalkPE(STEPS),
        "svd": AddSVDPE(K),
    }
    theirs = {"laplacian": AddLaplacianEigenvectorPE(K), "random walks": AddRandomWalkPE(STEPS)}
    single: dict[str, Callable[[], int]] = {}
    whole: dict[str, Callable[[], int]] = {}
    for name, transform in {**ours, **theirs}.items():
        single[f"{name}, one"] = lambda transform=transform: one_by_one(transform, items)
    for name, transform in ours.items():
        whole[f"{name}, set"] = lambda transform=transform: together(transform, dataset)
    for side in [*single.values(), *whole.values()]:
        side()
    torch.set_num_threads(1)
    seconds, failures = least_seconds(single, rounds, time.thread_time)
    for found, more in zip((seconds, failures), least_seconds(whole, rounds, time.process_time), strict=True):
        found |= more  # type: ignore[operator]
    each = {name: 1e3 * value / count for name, value in seconds.items()}
    return {
        "milliseconds": {name: round(value, 4) for name, value in each.items()},
        "times_pyg_one": round(each["laplacian, one"] / each["magnetic, one"], 2),
        "times_pyg_set": round(each["laplacian, one"] / each["magnetic, set"], 2),
        "walks_times_pyg_one": round(each["random walks, one"] / each["walks, one"], 2),
        "walks_times_pyg_set": round(each["random walks, one"] / each["walks, set"], 2),
        "svd_times_laplacian_one": round(each["laplacian, one"] / each["svd, one"], 2),
        "failures": {name: number for name, number in failures.items() if number},
        "graphs": count,
    }


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("results"))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    record, rng = Record("benchmark-transforms", options.seed), np.random.default_rng(options.seed)
    rows = {name: measure(rng, *sizes, options.rounds) for name, sizes in RANGES.items()}
    names = next(iter(rows.values()))["milliseconds"]
    table = Table("nodes", *names, title=f"milliseconds per graph, k={K}, {STEPS} steps")  # type: ignore[misc]
    for name, row in rows.items():
        table.add_row(name, *map(str, row["milliseconds"].values()))  # type: ignore[union-attr]
    console = Console(width=200)
    console.print(table)
    for name, row in rows.items():
        console.print(
            f"{name}: magnetic {row['times_pyg_one']}× as fast as PyG one by one, {row['times_pyg_set']}× as a set; "
            f"walks {row['walks_times_pyg_one']}× and {row['walks_times_pyg_set']}×; "
            f"SVD {row['svd_times_laplacian_one']}× PyG's Laplacian one by one"
        )
    console.print(f"written: {record.write(options.out, {'k': K, 'steps': STEPS, 'rows': rows})}")


if __name__ == "__main__":
    main()
