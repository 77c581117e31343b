"""Edge lists as NumPy arrays, and their conversion from and to networkx, SciPy and PyG.

networkx, SciPy and PyG take longer to import than all of magnetite, so each is imported by the functions that need it.
"""

import operator
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

if TYPE_CHECKING:
    import networkx as nx
    from scipy.sparse import coo_array

PYG_RESERVED = ("index", "batch", "ptr", "adj", "face", "edge_weight")
"""An attribute of PyG's `Data` whose name contains one of these is not a feature."""

CARRIED = "_carried"
"""End of the name of an attribute that says which encoding a PyG graph carries, see `magnetite.transforms`."""


@dataclass(frozen=True)
class EdgeList:
    """One graph as plain arrays.

    Args:
        edges: Sources and targets, integers of shape `[2, m]`.
        num_nodes: Number of nodes.
        weights: One weight per edge, or None.
        names: One name per node, or None.
        features: Node features by name, with one row per node.
    """

    edges: np.ndarray
    num_nodes: int
    weights: np.ndarray | None = None
    names: Sequence[str] | None = None
    features: Mapping[str, np.ndarray] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "edges", _edge_array(self.edges))
        object.__setattr__(self, "num_nodes", _node_count(self.num_nodes))
        if self.weights is not None:
            object.__setattr__(self, "weights", _weight_array(self.weights, self.edges.shape[1]))

    def filled_weights(self) -> np.ndarray:
        """The weights, or ones if there are none."""
        return np.ones(self.edges.shape[1]) if self.weights is None else self.weights


def from_edges(edge_index: Any, num_nodes: int | Sequence[int] | None, edge_weight: Any) -> Iterator[EdgeList]:
    """Edge lists from one `[2, m]` array or a list of them; `num_nodes` defaults to the largest node id + 1."""
    many = isinstance(edge_index, list | tuple) and (not edge_index or np.ndim(_numpy(edge_index[0])) == 2)
    arrays = list(edge_index) if many else [edge_index]
    single = num_nodes is None or np.ndim(num_nodes) == 0
    sizes: list[Any] = [num_nodes] * len(arrays) if single else list(num_nodes)  # type: ignore[arg-type]
    weights = [None] * len(arrays) if edge_weight is None else list(edge_weight) if many else [edge_weight]
    for values, name in ((sizes, "num_nodes"), (weights, "edge_weight")):
        if len(values) != len(arrays):
            raise ValueError(f"{name} must have one entry per graph, got {len(values)} for {len(arrays)} graphs")
    for array, size, weight in zip(arrays, sizes, weights, strict=True):
        edges = _edge_array(array)
        if size is None:
            size = int(edges.max()) + 1 if edges.size else 0
        yield EdgeList(edges, size, weight)


def listed(graphs: Any, attribute: str) -> Iterable[Any]:
    """A single graph, recognised by one of its attributes, as a list of one; anything else unchanged."""
    if hasattr(graphs, attribute):
        return [graphs]
    if not isinstance(graphs, Iterable):
        raise TypeError(f"expected one graph or a list of them, got {type(graphs).__name__}")
    return graphs


def from_networkx(graph: "nx.Graph", weight: str) -> EdgeList:
    """Edge list of a networkx graph, with the nodes numbered in the order of the graph."""
    if not hasattr(graph, "is_directed"):
        raise TypeError(f"expected a networkx graph, got {type(graph).__name__}: use networkx.DiGraph")
    directed = graph if graph.is_directed() else graph.to_directed()
    number = {node: i for i, node in enumerate(graph)}
    missing = object()
    rows = [(u, v, w) for u, v, w in directed.edges(data=weight, default=missing)]
    edges = np.array([(number[u], number[v]) for u, v, _ in rows], dtype=np.int64).reshape(-1, 2).T
    names = _networkx_names(graph)
    if all(w is missing for *_, w in rows):
        return EdgeList(edges, len(number), names=names)
    weights = [1.0 if w is missing else number_of(w, f"edge {u!r} → {v!r}") for u, v, w in rows]
    return EdgeList(edges, len(number), np.array(weights), names)


