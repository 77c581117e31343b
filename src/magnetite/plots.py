"""Pictures of graphs and of their encodings, with matplotlib.

Every `draw_…` function draws on the axes it is given, or on those of a new figure, and returns them: `draw_eigenvector`
(a graph whose node sizes and colours are an eigenvector), `draw_spectrum` (several eigenvectors over the nodes),
`draw_adjacency` and `draw_bitmap`. `plot_eigenvectors` writes a figure of several graphs to a file.
"""

import math
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
    from matplotlib.collections import PathCollection
    from matplotlib.figure import Figure

FIGURE_EXTENSIONS = (".png", ".svg", ".pdf")

LARGEST = 400
"""Largest number of nodes of a graph that can be drawn."""

TOGETHER = 16
"""Number of graphs that are drawn in one figure."""

LABELLED = 60
"""Largest number of nodes of a graph whose names are shown."""

LONGEST = 16
"""Names are cut off after this number of characters."""

COLOURS = "PuOr"
"""A diverging map of purple and orange, which all kinds of colour blindness tell apart."""

SMALL, LARGE = 30.0, 330.0
"""Areas of a node with real part 0 and with the largest one, in points²."""

GAP = 0.8
"""Distance between components, of which one of n nodes is a square of side √n; isolated nodes are in rows below."""

SUBSCRIPTS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")

WIDEST = 8
"""A component without cycles is drawn in layers if none of them has more nodes."""


def draw_eigenvector(
    graph: Digraphs,
    pairs: Eigenpairs,
    axes: "Axes | None" = None,
    vector: int = 0,
    potential: int = 0,
    positions: Mapping[int, Any] | None = None,
    labels: bool = False,
    limit: float | None = None,
    scale: float = 1.0,
) -> "Axes":
    """Draw one graph with an eigenvector, as in figure 1 of the paper: sizes are `|Re γ|`, colours `Im γ`.

    The nodes are the first collection of the axes: `figure.colorbar(axes.collections[0], ax=axes)` adds a colour bar.

    Args:
        graph: A single graph.
        pairs: Its eigenpairs.
        axes: The axes to draw on; those of a new figure if omitted.
        vector: Number of the eigenvector, from 0.
        potential: Number of the potential, from 0, if there are several.
        positions: Coordinates by node; `layout` computes them if omitted.
        labels: Whether to write the names of the nodes, or their numbers, beside them.
        limit: Imaginary part of the strongest colour; the largest one of this eigenvector if omitted.
        scale: Factor of the areas of nodes and the lengths of arrowheads, for small pictures.

    >>> from magnetite import MagneticLaplacian
    >>> graph = Digraphs.from_edges([[0, 1], [1, 2]])
    >>> axes = draw_eigenvector(graph, MagneticLaplacian(k=1)(graph))
    >>> len(axes.collections[0].get_offsets())
    3
    """
    axes = _given_or_new(axes)
    check_drawable(graph)
    column = _column(pairs, vector, potential)
    real, imaginary = column.real.numpy(), column.imag.numpy()
    drawn = nx.DiGraph(graph.to_networkx()[0])
    sizes = SMALL + (LARGE - SMALL) * np.abs(real) / max(float(np.abs(real).max()), 1e-12)
    crowd = scale * _crowding(graph.num_nodes)
    sizes = (sizes * crowd).tolist()
    positions = layout(drawn) if positions is None else positions
    limit = max(float(np.abs(imaginary).max()), 1e-3) if limit is None else limit
    nodes = nx.draw_networkx_nodes(
        drawn, positions, ax=axes, node_size=sizes, node_color=imaginary.tolist(), cmap=COLOURS,
        vmin=-limit, vmax=limit, edgecolors="0.15", linewidths=0.6,
    )  # fmt: skip
    nodes.set_zorder(2)
    straight, bowed = _edges(drawn, positions)
    for edges, style in ((straight, "arc3"), (bowed, "arc3,rad=0.18")):
        nx.draw_networkx_edges(
            drawn, positions, edgelist=edges, ax=axes, node_size=sizes, arrowsize=9 * math.sqrt(crowd),
            edge_color="0.35", width=0.8 * math.sqrt(crowd), arrowstyle="-|>", connectionstyle=style,
        )  # fmt: skip
    if labels:
        _write_labels(graph, positions, sizes, axes)
    axes.set_axis_off()
    axes.set_aspect("equal", adjustable="datalim")
    axes.margins(0.12)
    return axes


