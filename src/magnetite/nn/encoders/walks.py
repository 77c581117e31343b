"""Encoders of directional random walks: node vectors, attention biases, or features for a `PairHead`."""

from typing import Annotated, Any, ClassVar

import torch

from magnetite.batching import Batch
from magnetite.encodings import RandomWalk
from magnetite.encodings.checks import DEPTH, LATER, SIZE, Domain
from magnetite.linalg.walks import step_means, walk_features
from magnetite.nn.encoders.base import PositionEncoder, Positions
from magnetite.nn.encoders.pairs import PairBias, Pairs, PairSum
from magnetite.nn.layers import full_precision


class WalkEncoder(PositionEncoder):
    """`ζ(v) = f₁(Σ_u f₂(p(u, v)))` of the features `p` of walks that start at `u` and land at `v`.

    Args:
        width: Size of a node's vector.
        encoding: The encoding that computes the walks; `RandomWalk()` by default.
        hidden: Output channels of `f₂`.
        of: Name of the walks in the batch.
        activation: gelu or relu.
        node_layers: Number of linear layers of `f₁`, 1 or 2.

    >>> import magnetite as mt
    >>> graphs = mt.Digraphs.from_edges([[0, 1], [1, 2]])
    >>> WalkEncoder(width=32)(mt.batch(graphs, mt.RandomWalk()(graphs))).nodes.shape
    torch.Size([3, 32])
    """

    reads: ClassVar[tuple[type, ...]] = (RandomWalk,)

    def __init__(
        self,
        width: Annotated[int, SIZE],
        encoding: RandomWalk | None = None,
        hidden: Annotated[int, SIZE] = 64,
        of: str = "pairs",
        activation: str = "gelu",
        node_layers: Annotated[int, Domain(1, 2), LATER] = 2,
    ):
        super().__init__()
        self.of, self.encoding = of, encoding if encoding is not None else RandomWalk()
        self.sum = PairSum(self.encoding.width, hidden, width, activation, node_layers)

    def forward(self, batch: Batch) -> Positions:
        """One vector per node, from the walks that land there."""
        return Positions(nodes=self.sum(walk_pairs(batch, self.of, self.encoding), batch))


class RelativeWalkEncoder(PositionEncoder):
    """`B[u, v] = w · p(u, v)` is added to the logits of attention, with one `w` per layer and head.

    Nodes without features also need an encoder with node vectors, since attention over equal nodes changes none of
    them.

    Args:
        heads: Number of attention heads.
        layers: Number of attention layers.
        encoding: The encoding that computes the walks; `RandomWalk()` by default.
        of: Name of the walks in the batch.

    >>> import magnetite as mt
    >>> graphs = mt.Digraphs.from_edges([[0, 1], [1, 2]])
    >>> positions = RelativeWalkEncoder(heads=4, layers=2)(mt.batch(graphs, mt.RandomWalk()(graphs)))
    >>> len(positions.biases), positions.biases[0][0].shape
    (2, torch.Size([1, 4, 8, 8]))
    """

    reads: ClassVar[tuple[type, ...]] = (RandomWalk,)

    def __init__(
        self,
        heads: Annotated[int, SIZE],
        layers: Annotated[int, DEPTH],
        encoding: RandomWalk | None = None,
        of: str = "pairs",
    ):
        super().__init__()
        self.of, self.encoding = of, encoding if encoding is not None else RandomWalk()
        self.bias = PairBias(self.encoding.width, heads, layers)

    @classmethod
    def build(cls, encoding: RandomWalk, width: int, heads: int, layers: int, **options: Any) -> "RelativeWalkEncoder":  # noqa: ARG003
        """Biases for all heads and layers."""
        return cls(heads, layers, encoding, **options)

    @property
    def has_biases(self) -> bool:
        """Biases are all that it gives."""
        return True

    def forward(self, batch: Batch) -> Positions:
        """The biases of all layers, query × key."""
        return Positions(biases=self.bias(walk_pairs(batch, self.of, self.encoding)))


class PairWalkEncoder(PositionEncoder):
    """`[R^k, …, R, T, …, T^k]` of each node pair as features for a `PairHead`, computed from the edges of the batch.

    `T` walks along the edges, `R` against them, as in `RandomWalk`. The first `k` with `T^k[u, v] > 0` is the distance
    from `u` to another node `v`. Probabilities of long walks get close to `10^-38`, the limit of single precision, so
    with `root` the features are `p_k^{1/k}`, the geometric mean over the steps. They are computed in every batch,
    because `2 · steps` features of all node pairs of a data set would not fit on a GPU.

    Args:
        steps: Length of the longest walk, `k`.
        root: Whether to take `p_k^{1/k}` instead of `p_k`.

    >>> import magnetite as mt
    >>> graphs = mt.Digraphs.from_edges([[0, 0, 1, 2], [1, 2, 3, 3]])
    >>> PairWalkEncoder(steps=2)(mt.batch(graphs)).pairs[0][0, 0, :4].round(decimals=3).tolist()
    [[1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 0.5, 0.0], [0.0, 0.0, 0.5, 0.0], [0.0, 0.0, 0.0, 1.0]]
    """

    def __init__(self, steps: int = 16, root: bool = True):
        super().__init__()
        self.encoding, self.root = RandomWalk(steps, restart=None), root  # which checks the steps

    @classmethod
    def build(cls, encoding: None, width: int, heads: int, layers: int, **options: Any) -> "PairWalkEncoder":  # noqa: ARG003
        """The same for all models."""
        return cls(**options)

    @property
    def pair_channels(self) -> int:
        """Features per pair."""
        return self.encoding.width

    def encodings(self) -> dict[str, Any]:
        """None: the edges of the batch are enough."""
        return {}

    def forward(self, batch: Batch) -> Positions:
        """The walks between all nodes of each graph."""
        with full_precision(batch.device):
            pairs = [walk_features(part, self.encoding.steps, restart=None) for part in batch.adjacency()]
        return Positions(pairs=[step_means(part, self.encoding.steps) for part in pairs] if self.root else pairs)


def walk_pairs(batch: Batch, name: str, encoding: RandomWalk) -> Pairs:
    """The walks of the batch with this name; an error unless their number of features is that of the encoding."""
    pairs = batch.encoding(name)
    if not isinstance(pairs, list) or pairs[0].ndim != 4 or pairs[0].shape[-1] != encoding.width:
        found = f"{pairs[0].shape[-1]} features per pair" if isinstance(pairs, list) else type(pairs).__name__
        raise ValueError(
            f"encoding {name!r} of the batch has {found}, expected {encoding.width} features per pair: encode with "
            f"{encoding}"
        )
    return [part if part.dtype == torch.float16 else part.float() for part in pairs]
