"""The view Graph: graphs from examples, files and text; eigenvectors, spectrum over q, walks, advice, downloads.

A graph travels as plain data: `{"nodes": 3, "edges": [[0, 1], [1, 2]], "weights": null, "names": null}`. Requests carry
it whole, so that the server keeps nothing.
"""

import math
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from magnetite.encodings import Laplacian, MagneticLaplacian, RandomWalk, advise
from magnetite.encodings.advice import COLUMNS
from magnetite.encodings.potentials import node_pairs, settled
from magnetite.encodings.stored import node_table
from magnetite.explorer.examples import EXAMPLES
from magnetite.explorer.limits import Limits, Refused, field, number
from magnetite.graphs import FORMATS, Digraphs, node_numbers, read_graphs
from magnetite.io.files import TABLE_WRITERS, TENSOR_WRITERS, write_arrays, write_table
from magnetite.linalg.potential import Adaptive, Potential, Relative

MOST_VECTORS = 16
"""Number of eigenvectors that the page shows."""

SPECTRUM_COST = 3e8
"""The number of potentials of a spectrum falls with the number of nodes, so that the sum of n³ stays about this."""

BY_FORCES, BY_DISTANCES = 400, 60
"""Numbers of nodes up to which forces, or the slower distances, place the nodes; others get a spectral layout."""

LONGEST_NAME = 200
"""Number of characters of a node's name that the page gets."""

POTENTIALS: dict[str, Callable[[float], Potential]] = {
    "absolute": float,
    "relative": Relative,
    "adaptive": lambda _: Adaptive(),
}
"""How the page says q; the number is not used by the last."""

Payload = Mapping[str, Any]


def warm_up() -> None:
    """Load the compiled kernels before the first request."""
    graph = Digraphs.from_edges([[0, 1, 2], [1, 2, 0]])
    MagneticLaplacian(k=2)(graph)
    RandomWalk()(graph)


def example(payload: Payload, limits: Limits) -> dict[str, Any]:
    """One of the paper's graphs, with a number of nodes."""
    name = field(payload, "name", str)
    nodes = number(payload, "nodes", 3, min(limits.nodes, 500), 10)
    if name not in EXAMPLES:
        raise Refused(f"there is no example {name!r:.60}: choose one of {', '.join(EXAMPLES)}")
    edges = EXAMPLES[name](nodes)
    return plain(Digraphs.from_edges(np.array(edges, dtype=np.int64).T, nodes), limits)


def random(payload: Payload, limits: Limits) -> dict[str, Any]:
    """A random directed graph, mostly acyclic."""
    nodes = number(payload, "nodes", 2, limits.nodes)
    edges = number(payload, "edges", 1, limits.edges)
    generator = np.random.default_rng(number(payload, "seed", 0, 2**31, 0))
    pairs = generator.integers(nodes, size=(2, 2 * edges + 10))
    pairs = np.sort(pairs[:, pairs[0] != pairs[1]], axis=0)
    pairs = np.unique(pairs, axis=1)
    pairs = pairs[:, generator.permutation(pairs.shape[1])[:edges]]
    back = generator.random(pairs.shape[1]) < 0.03
    pairs[:, back] = pairs[::-1, back]
    return plain(Digraphs.from_edges(pairs, nodes), limits)


def read(payload: Payload, limits: Limits) -> dict[str, Any]:
    """A graph from the content of a file; `name` says the format."""
    suffix = Path(field(payload, "name", str)).suffix.lower()
    content = field(payload, "content", bytes)
    if suffix not in FORMATS:
        raise Refused(f"the file extension {suffix!r:.20} is unknown: use one of {' '.join(FORMATS)}", 415)
    with tempfile.TemporaryDirectory(prefix="magnetite-") as folder:
        path = Path(folder) / f"upload{suffix}"
        path.write_bytes(content)
        try:
            graphs = read_graphs(path)
        except ValueError as error:
            raise Refused(str(error).replace(str(path), "the file")) from None
    return plain(graphs, limits, number(payload, "graph", 0, max(len(graphs) - 1, 0), 0))


def typed(payload: Payload, limits: Limits) -> dict[str, Any]:
    """A graph from a list of edges that was typed in."""
    text = field(payload, "text", str)
    if not text.strip():
        raise Refused("the list has no edges: write one per line, such as `a b`")
    return read({"name": "typed.txt", "content": text.encode("utf-8", "surrogatepass")}, limits)


def arranged(payload: Payload, limits: Limits) -> dict[str, Any]:
    """A graph that was drawn, with a layout."""
    return plain(of_plain(payload, limits), limits)


