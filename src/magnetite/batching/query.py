"""Query node pairs and their targets."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Bool, Int, Shaped
from torch import Tensor

from magnetite.packed import INTEGERS, REALS, Axis, Dtypes, Packed, first_outside, starts


@dataclass(frozen=True, eq=False, kw_only=True)
class QueryPairs(Packed):
    """Query pairs: some ordered node pairs of each graph, with one label, or one row of labels, per query pair.

    Args:
        node_ptr: Where the nodes of each graph begin.
        query_ptr: Where the query pairs of each graph begin.
        nodes: Source and target of each query pair, numbered within their graph.
        labels: Target of the prediction for each query pair, such as classes or numbers.

    >>> pointers = {"node_ptr": torch.tensor([0, 3]), "query_ptr": torch.tensor([0, 2])}
    >>> nodes, labels = torch.tensor([[0, 0], [1, 2]]), torch.tensor([1, 2], dtype=torch.int16)
    >>> QueryPairs(nodes=nodes, labels=labels, **pointers)
    QueryPairs(1 graphs, 2 pairs)
    """

    query_ptr: Int[Tensor, " starts"]
    nodes: Int[Tensor, "2 pairs"]
    labels: Shaped[Tensor, "pairs ..."]

    pointers: ClassVar[tuple[str, ...]] = ("node_ptr", "query_ptr")
    axes: ClassVar[dict[str, tuple[Axis, int]]] = {"nodes": ("query", 1), "labels": ("query", 0)}

    dtypes: ClassVar[dict[str, Dtypes]] = {"nodes": INTEGERS, "labels": (torch.bool, *INTEGERS, *REALS)}

    def __post_init__(self) -> None:
        self.check()

    def check(self) -> None:
        """Raise a `ValueError` unless every query pair is in its graph."""
        super().check()
        if self.nodes.ndim != 2 or self.nodes.shape[0] != 2 or self.labels.ndim not in (1, 2):
            raise ValueError(
                "nodes must have shape [2, pairs] and labels [pairs] or [pairs, columns], got "
                f"{list(self.nodes.shape)} and {list(self.labels.shape)}: give one column of nodes and one row of "
                "labels per pair"
            )
        pair = first_outside(self.nodes, self.query_ptr, self.sizes)
        if pair is not None:
            source, target = self.nodes[:, pair].tolist()
            size = int(torch.repeat_interleave(self.sizes, self.counts)[pair])
            raise ValueError(
                f"query pair {pair} is ({source}, {target}), but its graph has nodes 0 to {size - 1}: "
                "number nodes within their graph"
            )

    def __repr__(self) -> str:
        return f"QueryPairs({len(self)} graphs, {len(self.labels)} pairs)"

    @classmethod
    def all_of(cls, graphs: Packed) -> "QueryPairs":
        """All ordered node pairs of each graph, source by source, with labels of zero.

        >>> from magnetite import Digraphs
        >>> QueryPairs.all_of(Digraphs.from_edges([[0], [1]])).nodes.tolist()
        [[0, 0, 1, 1], [0, 1, 0, 1]]
        """
        graph, source, target = all_nodes(graphs.sizes)
        labels = torch.zeros_like(graph, dtype=torch.int16)
        query_ptr = starts(graphs.sizes**2)
        return cls(node_ptr=graphs.node_ptr, query_ptr=query_ptr, nodes=torch.stack([source, target]), labels=labels)

    @property
    def counts(self) -> Int[Tensor, " graphs"]:
        """Number of query pairs per graph."""
        return self.query_ptr.diff()


def all_nodes(
    sizes: Int[Tensor, " graphs"],
) -> tuple[Int[Tensor, " pairs"], Int[Tensor, " pairs"], Int[Tensor, " pairs"]]:
    """Graph, source and target of all ordered node pairs, numbered within their graph, source by source.

    Args:
        sizes: Number of nodes of each graph.

    >>> [each.tolist() for each in all_nodes(torch.tensor([1, 2]))]
    [[0, 1, 1, 1, 1], [0, 0, 0, 1, 1], [0, 0, 1, 0, 1]]
    """
    counts = sizes**2
    graph = torch.repeat_interleave(counts)
    inside = torch.arange(graph.numel(), device=sizes.device) - (counts.cumsum(0) - counts)[graph]
    return graph, inside // sizes[graph], inside % sizes[graph]


@dataclass(frozen=True, eq=False)
class Query:
    """The query pairs of a batch, graph by graph.

    Args:
        source: Packed node number of the source of each query pair.
        target: Packed node number of the target of each query pair.
        labels: Target of the prediction for each query pair, such as classes or numbers.
        mask: Which query pairs are real; a batch of fixed shape ends in padding.
    """

    source: Int[Tensor, " pairs"]
    target: Int[Tensor, " pairs"]
    labels: Shaped[Tensor, "pairs ..."]
    mask: Bool[Tensor, " pairs"]

    def sum(self, values: Shaped[Tensor, " pairs"]) -> Shaped[Tensor, ""]:
        """Sum one value per query pair, without padding."""
        return torch.where(self.mask, values, 0).sum()
