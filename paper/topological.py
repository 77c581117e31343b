"""Topological sorts: how many programs are one sorting network, Batcher's (the paper's figure 6) or a random one."""

from math import log10
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from magnetite.io.record import Record
from magnetite.sorting import Estimate, SortingNetwork, batcher, estimate_topological_sorts, generate
from magnetite.sorting.topological_sorts import TooManyStates
from paper.style import BLUE, COLUMN, GREY, picture, tell

NAME = "figure-topological-sorts"
MILLION = 1e6
LENGTHS = range(7, 12)
"""Lengths of training networks."""

NETWORKS = 500
"""Number of training networks of each length."""


def figure(folder: Path, seed: int) -> None:
    """Count the topological sorts of Batcher's odd-even merge sort of lengths 2 to 16: table, figure and JSON file."""
    record = Record(NAME, seed)
    rows = []
    for length in range(2, 17):
        network = batcher(length)
        count = topological_sorts(network, seed)
        exact = not isinstance(count, Estimate)
        # Exact counts exceed the numbers of JSON readers: they are written as text.
        rows.append(
            {
                "length": length,
                "comparators": len(network),
                "exact": exact,
                "topological_sorts": str(count if exact else count.value),
            }
        )
    path = record.write(folder, {"network": "Batcher's odd-even merge sort", "rows": rows})
    _picture([row["length"] for row in rows], [float(row["topological_sorts"]) for row in rows], folder)
    table = Table("length", "comparators", title="Batcher's odd-even merge sort")
    table.add_column("topological sorts", justify="right", overflow="fold")
    for row in rows:
        count = row["topological_sorts"]
        table.add_row(str(row["length"]), str(row["comparators"]), f"{int(count):,}" if row["exact"] else f"≈ {count}")
    Console().print(table)
    tell(folder, NAME, path)


def figure_training(folder: Path, seed: int) -> None:
    """Count the topological sorts of generated networks of the lengths of training: table, figure and JSON file."""
    record = Record("figure-training-sorts", seed)
    rows = []
    for length in LENGTHS:
        networks = generate(NETWORKS, [length], seed)
        counts = [topological_sorts(networks.one(i), seed) for i in range(NETWORKS)]
        logarithms = np.array([log10(count.value if isinstance(count, Estimate) else count) for count in counts])
        rows.append(
            {
                "length": length,
                "networks": NETWORKS,
                "estimated": sum(isinstance(count, Estimate) for count in counts),
                "share_above_a_million": float((logarithms > log10(MILLION)).mean()),
                "median_log10": round(float(np.median(logarithms)), 4),
                "log10": logarithms.round(4).tolist(),
            }
        )
    path = record.write(folder, {"networks": "generated as for training", "rows": rows})
    with picture(folder, record.name, height=2.2, width=COLUMN) as figure:
        axes = figure.add_subplot()
        boxes = axes.boxplot(
            [row["log10"] for row in rows], positions=list(LENGTHS), widths=0.55, whis=(0, 100), patch_artist=True
        )
        for box in boxes["boxes"]:
            box.set(facecolor="#CCE3F0", edgecolor=BLUE)
        for line in boxes["medians"]:
            line.set(color=BLUE, linewidth=1.6)
        axes.axhline(log10(MILLION), linestyle="--", linewidth=0.9, color=GREY)
        axes.text(LENGTHS[-1] + 0.45, log10(MILLION) + 1, "one million", ha="right", color=GREY)
        axes.set_ylim(0, None)
        axes.set_xlabel("length of the network, wires")
        axes.set_ylabel("topological sorts, log₁₀")
    table = Table("length", "networks", "above a million", "median", title="Generated sorting networks")
    for row in rows:
        share, median = f"{row['share_above_a_million']:.0%}", f"10^{row['median_log10']:.1f}"
        table.add_row(str(row["length"]), str(row["networks"]), share, median)
    Console().print(table)
    tell(folder, record.name, path)


def topological_sorts(network: SortingNetwork, seed: int) -> int | Estimate:
    """Number of topological sorts of a network; an estimate where the exact count takes too long.

    >>> [topological_sorts(batcher(length), seed=0) for length in range(2, 9)]
    [1, 1, 4, 20, 584, 58496, 7055168]
    """
    try:
        return network.topological_sorts()
    except TooManyStates:
        return estimate_topological_sorts(network.to_digraphs(), seed=seed)


def _picture(lengths: list[int], counts: list[float], folder: Path) -> None:
    with picture(folder, NAME, height=2.2, width=COLUMN) as figure:
        axes = figure.add_subplot()
        axes.semilogy(lengths, counts, "-o", color=BLUE)
        axes.axhline(MILLION, linestyle="--", linewidth=0.9, color=GREY)
        axes.text(lengths[-1], 3 * MILLION, "one million", ha="right", color=GREY)
        axes.set_xticks(lengths[::2])
        axes.set_xlabel("length of the network, wires")
        axes.set_ylabel("topological sorts")
