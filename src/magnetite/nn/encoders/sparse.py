"""An encoder of some node pairs of large graphs, as biases of sparse attention."""

from typing import Annotated, Any, ClassVar

import torch

from magnetite.batching import Batch, BatchedTopPairs
from magnetite.encodings import Relatives, SparseRandomWalk
from magnetite.encodings.checks import DEPTH, SIZE
from magnetite.nn.encoders.base import PositionEncoder, Positions, SparseBiases


class SparseBiasEncoder(PositionEncoder):
    """The pairs of nodes that attend to each other in `SparseAttention`, with biases `w · p(u, v)` of their features.

    There is one `w` per layer and head. Nodes without features also need an encoder with node vectors.

    Args:
        heads: Number of attention heads.
        layers: Number of attention layers.
        encoding: The encoding that finds the pairs: `SparseRandomWalk(…)`, or `Relatives(…)`, the default, for acyclic
            graphs.
        of: Name of the pairs in the batch.

    >>> import magnetite as mt
    >>> graphs = mt.Digraphs.from_edges([[0, 1], [1, 2]])
    >>> position = [mt.nn.MagLapNet(4, 32), SparseBiasEncoder(heads=4, layers=2, encoding=mt.Relatives(reach=2))]
    >>> model = mt.nn.DigraphTransformer(32, 2, mt.nn.NodeHead(3), position, attention=mt.nn.SparseAttention(32))
    >>> model(graphs).shape
    torch.Size([3, 3])
    """

    reads: ClassVar[tuple[type, ...]] = (Relatives, SparseRandomWalk)

    def __init__(
        self,
        heads: Annotated[int, SIZE],
        layers: Annotated[int, DEPTH],
        encoding: Relatives | SparseRandomWalk | None = None,
        of: str = "top_pairs",
    ):
        super().__init__()
        self.of, self.encoding = of, encoding if encoding is not None else Relatives()
        self.heads, self.layers = heads, layers
        self.weight = torch.nn.Parameter(torch.randn(layers, heads, self.encoding.width) * 0.1)

    @classmethod
    def build(
        cls,
        encoding: Relatives | SparseRandomWalk,
        width: int,  # noqa: ARG003
        heads: int,
        layers: int,
        **options: Any,
    ) -> "SparseBiasEncoder":
        """Biases for all heads and layers."""
        return cls(heads, layers, encoding, **options)

    @property
    def has_biases(self) -> bool:
        """Biases are all that it gives."""
        return True

    @property
    def lists_pairs(self) -> bool:
        """It lists pairs."""
        return True

    def forward(self, batch: Batch) -> Positions:
        """The pairs, and the biases of all layers."""
        pairs = batch.encoding(self.of)
        if not isinstance(pairs, BatchedTopPairs) or pairs.values.shape[-1] != self.encoding.width:
            raise ValueError(
                f"encoding {self.of!r} of the batch does not have {self.encoding.width} features of some node pairs: "
                f"encode with {self.encoding}"
            )
        biases = torch.einsum("ntf,lhf->lnth", pairs.values, self.weight)
        return Positions(sparse=SparseBiases(pairs.landing, pairs.mask, tuple(biases)))
