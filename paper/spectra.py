"""Eigenvectors over the nodes (the paper's appendices C and D): five of each example, the potential, a Laplacian that
fails, and what one edge does to the phase."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

from magnetite.encodings import MagneticLaplacian
from magnetite.explorer.examples import EXAMPLES
from magnetite.graphs import Digraphs
from magnetite.io.record import Record
from magnetite.linalg.potential import Potential, Relative
from magnetite.plots import draw_eigenvector, draw_spectrum
from paper.examples import example_graphs
from paper.style import BLACK, BLUE, COLUMN, DASHED, DOTTED, GREEN, ORANGE, SKY, VERMILLION, lettered, picture, tell

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NODES = 100
VECTORS = 5
HIGH = (0.0, 0.0025, 0.025, 0.25)
"""Absolute potentials of a sequence of 101 nodes: none, the relative potential 0.25, and 10 and 100 times as much."""

SHOWN = ("sequence", "undirected sequence", "balanced binary tree", "trumpet", "fully connected DAG")
"""Graphs whose phases are shown over the potential."""

POTENTIALS = {0.05: (BLACK, DOTTED), 0.1: (SKY, DASHED), 0.25: (BLUE, "-"), 0.5: (ORANGE, "-."), 1.0: (VERMILLION, "-")}
"""Relative potentials, with their colours and lines."""


def eigenvectors(graph: Digraphs, q: Potential, k: int = VECTORS) -> tuple[np.ndarray, np.ndarray]:
    """Lowest eigenvalues and eigenvectors of the unnormalised magnetic Laplacian, in double precision.

    >>> values, vectors = eigenvectors(example_graphs(10)[0], Relative(0.25), k=2)
    >>> vectors.shape, float(values[0].round(6))
    ((10, 2), 0.0)
    """
    pairs = MagneticLaplacian(k=k, q=q, normalised=False, dtype=torch.float64)(graph)
    return pairs.values[0].abs().numpy(), pairs[0].vectors.numpy()


def unsymmetrised(graph: Digraphs) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues and unit eigenvectors of `L = D − A` with out-degrees `D`, sorted by modulus of the eigenvalue.

    The matrix of a sequence has the eigenvalue 1 many times and a single eigenvector of it: no basis exists. The
    largest entry of an eigenvector is real and positive.

    >>> values, vectors = unsymmetrised(example_graphs(10)[0])
    >>> values.real.round(6).tolist()[:3], int(np.linalg.matrix_rank(vectors))
    ([0.0, 1.0, 1.0], 2)
    """
    source, target = graph.edges.long().numpy()
    adjacency = np.zeros((graph.num_nodes, graph.num_nodes))
    adjacency[source, target] = 1
    values, vectors = np.linalg.eig(np.diag(adjacency.sum(1)) - adjacency)
    order = np.lexsort((np.imag(values).round(9), np.abs(values).round(9)))
    vectors = vectors[:, order] / np.linalg.norm(vectors[:, order], axis=0)
    largest = np.take_along_axis(vectors, np.abs(vectors).round(9).argmax(0, keepdims=True), axis=0)
    return values[order], vectors * (largest.conj() / np.abs(largest))


def figure_spectra(folder: Path, seed: int) -> None:
    """Five eigenvectors of the magnetic Laplacian of each example graph, with 100 nodes."""
    record = Record("figure-spectra", seed)
    found = {
        name: eigenvectors(graph, Relative(0.25)) for name, graph in zip(EXAMPLES, example_graphs(NODES), strict=True)
    }
    rows = [{"graph": name, **_numbers(*pairs)} for name, pairs in found.items()]
    path = record.write(folder, {"nodes": NODES, "relative_potential": 0.25, "normalised": False, "rows": rows})
    with picture(folder, record.name, height=7.4) as figure:
        for place, (name, (_, vectors)) in enumerate(found.items()):
            axes = draw_spectrum(vectors, figure.add_subplot(4, 3, place + 1), labels=place % 3 == 0)
            _panel(axes, place, name, place >= 9)
        _parts(figure)
    tell(folder, record.name, path)