def _networkx_names(graph: "nx.Graph") -> list[str] | None:
    """The nodes if all are text, otherwise their attribute `name` if all have one; None if there is neither."""
    if len(graph) and all(isinstance(node, str) for node in graph):
        return list(graph)
    names: list[Any] = [name for _, name in graph.nodes(data="name")]
    return names if names and all(isinstance(name, str) for name in names) else None


def number_of(weight: object, where: str) -> float:
    """The weight of an edge as a float; an error that says `where` unless it is a real number.

    >>> number_of("2", "edge 0 → 1")
    Traceback (most recent call last):
    ValueError: the weight of edge 0 → 1 must be a number, got '2'
    """
    if isinstance(weight, Real) and not isinstance(weight, bool):
        try:
            return float(weight)
        except OverflowError:
            return float("inf")  # which is rejected like any other infinite weight
    raise ValueError(f"the weight of {where} must be a number, got {weight!r:.60}")


def to_networkx(item: EdgeList) -> "nx.DiGraph":
    """A `DiGraph`, or a `MultiDiGraph` if there are repeated edges; names are the node attribute `name`."""
    import networkx as nx

    repeated = np.unique(item.edges, axis=1).shape[1] < item.edges.shape[1]
    graph = nx.MultiDiGraph() if repeated else nx.DiGraph()
    graph.add_nodes_from(range(item.num_nodes))
    for node, name in enumerate(item.names or ()):
        graph.nodes[node]["name"] = name
    edges = item.edges.T.tolist()
    if item.weights is None:
        graph.add_edges_from(edges)
    else:
        graph.add_weighted_edges_from((u, v, w) for (u, v), w in zip(edges, item.weights.tolist(), strict=True))
    return graph


def from_scipy(matrix: Any) -> EdgeList:
    """Edge list of a square sparse matrix; explicit zeros are dropped, and a matrix of ones is unweighted."""
    from scipy.sparse import coo_array, issparse

    if not issparse(matrix):
        raise TypeError(f"expected a SciPy sparse matrix, got {type(matrix).__name__}: use scipy.sparse.coo_array")
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"an adjacency matrix must be square, got shape {matrix.shape}")
    if hasattr(matrix, "check_format"):
        matrix.check_format(full_check=True)  # SciPy's conversion trusts the pointers, and crashes on wrong ones
    entries = coo_array(matrix)
    kept = entries.data != 0
    weights = entries.data[kept]
    return EdgeList(np.stack(entries.coords)[:, kept], matrix.shape[0], None if (weights == 1).all() else weights)


def to_scipy(item: EdgeList) -> "coo_array":
    """Sparse adjacency matrix, with the weights of repeated edges summed."""
    from scipy.sparse import coo_array

    matrix = coo_array((item.filled_weights(), tuple(item.edges)), shape=(item.num_nodes, item.num_nodes))
    matrix.sum_duplicates()
    return matrix


def listed_pyg(data: Any) -> Iterable[Any]:
    """A PyG `Batch`, a single `Data`, a `Dataset` or an iterable of `Data`, as an iterable of `Data`."""
    check_pyg(data)
    if any(kind.__name__ == "Dataset" for kind in type(data).__mro__):  # its edge_index is that of all graphs joined
        return data if isinstance(data, Iterable) else [data[i] for i in range(len(data))]
    return data.to_data_list() if hasattr(data, "to_data_list") else listed(data, "edge_index")


def from_pyg(data: Any) -> EdgeList:
    """Edge list of a PyG `Data`."""
    check_pyg(data)
    if getattr(data, "edge_index", None) is None:
        raise ValueError(f"{data} has no edge_index: set it, or convert its adj_t first")
    names = pyg_names([getattr(data, NAMES, None)], [data.num_nodes])
    return EdgeList(data.edge_index, data.num_nodes, getattr(data, "edge_weight", None), names)