def encode(payload: Payload, limits: Limits) -> dict[str, Any]:
    """Eigenvalues, and real and imaginary parts of the eigenvectors, one list per eigenvector."""
    graph = of_plain(payload, limits)
    pairs = _encoding(payload, graph)(graph)
    order = torch.argsort(pairs.vectors[:, 0].angle(), descending=True, stable=True)
    count = int(pairs.mask[0].sum())
    return {
        "q": _absolute(payload, graph),
        "values": pairs.values[0, :count].tolist(),
        "re": _short(pairs.vectors.real.T[:count]),
        "im": _short(pairs.vectors.imag.T[:count]),
        "order": order.tolist(),
    }


def _short(rows: torch.Tensor) -> list[list[float]]:
    """Numbers with nine decimals: more than a picture shows, and half the bytes."""
    return np.round(rows.numpy(), 9).tolist()


def spectrum(payload: Payload, limits: Limits) -> dict[str, Any]:
    """The lowest eigenvalues over q from 0 to 0.5."""
    graph = of_plain(payload, limits)
    points = int(min(max(SPECTRUM_COST / max(graph.num_nodes, 20) ** 3, 6), 41))
    potentials = [round(0.5 * i / (points - 1), 6) for i in range(points)]
    k = min(8, graph.num_nodes)
    normalised = field(payload, "normalised", bool, True)
    pairs = MagneticLaplacian(k=k, q=tuple(potentials), normalised=normalised, dtype=torch.float64)(graph)
    return {"q": potentials, "values": pairs.values[0].T.tolist()}


def walks(payload: Payload, limits: Limits) -> dict[str, Any]:
    """Landing probabilities of walks from one node: forward, backward, and PageRank."""
    graph = of_plain(payload, limits)
    start = number(payload, "start", 0, graph.num_nodes - 1)
    steps = number(payload, "steps", 1, 8, 3)
    restart = number(payload, "restart", 0.001, 1.0, 0.05)
    found = RandomWalk(steps=steps, restart=restart)(graph)[0][start]
    names = ["PageRank, against edges", *(f"{i} steps against edges" for i in range(steps, 0, -1))]
    names += [*(f"{i} steps" for i in range(1, steps + 1)), "PageRank"]
    return {"features": [name.replace("1 steps", "1 step") for name in names], "landing": found.T.tolist()}


def advice(payload: Payload, limits: Limits) -> dict[str, Any]:
    """What `mt.advise` says."""
    found = advise(of_plain(payload, limits))
    q = None if found.q is None else float(found.q[0])
    return {
        "encoding": repr(found.encoding),
        "name": found.name,
        "k": found.k,
        "q": q,
        "scaling": found.scaling,
        "reason": found.reason,
        "columns": list(COLUMNS),
        "rows": [list(row) for row in found.rows()],
    }


def download(payload: Payload, limits: Limits) -> tuple[str, bytes]:
    """The encoding as a file of any format of `magnetite encode`: its name and content."""
    graph = of_plain(payload, limits)
    suffix = field(payload, "format", str)
    if suffix not in (*TENSOR_WRITERS, *TABLE_WRITERS):
        raise Refused(f"format must be one of {' '.join((*TENSOR_WRITERS, *TABLE_WRITERS))}, got {suffix!r:.20}")
    encoding = replace(_encoding(payload, graph), dtype=torch.float32)  # as `magnetite encode`
    pairs = encoding(graph)
    names = graph.names or node_numbers(graph)
    with tempfile.TemporaryDirectory(prefix="magnetite-") as folder:
        path = Path(folder) / f"encoding{suffix}"
        if suffix in TENSOR_WRITERS:
            write_arrays(path, pairs.tensors(), names, {"kind": type(pairs).__name__})
        else:
            write_table(path, node_table(pairs, names))
        return path.name, path.read_bytes()


def _encoding(payload: Payload, graph: Digraphs) -> MagneticLaplacian:
    k = number(payload, "k", 1, MOST_VECTORS, MOST_VECTORS)
    normalised = field(payload, "normalised", bool, True)
    return MagneticLaplacian(
        k=min(k, graph.num_nodes), q=_potential(payload), normalised=normalised, dtype=torch.float64
    )


def _potential(payload: Payload) -> Potential:
    kind = field(payload, "potential", str, "relative")
    if kind not in POTENTIALS:
        raise Refused(f"potential must be one of {', '.join(POTENTIALS)}, got {kind!r:.20}")
    high = 0.5 if kind == "absolute" else 100.0
    return POTENTIALS[kind](number(payload, "q", 0.0, high, 0.25))


def _absolute(payload: Payload, graph: Digraphs) -> float:
    [q] = settled(graph, (_potential(payload),))
    if isinstance(q, Relative):
        q = q.scaled(node_pairs(graph).one_way, graph.sizes)
    return float(q.flatten()[0]) if isinstance(q, torch.Tensor) else float(q)  # pyright: ignore[reportArgumentType]


