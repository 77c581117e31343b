"""Directed random walks as an encoding of node pairs."""

from dataclasses import dataclass
from typing import Annotated

import torch
from jaxtyping import Float
from torch import Tensor

from magnetite.encodings.checks import DROPOUT, FRACTION, SIZE, Domain, check_dtype, check_fields, check_graphs
from magnetite.encodings.dense import DenseBatch, for_each_batch
from magnetite.encodings.results import NodeEncoding, PairEncoding, TopPairs
from magnetite.graphs import Digraphs
from magnetite.linalg.memory import check_memory
from magnetite.linalg.walks import landing_sums, pair_walks, top_walks, walk_features
from magnetite.packed import ragged_rows, starts

PAIRS_UP_TO = 8192
"""Largest number of nodes of a graph whose node pairs are all encoded, in 256 MiB per feature."""

KERNEL_UP_TO = 1024
"""Largest number of nodes of a graph that is encoded from its edges on a CPU; larger ones are dense matrices."""

STEPS = Domain(1, 10_000)
"""Numbers of steps of a walk."""

DTYPES = (torch.float16, torch.float32, torch.float64)
"""Types that the features may have."""


@dataclass(frozen=True)
class RandomWalk:
    """Landing probabilities `[Π(R), R^k, …, R, T, …, T^k, Π(T)]` of random walks against and along the edges.

    `walks[i]` is `[n, n, 2(steps + 1)]`: start × landing × feature. `T` is the transition matrix along the edges, with
    probabilities proportional to the weights, `R` the one against them, and `Π(T) = p (I − (1−p) T)^{-1}` personalised
    PageRank. A walk stays at a node that it cannot leave.

    Args:
        steps: Number of powers k.
        restart: Restart probability `p` of PageRank, in (0, 1]; None omits `Π`.
        reverse: Whether to include walks against the edges.
        dtype: Type of the result; float16 saves memory.

    >>> walks = RandomWalk(steps=1, restart=None)(Digraphs.from_edges([[0, 1], [1, 2]]))
    >>> walks[0][0].tolist()
    [[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]]
    """

    steps: Annotated[int, STEPS] = 3
    restart: Annotated[float, FRACTION] | None = 0.05
    reverse: bool = True
    dtype: torch.dtype = torch.float32

    def __post_init__(self) -> None:
        check_fields(self)
        check_dtype(self.dtype, DTYPES)

    @property
    def width(self) -> int:
        """Number of features per node pair."""
        return (self.steps + (self.restart is not None)) * (1 + self.reverse)

    def check_size(self, largest: int) -> None:
        """Raise an error if the largest graph has too many nodes, which training calls before it starts a run.

        Args:
            largest: Its number of nodes.
        """
        if largest > PAIRS_UP_TO:
            raise ValueError(
                f"RandomWalk supports graphs of at most {PAIRS_UP_TO} nodes, got {largest}: for one vector per node, "
                f"use WalkSums(steps={self.steps}, restart={self.restart})(graphs)"
            )

    def __call__(self, graphs: Digraphs) -> PairEncoding:
        """Encode every graph."""
        self.check_size(max(graphs.sizes.tolist(), default=0))
        pair_ptr = starts(graphs.sizes**2)
        needed = int(pair_ptr[-1]) * self.width * self.dtype.itemsize
        check_memory(
            needed,
            graphs.device,
            f"{self} of {graphs}",
            f"take fewer steps, fewer graphs at once, or WalkSums(steps={self.steps}, restart={self.restart})(graphs)",
        )
        small = graphs.sizes <= KERNEL_UP_TO if graphs.device.type == "cpu" else torch.zeros(len(graphs)) > 0
        if len(graphs) and bool(small.all()):
            return PairEncoding(node_ptr=graphs.node_ptr, pair_ptr=pair_ptr, values=self._from_edges(graphs))
        values = torch.empty((int(pair_ptr[-1]), self.width), dtype=self.dtype, device=graphs.device)
        if bool(small.any()):
            ids = small.nonzero().squeeze(1)
            values[ragged_rows(pair_ptr, ids)] = self._from_edges(graphs.select(ids))

        def work(batch: DenseBatch) -> None:
            size = batch.adjacency.shape[-1]
            features = walk_features(_aligned(batch.adjacency), self.steps, self.restart, self.reverse)
            values[ragged_rows(pair_ptr, batch.ids)] = features[:, :size, :size].flatten(0, 2).to(self.dtype)

        for_each_batch(graphs, work, None if not bool(small.any()) else (~small).nonzero().squeeze(1))
        return PairEncoding(node_ptr=graphs.node_ptr, pair_ptr=pair_ptr, values=values)

    def _from_edges(self, graphs: Digraphs) -> Float[Tensor, "pairs f"]:
        check_graphs(graphs)
        parts = graphs.edges, graphs.edge_ptr, graphs.sizes, graphs.weights
        return pair_walks(*parts, self.steps, self.restart, self.reverse, self.dtype)


