"""Directional random walks as an encoding of pairs of nodes."""

from dataclasses import dataclass

import torch

from magnetite.encodings.chunks import Chunk, for_each_chunk
from magnetite.encodings.results import PairEncoding, TopPairs
from magnetite.encodings.spectral import check_dtype
from magnetite.graphs import Digraphs
from magnetite.linalg.walks import top_walks, walk_features
from magnetite.packed import ragged_rows, starts

PAIRS_UP_TO = 8192
"""Most nodes of a graph all of whose pairs are encoded: half a gigabyte a feature."""

DTYPES = (torch.float16, torch.float32, torch.float64)
"""Types of the features."""


@dataclass(frozen=True)
class RandomWalk:
    """Landing probabilities `[Π(R), R^k, …, R, T, …, T^k, Π(T)]` of walks against and along the edges.

    `walks[i]` is `[n, n, 2(steps + 1)]`: start × landing × feature. Steps are drawn in proportion to the weights; a
    node without the needed edges stays where it is. `Π(T) = p (I − (1−p) T)^{-1}` with `p = restart`; `restart=None`
    leaves `Π` out, `reverse=False` leaves the reverse walks out. `dtype` may also be half
    precision, since pairs take much memory.

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
        """Number of features of a pair."""
        return (self.steps + (self.restart is not None)) * (1 + self.reverse)

    def __call__(self, graphs: Digraphs) -> PairEncoding:
        """Encode every graph."""
        largest = max(graphs.sizes.tolist(), default=0)
        if largest > PAIRS_UP_TO:
            raise ValueError(
                f"a graph of {largest} nodes has too many pairs for RandomWalk (at most {PAIRS_UP_TO} nodes): use "
                f"SparseRandomWalk(steps={self.steps}, restart={self.restart}, top=64)"
            )
        pair_ptr = starts(graphs.sizes**2)
        values = torch.empty((int(pair_ptr[-1]), self.width), dtype=self.dtype, device=graphs.device)

        def work(chunk: Chunk) -> None:
            features = walk_features(chunk.adjacency, self.steps, self.restart, self.reverse)
            values[ragged_rows(pair_ptr, chunk.ids)] = features.flatten(0, 2).to(self.dtype)

        for_each_chunk(graphs, work)
        return PairEncoding(node_ptr=graphs.node_ptr, pair_ptr=pair_ptr, values=values)


@dataclass(frozen=True)
class SparseRandomWalk:
    """`RandomWalk` for graphs with too many pairs: the `top` landing nodes of each start node, and their features.

    The start node comes first where a walk lands there, then the nodes of the largest sums of features. Entries below
    `tolerance` are dropped between steps, and PageRank is pushed until no node holds more than that: `TopPairs.lost`
    says how much probability that leaves out. With `tolerance=0` and `restart=None` the features are exact.

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
        if isinstance(self.top, bool) or not isinstance(self.top, int) or self.top < 1:
            raise ValueError(f"top={self.top!r} is no number of landing nodes: give an integer ≥ 1, such as top=64")
        if not 0 <= self.tolerance < 1 or (self.tolerance == 0 and self.restart is not None):
            raise ValueError(
                f"tolerance={self.tolerance} is not in (0, 1): PageRank by pushing never ends at 0; try tolerance=1e-3"
            )

    def __call__(self, graphs: Digraphs) -> TopPairs:
        """Encode every graph."""
        host = graphs.to("cpu")
        options = self.steps, self.restart, self.reverse, self.top, self.tolerance
        found = [top_walks(graph.edges, graph.num_nodes, graph.weights, *options) for graph in host]
        joined = {name: torch.cat([getattr(walks, name) for walks in found]) for name in TopPairs.axes}
        joined["lost"] = joined["lost"].float()
        return TopPairs(node_ptr=host.node_ptr, **joined).to(graphs.device)


def _check_walk(steps: int, restart: float | None) -> None:
    if isinstance(steps, bool) or not isinstance(steps, int) or steps < 1:
        raise ValueError(f"steps={steps!r} is no number of steps: give an integer ≥ 1, such as steps=3")
    if restart is not None and not 0 < restart <= 1:
        raise ValueError(f"restart={restart} is no probability in (0, 1]: try restart=0.05, or None for no PageRank")
