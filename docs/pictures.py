"""Draws the pictures of `start.md` and `concepts/` into `images/`: `python docs/pictures.py`."""

import tempfile
from pathlib import Path

import networkx as nx
import numpy as np
from matplotlib import colormaps, rcParams
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import magnetite as mt
from magnetite.plots import plot_eigenvectors

FOLDER = Path(__file__).parent / "images"
INK, FAINT = "#333333", "#999999"
COLOURS = "viridis"
"""Readable with all kinds of colour blindness, and in grey."""


def first_vector(graph: nx.DiGraph, q: mt.Relative | float) -> np.ndarray:
    """The first eigenvector of a graph at a potential, times √n."""
    graphs = mt.Digraphs.from_networkx(graph)
    vector = mt.MagneticLaplacian(k=1, q=q)(graphs).vectors[:, 0].numpy()
    return vector * np.sqrt(len(vector))


def angle(degrees: float) -> str:
    """An angle as it is written beside a node."""
    return f"{round(degrees, 1) + 0:g}°".replace("-", "−")


def draw_graph(axes: Axes, graph: nx.DiGraph, places: dict[int, tuple[float, float]], phases: np.ndarray) -> None:
    """A graph whose nodes have the colours of their phases."""
    style = {"ax": axes, "node_size": 330}
    nx.draw_networkx_edges(graph, places, **style, edge_color=INK, arrowsize=13, width=1.1)
    nx.draw_networkx_nodes(graph, places, **style, node_color=phases, cmap=COLOURS, vmin=-90, vmax=0, edgecolors=INK)
    for node, place in places.items():
        colour = "white" if phases[list(graph).index(node)] < -35 else "black"
        axes.text(*place, str(node), ha="center", va="center", fontsize=9, color=colour)
    axes.margins(0.18)
    axes.set_axis_off()


def draw_plane(axes: Axes, vector: np.ndarray, title: str) -> None:
    """Entries of an eigenvector as arrows in the complex plane."""
    turn = np.linspace(0, 2 * np.pi, 200)
    axes.plot(np.cos(turn), np.sin(turn), color=FAINT, linewidth=0.8)
    axes.axhline(0, color=FAINT, linewidth=0.6)
    axes.axvline(0, color=FAINT, linewidth=0.6)
    phases = np.degrees(np.angle(vector))
    span = max(float(np.ptp(phases)), 1e-9)
    colours = (phases - phases.min()) / span if span > 1 else np.ones_like(phases)
    for node, (entry, colour) in enumerate(zip(vector, colours, strict=True)):
        axes.annotate(
            "", (entry.real, entry.imag), (0, 0),
            arrowprops={"arrowstyle": "-|>", "color": colormaps[COLOURS](0.95 * colour), "linewidth": 1.6},
        )  # fmt: skip
        if node in (0, len(vector) - 1) and span > 1:
            place = entry / abs(entry) * (1.2 if node else 1.4)
            axes.text(place.real, place.imag, str(node), fontsize=9, ha="center", va="center")
    axes.set(xlim=(-1.5, 1.5), ylim=(-1.5, 1.5), aspect="equal", xticks=[], yticks=[], title=title)
    axes.set_xlabel("real part", fontsize=8)
    axes.set_ylabel("imaginary part", fontsize=8)
    axes.title.set_fontsize(10)
    for side in axes.spines.values():
        side.set_visible(False)


def phases() -> Figure:
    """A path with the phases of its first eigenvector, and the same entries in the complex plane."""
    path = nx.path_graph(6, nx.DiGraph)
    vector = first_vector(path, mt.Relative(0.25))
    figure = Figure(figsize=(8.2, 3.0))
    left = figure.add_axes((0.01, 0.08, 0.62, 0.8))
    places = {node: (float(node), 0.0) for node in path}
    draw_graph(left, path, places, np.degrees(np.angle(vector)))
    for node, phase in enumerate(np.degrees(np.angle(vector))):
        left.text(node, 0.42, angle(phase), ha="center", fontsize=10)
    left.set(ylim=(-1, 1), title="phase of the first eigenvector")
    left.title.set_fontsize(10)
    draw_plane(figure.add_axes((0.67, 0.1, 0.31, 0.76)), vector, "the same entries as complex numbers")
    return figure


