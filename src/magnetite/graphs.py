"""Digraphs: many directed graphs packed in one frozen object."""

import importlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import torch
from jaxtyping import Int, Shaped
from torch import Tensor

from magnetite.io import interop
from magnetite.io.interop import EdgeList
from magnetite.packed import Axis, Packed, starts

if TYPE_CHECKING:  # SciPy and networkx take longer to import than all of magnetite: only where they are used
    import networkx as nx
    from scipy.sparse import coo_array


@dataclass(frozen=True, eq=False, kw_only=True)
class Digraphs(Packed):
    """Many directed graphs, their edges laid end to end.

    An edge `(u, v)` points from `u` to `v`. `edges` counts nodes from 0 within each graph, so that a slice of a million
    graphs is a view; `edge_index` counts them through the whole container, as a PyG batch does. Features are mappings
    from names to tensors with one row a node, an edge or a graph.

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

    def __post_init__(self) -> None:
        _check_pointers(self)
        _check_edges(self)
        _check_weights(self)
        _check_features(self)

    def __repr__(self) -> str:
        weighted = ", weighted" if self.weights is not None else ""
        return f"Digraphs({len(self)} graphs, {self.num_nodes} nodes, {self.num_edges} edges{weighted})"

    @property
    def num_nodes(self) -> int:
        """Number of nodes of all graphs together."""
        return int(self.node_ptr[-1])

    @property
    def num_edges(self) -> int:
        """Number of edges of all graphs together."""
        return self.edges.shape[1]

    @property
    def edge_graph(self) -> Int[Tensor, " edges"]:
        """For every edge, the number of its graph."""
        return torch.repeat_interleave(torch.arange(len(self), device=self.device), self.edge_ptr.diff())

    @property
    def edge_index(self) -> Int[Tensor, "2 edges"]:
        """Sources and targets, counted through all graphs of the container."""
        return self.edges.long() + self.node_ptr[self.edge_graph]

    @property
    def edge_weight(self) -> Shaped[Tensor, " edges"]:
        """The weights, ones where none were given."""
        return torch.ones(self.num_edges, device=self.device) if self.weights is None else self.weights

    def reverse(self) -> "Digraphs":
        """Every edge turned around.

        >>> Digraphs.from_edges([[0, 1], [1, 2]]).reverse().edges.tolist()
        [[1, 2], [0, 1]]
        """
        return self.replace(edges=self.edges.flip(0))

    def replace(self, **changes: Any) -> "Digraphs":
        """A copy with some fields replaced, validated again.

        >>> labelled = Digraphs.from_edges([[0], [1]]).replace(graph_features={"y": torch.tensor([1])})
        >>> labelled.graph_features["y"].tolist()
        [1]
        """
        parts = {name: getattr(self, name) for name in (*self.pointers, *self.axes)}
        return Digraphs(**{**parts, **changes})

    def weak_components(self) -> Int[Tensor, " nodes"]:
        """For every node, the number of its weakly connected component within its graph.

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
        """Join containers end to end; where some are weighted, the others get weight 1.

        >>> one = Digraphs.from_edges([[0, 1], [1, 2]])
        >>> Digraphs.concat([one, one.reverse()])
        Digraphs(2 graphs, 6 nodes, 4 edges)
        """
        items = list(items)
        if any(item.weights is not None for item in items):
            items = [item.replace(weights=item.edge_weight) for item in items]
        return super().concat(items)

    @classmethod
    def from_edges(
        cls,
        edge_index: Any,
        num_nodes: int | Sequence[int] | None = None,
        edge_weight: Any = None,
    ) -> "Digraphs":
        """From `[2, m]` arrays or tensors of sources and targets: one for a single graph, a list of them for many.

        >>> Digraphs.from_edges([[0, 1], [1, 2]], num_nodes=4, edge_weight=[0.5, 2.0])
        Digraphs(1 graphs, 4 nodes, 2 edges, weighted)
        """
        return cls._from_lists(interop.from_edges(edge_index, num_nodes, edge_weight))

    @classmethod
    def from_networkx(cls, graphs: "nx.Graph | Iterable[nx.Graph]", weight: str = "weight") -> "Digraphs":
        """From networkx graphs, nodes in their own order; an undirected edge becomes two edges.

        Attributes other than `weight` are left behind: add them with `replace(node_features=…)`.

        >>> import networkx as nx
        >>> Digraphs.from_networkx([nx.path_graph(9, nx.DiGraph), nx.cycle_graph(3)])
        Digraphs(2 graphs, 12 nodes, 14 edges)
        """
        return cls._from_lists(interop.from_networkx(graph, weight) for graph in interop.listed(graphs, "nodes"))

    @classmethod
    def from_scipy(cls, matrices: Any) -> "Digraphs":
        """From square sparse matrices with `A[u, v]` the weight of the edge from `u` to `v`.

        >>> from scipy.sparse import coo_array
        >>> Digraphs.from_scipy(coo_array(([1.0, 2.0], ([0, 1], [1, 2])), shape=(3, 3)))
        Digraphs(1 graphs, 3 nodes, 2 edges, weighted)
        """
        return cls._from_lists(interop.from_scipy(matrix) for matrix in interop.listed(matrices, "tocoo"))

    @classmethod
    def from_pyg(cls, data: Any) -> "Digraphs":
        """From a PyG `Data`, a `Batch` or a list of `Data`, with `edge_weight` and features of nodes, edges and graphs.

        A name that says 'index' or 'batch' is PyG's own; of the others, those that all graphs have are features.
        """
        items = list(interop.listed_pyg(data))
        lists = [interop.from_pyg(item) for item in items]
        return cls._from_lists(lists, **interop.pyg_features(items) if items else {})

    def to_networkx(self) -> "list[nx.DiGraph]":
        """One networkx graph each, a `MultiDiGraph` where edges are repeated.

        >>> Digraphs.from_edges([[0, 1], [1, 2]]).to_networkx()[0].edges
        OutEdgeView([(0, 1), (1, 2)])
        """
        return [interop.to_networkx(item) for item in self.edge_lists()]

    def to_scipy(self) -> "list[coo_array]":
        """One sparse adjacency matrix each, repeated edges summed.

        >>> Digraphs.from_edges([[0, 0], [1, 1]]).to_scipy()[0].toarray().tolist()
        [[0.0, 2.0], [0.0, 0.0]]
        """
        return [interop.to_scipy(item) for item in self.edge_lists()]

    def to_pyg(self) -> list[Any]:
        """One PyG `Data` each, with weights and features."""
        # Bound at run time: transforms.py is the only importer of PyG, and lies above this file.
        return importlib.import_module("magnetite.transforms").to_pyg(self)

    def edge_lists(self) -> Iterable[EdgeList]:
        """Each graph as a plain NumPy edge list."""
        edges = self.edges.cpu().numpy()
        weights = None if self.weights is None else self.weights.cpu().numpy()
        edge_ptr = self.edge_ptr.tolist()
        for size, begin, end in zip(self.sizes.tolist(), edge_ptr, edge_ptr[1:], strict=False):
            yield EdgeList(edges[:, begin:end], size, None if weights is None else weights[begin:end])

    @classmethod
    def _from_lists(cls, lists: Iterable[EdgeList], **features: Mapping[str, Tensor]) -> "Digraphs":
        lists = list(lists)
        if not lists:
            raise ValueError("no graphs were given: give at least one")
        weighted = any(item.weights is not None for item in lists)
        return cls(
            node_ptr=starts(torch.tensor([item.num_nodes for item in lists])),
            edge_ptr=starts(torch.tensor([item.edges.shape[1] for item in lists])),
            edges=torch.from_numpy(np.concatenate([item.edges for item in lists], axis=1)),
            weights=torch.from_numpy(np.concatenate([item.filled_weights() for item in lists])) if weighted else None,
            **features,
        )


