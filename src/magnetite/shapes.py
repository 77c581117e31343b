"""Fixed shapes of batches, and where in them the slots of each graph are."""

import functools
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from magnetite.asked import AskedPairs
from magnetite.graphs import Digraphs

MULTIPLE = 8
"""Padded widths are multiples of this, as the fused attention kernels like them."""


def rounded(count: int, multiple: int = MULTIPLE) -> int:
    """The next multiple.

    >>> rounded(17)
    24
    """
    return -(-int(count) // multiple) * multiple


@dataclass(frozen=True)
class Shape:
    """Graphs of a batch, slots for the nodes and for the edges of each, and slots for the asked pairs of all together.

    At least one slot for a node stays empty, at the end: a model may put a token of its own there. `total` is the most
    nodes of all graphs together, 0 where that is not known: a model that knows it can leave empty slots out.

    >>> Shape.of(Digraphs.from_edges([[0, 1], [1, 2]]))
    Shape(graphs=1, nodes=8, edges=8, pairs=0, total=0)
    """

    graphs: int
    nodes: int
    edges: int
    pairs: int = 0
    total: int = 0

    def __post_init__(self) -> None:
        if min(self.graphs, self.nodes, self.edges) < 1 or min(self.pairs, self.total) < 0:
            raise ValueError(f"{self} holds nothing: give graphs, nodes and edges from 1, pairs and total from 0")

    @classmethod
    def of(
        cls, graphs: Digraphs, ids: Int[Tensor, " chosen"] | None = None, asked: AskedPairs | None = None
    ) -> "Shape":
        """The smallest shape that holds the chosen graphs, all of them if none are named, and their asked pairs."""
        chosen = slice(None) if ids is None else ids
        sizes, degrees = graphs.sizes[chosen], graphs.edge_ptr.diff()[chosen]
        pairs = sizes.new_zeros(()) if asked is None else asked.counts[chosen].sum()
        return cls.holding(sizes.numel(), *torch.stack([sizes.max(), degrees.max(), pairs]).tolist())

    @classmethod
    def holding(cls, graphs: int, nodes: int, edges: int, pairs: int = 0) -> "Shape":
        """The shape for so many graphs of at most so many nodes and edges, all rounded up.

        >>> Shape.holding(2, nodes=16, edges=0)
        Shape(graphs=2, nodes=24, edges=8, pairs=0, total=0)
        """
        return cls(graphs, rounded(nodes + 1), rounded(max(edges, 1)), rounded(pairs))

    def part(self, processes: int) -> "Shape":
        """The share of one of so many processes."""
        return Shape(self.graphs // processes, self.nodes, self.edges, self.pairs // processes, self.total // processes)


@dataclass(frozen=True, eq=False)
class Layout:
    """What the slots of batches of these shapes are, whatever graphs they hold; all batches one after the other.

    For each slot of a node, and each of an edge, the number of its graph and its own number in it. For each graph, the
    first of its slots in its batch, and how many nodes and edges it has room for.
    """

    node_graph: Int[Tensor, " slots"]
    node: Int[Tensor, " slots"]
    edge_graph: Int[Tensor, " edges"]
    edge: Int[Tensor, " edges"]
    anywhere: Int[Tensor, " edges"]
    first: Int[Tensor, " graphs"]
    room: Int[Tensor, "graphs 2"]

    @staticmethod
    @functools.lru_cache(maxsize=16)
    def of(shapes: tuple[Shape, ...], device: torch.device) -> "Layout":
        """The layout of such batches, made once."""
        counts = np.array([shape.graphs for shape in shapes])
        room = np.repeat([[shape.nodes, shape.edges] for shape in shapes], counts, axis=0)
        graph = np.arange(counts.sum())
        first = np.concatenate([np.arange(shape.graphs) * shape.nodes for shape in shapes])
        node, edge = (np.concatenate([np.arange(size) for size in room[:, part]]) for part in (0, 1))
        anywhere = [np.arange(shape.graphs * shape.edges) % (shape.graphs * shape.nodes) for shape in shapes]
        arrays = (np.repeat(graph, room[:, 0]), node, np.repeat(graph, room[:, 1]), edge, np.concatenate(anywhere))
        return Layout(*(torch.from_numpy(array).to(device) for array in (*arrays, first, room)))
