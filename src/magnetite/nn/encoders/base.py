"""Positions, the output of a position encoder, and the combination of several encoders."""

import functools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from magnetite.batching import Batch
from magnetite.encodings.checks import POSITIVE, SIZE
from magnetite.nn.layers import Norm
from magnetite.nn.module import Module

Biases = list[Float[Tensor, "_ h _ _"]]
"""Biases of attention logits, query × key: one tensor per bucket."""


@dataclass(frozen=True, eq=False)
class SparseBiases:
    """Some node pairs `(u, v)`, with biases of the attention of `u` to `v`.

    Args:
        landing: For each node, the nodes that it attends to, as packed node numbers.
        mask: Which of them exist.
        biases: For each layer, one bias per pair and head.
    """

    landing: Int[Tensor, "nodes top"]
    mask: Bool[Tensor, "nodes top"]
    biases: tuple[Float[Tensor, "nodes top h"], ...]


@dataclass(frozen=True, eq=False)
class Positions:
    """Positional information in up to four forms: node vectors, biases of attention, full or sparse, and pair features.

    Args:
        nodes: Node vectors, which are added to the states.
        biases: Attention biases per layer and bucket; a single entry is used in all layers.
        pairs: Features of node pairs for a `PairHead`, one `[b, n, n, c]` tensor per bucket.
        sparse: The node pairs of `SparseAttention`, and their biases.
    """

    nodes: Float[Tensor, "nodes d"] | None = None
    biases: tuple[Biases, ...] = ()
    pairs: list[Float[Tensor, "_ _ _ c"]] | None = None
    sparse: SparseBiases | None = None

    def bias(self, layer: int) -> Biases | None:
        """The biases of one layer."""
        return self.biases[min(layer, len(self.biases) - 1)] if self.biases else None


class PositionEncoder(Module):
    """Base class of position encoders, which turn an encoding of the batch into `Positions`.

    `of` is the name of the encoding in the batch; `encoding` computes it when a model is called with graphs.
    """

    reads: ClassVar[tuple[type, ...]] = ()
    """Encodings that this encoder can read; empty if it needs none."""

    of: str
    encoding: Any

    @classmethod
    def build(cls, encoding: Any, width: int, heads: int, layers: int, **options: Any) -> "PositionEncoder":  # noqa: ARG003
        """The encoder of `encoding` for a model with this width and these numbers of attention heads and layers.

        Args:
            encoding: The encoding to read; None for encoders that need none.
            width: Size of a node's vector.
            heads: Number of attention heads.
            layers: Number of attention layers.
            **options: Further arguments of the constructor.
        """
        return cls(width=width, encoding=encoding, **options)

    @property
    def pair_channels(self) -> int:
        """Number of features per node pair for a `PairHead`."""
        return 0

    @property
    def has_biases(self) -> bool:
        """Whether it gives attention biases, which only models with attention can use."""
        return False

    @property
    def lists_pairs(self) -> bool:
        """Whether it lists the node pairs of `SparseAttention`, with biases of these pairs only."""
        return False

    def forward(self, batch: Batch) -> Positions:
        """The positions of the nodes of a batch."""
        raise NotImplementedError

    def encodings(self) -> dict[str, Any]:
        """The encodings to compute from graphs, by their name in the batch."""
        return {self.of: self.encoding}


