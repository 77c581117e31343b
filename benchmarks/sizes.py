"""Time and memory of every encoder and every model on one graph of 100 to 1,000,000 nodes.

python benchmarks/sizes.py [--limit 20] [--only magnetic gnn]

The graph is random, with three edges per node. Each cell runs in a process of its own, once to compile on a small graph
and then once to measure: an encoder encodes, and a model makes one step of training (forward and backward, width 64,
two layers). Memory is the growth of the process's peak beyond that of the first graph. A cell that exceeds the limit of
time is written as such, and a guard's refusal with its message.
"""

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

import magnetite as mt
from magnetite.io.record import Record, read_record

SIZES = (100, 1_000, 10_000, 100_000, 1_000_000)
EDGES_PER_NODE = 3
WIDTH = 64
WARM_UP = 2_000
"""Number of nodes of the graph that compiles; larger graphs are solved by the same methods."""

ENCODERS: dict[str, Any] = {
    "magnetic": mt.MagneticLaplacian(k=8, q=mt.Relative(0.25)),
    "laplacian": mt.Laplacian(k=8),
    "magnetic, 4 potentials (SPE)": mt.MagneticLaplacian(k=8, q=(0.05, 0.1, 0.15, 0.2)),
    "walks": mt.RandomWalk(),
    "sparse walks": mt.SparseRandomWalk(top=32),
    "walk sums": mt.WalkSums(top=32),
    "relatives": mt.Relatives(),
    "svd": mt.SVD(rank=8),
    "depth": mt.Depth(),
    "sinusoidal": mt.Sinusoidal(width=WIDTH),
}


def models() -> dict[str, Callable[[], torch.nn.Module]]:
    """Models by name, with one prediction per node."""
    head = lambda: mt.nn.NodeHead(5)  # noqa: E731
    return {
        "transformer": lambda: mt.nn.DigraphTransformer(width=WIDTH, layers=2, head=head()),
        "SAT": lambda: mt.nn.DigraphTransformer(width=WIDTH, layers=2, head=head(), local=mt.nn.GNN(WIDTH)),
        "linear attention": lambda: mt.nn.DigraphTransformer(
            width=WIDTH, layers=2, head=head(), attention=mt.nn.LinearAttention(WIDTH)
        ),
        "gnn": lambda: mt.nn.DigraphGNN(width=WIDTH, head=head()),
        "magnet": lambda: mt.nn.MagNet(width=WIDTH, layers=2, head=head()),
    }


def random_graph(size: int, seed: int) -> mt.Digraphs:
    """A random graph with three edges per node."""
    edges = np.random.default_rng(seed).integers(0, size, (2, EDGES_PER_NODE * size))
    return mt.Digraphs.from_edges(edges, num_nodes=size)


def work_of(name: str) -> Callable[[mt.Digraphs], None]:
    """What a cell does with a graph."""
    if name in ENCODERS:
        return lambda graphs: ENCODERS[name](graphs)
    model = models()[name]()

    def step(graphs: mt.Digraphs) -> None:
        torch.as_tensor(model(graphs)).float().square().mean().backward()

    return step


def cell(name: str, size: int, seed: int) -> dict[str, float | str]:
    """Seconds and GiB of one cell, or why it is refused."""
    torch.manual_seed(seed)
    work = work_of(name)
    work(random_graph(min(size, WARM_UP), seed))
    graphs = random_graph(size, seed)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.perf_counter()
    try:
        work(graphs)
    except ValueError as error:
        return {"refused": str(error), "seconds": time.perf_counter() - start}
    seconds = time.perf_counter() - start
    return {"seconds": seconds, "gib": (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 2**20}


def in_process(name: str, size: int, seed: int, limit: float) -> dict[str, float | str]:
    """One cell in a process of its own, which is ended at the limit."""
    command = [sys.executable, __file__, "--cell", name, str(size), "--seed", str(seed)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit + 20, check=False)
    except subprocess.TimeoutExpired:
        return {"timeout": limit}
    if done.returncode:
        return {"failed": (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]}
    found = json.loads(done.stdout.splitlines()[-1])
    return {"timeout": limit} if found["seconds"] > limit else found


def main() -> None:
    """Measure every cell, print the table, write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("results"))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--limit", type=float, default=20, help="Seconds that a cell may take.")
    parser.add_argument("--only", nargs="*", default=[*ENCODERS, *models()])
    parser.add_argument("--keep", action="store_true", help="Keep the other rows of an earlier measurement.")
    parser.add_argument("--sizes", nargs="*", type=int, default=list(SIZES))
    parser.add_argument("--cell", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.cell:
        print(json.dumps(cell(options.cell[0], int(options.cell[1]), options.seed)))
        return
    record = Record("benchmark-sizes", options.seed)
    table = Table("what", *(f"{size:,}" for size in options.sizes))
    earlier = options.out / "benchmark-sizes.json"
    result: dict[str, dict[str, Any]] = read_record(earlier)["result"]["cells"] if options.keep else {}
    for name in options.only:
        result[name] = {}
        for size in options.sizes:
            result[name][str(size)] = in_process(name, size, options.seed, options.limit)
        table.add_row(name, *(shown(found) for found in result[name].values()))
        record.write(options.out, {"limit": options.limit, "edges_per_node": EDGES_PER_NODE, "cells": result})
    Console().print(table)


def shown(found: dict[str, Any]) -> str:
    """A cell in words."""
    if "refused" in found:
        return "refused"
    if "timeout" in found:
        return f"> {found['timeout']:.0f} s"
    if "failed" in found:
        return "failed"
    return f"{found['seconds']:.2g} s, {max(found['gib'], 0):.2g} GiB"


if __name__ == "__main__":
    main()
