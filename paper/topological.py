"""The paper's figure of topological sorts of Batcher's networks: how many programs are one sorting network."""

from pathlib import Path

from rich.console import Console
from rich.table import Table

from magnetite.io.record import Record
from magnetite.plots import save_figure
from magnetite.sorting import Estimate, SortingNetwork, batcher, estimate_topological_sorts
from magnetite.sorting.topological_sorts import TooManyStates

NAME = "figure-topological-sorts"


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
    console = Console()
    console.print(table)
    console.print(f"figure: {folder / NAME}.png and .svg, numbers: {path}")


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
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4, 3), layout="constrained")
    axes = figure.add_subplot()
    axes.semilogy(lengths, counts, "-o")
    axes.axhline(1e6, linestyle="--", linewidth=0.8, color="grey")
    axes.set_xlabel("length of the sequence")
    axes.set_ylabel("topological sorts")
    for ending in (".png", ".svg"):
        save_figure(figure, folder / f"{NAME}{ending}")