class Combined(PositionEncoder):
    """Several encoders at once: node vectors and biases are added, pair features are concatenated.

    Args:
        parts: The encoders.

    >>> from magnetite.nn import DepthEncoder, SinusoidalEncoder
    >>> Combined([DepthEncoder(width=8), SinusoidalEncoder(width=8)]).encodings()
    {'depth': Depth(cap=20)}
    """

    def __init__(self, parts: Sequence[PositionEncoder]):
        super().__init__()
        if not parts:
            raise ValueError("the list of position encoders is empty: give at least one, or None for no positions")
        self.parts = torch.nn.ModuleList(parts)
        names = [name for part in parts for name in part.encodings()]
        repeated = sorted({name for name in names if names.count(name) > 1 and not self._agree(name)})
        if repeated:
            raise ValueError(f"several encoders read different encodings as {repeated[0]!r}: give each its own of=…")

    @property
    def pair_channels(self) -> int:
        """Number of features per node pair of all parts together."""
        return sum(part.pair_channels for part in self.parts)  # type: ignore[misc]

    @property
    def has_biases(self) -> bool:
        """Whether one of the parts gives attention biases."""
        return any(part.has_biases for part in self.parts)  # type: ignore[misc]

    @property
    def lists_pairs(self) -> bool:
        """Whether one of the parts lists node pairs."""
        return any(part.lists_pairs for part in self.parts)  # type: ignore[misc]

    def encodings(self) -> dict[str, Any]:
        """The encodings that all parts need, by their name in the batch."""
        return {name: encoding for part in self.parts for name, encoding in part.encodings().items()}  # type: ignore[operator]

    def forward(self, batch: Batch) -> Positions:
        """The positions of all parts together."""
        found: list[Positions] = [part(batch) for part in self.parts]
        nodes = [each.nodes for each in found if each.nodes is not None]
        pairs = [each.pairs for each in found if each.pairs is not None]
        sparse = [each.sparse for each in found if each.sparse is not None]
        if len(sparse) > 1:
            raise ValueError("two position encoders list node pairs for SparseAttention: give one of them")
        layers = range(max(len(each.biases) for each in found))
        return Positions(
            nodes=sum(nodes[1:], nodes[0]) if nodes else None,
            biases=tuple(_added([each.bias(layer) for each in found]) for layer in layers),
            pairs=[torch.cat(bucket, dim=-1) for bucket in zip(*pairs, strict=True)] if pairs else None,
            sparse=sparse[0] if sparse else None,
        )

    def _agree(self, name: str) -> bool:
        read = [part.encodings()[name] for part in self.parts if name in part.encodings()]  # type: ignore[operator]
        return all(encoding == read[0] for encoding in read)


class Normalised(PositionEncoder):
    """The node vectors of another encoder with a LayerNorm, whose factors are `scale` at the beginning.

    Encoders start with vectors of any length: on graphs of code, `MagLapNet` with entries of 0.3 and `SPE` with entries
    of 12. Where these are many times longer than the embeddings to which they are added, a model sees little of the
    embeddings until it has learned to shorten them.

    Args:
        encoder: The other encoder.
        width: Size of a node's vector.
        scale: Standard deviation of the entries of a vector at the beginning.

    >>> import magnetite as mt
    >>> graphs = mt.Digraphs.from_edges([[0, 1], [1, 2]])
    >>> position = mt.nn.Normalised(mt.nn.MagLapNet(k=4, width=32), width=32, scale=0.1)
    >>> nodes = position(mt.batch(graphs, mt.MagneticLaplacian(k=4)(graphs))).nodes
    >>> round(nodes.std(1, correction=0).max().item(), 2)
    0.1
    """

    def __init__(self, encoder: PositionEncoder, width: Annotated[int, SIZE], scale: Annotated[float, POSITIVE] = 1.0):
        super().__init__()
        self.encoder = encoder
        self.norm = Norm(width)
        torch.nn.init.constant_(self.norm.weight, scale)

    @property
    def pair_channels(self) -> int:
        """Those of the encoder."""
        return self.encoder.pair_channels

    @property
    def has_biases(self) -> bool:
        """Whether the encoder gives attention biases."""
        return self.encoder.has_biases

    @property
    def lists_pairs(self) -> bool:
        """Whether the encoder lists node pairs."""
        return self.encoder.lists_pairs

    def encodings(self) -> dict[str, Any]:
        """The encodings that the encoder needs, by their name in the batch."""
        return self.encoder.encodings()

    def forward(self, batch: Batch) -> Positions:
        """The positions, with normalised node vectors if there are any."""
        found: Positions = self.encoder(batch)
        return found if found.nodes is None else replace(found, nodes=self.norm(found.nodes))


def _added(found: list[Biases | None]) -> Biases:
    given = [biases for biases in found if biases is not None]
    return [functools.reduce(torch.add, bucket) for bucket in zip(*given, strict=True)]
