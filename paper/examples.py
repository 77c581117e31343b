"""The paper's twelve example graphs (appendix A): first eigenvectors, and node orders restored from them (D.3)."""

from pathlib import Path
from textwrap import wrap
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
from magnetite.plots import draw_eigenvector
from paper.style import lettered, picture, tell

NODES = 10
REORDERED_NODES, COLUMNS = 9, 6
REORDERED = ("sequence", "balanced binary tree", "trumpet (fully connected)")
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
        place = torch.argsort(reordered(permuted))[number]
        forward += float((place[:, None] < place[None, :])[one_way].double().mean()) / permutations
    return round(forward, 6)


def figure(folder: Path, seed: int) -> None:
    """Encode and draw the graphs, restore permuted node orders, print the table, write the JSON file."""
    record = Record("figure-examples", seed)
    graphs = example_graphs()
    pairs = ENCODING(graphs)
    rows = [_row(name, graphs[i], pairs[i], seed) for i, name in enumerate(EXAMPLES)]
    path = record.write(
        folder, {"nodes": NODES, "permutations": PERMUTATIONS, "encoding": repr(ENCODING), "rows": rows}
    )
    _picture(graphs, pairs, folder)
    Console().print(_table(rows))
    tell(folder, record.name, path)


def figure_reordered(folder: Path, seed: int) -> None:
    """Three graphs of 9 nodes, permuted five times, and the same graphs with their nodes sorted by `Im γ₀`."""
    record = Record("figure-reordered", seed)
    graphs = dict(zip(EXAMPLES, example_graphs(REORDERED_NODES), strict=True))
    rows = []
    generator = torch.Generator().manual_seed(seed)
    with picture(folder, record.name, height=6.9) as figure:
        axes: Any = figure.subplots(2 * len(REORDERED), COLUMNS)
        for number, name in enumerate(REORDERED):
            for column, above, below in zip(range(COLUMNS), axes[2 * number], axes[2 * number + 1], strict=True):
                graph = graphs[name]
                order = torch.arange(graph.num_nodes)
                if column:
                    order = torch.randperm(graph.num_nodes, generator=generator)
                permuted = graph.replace(edges=order[graph.edges.long()].to(graph.edges))
                found = reordered(permuted)
                rows.append(
                    {
                        "graph": name,
                        "permutation": order.tolist(),
                        "sorted_by_phase": torch.argsort(order)[found].tolist(),
                        "edges_in_order": _in_order(graph, torch.argsort(found)[order]),
                    }
                )
                place = torch.argsort(found)
                for drawn, where in ((permuted, above), (permuted.replace(edges=place[permuted.edges.long()]), below)):
                    drawn = drawn.replace(edges=drawn.edges.to(graph.edges))
                    positions = _positions("circle", graph.num_nodes)
                    draw_eigenvector(drawn, ENCODING(drawn)[0], where, positions=positions, scale=0.22)
                above.set_title("permuted" if column else "\n".join(wrap(name, 16)))
                below.set_title("reordered")
    path = record.write(folder, {"nodes": REORDERED_NODES, "encoding": repr(ENCODING), "rows": rows})
    tell(folder, record.name, path)


def reordered(graph: Digraphs) -> torch.Tensor:
    """The nodes in the order of `Im γ₀`, largest first, which is that of the phase.

    >>> reordered(example_graphs(4)[0]).tolist()
    [0, 1, 2, 3]
    """
    return torch.argsort(ENCODING(graph).vectors[:, 0].imag, descending=True)


def _in_order(graph: Digraphs, place: torch.Tensor) -> float:
    """Fraction of one-way edges whose source comes before its target, if node `v` is at `place[v]`."""
    edges = {(u, v) for u, v in graph.edges.mT.tolist()}
    one_way = [(u, v) for u, v in edges if (v, u) not in edges]
    return sum(int(place[u] < place[v]) for u, v in one_way) / len(one_way)


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
    with picture(folder, "figure-examples", height=5.2) as figure:
        axes: Any = figure.subplots(3, 4)
        limit = float(pairs.vectors[:, 0].imag.abs().max())
        for i, (name, each) in enumerate(zip(EXAMPLES, axes.flat, strict=True)):
            draw_eigenvector(graphs[i], pairs[i], each, positions=_positions(name, NODES), limit=limit, scale=0.3)
            each.set_title(lettered(i, name))
        bar = figure.colorbar(axes[0, 0].collections[0], ax=axes.ravel().tolist(), aspect=40, shrink=0.6, pad=0.02)
        bar.set_label("imaginary part of γ₀ (size of a node: modulus of the real part)")


def _positions(name: str, n: int) -> dict[int, Any] | None:
    """Trees grow downwards; other graphs lie on an arc, so that long edges stay visible."""
    if "tree" in name:
        depth = [int(np.log2(v + 1)) for v in range(n)]
        width = 1.2 * max(depth)
        return {v: (width * (v + 1.5 - 2 ** depth[v]) / 2 ** depth[v], -depth[v]) for v in range(n)}
    span = 2 * np.pi * (n - 1) / n if name == "circle" else 1.5 * np.pi
    angle = np.pi - np.linspace(0, span, n)
    return {v: (np.cos(angle[v]), np.sin(angle[v])) for v in range(n)}
