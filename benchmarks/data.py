"""Time to generate the paper's training sets at full size, in memory.

python benchmarks/data.py                 # writes results/benchmark-data.json, or benchmark-data-gpu.json
"""

import argparse
import resource
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

from magnetite.io.record import Record
from magnetite.tasks import Distances, Examples, Sorting, Task

SEED = 0
COUNT = 400_000
TASKS: dict[str, Callable[[int], Task]] = {
    "sorting, with twins": lambda count: Sorting(train=count, shard_size=count, seed=SEED),
    "playground, directed distance": lambda count: Distances(train=count, shard_size=count, seed=SEED),
    "playground, undirected distance": lambda count: Distances(
        "undirected-distance", train=count, shard_size=count, seed=SEED
    ),
    "playground, directed distance, DAG": lambda count: Distances(
        acyclic=True, train=count, shard_size=count, seed=SEED
    ),
    "playground, reachability": lambda count: Distances("reachability", train=count, shard_size=count, seed=SEED),
}


def timed(make: Callable[[int], Task], device: str) -> tuple[float, Examples]:
    """Seconds to generate the whole training set, and the examples."""
    start = time.perf_counter()
    examples = make(COUNT).shard("train", 0, device=device)
    if examples.graphs.device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - start, examples


def main() -> None:
    """Print a table and write it as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("results"), help="folder for the JSON")
    options = parser.parse_args()
    record = Record("benchmark-data-gpu" if torch.cuda.is_available() else "benchmark-data", SEED)
    table = Table("training set", "device", "graphs", "nodes", "edges", "seconds", title=f"{COUNT:,} generated")
    devices = ["cpu"] + (["cuda"] if torch.cuda.is_available() else [])
    figures: dict[str, Any] = {}
    for name, make in TASKS.items():
        for device in devices if "playground" in name else ["cpu"]:
            make(1000).shard("train", 0, device=device)  # compile
            seconds, examples = timed(make, device)
            graphs = examples.graphs
            counts = [len(graphs), graphs.num_nodes, graphs.num_edges]
            table.add_row(name, device, *(f"{number:,}" for number in counts), f"{seconds:.1f}")
            figures[f"{name}, {device}"] = dict(zip(("graphs", "nodes", "edges"), counts, strict=True), seconds=seconds)
            del examples, graphs
    figures["peak_memory_GiB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    Console().print(table)
    record.write(options.out, figures)


if __name__ == "__main__":
    main()
