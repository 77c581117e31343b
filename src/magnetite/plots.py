"""Figures of graphs with their first eigenvector: node sizes show the real part, colours the imaginary part."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import networkx as nx
import numpy as np
import torch

from magnetite.encodings import Eigenpairs
from magnetite.graphs import Digraphs
from magnetite.io.storage import check_writable, replacing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FIGURE_EXTENSIONS = (".png", ".svg", ".pdf")

LARGEST = 400
"""Largest number of nodes of a graph that can be drawn."""


def draw_first_eigenvector(
    graph: Digraphs, pairs: Eigenpairs, axes: "Axes", positions: Mapping[int, Any] | None = None
) -> None:
    """Draw one graph with its first eigenvector, as in figure 1 of the paper.

    Args:
        graph: A single graph.
        pairs: Its eigenpairs.
        axes: The axes to draw on.
        positions: Coordinates by node; `layout` computes them if omitted.
    """
    if graph.num_nodes > LARGEST:
        raise ValueError(f"graphs of at most {LARGEST} nodes can be drawn, got {graph.num_nodes} nodes")
    first = pairs.vectors.flatten(1)[:, 0].to(torch.complex128)
    real, imaginary = first.real.numpy(), first.imag.numpy()
    drawn = nx.DiGraph(graph.to_networkx()[0])
    sizes = (30 + 270 * np.abs(real) / float(first.abs().max())).tolist()
    if positions is None:
        positions = layout(drawn)
    limit = max(float(np.abs(imaginary).max()), 1e-3)
    nodes = nx.draw_networkx_nodes(
        drawn, positions, ax=axes, node_size=sizes, node_color=imaginary.tolist(), cmap="coolwarm",
        vmin=-limit, vmax=limit, edgecolors="black", linewidths=0.5,
    )  # fmt: skip
    nodes.set_zorder(2)
    nx.draw_networkx_edges(drawn, positions, ax=axes, node_size=sizes, arrowsize=7, width=0.6, alpha=0.7)
    axes.set_axis_off()


def layout(graph: nx.DiGraph) -> dict[int, Any]:
    """Coordinates by node: layers from left to right for a DAG, a spring layout otherwise; deterministic."""
    if graph.number_of_nodes() > 1 and nx.is_directed_acyclic_graph(graph):
        for layer, nodes in enumerate(nx.topological_generations(graph)):
            for node in nodes:
                graph.nodes[node]["layer"] = layer
        return nx.multipartite_layout(graph, subset_key="layer")
    return nx.spring_layout(graph, seed=0)


def check_figure(path: Path) -> None:
    """Raise an error for an unknown file extension or an unwritable path, before any work is done."""
    if path.suffix not in FIGURE_EXTENSIONS:
        raise ValueError(f"{path} has an unknown file extension: use one of {' '.join(FIGURE_EXTENSIONS)}")
    check_writable(path)


def save_figure(figure: "Figure", path: str | Path) -> None:
    """Write a figure in the format of the file extension, atomically; equal figures give equal files."""
    import matplotlib

    path = Path(path)
    check_figure(path)
    with replacing(path) as part, matplotlib.rc_context({"svg.hashsalt": "magnetite"}):
        figure.savefig(part, dpi=150, bbox_inches="tight", metadata={"Date": None} if path.suffix == ".svg" else None)


def plot_eigenvectors(graphs: Digraphs, pairs: Eigenpairs, path: str | Path, titles: list[str] | None = None) -> None:
    """Draw the first sixteen graphs with their first eigenvectors in one figure.

    Args:
        graphs: The graphs.
        pairs: Their eigenpairs.
        path: Output file: .png, .svg or .pdf.
        titles: One title per graph.
    """
    from matplotlib.figure import Figure

    count = min(len(graphs), 16)
    columns = min(count, 4)
    rows = -(-count // columns)
    figure = Figure(figsize=(3.2 * columns, 2.8 * rows), layout="constrained")
    for i in range(count):
        axes = figure.add_subplot(rows, columns, i + 1)
        draw_first_eigenvector(graphs[i], pairs[i], axes)
        if titles:
            axes.set_title(titles[i], fontsize=9)
    save_figure(figure, path)