def of_plain(payload: Payload, limits: Limits) -> Digraphs:
    """The graph of a request."""
    graph = field(payload, "graph", dict)
    nodes = number(graph, "nodes", 1, limits.nodes)
    edges = field(graph, "edges", list)
    if len(edges) > limits.edges:
        raise Refused(f"the graph has {len(edges):,} edges, but the page shows up to {limits.edges:,}", 413)
    try:
        array = np.array(edges)
        if edges and (array.dtype.kind not in "iuf" or array.ndim != 2 or array.shape[1] != 2):
            raise ValueError
        array = array.astype(np.float64).reshape(-1, 2).T
        if not (np.isfinite(array).all() and (array == np.floor(array)).all()):
            raise ValueError
    except (ValueError, TypeError):
        raise Refused("edges must be pairs of node numbers, such as [[0, 1], [1, 2]]") from None
    if array.size and not (array.min() >= 0 and array.max() < nodes):
        raise Refused(f"the nodes of edges must be from 0 to {nodes - 1}, got {int(array.max())}")
    weights = field(graph, "weights", (list, type(None)), None)
    if weights is not None:
        try:
            weights = np.array(weights, dtype=np.float64).reshape(-1)
        except (ValueError, TypeError):
            raise Refused("weights must be a list of numbers, or null") from None
    names = field(graph, "names", (list, type(None)), None)
    made = Digraphs.from_edges(array.astype(np.int64), nodes, edge_weight=weights)
    if names is not None:
        if len(names) != nodes or not all(isinstance(name, str) for name in names):
            raise Refused(f"names must be null or a list of {nodes} texts")
        made = made.replace(names=names)
    return made


def plain(graphs: Digraphs, limits: Limits, chosen: int = 0) -> dict[str, Any]:
    """A graph as plain data, with positions of its nodes.

    Args:
        graphs: One or more graphs.
        limits: Limits on its size.
        chosen: Number of the graph.
    """
    if not len(graphs):
        raise Refused("the file has no graphs")
    graph = graphs[chosen]
    for count, limit, what in (
        (graph.num_nodes, limits.nodes, "nodes"),
        (graph.num_edges, limits.edges, "edges"),
    ):
        if count > limit:
            raise Refused(f"the graph has {count:,} {what}, but the page shows up to {limit:,}: encode it instead", 413)
    names = graph.names
    return {
        "nodes": graph.num_nodes,
        "edges": graph.edges.T.tolist(),
        "weights": None if graph.weights is None else graph.weights.double().tolist(),
        "names": None if names is None else [name[:LONGEST_NAME] for name in names],
        "positions": layout(graph),
        "graphs": len(graphs),
    }


def layout(graph: Digraphs) -> list[list[float]]:
    """Coordinates of the nodes, deterministic, the more careful the smaller the graph; the size of a node is about 1.

    Args:
        graph: A single graph.
    """
    import networkx as nx

    from magnetite.plots import layout as drawn_layout

    size = graph.num_nodes
    drawn = nx.DiGraph(graph.to_networkx()[0])
    if size <= BY_DISTANCES:
        places = drawn_layout(drawn)
        points = np.array([places[node] for node in range(size)], dtype=float)
    elif size <= BY_FORCES:
        start = dict(enumerate(_spectral(graph)))
        places = nx.spring_layout(drawn.to_undirected(), pos=start, iterations=40, seed=0, k=2.2 / math.sqrt(size))
        points = np.array([places[node] for node in range(size)], dtype=float)
    else:
        points = _spectral(graph)
    if size > 3 and np.ptp(points, axis=0).min() < 1e-9:  # on a line, where edges would cover each other
        angles = 2 * np.pi * np.argsort(np.argsort(points[:, np.ptp(points, axis=0).argmax()])) / size
        points = np.stack([-np.cos(angles), np.sin(angles)], 1)
    points = points - points.mean(0)
    reach = max(float(np.abs(points).max()), 1e-9)
    return np.round(points / reach, 4).tolist()


def _spectral(graph: Digraphs) -> np.ndarray:
    """Low eigenvectors of the combinatorial Laplacian, half by value and half by rank, so that nothing clumps."""
    k = min(4, graph.num_nodes)
    vectors = Laplacian(k=k, dtype=torch.float64)(graph).vectors.numpy()
    columns = vectors[:, [min(1, k - 1), min(2, k - 1)]]
    jitter = np.random.default_rng(0).random(columns.shape) * 1e-3
    columns = columns / max(float(np.abs(columns).max()), 1e-12) + jitter
    ranks = columns.argsort(0).argsort(0) / max(graph.num_nodes - 1, 1) * 2 - 1
    return 0.35 * columns + 0.65 * ranks


JOBS = {
    "graph/example": example,
    "graph/random": random,
    "graph/read": read,
    "graph/typed": typed,
    "graph/arranged": arranged,
    "graph/encode": encode,
    "graph/spectrum": spectrum,
    "graph/walks": walks,
    "graph/advise": advice,
    "graph/download": download,
}
"""The jobs of this view by name."""