def _given_or_new(axes: "Axes | None") -> "Axes":
    """The given axes, or those of a new figure, which belongs to no window."""
    from matplotlib.figure import Figure

    return Figure(layout="constrained").add_subplot() if axes is None else axes


def _crowding(nodes: int) -> float:
    """Factor of the areas of nodes, so that those of large graphs do not touch."""
    return min(1.0, math.sqrt(60 / nodes))


def draw_spectrum(
    vectors: torch.Tensor | np.ndarray,
    axes: "Axes | None" = None,
    colours: tuple[str, str] = ("#0072B2", "#D55E00"),
    labels: bool = True,
) -> "Axes":
    """Draw eigenvectors over the nodes, one above the other: real parts as lines, imaginary parts as dashed lines.

    Each one is divided by its largest modulus, and the first one, of the lowest eigenvalue, is at the bottom.

    Args:
        vectors: One eigenvector per column, `[n, k]`, such as `pairs[0].vectors[:, :5]`.
        axes: The axes to draw on; those of a new figure if omitted.
        colours: Colours of real and imaginary parts.
        labels: Whether to name the eigenvectors γ₀, γ₁, … on the vertical axis.

    >>> axes = draw_spectrum(torch.eye(5)[:, :2])
    >>> [text.get_text() for text in axes.get_yticklabels()]
    ['γ₀', 'γ₁']
    """
    axes = _given_or_new(axes)
    columns = np.asarray(vectors)
    if columns.ndim != 2 or 0 in columns.shape:
        raise ValueError(f"vectors must be a matrix with one eigenvector per column, got shape {columns.shape}")
    largest = np.abs(columns).max(0)
    columns = columns / np.where(largest > 0, largest, 1)
    step = 2.4  # a vector reaches from −1 to 1, and the rest is space between two of them
    for place, column in enumerate(columns.T):
        axes.axhline(step * place, color="0.8", linewidth=0.4, zorder=0)
        for part, colour, line in zip((column.real, column.imag), colours, ("-", (0, (2.5, 1.2))), strict=True):
            axes.plot(step * place + part, color=colour, linestyle=line, linewidth=0.9)
    names = [f"γ{str(place).translate(SUBSCRIPTS)}" for place in range(columns.shape[1])]
    axes.set_yticks([step * place for place in range(len(names))], names if labels else [""] * len(names))
    axes.set_ylim(-0.5 * step, (len(names) - 0.5) * step)
    axes.set_xlim(0, max(len(columns) - 1, 1))
    return axes


def draw_adjacency(graph: Digraphs, axes: "Axes | None" = None, colour: str = "black") -> "Axes":
    """Draw the adjacency matrix: a square in row `u` and column `v` for each edge from `u` to `v`.

    Args:
        graph: A single graph.
        axes: The axes to draw on; those of a new figure if omitted.
        colour: Colour of the edges.

    >>> axes = draw_adjacency(Digraphs.from_edges([[0, 1], [1, 2]]))
    >>> axes.images[0].get_array().sum(1).tolist()
    [1, 1, 0]
    """
    from matplotlib.colors import ListedColormap

    axes = _given_or_new(axes)
    if len(graph) != 1:
        raise ValueError(f"draw one graph at a time, got {len(graph)} graphs: index them, as in graphs[0]")
    source, target = graph.edges.long().cpu().numpy()
    matrix = np.zeros((graph.num_nodes, graph.num_nodes), dtype=int)
    matrix[source, target] = 1
    axes.imshow(matrix, cmap=ListedColormap(["white", colour]), vmin=0, vmax=1, interpolation="nearest")
    axes.set_xticks([])
    axes.set_yticks([])
    return axes