def figure_unsymmetrised(folder: Path, seed: int) -> None:
    """Five eigenvectors of the Laplacian without symmetrisation, and how far all of them are from a basis."""
    record = Record("figure-unsymmetrised", seed)
    found = {name: unsymmetrised(graph) for name, graph in zip(EXAMPLES, example_graphs(NODES), strict=True)}
    rows = []
    for name, (values, vectors) in found.items():
        first = vectors[:, :VECTORS]
        rows.append(
            {
                "graph": name,
                "numerical_rank": int(np.linalg.matrix_rank(vectors)),
                "distinct_encodings": len(np.unique(first.round(6) + 0.0, axis=0)),
                "nodes_all_zero": int((np.abs(first) < 1e-9).all(1).sum()),
                "largest_inner_product": round(float(np.abs(first.conj().T @ first - np.eye(first.shape[1])).max()), 6),
                "largest_imaginary_eigenvalue": round(float(np.abs(np.imag(values)).max()), 6),
                **_numbers(values[:VECTORS], first),
            }
        )
    path = record.write(folder, {"nodes": NODES, "laplacian": "D - A, out-degrees", "rows": rows})
    with picture(folder, record.name, height=7.8) as figure:
        for place, (row, (_, vectors)) in enumerate(zip(rows, found.values(), strict=True)):
            axes = draw_spectrum(vectors[:, :VECTORS], figure.add_subplot(4, 3, place + 1), labels=place % 3 == 0)
            _panel(axes, place, row["graph"], place >= 9)
            axes.set_title(f"{axes.get_title()}\n{row['distinct_encodings']} distinct encodings")
        _parts(figure)
    table = Table("graph", title=f"Laplacian without symmetrisation, {NODES} nodes")
    columns = ("numerical_rank", "distinct_encodings", "nodes_all_zero", "largest_inner_product")
    for column in columns:
        table.add_column(column.replace("_", " "), justify="right")
    for row in rows:
        table.add_row(row["graph"], *(str(row[column]) for column in columns))
    Console().print(table)
    tell(folder, record.name, path)


def figure_high_q(folder: Path, seed: int) -> None:
    """Eigenvectors of a sequence of 101 nodes at potentials up to 100 times the usual one."""
    record = Record("figure-high-q", seed)
    graph = example_graphs(NODES + 1)[0]
    found = {q: eigenvectors(graph, q) for q in HIGH}
    rows = [
        {"potential": q, "relative_potential": round(q * NODES, 6), **_numbers(*pairs)} for q, pairs in found.items()
    ]
    path = record.write(folder, {"graph": "sequence", "nodes": NODES + 1, "normalised": False, "rows": rows})
    with picture(folder, record.name, height=3.9) as figure:
        for place, (q, (_, vectors)) in enumerate(found.items()):
            axes = draw_spectrum(vectors, figure.add_subplot(2, 2, place + 1), labels=place % 2 == 0)
            _panel(axes, place, f"q = {q:g} (relative q' = {q * NODES:g})", place >= 2)
        _parts(figure)
    tell(folder, record.name, path)


def phases(graph: Digraphs, potentials: np.ndarray) -> np.ndarray:
    """Phase of each node in the first eigenvector relative to the first node, in degrees: `[potentials, n]`.

    Phases are continuous in the potential, from 0 at potential 0, so they may exceed 180 degrees.

    >>> phases(example_graphs(5)[0], np.linspace(0, 1, 9))[-1].round().astype(int).tolist()
    [0, -90, -180, -270, -360]
    """
    first = np.stack([eigenvectors(graph, Relative(float(q)), 1)[1][:, 0] for q in potentials])
    return np.unwrap(np.angle(first * first[:, :1].conj(), deg=True), period=360, axis=0) + 0.0


def figure_phase(folder: Path, seed: int) -> None:
    """The first eigenvector over the potential: imaginary parts at five potentials, and phases at all of them."""
    record = Record("figure-phase", seed)
    nodes = 10
    graphs = dict(zip(EXAMPLES, example_graphs(nodes), strict=True))
    grid = np.linspace(0, 1, 41)
    rows = []
    for name in SHOWN:
        imaginary = {
            f"{q:g}": np.imag(_scaled(eigenvectors(graphs[name], Relative(q), 1)[1])[:, 0]) for q in POTENTIALS
        }
        rows.append(
            {
                "graph": name,
                "imaginary_parts": {q: _rounded(values) for q, values in imaginary.items()},
                "phases_degrees": [_rounded(values, 3) for values in phases(graphs[name], grid)],
            }
        )
    path = record.write(folder, {"nodes": nodes, "relative_potentials": _rounded(grid), "rows": rows})
    with picture(folder, record.name, height=3.3) as figure:
        _draw_phases(figure, rows, grid, nodes)
    tell(folder, record.name, path)


def _draw_phases(figure: "Figure", rows: list[dict[str, Any]], grid: np.ndarray, nodes: int) -> None:
    from matplotlib import cm, colormaps, colors

    shades = colormaps["viridis"](np.linspace(0, 0.92, nodes))
    axes: Any = figure.subplots(2, len(rows), sharey="row")
    for place, row in enumerate(rows):
        above, below = axes[:, place]
        for (colour, line), values in zip(POTENTIALS.values(), row["imaginary_parts"].values(), strict=True):
            above.plot(values, color=colour, linestyle=line)
        above.set_title(lettered(place, row["graph"], 18))
        above.set_xlabel("node")
        above.set_xticks(range(0, nodes, 3))
        for node, line in enumerate(np.array(row["phases_degrees"]).T):
            below.plot(grid, line, color=shades[node])
        below.set_xlabel("relative potential q'")
        below.set_yticks(range(-360, 1, 90))
    axes[0, 0].set_ylabel("Im γ₀ / max |γ₀|")
    axes[1, 0].set_ylabel("phase, degrees")
    handles = [axes[0, 0].plot([], [], color=colour, linestyle=line)[0] for colour, line in POTENTIALS.values()]
    names = [f"q' = {q:g}" for q in POTENTIALS]
    figure.legend(handles, names, loc="outside upper center", ncols=len(names), handlelength=2.6)
    scale = colors.ListedColormap(shades)
    bar = figure.colorbar(
        cm.ScalarMappable(colors.BoundaryNorm(np.arange(-0.5, nodes), nodes), scale),
        ax=axes[1, :].tolist(), ticks=[0, 3, 6, 9], aspect=12, pad=0.01,
    )  # fmt: skip
    bar.set_label("node")


