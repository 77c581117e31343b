"""Directed random walks as an encoding of node pairs."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from magnetite.encodings.checks import check_dtype, check_positive
from magnetite.encodings.dense import DenseBatch, for_each_batch
from magnetite.encodings.results import PairEncoding, TopPairs
from magnetite.graphs import Digraphs
from magnetite.linalg.walks import top_walks, walk_features
from magnetite.packed import ragged_rows, starts

PAIRS_UP_TO = 8192
"""Largest number of nodes of a graph whose node pairs are all encoded, in 256 MiB per feature."""

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

    steps: int = 3
    restart: float | None = 0.05
    reverse: bool = True
    dtype: torch.dtype = torch.float32

    def __post_init__(self) -> None:
        _check_walk(self.steps, self.restart)
        check_dtype(self.dtype, DTYPES)

    @property
    def width(self) -> int:
        """Number of features per node pair."""
        return (self.steps + (self.restart is not None)) * (1 + self.reverse)

    def __call__(self, graphs: Digraphs) -> PairEncoding:
        """Encode every graph."""
        largest = max(graphs.sizes.tolist(), default=0)
        if largest > PAIRS_UP_TO:
            raise ValueError(
                f"RandomWalk supports graphs of at most {PAIRS_UP_TO} nodes, got {largest}: "
                f"use SparseRandomWalk(steps={self.steps}, restart={self.restart}, top=64)"
            )
        pair_ptr = starts(graphs.sizes**2)
        values = torch.empty((int(pair_ptr[-1]), self.width), dtype=self.dtype, device=graphs.device)

        def work(batch: DenseBatch) -> None:
            size = batch.adjacency.shape[-1]
            features = walk_features(_aligned(batch.adjacency), self.steps, self.restart, self.reverse)
            values[ragged_rows(pair_ptr, batch.ids)] = features[:, :size, :size].flatten(0, 2).to(self.dtype)

        for_each_batch(graphs, work)
        return PairEncoding(node_ptr=graphs.node_ptr, pair_ptr=pair_ptr, values=values)


@dataclass(frozen=True)
class SparseRandomWalk:
    """`RandomWalk` for large graphs: the `top` likeliest landing nodes of each start node, and their features.

    The start node comes first if a walk can land there, then the nodes with the largest sums of features. With
    `tolerance=0` and `restart=None` the features are exact; otherwise `TopPairs.lost` bounds the error.

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

    steps: int = 3
    restart: float | None = 0.05
    reverse: bool = True
    top: int = 64
    tolerance: float = 1e-3

    def __post_init__(self) -> None:
        _check_walk(self.steps, self.restart)
        check_positive("top", self.top)
        if not 0 <= self.tolerance < 1 or (self.tolerance == 0 and self.restart is not None):
            raise ValueError(
                f"tolerance must be in (0, 1), or 0 if restart is None, got {self.tolerance}: try tolerance=1e-3"
            )

    def __call__(self, graphs: Digraphs) -> TopPairs:
        """Encode every graph."""
        host = graphs.to("cpu")
        options = self.steps, self.restart, self.reverse, self.top, self.tolerance
        found = [top_walks(graph.edges, graph.num_nodes, graph.weights, *options) for graph in host]
        joined = {name: torch.cat([getattr(walks, name) for walks in found]) for name in TopPairs.axes}
        joined["lost"] = joined["lost"].float()
        return TopPairs(node_ptr=host.node_ptr, **joined).to(graphs.device)


def _aligned(adjacency: Float[Tensor, "b n n"]) -> Float[Tensor, "b m m"]:
    """The matrices with isolated nodes added, so that each begins at a multiple of 64 bytes.

    The last bits of matrix products on a CPU depend on alignment, and must not depend on the other graphs of a batch.
    """
    more = -adjacency.shape[-1] % 4
    return torch.nn.functional.pad(adjacency, (0, more, 0, more)) if more and not adjacency.is_cuda else adjacency


def _check_walk(steps: int, restart: float | None) -> None:
    check_positive("steps", steps)
    if restart is not None and not 0 < restart <= 1:
        raise ValueError(f"restart must be in (0, 1], or None for no PageRank, got {restart}: try restart=0.05")