def draw_bitmap(
    matrix: torch.Tensor | np.ndarray, axes: "Axes | None" = None, limit: float | None = None, colours: str = COLOURS
) -> "Axes":
    """Draw a real matrix as an image whose colours are symmetric about zero.

    Args:
        matrix: The matrix; its first row is drawn at the top.
        axes: The axes to draw on; those of a new figure if omitted.
        limit: Modulus of the strongest colours; the largest one of the matrix if omitted.
        colours: Name of a diverging colour map of matplotlib.

    >>> draw_bitmap([[1.0, -2.0]]).images[0].get_clim()
    (-2.0, 2.0)
    """
    axes = _given_or_new(axes)
    values = np.asarray(matrix)
    if values.ndim != 2 or np.iscomplexobj(values):
        raise ValueError(f"matrix must be real and have two dimensions, got {values.dtype} of shape {values.shape}")
    limit = max(float(np.abs(values).max(initial=0)), 1e-12) if limit is None else limit
    axes.imshow(values, cmap=colours, vmin=-limit, vmax=limit, interpolation="nearest", aspect="auto")
    return axes


def _column(pairs: Eigenpairs, vector: int, potential: int) -> torch.Tensor:
    """One eigenvector of one graph as complex numbers."""
    vectors, mask = (part.unsqueeze(-2) if pairs.vectors.ndim == 2 else part for part in (pairs.vectors, pairs.mask))
    mask = mask[0] if mask.ndim > 2 else mask  # eigenpairs of one graph, indexed or not
    potentials, k = vectors.shape[-2:]
    if not 0 <= potential < potentials:
        raise ValueError(f"potential must be from 0 to {potentials - 1}, got {potential}")
    if not 0 <= vector < k:
        raise ValueError(f"vector must be from 0 to {k - 1}, got {vector}: increase k to compute more")
    if not bool(mask[potential, vector]):
        raise ValueError(f"vector must be below the {len(vectors)} eigenvectors of a graph of {len(vectors)} nodes")
    return vectors[:, potential, vector].cpu().to(torch.complex128)


def _edges(graph: nx.DiGraph, positions: Mapping[int, Any]) -> tuple[list[Any], list[Any]]:
    """Edges that are drawn straight; and those drawn as arcs, since they have a reverse or would cross a node."""
    straight, bowed = [], []
    points = np.array([positions[node] for node in graph])
    numbers = np.arange(len(points))
    near = 0.02 * float(np.ptp(points, axis=0).max())
    for source, target in graph.edges:
        begin, way = np.asarray(positions[source]), np.asarray(positions[target]) - positions[source]
        along = np.clip((points - begin) @ way / max(float(way @ way), 1e-12), 0, 1)
        distance = np.linalg.norm(points - begin - along[:, None] * way, axis=1)
        crossed = ((distance < near) & (numbers != source) & (numbers != target)).any()
        bow = source != target and (graph.has_edge(target, source) or crossed)
        (bowed if bow else straight).append((source, target))
    return straight, bowed


def _write_labels(graph: Digraphs, positions: Mapping[int, Any], sizes: Any, axes: "Axes") -> None:
    """Names below, above or beside the nodes, where they cover no other node or name; otherwise they are left out."""
    from matplotlib import patheffects
    from matplotlib.transforms import Bbox

    figure = axes.get_figure(root=True)
    if figure is None:
        return
    figure.draw_without_rendering()
    names = graph.names or [str(number) for number in range(graph.num_nodes)]
    centres = axes.transData.transform([positions[node] for node in range(graph.num_nodes)])
    radii = np.sqrt(np.asarray(sizes)) / 2
    pixels = figure.dpi / 72
    taken = [
        Bbox([centre - radius * pixels, centre + radius * pixels])
        for centre, radius in zip(centres, radii, strict=True)
    ]
    for node, name in enumerate(names):
        short = name if len(name) <= LONGEST else f"{name[: LONGEST - 1]}…"
        far = radii[node] + 1.5
        for x, y, horizontal, vertical in (
            (0, -far, "center", "top"), (0, far, "center", "bottom"),
            (far, 0, "left", "center"), (-far, 0, "right", "center"),
        ):  # fmt: skip
            text = axes.annotate(
                short.replace("$", r"\$").replace("\n", " "), positions[node], xytext=(x, y), fontsize=7, zorder=3,
                textcoords="offset points", ha=horizontal, va=vertical, annotation_clip=False,
            )  # fmt: skip
            text.set_in_layout(False)
            box = text.get_window_extent()
            if any(box.overlaps(other) for other in (*taken[:node], *taken[node + 1 :])):
                text.remove()
                continue
            text.set_path_effects([patheffects.withStroke(linewidth=1.6, foreground="white")])
            taken.append(box)
            break