def rotation_graph() -> Digraphs:
    """The paper's example of five edges without a conflict: node 2 is two directed edges from node 3.

    Nodes are numbered from 1 in the figure. Edges 3 → 1, 3 → 4, 1 → 2 and 4 → 2, and 1 – 4 in both directions.

    >>> rotation_graph()
    Digraphs(1 graphs, 4 nodes, 6 edges)
    """
    return Digraphs.from_edges(torch.tensor([[3, 3, 1, 4, 1, 4], [1, 4, 2, 2, 4, 1]]) - 1).replace(names=list("1234"))


def figure_rotation(folder: Path, seed: int) -> None:
    """What one directed edge does: it turns the first eigenvector by 2πq, and an undirected edge does not."""
    record = Record("figure-rotation", seed)
    graph, q = rotation_graph(), 0.125
    pairs = MagneticLaplacian(k=1, q=q, normalised=False, dtype=torch.float64)(graph)
    first = pairs[0].vectors[:, 0].numpy()
    angles = np.angle(first * first[2].conj(), deg=True)
    rows = [{"node": node + 1, "phase_degrees": round(float(angles[node]), 6) + 0.0} for node in range(4)]
    numbers = {"potential": q, "eigenvalue": round(abs(float(pairs.values[0, 0])), 9), "rows": rows}
    path = record.write(folder, {**numbers, "edges": (graph.edges.mT + 1).tolist()})
    with picture(folder, record.name, height=1.6, width=COLUMN) as figure:
        left, right = figure.subplots(1, 2)
        positions = {2: (0.0, 0.5), 0: (0.6, 1.0), 3: (0.6, 0.0), 1: (1.2, 0.5)}
        draw_eigenvector(graph, pairs[0], left, positions=positions, labels=True, scale=0.5)
        left.set_title("(a) graph")
        circle = np.exp(2j * np.pi * np.linspace(0, 1, 200))
        right.plot(np.real(circle), np.imag(circle), color="0.7", linewidth=0.6)
        together: dict[float, list[str]] = {}
        for row in rows:
            together.setdefault(row["phase_degrees"], []).append(str(row["node"]))
        for (angle, nodes), colour in zip(together.items(), (BLUE, VERMILLION, GREEN), strict=True):
            x, y = np.cos(np.radians(angle)), np.sin(np.radians(angle))
            right.annotate("", (x, y), (0, 0), arrowprops={"arrowstyle": "-|>", "color": colour, "shrinkA": 0})
            right.annotate(" and ".join(nodes), (1.2 * x, 1.2 * y), ha="left" if x > 0.1 else "center", va="center")
        right.set_aspect("equal", adjustable="datalim")
        right.plot([-1.1, 2.0], [-1.4, 1.1], alpha=0)  # room for the labels
        right.set_axis_off()
        right.set_title("(b) γ₀ of each node, q = 1/8")
    tell(folder, record.name, path)


def _scaled(vectors: np.ndarray) -> np.ndarray:
    """Eigenvectors whose largest modulus is 1."""
    return vectors / np.abs(vectors).max(0)


def _rounded(values: np.ndarray, digits: int = 6) -> list[float]:
    return (values.round(digits) + 0.0).tolist()  # + 0.0 turns −0.0 into 0.0


def _numbers(values: np.ndarray, vectors: np.ndarray) -> dict[str, Any]:
    """Eigenvalues and eigenvectors, one list per eigenvector, for a JSON file."""
    columns = _scaled(vectors).T
    complex_values = {"imaginary_eigenvalues": _rounded(np.imag(values))} if np.iscomplexobj(values) else {}
    return {
        "eigenvalues": _rounded(np.real(values)),
        **complex_values,
        "real_parts": [_rounded(column.real, 5) for column in columns],
        "imaginary_parts": [_rounded(column.imag, 5) for column in columns],
    }


def _panel(axes: "Axes", place: int, title: str, lowest: bool) -> None:
    axes.set_title(lettered(place, title, 40))
    if lowest:
        axes.set_xlabel("node")


def _parts(figure: "Figure") -> None:
    """A legend of real and imaginary parts, from the first two lines of the first panel."""
    lines = [line for line in figure.axes[0].lines if line.get_linewidth() > 0.5][:2]
    figure.legend(lines, ["real part", "imaginary part"], loc="outside upper center", ncols=2, handlelength=2.6)