NAMES = "names"
"""The attribute of PyG's `Data` that holds one string per node."""


def pyg_names(found: Any, sizes: Sequence[int]) -> list[str] | None:
    """The names of all nodes, if every graph has a list of one string per node; other attributes are not names.

    >>> pyg_names([["a", "b"], ["c"]], [2, 1]), pyg_names([["a"], None], [1, 1])
    (['a', 'b', 'c'], None)
    """
    if not isinstance(found, list | tuple) or len(found) != len(sizes):
        return None
    for names, size in zip(found, sizes, strict=True):
        if (
            not isinstance(names, list | tuple)
            or len(names) != size
            or not all(isinstance(name, str) for name in names)
        ):
            return None
    return [name for names in found for name in names]


def check_pyg(data: Any) -> None:
    """Raise a `TypeError` for the data of PyG that are not one kind of nodes and edges."""
    kinds = _class_names(type(data))
    if "HeteroData" in kinds:
        raise TypeError(
            "HeteroData has several types of nodes or edges, which magnetite does not support: "
            "convert it with data.to_homogeneous()"
        )
    if "TemporalData" in kinds:
        raise TypeError(
            "TemporalData is a list of events, not a graph: build a Data with "
            "edge_index=torch.stack([data.src, data.dst])"
        )


@cache
def _class_names(kind: type) -> frozenset[str]:
    return frozenset(base.__name__ for base in kind.__mro__)


def pyg_features(items: Sequence[Any]) -> dict[str, dict[str, Tensor]]:
    """The tensors, arrays and numbers that every `Data` has, grouped into node, edge and graph features.

    The group follows from the number of rows in all graphs. Where several fit, an attribute with 'edge' in its name is
    an edge feature, as in PyG.
    """
    features: dict[str, dict[str, Tensor]] = {"node_features": {}, "edge_features": {}, "graph_features": {}}
    for name in items[0].keys():  # noqa: SIM118 (iterating over a Data gives pairs)
        if not is_feature(name) or not all(name in item for item in items):
            continue
        values = [item[name] for item in items]
        if not all(isinstance(value, Tensor | np.ndarray | int | float) for value in values):
            continue
        rows = [torch.atleast_1d(detached(torch.as_tensor(value), name)).cpu() for value in values]
        fitting = set.intersection(*(_fitting(row.shape[0], item) for row, item in zip(rows, items, strict=True)))
        order = ["edge_features"] * ("edge" in name) + ["node_features", "graph_features", "edge_features"]
        group = next((group for group in order if group in fitting), None)
        if group is not None:
            features[group][name] = _concatenated(name, rows)
    return features


def is_feature(name: str) -> bool:
    """Whether an attribute of PyG's `Data` with this name may be a feature."""
    return name != "num_nodes" and not name.endswith(CARRIED) and not any(word in name for word in PYG_RESERVED)


def to_pyg(
    edges: Tensor,
    num_nodes: int,
    weights: Tensor | None,
    features: Mapping[str, Tensor],
    names: Sequence[str] | None = None,
) -> Any:
    """A PyG `Data` with `edge_index`, `edge_weight` if there are weights, `names`, and the features as attributes."""
    from torch_geometric.data import Data

    data = Data(edge_index=edges.long(), num_nodes=num_nodes)
    if weights is not None:
        data.edge_weight = weights
    for name, tensor in features.items():
        check_pyg_name(name)
        data[name] = tensor
    if names is not None and NAMES not in features:
        data[NAMES] = list(names)
    return data


def check_pyg_name(name: str) -> None:
    """Raise an error if PyG would shift an attribute of this name by the number of nodes when it builds a batch."""
    if "index" in name or "batch" in name:
        raise ValueError(f"PyG shifts attributes with 'index' or 'batch' in their name: rename {name!r}")