@dataclass(frozen=True)
class SparseRandomWalk:
    """`RandomWalk` for large graphs: the `top` likeliest landing nodes of each start node, and their features.

    The start node comes first if a walk can land there, then the nodes with the largest sums of features. With
    `tolerance=0` and `restart=None` the features are exact; otherwise `TopPairs.lost` bounds the error.
    `WalkSums` turns them into one vector per node, for any model.

    Args:
        steps: Number of powers k.
        restart: Restart probability of PageRank, in (0, 1]; None omits it.
        reverse: Whether to include walks against the edges.
        top: Number of landing nodes per start node.
        tolerance: Probabilities below this are dropped between steps and while computing PageRank.

    >>> walks = SparseRandomWalk(steps=1, restart=None, top=2)(Digraphs.from_edges([[0, 1], [1, 2]]))
    >>> walks.landing.tolist()
    [[0, 1], [0, 2], [2, 1]]
    """

    steps: Annotated[int, STEPS] = 3
    restart: Annotated[float, FRACTION] | None = 0.05
    reverse: bool = True
    top: Annotated[int, SIZE] = 64
    tolerance: Annotated[float, DROPOUT] = 1e-3

    def __post_init__(self) -> None:
        check_fields(self)
        if self.tolerance == 0 and self.restart is not None:
            raise ValueError("tolerance must be above 0 unless restart is None, got 0: try tolerance=1e-3")

    @property
    def width(self) -> int:
        """Number of features per node pair."""
        return (self.steps + (self.restart is not None)) * (1 + self.reverse)

    def __call__(self, graphs: Digraphs) -> TopPairs:
        """Encode every graph."""
        needed = graphs.num_nodes * self.top * (4 * self.width + 8)
        check_memory(needed, torch.device("cpu"), f"{self} of {graphs}", "choose a smaller top or fewer steps")
        host = graphs.to("cpu")
        options = self.steps, self.restart, self.reverse, self.top, self.tolerance
        found = [top_walks(graph.edges, graph.num_nodes, graph.weights, *options) for graph in host]
        joined = {name: torch.cat([getattr(walks, name) for walks in found]) for name in TopPairs.axes}
        joined["lost"] = joined["lost"].float()
        return TopPairs(node_ptr=host.node_ptr, **joined).to(graphs.device)


@dataclass(frozen=True)
class WalkSums:
    """Sums over the start nodes of walks that land at a node, `Σ_u p(u→v)` and `Σ_u p(u→v)²`, for graphs of any size.

    One vector of `2f` numbers per node, from the `f` features of `SparseRandomWalk`: the sums are over the start nodes
    that keep `v` among their `top` likeliest landing nodes.

    Args:
        steps: Number of powers k.
        restart: Restart probability of PageRank, in (0, 1]; None omits it.
        reverse: Whether to include walks against the edges.
        top: Number of landing nodes per start node.
        tolerance: Probabilities below this are dropped between steps and while computing PageRank.

    >>> WalkSums(steps=1, restart=None)(Digraphs.from_edges([[0, 1], [1, 2]]))[0].tolist()
    [[2.0, 0.0, 2.0, 0.0], [1.0, 1.0, 1.0, 1.0], [0.0, 2.0, 0.0, 2.0]]
    """

    steps: Annotated[int, STEPS] = 3
    restart: Annotated[float, FRACTION] | None = 0.05
    reverse: bool = True
    top: Annotated[int, SIZE] = 32
    tolerance: Annotated[float, DROPOUT] = 1e-3

    def __post_init__(self) -> None:
        check_fields(self)
        _ = self.walks  # which checks more

    @property
    def walks(self) -> SparseRandomWalk:
        """The walks whose probabilities are added up."""
        return SparseRandomWalk(self.steps, self.restart, self.reverse, self.top, self.tolerance)

    @property
    def width(self) -> int:
        """Number of features per node."""
        return 2 * self.walks.width

    def __call__(self, graphs: Digraphs) -> NodeEncoding:
        """Encode every graph; a part of the start nodes at a time, so that memory does not grow with `n · top`."""
        check_graphs(graphs)
        host, walks = graphs.to("cpu"), self.walks
        options = walks.steps, walks.restart, walks.reverse, walks.top, walks.tolerance
        found = [landing_sums(graph.edges, graph.num_nodes, graph.weights, *options) for graph in host]
        return NodeEncoding(node_ptr=host.node_ptr, values=torch.cat(found)).to(graphs.device)


def _aligned(adjacency: Float[Tensor, "b n n"]) -> Float[Tensor, "b m m"]:
    """The matrices with isolated nodes added, so that each begins at a multiple of 64 bytes.

    The last bits of matrix products on a CPU depend on alignment, and must not depend on the other graphs of a batch.
    """
    more = -adjacency.shape[-1] % 4
    return torch.nn.functional.pad(adjacency, (0, more, 0, more)) if more and not adjacency.is_cuda else adjacency
