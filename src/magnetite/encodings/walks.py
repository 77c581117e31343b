"""Directional random walks as an encoding of pairs of nodes."""

from dataclasses import dataclass

import torch

from magnetite.encodings.chunks import Chunk, for_each_chunk
from magnetite.encodings.results import PairEncoding
from magnetite.encodings.spectral import check_dtype
from magnetite.graphs import Digraphs
from magnetite.linalg.walks import walk_features
from magnetite.packed import ragged_rows, starts


@dataclass(frozen=True)
class RandomWalk:
    """Landing probabilities `[Π(R), R^k, …, R, T, …, T^k, Π(T)]` of walks against and along the edges.

    `walks[i]` is `[n, n, 2(steps + 1)]`: start × landing × feature. Steps are drawn in proportion to the weights; a
    node without the needed edges stays where it is. `Π(T) = p (I − (1−p) T)^{-1}` with `p = restart`; `restart=None`
    leaves `Π` out, `reverse=False` leaves the reverse walks out.

    >>> walks = RandomWalk(steps=1, restart=None)(Digraphs.from_edges([[0, 1], [1, 2]]))
    >>> walks[0][0].tolist()
    [[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]]
    """

    steps: int = 3
    restart: float | None = 0.05
    reverse: bool = True
    dtype: torch.dtype = torch.float32

    def __post_init__(self) -> None:
        if isinstance(self.steps, bool) or not isinstance(self.steps, int) or self.steps < 1:
            raise ValueError(f"steps={self.steps!r} is no number of steps: give an integer ≥ 1, such as steps=3")
        if self.restart is not None and not 0 < self.restart <= 1:
            raise ValueError(
                f"restart={self.restart} is no probability in (0, 1]: try restart=0.05, or None for no PageRank"
            )
        check_dtype(self.dtype)

    @property
    def width(self) -> int:
        """Number of features of a pair."""
        return (self.steps + (self.restart is not None)) * (1 + self.reverse)

    def __call__(self, graphs: Digraphs) -> PairEncoding:
        """Encode every graph."""
        pair_ptr = starts(graphs.sizes**2)
        values = torch.empty((int(pair_ptr[-1]), self.width), dtype=self.dtype, device=graphs.device)

        def work(chunk: Chunk) -> None:
            features = walk_features(chunk.adjacency, self.steps, self.restart, self.reverse)
            values[ragged_rows(pair_ptr, chunk.ids)] = features.flatten(0, 2).to(self.dtype)

        for_each_chunk(graphs, work)
        return PairEncoding(node_ptr=graphs.node_ptr, pair_ptr=pair_ptr, values=values)