def directions() -> Figure:
    """Two graphs that differ in the direction of their edges only."""
    figure = Figure(figsize=(8.2, 2.8))
    out = nx.DiGraph([(0, 1), (1, 2), (1, 3), (3, 4)])
    places = {0: (0.0, 0.0), 1: (1.0, 0.0), 2: (2.0, 0.6), 3: (2.0, -0.6), 4: (3.0, -0.6)}
    for column, (graph, title) in enumerate([(out, "all edges away from 0"), (out.reverse(), "all edges towards 0")]):
        axes = figure.add_axes((0.02 + 0.5 * column, 0.02, 0.46, 0.8))
        degrees = np.degrees(np.angle(first_vector(graph, mt.Relative(0.25))))
        draw_graph(axes, graph, places, degrees)
        for node, phase in enumerate(degrees):
            axes.text(places[node][0], places[node][1] + 0.34, angle(phase), ha="center")
        axes.set(title=title, ylim=(-1.1, 1.25))
        axes.title.set_fontsize(10)
    return figure


def potentials() -> Figure:
    """The first eigenvector of a path of twelve nodes at three potentials."""
    path = nx.path_graph(12, nx.DiGraph)
    figure = Figure(figsize=(8.2, 3.0))
    titles = {0.02: "q' = 0.02: too small", 0.25: "q' = 0.25: a quarter turn", 1.0: "q' = 1: a full turn, ambiguous"}
    for column, (relative, title) in enumerate(titles.items()):
        axes = figure.add_axes((0.02 + 0.33 * column, 0.1, 0.3, 0.76))
        draw_plane(axes, first_vector(path, mt.Relative(relative)), title)
    return figure


def walks() -> Figure:
    """Landing probabilities of walks along and against the edges of a small graph."""
    graph = nx.DiGraph([(0, 1), (0, 2), (1, 3), (2, 3), (3, 4)])
    found = mt.RandomWalk(steps=2, restart=0.2)(mt.Digraphs.from_networkx(graph))[0].numpy()
    kinds = ("PageRank", "2 steps", "1 step")
    names = [f"{kind}, against" for kind in kinds] + [f"{kind}, along" for kind in reversed(kinds)]
    figure = Figure(figsize=(8.2, 4.9))
    graph_axes = figure.add_axes((0.02, 0.2, 0.25, 0.6))
    places = {0: (0.0, 1.0), 1: (-0.7, 0.0), 2: (0.7, 0.0), 3: (0.0, -1.0), 4: (0.0, -2.0)}
    draw_graph(graph_axes, graph, places, np.full(5, -0.0))
    order = [3, 4, 5, 2, 1, 0]
    for position, feature in enumerate(order):
        axes = figure.add_axes((0.33 + 0.225 * (position % 3), 0.56 - 0.48 * (position // 3), 0.2, 0.35))
        axes.imshow(found[:, :, feature], cmap="Blues", vmin=0, vmax=1)
        for start in range(5):
            for end in range(5):
                value = found[start, end, feature]
                if value > 0.005:
                    colour = "white" if value > 0.6 else INK
                    axes.text(end, start, f"{value:.2g}"[:4], ha="center", va="center", fontsize=7, color=colour)
        axes.set(title=names[feature], xticks=range(5), yticks=range(5), xlabel="lands at")
        axes.set_ylabel("" if position % 3 else "starts at")
        axes.title.set_fontsize(9)
        axes.xaxis.label.set_fontsize(8)
        axes.yaxis.label.set_fontsize(8)
        axes.tick_params(labelsize=7, length=0)
    return figure


def start() -> None:
    """The workflow of `start.md`."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "steps.csv"
        edges = "raw,clean clean,features clean,labels features,train labels,train train,report"
        path.write_text("source,target\n" + "\n".join(edges.split()) + "\n")
        graphs = mt.read(path)
        plot_eigenvectors(graphs, mt.MagneticLaplacian(k=4)(graphs), FOLDER / "start.png", vector=1)


def main() -> None:
    """Draw all pictures."""
    rcParams["svg.hashsalt"] = "magnetite"
    for draw in (phases, directions, potentials, walks):
        draw().savefig(FOLDER / f"concept-{draw.__name__}.png", dpi=160, metadata={"Software": None})
    start()


if __name__ == "__main__":
    main()