def layout(graph: nx.DiGraph) -> dict[int, Any]:
    """Coordinates by node, deterministic: each weakly connected component for itself, the largest first, in rows.

    A component without directed cycles is drawn in layers from left to right if they are small, others by distances.

    Args:
        graph: The graph.
    """
    components = sorted(nx.weakly_connected_components(graph), key=lambda nodes: (-len(nodes), min(nodes)))
    whole = [nodes for nodes in components if len(nodes) > 1]
    sides = [math.sqrt(len(nodes)) for nodes in whole]
    alone = [node for nodes in components if len(nodes) == 1 for node in nodes]
    limit = 1.35 * math.sqrt(sum((side + GAP) ** 2 for side in sides) + len(alone))
    limit = max([limit, *sides])
    positions: dict[int, Any] = {}
    left = top = height = 0.0
    for nodes, side in zip(whole, sides, strict=True):
        if left and left + side > limit:
            left, top, height = 0.0, top - height - GAP, 0.0
        for node, place in _component_layout(graph.subgraph(sorted(nodes)).copy()).items():
            positions[node] = (np.asarray(place) + 1) / 2 * side + (left, top - side)
        left, height = left + side + GAP, max(height, side)
    top, columns = top - height - GAP, max(1, int(limit / GAP))
    for place, node in enumerate(alone):
        positions[node] = np.array([place % columns * GAP, top - place // columns * GAP])
    return positions


def _component_layout(graph: nx.DiGraph) -> dict[int, Any]:
    """Coordinates from −1 to 1."""
    if graph.number_of_nodes() == 1:
        return dict.fromkeys(graph, (0.0, 0.0))
    layers = list(nx.topological_generations(graph)) if nx.is_directed_acyclic_graph(graph) else []
    if layers and max(map(len, layers)) <= WIDEST:
        for layer, nodes in enumerate(layers):
            for node in nodes:
                graph.nodes[node]["layer"] = layer
        placed = nx.multipartite_layout(graph, subset_key="layer")
    else:
        placed = nx.kamada_kawai_layout(graph.to_undirected(), weight=None)
    points = np.array([placed[node] for node in graph], dtype=float)
    middle, reach = (points.max(0) + points.min(0)) / 2, np.maximum(np.ptp(points, axis=0) / 2, 1e-9)
    return dict(zip(graph, (points - middle) / np.maximum(reach, 0.35 * reach.max()), strict=True))


def check_drawable(graphs: Digraphs, vector: int = 0) -> None:
    """Raise an error if a graph that would be drawn is too large, or all are too small, before any work is done.

    Args:
        graphs: The graphs, of which the first sixteen are drawn.
        vector: Number of the eigenvector, from 0; a graph has as many as nodes.
    """
    largest = int(graphs.sizes[:TOGETHER].max())
    if largest > LARGEST:
        raise ValueError(f"graphs of at most {LARGEST} nodes can be drawn, got {largest} nodes: leave out the plot")
    if vector >= largest:
        raise ValueError(
            f"vector must be from 0 to {largest - 1}, got {vector}: no graph to draw has more than {largest} nodes"
        )


def check_figure(path: Path) -> None:
    """Raise an error for an unknown file extension or an unwritable path, before any work is done.

    Args:
        path: Output file: .png, .svg or .pdf.
    """
    if path.suffix not in FIGURE_EXTENSIONS:
        raise ValueError(f"{path} has an unknown file extension: use one of {' '.join(FIGURE_EXTENSIONS)}")
    check_writable(path)


def save_figure(figure: "Figure", path: str | Path, dpi: int = 150, crop: bool = True) -> None:
    """Write a figure in the format of the file extension, atomically; equal figures give equal files.

    Args:
        figure: The figure.
        path: Output file: .png, .svg or .pdf.
        dpi: Pixels per inch of a .png file.
        crop: Whether to cut off empty margins; otherwise the file has the size of the figure.
    """
    import matplotlib

    path = Path(path)
    check_figure(path)
    with replacing(path) as part, matplotlib.rc_context({"svg.hashsalt": "magnetite"}):
        metadata = {"Date": None} if path.suffix == ".svg" else None
        figure.savefig(part, dpi=dpi, bbox_inches="tight" if crop else None, metadata=metadata)


def plot_eigenvectors(
    graphs: Digraphs,
    pairs: Eigenpairs,
    path: str | Path,
    titles: list[str] | None = None,
    vector: int = 0,
    potential: int = 0,
) -> "Figure":
    """Draw the first sixteen graphs with one of their eigenvectors in one figure, write it and return it.

    Colours show the imaginary part, sizes the magnitude of the real part. Graphs of up to 60 nodes have labels: the
    names of the nodes, or their numbers.

    Args:
        graphs: The graphs.
        pairs: Their eigenpairs.
        path: Output file: .png, .svg or .pdf.
        titles: One title per graph.
        vector: Number of the eigenvector, from 0; a graph of fewer nodes is left blank.
        potential: Number of the potential, from 0, if there are several.
    """
    from matplotlib.figure import Figure

    check_figure(Path(path))
    check_drawable(graphs, vector)
    if not 0 <= vector < pairs.values.shape[-1]:
        raise ValueError(f"vector must be from 0 to {pairs.values.shape[-1] - 1}, got {vector}: increase k")
    count = min(len(graphs), TOGETHER)
    columns = min(count, 4)
    rows = -(-count // columns)
    side = 3.6 if count > 1 else min(9.0, 5.0 + 0.03 * int(graphs.sizes[0]))
    figure = Figure(figsize=((side + 0.7) * columns, 0.85 * side * rows), layout="constrained")
    drawn = []
    for i in range(count):
        axes = figure.add_subplot(rows, columns, i + 1)
        if titles:
            axes.set_title(titles[i], fontsize=9)
        if int(graphs.sizes[i]) <= vector:
            axes.set_axis_off()
            axes.text(0.5, 0.5, f"only {int(graphs.sizes[i])} eigenvectors", ha="center", fontsize=8, color="0.4")
            continue
        positions = layout(nx.DiGraph(graphs[i].to_networkx()[0]))
        nodes: Any = draw_eigenvector(graphs[i], pairs[i], axes, vector, potential, positions).collections[0]
        _legend(figure, axes, nodes, _column(pairs[i], vector, potential), vector)
        drawn.append((graphs[i], positions, nodes.get_sizes(), axes))
    for graph, *place in drawn:  # when all axes have their size
        if graph.num_nodes <= LABELLED:
            _write_labels(graph, *place)
    save_figure(figure, path)
    return figure


def _legend(figure: "Figure", axes: "Axes", nodes: "PathCollection", column: torch.Tensor, vector: int) -> None:
    """A colour bar of the imaginary part, and nodes of three sizes with their real parts."""
    bar = figure.colorbar(nodes, ax=axes, shrink=0.75, pad=0.02, aspect=22)
    bar.set_label(f"imaginary part of eigenvector {vector}", fontsize=7)
    bar.ax.tick_params(labelsize=6)
    bar.outline.set_linewidth(0.4)  # pyright: ignore[reportCallIssue, reportArgumentType]
    largest = float(column.real.abs().max())
    scale = _crowding(len(column))
    parts = [0.0, 0.5, 1.0] if largest > 0 else [0.0]
    handles = [
        axes.scatter([], [], s=(SMALL + (LARGE - SMALL) * part) * scale, c="white", edgecolors="0.15", linewidths=0.6)
        for part in parts
    ]
    axes.legend(
        handles, [f"{part * largest:.2g}" for part in parts], title="|real part|", ncols=len(parts), loc="upper center",
        bbox_to_anchor=(0.5, 0.0), frameon=False, fontsize=6.5, title_fontsize=7, columnspacing=1.4, handletextpad=0.6,
    )  # fmt: skip
