"""Digraphs: many directed graphs packed in one frozen object."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import torch
from jaxtyping import Int, Shaped
from torch import Tensor

from magnetite.io import files, interop, pyg, readers
from magnetite.io.interop import EdgeList
from magnetite.packed import INTEGERS, LARGEST, Axis, Dtypes, Named, Packed, first_outside, packed_names, plain, starts

if TYPE_CHECKING:  # SciPy and networkx take longer to import than all of magnetite
    import networkx as nx
    from scipy.sparse import coo_array


@dataclass(frozen=True, eq=False, kw_only=True)
class Digraphs(Named):
    """Many directed graphs, packed: the nodes and edges of all graphs one after the other.

    An edge `(u, v)` points from `u` to `v`. Use `from_edges`, `from_networkx`, `from_scipy`, `from_pyg` or
    `magnetite.read` instead of the constructor. `edges` numbers the nodes from 0 within each graph, so a slice of a
    million graphs is a view; `edge_index` numbers them across all graphs, as in a PyG batch.

    Args:
        node_ptr: Where the nodes of each graph begin, `[graphs + 1]`.
        name_bytes: The names of all nodes in UTF-8, one after the other; set them with `replace(names=…)`.
        name_lengths: Number of bytes of each node's name.
        name_ptr: Where the names of each graph begin in `name_bytes`, `[graphs + 1]`.
        edges: Source and target of each edge, numbered within its graph.
        edge_ptr: Where the edges of each graph begin, `[graphs + 1]`.
        weights: One positive weight per edge, or None if all weights are 1.
        node_features: Tensors by name, with one row per node.
        edge_features: Tensors by name, with one row per edge.
        graph_features: Tensors by name, with one row per graph.

    >>> named = Digraphs.from_edges([[0, 1], [1, 2]]).replace(names=["a", "b", "c"])
    >>> Digraphs.concat([named, named])[1].names
    ['a', 'b', 'c']
    >>> graphs = Digraphs.from_edges([np.array([[0, 1], [1, 2]]), np.array([[0], [1]])])
    >>> graphs
    Digraphs(2 graphs, 5 nodes, 3 edges)
    >>> source, target = graphs.edge_index
    >>> source.tolist(), target.tolist()
    ([0, 1, 3], [1, 2, 4])
    >>> graphs[1].edges.tolist()
    [[0], [1]]
    """

    edges: Int[Tensor, "2 edges"]
    edge_ptr: Int[Tensor, " starts"]
    weights: Shaped[Tensor, " edges"] | None = None
    node_features: Mapping[str, Shaped[Tensor, "nodes ..."]] = field(default_factory=dict)
    edge_features: Mapping[str, Shaped[Tensor, "edges ..."]] = field(default_factory=dict)
    graph_features: Mapping[str, Shaped[Tensor, "graphs ..."]] = field(default_factory=dict)

    pointers: ClassVar[tuple[str, ...]] = ("node_ptr", "edge_ptr")
    axes: ClassVar[dict[str, tuple[Axis, int]]] = {
        "edges": ("edge", 1),
        "weights": ("edge", 0),
        "node_features": ("node", 0),
        "edge_features": ("edge", 0),
        "graph_features": ("graph", 0),
    }

    dtypes: ClassVar[dict[str, Dtypes]] = {
        "edges": INTEGERS,
        "weights": (torch.float32, torch.float64),
    }

    def __post_init__(self) -> None:
        if self.weights is not None:
            object.__setattr__(self, "weights", interop.plain_weights(self.weights))
        self.check()

    def check(self) -> None:
        """Raise a `ValueError` unless these are valid graphs."""
        if _is_valid_single(self):
            return
        super().check()
        if len(self) and int(plain(self.sizes).min()) == 0:
            empty = int((self.sizes == 0).nonzero()[0])
            raise ValueError(f"graph {empty} is empty: a graph must have at least one node; leave it out")
        _check_edges(self)
        _check_weights(self)

    def __repr__(self) -> str:
        weighted = ", weighted" if self.weights is not None else ""
        return f"Digraphs({len(self)} graphs, {self.num_nodes} nodes, {self.num_edges} edges{weighted})"

    @property
    def num_nodes(self) -> int:
        """Number of nodes of all graphs."""
        return int(plain(self.node_ptr)[-1])

    @property
    def num_edges(self) -> int:
        """Number of edges of all graphs."""
        return self.edges.shape[1]

    @property
    def edge_graph(self) -> Int[Tensor, " edges"]:
        """The graph of each edge."""
        return torch.repeat_interleave(torch.arange(len(self), device=self.device), self.edge_ptr.diff())

    @property
    def edge_index(self) -> Int[Tensor, "2 edges"]:
        """Source and target of each edge as packed node numbers."""
        return self.edges.long() + self.node_ptr[self.edge_graph]

    @property
    def edge_weight(self) -> Shaped[Tensor, " edges"]:
        """The weights, or ones if the graphs are unweighted."""
        return torch.ones(self.num_edges, device=self.device) if self.weights is None else self.weights

    def reverse(self) -> "Digraphs":
        """The graphs with the direction of every edge reversed.

        >>> Digraphs.from_edges([[0, 1], [1, 2]]).reverse().edges.tolist()
        [[1, 2], [0, 1]]
        """
        return self.replace(edges=self.edges.flip(0))

    def weak_components(self) -> Int[Tensor, " nodes"]:
        """The weakly connected component of each node, numbered within its graph.

        >>> Digraphs.from_edges([[0, 3], [1, 2]], num_nodes=5).weak_components().tolist()
        [0, 0, 1, 1, 2]
        """
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import connected_components

        source, target = self.edge_index.cpu().numpy()
        ones = np.ones(source.size, dtype=np.int8)
        size = self.num_nodes
        _, labels = connected_components(coo_array((ones, (source, target)), shape=(size, size)), directed=False)
        first = labels[self.node_ptr[:-1].cpu().numpy()] if size else labels
        return torch.from_numpy(labels - np.repeat(first, self.sizes.cpu().numpy())).long().to(self.device)

    @classmethod
    def concat(cls, items: Iterable[Any]) -> Self:
        """Concatenate containers. If only some have weights or names, the others get weight 1 and numbers as names.

        Args:
            items: The containers.

        >>> one = Digraphs.from_edges([[0, 1], [1, 2]])
        >>> Digraphs.concat([one, one.reverse()])
        Digraphs(2 graphs, 6 nodes, 4 edges)
        """
        items = list(items)
        if any(item.weights is not None for item in items):
            items = [item.replace(weights=item.edge_weight) for item in items]
        if any(item.name_ptr is not None for item in items):
            items = [item if item.name_ptr is not None else item.replace(names=node_numbers(item)) for item in items]
        return super().concat(items)

    @classmethod
    def from_edges(
        cls,
        edge_index: Any,
        num_nodes: int | Sequence[int] | None = None,
        edge_weight: Any = None,
    ) -> "Digraphs":
        """Graphs from `[2, m]` arrays or tensors of sources and targets.

        Args:
            edge_index: One array for a single graph, a list of arrays for many graphs.
            num_nodes: Number of nodes, one per graph; the largest node id + 1 if omitted.
            edge_weight: One positive weight per edge, as one array per graph.

        >>> Digraphs.from_edges([[0, 1], [1, 2]], num_nodes=4, edge_weight=[0.5, 2.0])
        Digraphs(1 graphs, 4 nodes, 2 edges, weighted)
        """
        return cls._from_lists(interop.from_edges(edge_index, num_nodes, edge_weight))

    @classmethod
    def from_networkx(cls, graphs: "nx.Graph | Iterable[nx.Graph]", weight: str = "weight") -> "Digraphs":
        """Graphs from networkx graphs.

        Nodes are numbered in the order of each graph; an undirected edge becomes two edges. Nodes that are text are the
        `names`, otherwise an attribute `name` of all nodes. Attributes other than these and the weight are dropped: add
        them with `replace(node_features=…)`.

        Args:
            graphs: One graph or many.
            weight: The edge attribute that holds the weight.

        >>> import networkx as nx
        >>> Digraphs.from_networkx([nx.path_graph(9, nx.DiGraph), nx.cycle_graph(3)])
        Digraphs(2 graphs, 12 nodes, 14 edges)
        """
        return cls._from_lists(interop.from_networkx(graph, weight) for graph in interop.listed(graphs, "nodes"))

    @classmethod
    def from_scipy(cls, matrices: Any) -> "Digraphs":
        """Graphs from SciPy sparse matrices, where `A[u, v]` is the weight of the edge from `u` to `v`.

        Args:
            matrices: One square sparse matrix or many.

        >>> from scipy.sparse import coo_array
        >>> Digraphs.from_scipy(coo_array(([1.0, 2.0], ([0, 1], [1, 2])), shape=(3, 3)))
        Digraphs(1 graphs, 3 nodes, 2 edges, weighted)
        """
        return cls._from_lists(interop.from_scipy(matrix) for matrix in interop.listed(matrices, "tocoo"))

    @classmethod
    def from_pyg(cls, data: Any) -> "Digraphs":
        """Graphs from PyG, with `edge_weight` and all node, edge and graph features.

        Features are the attributes that every `Data` has, except those with 'index' or 'batch' in their name. `names`,
        a list of one string per node, gives the nodes their names.

        Args:
            data: A `Data`, a `Batch`, a `Dataset` or a list of `Data`.
        """
        interop.check_pyg(data)
        found = pyg.stored(data) if getattr(data, "transform", None) is None else None
        fields = None if found is None else pyg.stored_graphs(found)
        if found is not None and fields is not None:
            named: dict[str, Any] = {name: value.cpu() for name, value in fields.items() if value is not None}
            named |= {"edges": pyg.in_32_bits(named["edges"]), **pyg.stored_features(found)}
            graphs = cls(**named)
            names = interop.pyg_names(found.values.get(interop.NAMES), graphs.sizes.tolist())
            return graphs if names is None else graphs.replace(names=names)
        items = list(interop.listed_pyg(data))
        lists = [interop.from_pyg(item) for item in items]
        return cls._from_lists(lists, **interop.pyg_features(items) if items else {})

    def to_networkx(self) -> "list[nx.DiGraph]":
        """One networkx `DiGraph` per graph, or a `MultiDiGraph` if it has repeated edges.

        Names are the node attribute `name`.

        >>> Digraphs.from_edges([[0, 1], [1, 2]]).to_networkx()[0].edges
        OutEdgeView([(0, 1), (1, 2)])
        """
        return [interop.to_networkx(item) for item in self.edge_lists()]

    def to_scipy(self) -> "list[coo_array]":
        """One sparse adjacency matrix per graph, with the weights of repeated edges summed.

        >>> Digraphs.from_edges([[0, 0], [1, 1]]).to_scipy()[0].toarray().tolist()
        [[0.0, 2.0], [0.0, 0.0]]
        """
        return [interop.to_scipy(item) for item in self.edge_lists()]

    def to_pyg(self) -> list[Any]:
        """One PyG `Data` per graph, with `edge_weight` if there are weights, and all features as attributes.

        Names of nodes are a list of strings, `names`.
        """
        return [interop.to_pyg(item.edges, item.num_nodes, item.weights, _features(item), item.names) for item in self]

    def edge_lists(self) -> Iterable[EdgeList]:
        """One edge list of NumPy arrays per graph."""
        edges = self.edges.cpu().numpy()
        weights = None if self.weights is None else self.weights.cpu().numpy()
        edge_ptr, node_ptr, names = self.edge_ptr.tolist(), self.node_ptr.tolist(), self.names
        for i in range(len(self)):
            some, first, last = slice(edge_ptr[i], edge_ptr[i + 1]), node_ptr[i], node_ptr[i + 1]
            own = None if names is None else names[first:last]
            yield EdgeList(edges[:, some], last - first, None if weights is None else weights[some], own)

    @classmethod
    def _from_lists(cls, lists: Iterable[EdgeList], **features: Any) -> "Digraphs":
        lists = list(lists)
        if not lists:
            raise ValueError("at least one graph is needed, got none")
        weighted = any(item.weights is not None for item in lists)
        node_ptr = starts(torch.tensor([item.num_nodes for item in lists]))
        names = None
        if any(item.names is not None for item in lists):
            numbers = (item.names or [str(number) for number in range(item.num_nodes)] for item in lists)
            names = [name for each in numbers for name in each]
        if lists[0].features:
            features["node_features"] = {key: torch.from_numpy(lists[0].features[key]) for key in lists[0].features}
        return cls(
            node_ptr=node_ptr,
            edge_ptr=starts(torch.tensor([item.edges.shape[1] for item in lists])),
            edges=torch.from_numpy(np.concatenate([item.edges for item in lists], axis=1)),
            weights=torch.from_numpy(np.concatenate([item.filled_weights() for item in lists])) if weighted else None,
            **packed_names(names, node_ptr),
            **features,
        )


def read_graphs(path: str | Path, weight: str | bool | None = True, nodes: str | Path | None = None) -> Digraphs:
    """Read graphs from a file whose extension selects the format; see `magnetite.read`.

    Args:
        path: The file, of a format in `FORMATS`.
        weight: The edge attribute or column of the weights; True for one called weight, if there is one; None for
            none.
        nodes: A table with one row per node, beside a list of edges.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "calls.txt"
    >>> _ = path.write_text("main parse\\nmain run\\n")
    >>> read_graphs(path).names
    ['main', 'parse', 'run']
    """
    path = Path(path)
    if not isinstance(weight, str | bool | None):
        raise TypeError(f"weight must be the name of an attribute, True or None, got {weight!r}")
    weight = False if weight is None else weight
    with files.explain_errors(path, FORMATS):
        listed = None if nodes is None else _nodes(Path(nodes), path)
        if path.suffix == ".safetensors":
            graphs = with_weight(Digraphs.load(path), weight)
        else:
            graphs = Digraphs._from_lists([readers.read_edges(path, weight, listed)])
            graphs = graphs if weight else graphs.replace(weights=None)
        readers.check_cost(path, graphs.num_nodes)
        return graphs


FORMATS = readers.READERS | {".safetensors": "a file written by Digraphs.save"}
"""The expected content of each file that `read_graphs` accepts, by extension."""


def _nodes(nodes: Path, path: Path) -> readers.Nodes:
    if path.suffix not in readers.ROWS:
        raise ValueError(f"nodes={str(nodes)!r} is for lists of edges ({' '.join(readers.ROWS)}): leave it out")
    if not nodes.is_file():
        raise ValueError(f"the table of nodes {nodes} does not exist: check the path")
    return readers.read_nodes(nodes)


def with_weight(graphs: Digraphs, weight: str | bool | None) -> Digraphs:
    """Graphs with the edge feature of this name as weights; with their own if True, without if None or False."""
    if weight is True:
        return graphs
    if not weight:
        return graphs.replace(weights=None)
    if weight not in graphs.edge_features:
        names = ", ".join(map(repr, graphs.edge_features)) or "none"
        raise ValueError(f"it has no edge feature {weight!r:.60}, only {names:.200}")
    return graphs.replace(weights=graphs.edge_features[weight].double())


def node_numbers(graphs: Packed) -> list[str]:
    """The number of each node within its graph, as names for nodes that have none."""
    return [str(number) for size in graphs.sizes.tolist() for number in range(size)]


def _features(graphs: Digraphs) -> dict[str, Tensor]:
    return {**graphs.node_features, **graphs.edge_features, **graphs.graph_features}


def _is_valid_single(graphs: Digraphs) -> bool:
    """Whether these are plainly one valid graph of edges only, on the CPU: the check of whoever encodes one by one."""
    node_ptr, edge_ptr, edges = graphs.node_ptr, graphs.edge_ptr, graphs.edges
    if graphs.weights is not None or graphs.node_features or graphs.edge_features or graphs.graph_features:
        return False
    if not all(type(tensor) is Tensor and tensor.is_cpu for tensor in (node_ptr, edge_ptr, edges)):
        return False
    if not (node_ptr.dtype == edge_ptr.dtype == torch.int64 and node_ptr.shape == edge_ptr.shape == (2,)):
        return False
    (first, size), (begin, count) = node_ptr.tolist(), edge_ptr.tolist()
    if first or begin or not 0 < size <= LARGEST or edges.dtype not in INTEGERS or edges.shape != (2, count):
        return False
    if any(names is not None for names in (graphs.name_bytes, graphs.name_lengths, graphs.name_ptr)):
        return False
    if not count:
        return True
    ends = edges.numpy()
    return bool(ends.min() >= 0 and ends.max() < size)


def _check_edges(graphs: Digraphs) -> None:
    edges = graphs.edges
    if edges.shape[0] != 2 or edges.ndim != 2:
        raise ValueError(f"edges must have shape [2, {int(graphs.edge_ptr[-1])}], got {list(edges.shape)}")
    edge = first_outside(edges, graphs.edge_ptr, graphs.sizes)
    if edge is not None:
        graph = _graph_of(graphs, edge)
        source, target = edges[:, edge].tolist()
        raise ValueError(
            f"edge {source} → {target} of graph {graph} is outside its nodes 0…{int(graphs.sizes[graph]) - 1}: "
            "increase num_nodes or renumber the nodes from 0"
        )


def _check_weights(graphs: Digraphs) -> None:
    weights = graphs.weights
    if weights is None:
        return
    if weights.ndim != 1:
        raise ValueError(f"weights must have shape [{graphs.num_edges}], one per edge, got {list(weights.shape)}")
    if weights.numel() == 0:
        return
    if not (float(plain(weights).min()) > 0 and float(plain(weights).max()) < float("inf")):  # NaN is neither
        edge = int((~(weights > 0) | ~weights.isfinite()).nonzero()[0])
        raise ValueError(
            f"edge {edge} of graph {_graph_of(graphs, edge)} has weight {float(weights[edge])}: weights must be "
            "positive and finite; leave out edges of weight 0 (signed graphs are not supported)"
        )


def _graph_of(graphs: Digraphs, edge: int) -> int:
    return int(torch.searchsorted(graphs.edge_ptr, edge, right=True)) - 1