def _check_pointers(graphs: Digraphs) -> None:
    for name in graphs.pointers:
        pointer = getattr(graphs, name)
        if pointer.ndim != 1 or pointer.numel() == 0 or int(pointer[0]) != 0 or bool((pointer.diff() < 0).any()):
            raise ValueError(f"{name} must start at 0 and never fall: build Digraphs with Digraphs.from_edges")
    if graphs.node_ptr.numel() != graphs.edge_ptr.numel():
        raise ValueError(
            "node_ptr and edge_ptr count different numbers of graphs: build Digraphs with Digraphs.from_edges"
        )
    empty = (graphs.sizes == 0).nonzero()
    if empty.numel():
        raise ValueError(f"graph {int(empty[0])} is empty: a graph needs at least one node; leave it out")


def _check_edges(graphs: Digraphs) -> None:
    edges = graphs.edges
    if edges.shape != (2, int(graphs.edge_ptr[-1])):
        raise ValueError(f"edges have shape {tuple(edges.shape)}: expected [2, {int(graphs.edge_ptr[-1])}]")
    if edges.numel() == 0:
        return
    size = torch.repeat_interleave(graphs.sizes, graphs.edge_ptr.diff())
    wrong = ((edges < 0) | (edges >= size)).any(0).nonzero()
    if wrong.numel():
        edge = int(wrong[0])
        graph = int(graphs.edge_graph[edge])
        source, target = edges[:, edge].tolist()
        raise ValueError(
            f"edge {source} → {target} of graph {graph} leaves its nodes 0…{int(size[edge]) - 1}: "
            "give a larger num_nodes or renumber the nodes from 0"
        )


def _check_weights(graphs: Digraphs) -> None:
    weights = graphs.weights
    if weights is None:
        return
    if weights.shape != (graphs.num_edges,):
        raise ValueError(f"{tuple(weights.shape)} weights for {graphs.num_edges} edges: give one weight an edge")
    wrong = (~(weights > 0) | ~weights.isfinite()).nonzero()
    if wrong.numel():
        edge = int(wrong[0])
        raise ValueError(
            f"edge {edge} of graph {int(graphs.edge_graph[edge])} has weight {float(weights[edge])}: weights must be "
            "positive and finite; leave out edges of weight 0, signed graphs are not supported"
        )


def _check_features(graphs: Digraphs) -> None:
    rows = {"node_features": graphs.num_nodes, "edge_features": graphs.num_edges, "graph_features": len(graphs)}
    for group, count in rows.items():
        for name, tensor in getattr(graphs, group).items():
            if tensor.ndim == 0 or tensor.shape[0] != count:
                raise ValueError(f"{group}[{name!r}] has shape {tuple(tensor.shape)}: expected {count} rows")