def _fitting(rows: int, data: Any) -> set[str]:
    counts = {"node_features": data.num_nodes, "edge_features": data.edge_index.shape[1], "graph_features": 1}
    return {group for group, count in counts.items() if rows == count}


def _concatenated(name: str, rows: Sequence[Tensor]) -> Tensor:
    shapes = sorted({tuple(row.shape[1:]) for row in rows})
    if len(shapes) > 1:
        raise ValueError(f"{name!r} must have rows of one shape in all graphs, got {shapes[0]} and {shapes[1]}")
    return torch.cat(list(rows))


def detached(tensor: Tensor, name: str) -> Tensor:
    """The tensor without its gradient; a warning if it requires one, because no encoding is differentiable."""
    if not tensor.requires_grad:
        return tensor
    warnings.warn(
        f"{name} requires gradients, but graphs do not pass gradients on: it was detached; "
        f"call {name}.detach() to silence this warning",
        UserWarning,
        stacklevel=2,
    )
    return tensor.detach()


def plain_weights(weights: Tensor) -> Tensor:
    """Weights of any real type as float32 or float64, without a gradient."""
    if not isinstance(weights, Tensor) or weights.is_complex() or weights.dtype == torch.bool:
        kind = weights.dtype if isinstance(weights, Tensor) else type(weights).__name__
        raise ValueError(f"weights must be a tensor of real numbers, got {kind}")
    weights = detached(weights, "edge_weight")
    return weights if weights.dtype in (torch.float32, torch.float64) else weights.double()


def _numpy(array: Any) -> np.ndarray:
    """The values of a tensor or array; types that NumPy does not have, such as bfloat16, become float64."""
    if isinstance(array, Tensor):
        array = array.detach().cpu()
        if array.is_sparse or array.layout != torch.strided:
            raise ValueError("got a sparse tensor: give edge_index and edge_weight as dense tensors")
        array = (array.double() if array.is_floating_point() and array.dtype != torch.float32 else array).numpy()
    try:
        return np.asarray(array)
    except ValueError as error:  # rows of different lengths
        raise ValueError(f"expected an array, got {type(array).__name__}: {error}") from None


def _node_count(size: Any) -> int:
    try:
        count = operator.index(size)
    except TypeError:
        raise ValueError(f"num_nodes must be an integer, got {size!r:.60}") from None
    if not 0 <= count < 2**31:
        raise ValueError(f"num_nodes must be from 1 to {2**31 - 1}, got {count}")
    return count


def _edge_array(array: Any) -> np.ndarray:
    edges = _numpy(array)
    if edges.ndim != 2 or edges.shape[0] != 2:
        hint = "transpose it" if edges.ndim == 2 and edges.shape[1] == 2 else "give sources and targets as two rows"
        raise ValueError(f"edge_index must have shape [2, m], got {list(edges.shape)}: {hint}")
    if edges.size and edges.dtype.kind not in "iu":
        raise ValueError(f"edge_index must contain integers, got dtype {edges.dtype}")
    if edges.size and (edges.max() >= 2**31 or edges.min() < -(2**31)):
        wrong = edges.max() if edges.max() >= 2**31 else edges.min()
        raise ValueError(f"node ids must be below 2**31, got {int(wrong)}: renumber the nodes from 0")
    return edges.astype(np.int32)


def _weight_array(weights: Any, count: int) -> np.ndarray:
    if isinstance(weights, Tensor):
        weights = detached(weights, "edge_weight")
    array = _numpy(weights)
    if array.shape != (count,):
        raise ValueError(f"edge_weight must have one entry per edge, got shape {list(array.shape)} for {count} edges")
    if array.dtype.kind not in "iuf":
        raise ValueError(f"edge_weight must contain real numbers, got dtype {array.dtype}")
    return array.astype(np.float64)
