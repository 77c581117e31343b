"""Edge lists from and to the graph types of other libraries: networkx, SciPy, and (by duck typing) PyG."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

if TYPE_CHECKING:
    import networkx as nx
    from scipy.sparse import coo_array

PYG_OWN = ("index", "batch", "ptr", "adj", "face", "edge_weight")
"""Parts of the names of what PyG's `Data` has beside features, or counts through all graphs of a batch."""


@dataclass(frozen=True)
class EdgeList:
    """One graph: edges `[2, m]` from `edges[0]` to `edges[1]`, the number of nodes, and weights if it has any."""

    edges: np.ndarray
    num_nodes: int
    weights: np.ndarray | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "edges", _edge_array(self.edges))
        if self.weights is not None:
            object.__setattr__(self, "weights", _weight_array(self.weights, self.edges.shape[1]))

    def filled_weights(self) -> np.ndarray:
        """The weights, ones where there are none."""
        return np.ones(self.edges.shape[1]) if self.weights is None else self.weights


def from_edges(edge_index: Any, num_nodes: int | Sequence[int] | None, edge_weight: Any) -> Iterator[EdgeList]:
    """Edge lists from one `[2, m]` array or a list; the number of nodes is the largest id + 1 where not given."""
    many = isinstance(edge_index, list | tuple) and (not edge_index or np.ndim(_numpy(edge_index[0])) == 2)
    arrays = list(edge_index) if many else [edge_index]
    sizes = list(num_nodes) if isinstance(num_nodes, Iterable) else [num_nodes] * len(arrays)
    weights = [None] * len(arrays) if edge_weight is None else list(edge_weight) if many else [edge_weight]
    for given, name in ((sizes, "num_nodes"), (weights, "edge_weight")):
        if len(given) != len(arrays):
            raise ValueError(f"{len(given)} entries of {name} for {len(arrays)} graphs: give one a graph")
    for array, size, weight in zip(arrays, sizes, weights, strict=True):
        edges = _edge_array(array)
        if size is None:
            size = int(edges.max()) + 1 if edges.size else 0
        yield EdgeList(edges, int(size), weight)


def listed(graphs: Any, mark: str) -> Iterable[Any]:
    """A single graph (told by an attribute that it has) as a list of one."""
    return [graphs] if hasattr(graphs, mark) else graphs


def from_networkx(graph: "nx.Graph", weight: str) -> EdgeList:
    """Edge list of a networkx graph; its nodes are numbered in their own order."""
    directed = graph if graph.is_directed() else graph.to_directed()
    number = {node: i for i, node in enumerate(graph)}
    rows = [(number[u], number[v], w) for u, v, w in directed.edges(data=weight, default=None)]
    edges = np.array([row[:2] for row in rows], dtype=np.int64).reshape(-1, 2).T
    weighted = any(row[2] is not None for row in rows)
    return EdgeList(edges, len(number), np.array([1.0 if w is None else w for *_, w in rows]) if weighted else None)


def to_networkx(item: EdgeList) -> "nx.DiGraph":
    """A `DiGraph`, or a `MultiDiGraph` where edges are repeated."""
    import networkx as nx

    repeated = np.unique(item.edges, axis=1).shape[1] < item.edges.shape[1]
    graph = nx.MultiDiGraph() if repeated else nx.DiGraph()
    graph.add_nodes_from(range(item.num_nodes))
    pairs = item.edges.T.tolist()
    if item.weights is None:
        graph.add_edges_from(pairs)
    else:
        graph.add_weighted_edges_from((u, v, w) for (u, v), w in zip(pairs, item.weights.tolist(), strict=True))
    return graph


def from_scipy(matrix: Any) -> EdgeList:
    """Edge list of a square sparse matrix; explicit zeros are no edges, and a matrix of ones is unweighted."""
    from scipy.sparse import coo_array, issparse

    if not issparse(matrix):
        raise TypeError(f"{type(matrix).__name__} is not a SciPy sparse matrix: wrap it in scipy.sparse.coo_array")
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"an adjacency matrix is square, this one has shape {matrix.shape}")
    entries = coo_array(matrix)
    kept = entries.data != 0
    weights = entries.data[kept]
    return EdgeList(np.stack(entries.coords)[:, kept], matrix.shape[0], None if (weights == 1).all() else weights)


