"""The paper's twelve example graphs (appendix A): first eigenvectors, and node orders restored from them."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

from magnetite.encodings import Eigenpairs, MagneticLaplacian
from magnetite.explorer.examples import EXAMPLES
from magnetite.graphs import Digraphs
from magnetite.io.record import Record
from magnetite.linalg.potential import Relative
from magnetite.plots import draw_eigenvector, save_figure

NODES = 10
PERMUTATIONS = 20
ENCODING = MagneticLaplacian(k=1, q=Relative(0.25), normalised=False, dtype=torch.float64)


def example_graphs(nodes: int = NODES) -> Digraphs:
    """The twelve graphs, with `nodes` nodes each.

    >>> example_graphs(10)
    Digraphs(12 graphs, 120 nodes, 237 edges)
    """
    return Digraphs.from_edges([np.array(edges(nodes)).T for edges in EXAMPLES.values()], [nodes] * len(EXAMPLES))


def restored_share(graph: Digraphs, seed: int, permutations: int = PERMUTATIONS) -> float | None:
    """Fraction of one-way edges that point forward when permuted nodes are sorted by `Im γ_0`, largest first.

    An edge from `u` to `v` decreases the phase of `v` by up to `2πq`, so sources have the largest imaginary part. The
    edges of a cycle cannot all point forward. The mean over several permutations; None without one-way edges.

    >>> restored_share(example_graphs()[0], seed=0)
    1.0
    """
    generator = torch.Generator().manual_seed(seed)
    source, target = graph.edges.long()
    adjacent = torch.zeros(graph.num_nodes, graph.num_nodes, dtype=torch.bool)
    adjacent[source, target] = True
    one_way = adjacent & ~adjacent.mT
    if not one_way.any():
        return None
    forward = 0.0
    for _ in range(permutations):
        number = torch.randperm(graph.num_nodes, generator=generator)
        permuted = graph.replace(edges=number[graph.edges.long()].to(graph.edges))
        order = torch.argsort(ENCODING(permuted).vectors[:, 0].imag, descending=True)
        place = torch.argsort(order)[number]
        forward += float((place[:, None] < place[None, :])[one_way].double().mean()) / permutations
    return round(forward, 6)


def figure(folder: Path, seed: int) -> None:
    """Encode and draw the graphs, restore permuted node orders, print the table, write the JSON file."""
    record = Record("figure-examples", seed)
    graphs = example_graphs()
    pairs = ENCODING(graphs)
    _picture(graphs, pairs, folder)
    rows = [_row(name, graphs[i], pairs[i], seed) for i, name in enumerate(EXAMPLES)]
    path = record.write(
        folder, {"nodes": NODES, "permutations": PERMUTATIONS, "encoding": repr(ENCODING), "rows": rows}
    )
    console = Console()
    console.print(_table(rows))
    console.print(f"figure: {folder / 'figure-examples.png'} and .svg, numbers: {path}")


def _row(name: str, graph: Digraphs, pairs: Eigenpairs, seed: int) -> dict[str, Any]:
    angles = pairs.vectors[:, 0].angle().rad2deg()
    return {
        "graph": name,
        "edges": graph.num_edges,
        "lowest_eigenvalue": round(float(pairs.values[0]), 6),
        "phase_span_degrees": round(float(angles.max() - angles.min()), 3),
        "one_way_edges_in_order": restored_share(graph, seed),
    }


def _table(rows: list[dict[str, Any]]) -> Table:
    table = Table(title=f"First eigenvector of the magnetic Laplacian, n={NODES}, q'=0.25; node order from Im γ₀")
    table.add_column("graph")
    for heading in ("edges", "λ₀", "phase span", "one-way edges in order"):
        table.add_column(heading, justify="right")
    for row in rows:
        share = row["one_way_edges_in_order"]
        table.add_row(
            row["graph"],
            str(row["edges"]),
            f"{row['lowest_eigenvalue']:.4f}",
            f"{row['phase_span_degrees']:.1f}°",
            "no one-way edges" if share is None else f"{share:.0%}",
        )
    return table


def _picture(graphs: Digraphs, pairs: Eigenpairs, folder: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 8), layout="constrained")
    for i, name in enumerate(EXAMPLES):
        axes = figure.add_subplot(3, 4, i + 1)
        draw_eigenvector(graphs[i], pairs[i], axes, positions=_positions(name, NODES))
        axes.set_title(f"({chr(ord('a') + i)}) {name}", fontsize=10)
    figure.suptitle("First eigenvector of the magnetic Laplacian: node size = |Re γ₀|, colour = Im γ₀")
    for ending in (".png", ".svg"):
        save_figure(figure, folder / f"figure-examples{ending}")


def _positions(name: str, n: int) -> dict[int, Any] | None:
    """Trees grow downwards; other graphs lie on an arc, so that long edges stay visible."""
    if "tree" in name:
        depth = [int(np.log2(v + 1)) for v in range(n)]
        return {v: ((v + 1 - 2 ** depth[v] + 0.5) / 2 ** depth[v], -depth[v]) for v in range(n)}
    span = 2 * np.pi * (n - 1) / n if name == "circle" else 1.5 * np.pi
    angle = np.pi - np.linspace(0, span, n)
    return {v: (np.cos(angle[v]), np.sin(angle[v])) for v in range(n)}
