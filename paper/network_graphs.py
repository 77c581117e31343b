"""Sorting networks as graphs (the paper's section 6, appendix L): an example, and how near they are to sequences."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Console
from rich.table import Table

from magnetite.graphs import Digraphs
from magnetite.io.record import Record
from magnetite.plots import draw_adjacency
from magnetite.sorting import SortingNetwork, generate
from magnetite.sorting.drawing import columns
from paper.style import BLUE, COLUMN, lettered, picture, tell

if TYPE_CHECKING:
    from matplotlib.axes import Axes

EXAMPLE = SortingNetwork(5, [(3, 4), (1, 2), (1, 3), (0, 1), (1, 4), (1, 2), (1, 3), (2, 4), (2, 3)])
"""The network of the paper's figure."""

NEAR = 0.1
"""An edge is near the diagonal if it spans at most this fraction of the nodes."""


def figure_sorting_graph(folder: Path, seed: int) -> None:
    """A sorting network of five wires, and its graph: one node per comparator."""
    record = Record("figure-sorting-graph", seed)
    graph = EXAMPLE.to_digraphs()
    result = {
        **EXAMPLE.to_dict(),
        "correct": EXAMPLE.is_correct(),
        "topological_sorts": EXAMPLE.topological_sorts(),
        "edges": graph.edges.mT.tolist(),
    }
    path = record.write(folder, result)
    with picture(folder, record.name, height=1.45, width=COLUMN) as figure:
        left, right = figure.subplots(1, 2)
        places = _draw_network(left)
        left.set_title(lettered(0, "sorting network"))
        _draw_graph(graph, places, right)
        right.set_title(lettered(1, "its graph"))
    tell(folder, record.name, path)


def _draw_network(axes: "Axes") -> dict[int, tuple[float, float]]:
    """Draw wires and comparators; returns the middle of each comparator, by its number."""
    drawn = columns(EXAMPLE.layers())
    left = list(EXAMPLE.comparators)
    places = {}
    for wire in range(EXAMPLE.length):
        axes.plot([-0.8, len(drawn) - 0.2], [wire, wire], color="0.5", linewidth=0.7)
        axes.text(-1.0, wire, str(wire), ha="right", va="center")
    for x, column in enumerate(drawn):
        for pair in column:
            axes.plot([x, x], pair, color="black", marker="o", markersize=2.5, linewidth=1.0)
            number = left.index(pair)
            left[number] = (-1, -1)  # a pair of wires may be compared again later
            places[number] = (float(x), sum(pair) / 2)
            axes.text(x + 0.12, sum(pair) / 2 + 0.02, str(number), fontsize=6, color=BLUE, ha="left", va="bottom")
    axes.invert_yaxis()
    axes.set_axis_off()
    return places


def _draw_graph(graph: Digraphs, places: dict[int, tuple[float, float]], axes: "Axes") -> None:
    import networkx as nx

    drawn = nx.DiGraph(graph.to_networkx()[0])
    nx.draw_networkx(
        drawn, places, ax=axes, node_size=75, node_color="white", edgecolors=BLUE, linewidths=0.8, font_size=6,
        width=0.7, arrowsize=5, edge_color="0.3",
    )  # fmt: skip
    axes.invert_yaxis()
    axes.set_axis_off()
    axes.margins(0.1)


def spans(graph: Digraphs) -> np.ndarray:
    """Number of places between the ends of each edge, as a fraction of the nodes.

    >>> spans(SortingNetwork(4, [(0, 1), (2, 3), (0, 2), (1, 3), (1, 2)]).to_digraphs()).tolist()
    [0.4, 0.2, 0.6, 0.4, 0.2, 0.4]
    """
    source, target = graph.edges.long().numpy()
    return np.abs(target - source) / graph.num_nodes


def random_dag(nodes: int, edges: int, seed: int) -> Digraphs:
    """A DAG with the given numbers of nodes and edges: pairs of different places, uniformly, ordered.

    >>> random_dag(10, 20, seed=0)
    Digraphs(1 graphs, 10 nodes, 20 edges)
    """
    pairs = np.stack(np.triu_indices(nodes, 1))
    chosen = np.random.default_rng(seed).choice(pairs.shape[1], edges, replace=False)
    return Digraphs.from_edges(pairs[:, np.sort(chosen)], nodes)


def figure_near_sequential(folder: Path, seed: int) -> None:
    """Adjacency matrices of generated networks of three lengths, and of a random DAG of the same size as the last."""
    record = Record("figure-near-sequential", seed)
    graphs = {f"length {length}": generate(1, [length], seed).one(0).to_digraphs() for length in (7, 11, 16)}
    last = graphs["length 16"]
    graphs["random DAG"] = random_dag(last.num_nodes, last.num_edges, seed)
    rows: list[dict[str, Any]] = [
        {
            "graph": name,
            "nodes": graph.num_nodes,
            "edges": graph.num_edges,
            "near_the_diagonal": round(float((spans(graph) <= NEAR).mean()), 6),
            "median_span": round(float(np.median(spans(graph))), 6),
            "edge_list": graph.edges.mT.tolist(),
        }
        for name, graph in graphs.items()
    ]
    path = record.write(folder, {"near": NEAR, "rows": rows})
    with picture(folder, record.name, height=2.1) as figure:
        for place, (row, graph) in enumerate(zip(rows, graphs.values(), strict=True)):
            axes = draw_adjacency(graph, figure.add_subplot(1, len(rows), place + 1))
            axes.set_title(lettered(place, f"{row['graph']}, {row['nodes']} nodes", 40))
            axes.set_xlabel(f"to node\n({row['near_the_diagonal']:.0%} near the diagonal)")
        figure.axes[0].set_ylabel("edge from node")
    table = Table("graph", "nodes", "edges", "near the diagonal", "median span")
    for row in rows:
        size = (str(row["nodes"]), str(row["edges"]))
        table.add_row(row["graph"], *size, f"{row['near_the_diagonal']:.0%}", f"{row['median_span']:.3f}")
    Console().print(table)
    tell(folder, record.name, path)