def to_scipy(item: EdgeList) -> "coo_array":
    """Sparse adjacency matrix with repeated edges summed."""
    from scipy.sparse import coo_array

    matrix = coo_array((item.filled_weights(), tuple(item.edges)), shape=(item.num_nodes, item.num_nodes))
    matrix.sum_duplicates()
    return matrix


def listed_pyg(data: Any) -> Iterable[Any]:
    """A PyG `Batch`, a single `Data` or an iterable of them, as an iterable of `Data`."""
    return data.to_data_list() if hasattr(data, "to_data_list") else listed(data, "edge_index")


def from_pyg(data: Any) -> EdgeList:
    """Edge list of a PyG `Data`."""
    if getattr(data, "edge_index", None) is None:
        raise ValueError(f"{data} has no edge_index: set it, or convert its adj_t first")
    return EdgeList(data.edge_index, int(data.num_nodes), getattr(data, "edge_weight", None))


def pyg_features(items: Sequence[Any]) -> dict[str, dict[str, Tensor]]:
    """The tensors, arrays and numbers that all of some `Data` have, by what they have a row for: nodes, edges, graphs.

    What has as many rows as two of these is told apart as PyG does it, by 'edge' in its name, but over all graphs.
    """
    features: dict[str, dict[str, Tensor]] = {"node_features": {}, "edge_features": {}, "graph_features": {}}
    for name in items[0].keys():  # noqa: SIM118 (PyG iterates over other things)
        if name == "num_nodes" or any(part in name for part in PYG_OWN) or not all(name in item for item in items):
            continue
        values = [item[name] for item in items]
        if not all(isinstance(value, Tensor | np.ndarray | int | float) for value in values):
            continue
        rows = [torch.atleast_1d(torch.as_tensor(value)).detach().cpu() for value in values]
        kinds = set.intersection(*(_kinds(row.shape[0], item) for row, item in zip(rows, items, strict=True)))
        order = ["edge_features"] * ("edge" in name) + ["node_features", "graph_features", "edge_features"]
        kind = next((kind for kind in order if kind in kinds), None)
        if kind is not None:
            features[kind][name] = _joined(name, rows)
    return features


def _kinds(rows: int, data: Any) -> set[str]:
    counts = {"node_features": data.num_nodes, "edge_features": data.edge_index.shape[1], "graph_features": 1}
    return {kind for kind, count in counts.items() if rows == count}


def _joined(name: str, rows: Sequence[Tensor]) -> Tensor:
    shapes = sorted({tuple(row.shape[1:]) for row in rows})
    if len(shapes) > 1:
        raise ValueError(
            f"{name!r} has rows of shape {shapes[0]} in one graph, {shapes[1]} in another: make them equal"
        )
    return torch.cat(list(rows))


def _numpy(array: Any) -> np.ndarray:
    if hasattr(array, "detach"):
        array = array.detach().cpu().numpy()
    return np.asarray(array)


def _edge_array(array: Any) -> np.ndarray:
    edges = _numpy(array)
    if edges.ndim != 2 or edges.shape[0] != 2:
        hint = "transpose it" if edges.ndim == 2 and edges.shape[1] == 2 else "give sources and targets as two rows"
        raise ValueError(f"an edge_index of shape {edges.shape} was given, expected [2, m]: {hint}")
    if edges.size and edges.dtype.kind not in "iu":
        raise ValueError(f"edge_index has dtype {edges.dtype}, node ids are integers: convert it")
    if edges.size and (edges.max() >= 2**31 or edges.min() < -(2**31)):
        raise ValueError(f"node id {int(edges.max())} is too large: ids are below 2**31; renumber the nodes from 0")
    return edges.astype(np.int32)


def _weight_array(weights: Any, count: int) -> np.ndarray:
    array = _numpy(weights)
    if array.shape != (count,):
        raise ValueError(f"edge weights of shape {array.shape} for {count} edges: give one weight an edge")
    if array.dtype.kind not in "iuf":
        raise ValueError(f"edge weights have dtype {array.dtype}: give real numbers")
    return array.astype(np.float64)
