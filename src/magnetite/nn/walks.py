"""Encoders of directional random walks: one vector a node, a bias of the attention, or features for a head of pairs."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from magnetite.batching import Batch
from magnetite.encodings import RandomWalk
from magnetite.linalg.walks import step_means, walk_features
from magnetite.nn.layers import full_precision
from magnetite.nn.pair_layers import PairBias, PairSum
from magnetite.nn.positions import PositionEncoder, Positions


class WalkEncoder(PositionEncoder):
    """`ζ(v) = f₁(Σ_u f₂(p(u, v)))` of the features `p` of walks that start at `u` and land at `v`.

    >>> import magnetite as mt
    >>> graphs = mt.Digraphs.from_edges([[0, 1], [1, 2]])
    >>> WalkEncoder(width=32)(mt.pad(graphs, mt.RandomWalk()(graphs))).nodes.shape
    torch.Size([1, 8, 32])
    """

    def __init__(
        self,
        width: int,
        encoding: RandomWalk | None = None,
        hidden: int = 64,
        of: str = "pairs",
        activation: str = "gelu",
    ):
        super().__init__()
        self.of, self.encoding = of, encoding if encoding is not None else RandomWalk()
        self.sum = PairSum(self.encoding.width, hidden, width, activation)

    def forward(self, batch: Batch) -> Positions:
        """One vector a node, from the walks that land there."""
        return Positions(nodes=self.sum(walk_pairs(batch, self.of, self.encoding), batch.sizes))


class RelativeWalkEncoder(PositionEncoder):
    """`B[u, v] = w · p(u, v)` is added to the logits of attention, with a `w` for each layer and head.

    >>> import magnetite as mt
    >>> graphs = mt.Digraphs.from_edges([[0, 1], [1, 2]])
    >>> positions = RelativeWalkEncoder(heads=4, layers=2)(mt.pad(graphs, mt.RandomWalk()(graphs)))
    >>> len(positions.biases), positions.biases[0].shape
    (2, torch.Size([1, 4, 8, 8]))
    """

    def __init__(self, heads: int, layers: int, encoding: RandomWalk | None = None, of: str = "pairs"):
        super().__init__()
        self.of, self.encoding = of, encoding if encoding is not None else RandomWalk()
        self.bias = PairBias(self.encoding.width, heads, layers)

    def forward(self, batch: Batch) -> Positions:
        """The biases of all layers, query × key."""
        return Positions(biases=self.bias(walk_pairs(batch, self.of, self.encoding)))


class PairWalkEncoder(PositionEncoder):
    """`[R^k, …, R, T, …, T^k]` of each pair of nodes, as they are, for a `PairHead`: `pair_channels` numbers a pair.

    `T` walks along the edges, `R` against them, as in `RandomWalk`. The first `k` with `T^k[u, v] > 0` is the distance
    from `u` to another `v`, but probabilities of long walks are tiny: `root` takes `p_k^{1/k}` instead, the geometric
    mean of the steps. Both are computed from the edges of the batch, since `2 · steps` features of every pair would
    fill a GPU long before the graphs do. Single precision holds `p_k` down to about `10^-38`.

    >>> import magnetite as mt
    >>> graphs = mt.Digraphs.from_edges([[0, 0, 1, 2], [1, 2, 3, 3]])
    >>> PairWalkEncoder(steps=2)(mt.pad(graphs)).pairs[0, 0, :4].round(decimals=3).tolist()
    [[1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 0.5, 0.0], [0.0, 0.0, 0.5, 0.0], [0.0, 0.0, 0.0, 1.0]]
    """

    def __init__(self, steps: int = 16, root: bool = True):
        super().__init__()
        self.encoding, self.root = RandomWalk(steps, restart=None), root  # which checks the steps

    @property
    def pair_channels(self) -> int:
        """Features of a pair."""
        return self.encoding.width

    def encodings(self) -> dict[str, Any]:
        """None: the edges of a batch are enough."""
        return {}

    def forward(self, batch: Batch) -> Positions:
        """The walks between all nodes."""
        with full_precision(batch.device):
            pairs = walk_features(batch.adjacency(), self.encoding.steps, restart=None)
        return Positions(pairs=step_means(pairs, self.encoding.steps) if self.root else pairs)


def walk_pairs(batch: Batch, name: str, encoding: RandomWalk) -> Float[Tensor, "b n n f"]:
    """The batch's features of pairs under this name, in half or single precision, if the encoding gives such."""
    pairs = batch.encoding(name)
    if not isinstance(pairs, Tensor) or pairs.ndim != 4 or pairs.shape[-1] != encoding.width:
        shape = tuple(pairs.shape) if isinstance(pairs, Tensor) else type(pairs).__name__
        raise ValueError(
            f"{name!r} of the batch is {shape}, this encoder takes {encoding.width} features a pair: "
            f"encode with {encoding}"
        )
    return pairs if pairs.dtype == torch.float16 else pairs.float()
