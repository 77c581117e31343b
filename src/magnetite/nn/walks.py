"""Encoders of directional random walks: one vector a node, or a bias of the attention between two nodes."""

import torch
from jaxtyping import Float
from torch import Tensor

from magnetite.batching import Batch
from magnetite.encodings import RandomWalk
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
