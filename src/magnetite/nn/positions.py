"""Positions: what an encoder of positions gives to a model, and how several are combined."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from magnetite.batching import Batch
from magnetite.nn.module import Module


@dataclass(frozen=True, eq=False)
class Positions:
    """Up to three forms of the same knowledge: added to the nodes, to the attention, or given to a head of pairs.

    `biases[layer]` is added to the logits of attention, query × key; one entry serves all layers.
    """

    nodes: Float[Tensor, "b n d"] | None = None
    biases: tuple[Float[Tensor, "b h n n"], ...] = ()
    pairs: Float[Tensor, "b n n c"] | None = None

    def bias(self, layer: int) -> Float[Tensor, "b h n n"] | None:
        """The bias of one layer, None where there is none."""
        return self.biases[min(layer, len(self.biases) - 1)] if self.biases else None


class PositionEncoder(Module):
    """Base of the encoders: turns an encoding that the batch holds under the name `of` into `Positions`.

    `encoding` computes it from graphs, for a model that is given graphs instead of a batch.
    """

    of: str
    encoding: Any

    def forward(self, batch: Batch) -> Positions:
        """The positions of a batch's nodes."""
        raise NotImplementedError

    def several(self, batches: Sequence[Batch]) -> list[Positions]:
        """The positions of the nodes of batches of several shapes: what models call; by default, `forward` of each."""
        return [self(batch) for batch in batches]

    def encodings(self) -> dict[str, Any]:
        """What has to be computed from graphs, by the name under which the batch holds it."""
        return {self.of: self.encoding}


class Combined(PositionEncoder):
    """Several encoders at once: their nodes and biases are summed, their pairs stand side by side.

    >>> from magnetite.nn import DepthEncoder, SinusoidalEncoder
    >>> Combined([DepthEncoder(width=8), SinusoidalEncoder(width=8)]).encodings()
    {'depth': Depth(cap=20)}
    """

    def __init__(self, parts: Sequence[PositionEncoder]):
        super().__init__()
        self.parts = torch.nn.ModuleList(parts)
        names = [name for part in parts for name in part.encodings()]
        repeated = sorted({name for name in names if names.count(name) > 1 and not self._agree(name)})
        if repeated:
            raise ValueError(f"several encoders want different encodings as {repeated[0]!r}: give each its own of=…")

    def encodings(self) -> dict[str, Any]:
        """Those of all parts."""
        return {name: encoding for part in self.parts for name, encoding in part.encodings().items()}  # type: ignore[operator]

    def forward(self, batch: Batch) -> Positions:
        """The positions of a batch's nodes."""
        return self.several([batch])[0]

    def several(self, batches: Sequence[Batch]) -> list[Positions]:
        """Those of all parts together, for each batch."""
        each = [part.several(batches) for part in self.parts]  # type: ignore[operator]
        return [_combined(list(found)) for found in zip(*each, strict=True)]

    def _agree(self, name: str) -> bool:
        wanted = [part.encodings()[name] for part in self.parts if name in part.encodings()]  # type: ignore[operator]
        return all(encoding == wanted[0] for encoding in wanted)


def _combined(found: list[Positions]) -> Positions:
    nodes = [one.nodes for one in found if one.nodes is not None]
    pairs = [one.pairs for one in found if one.pairs is not None]
    layers = range(max(len(one.biases) for one in found))
    return Positions(
        nodes=sum(nodes[1:], nodes[0]) if nodes else None,
        biases=tuple(_total_bias(found, layer) for layer in layers),
        pairs=torch.cat(pairs, dim=-1) if pairs else None,
    )


def _total_bias(found: list[Positions], layer: int) -> Float[Tensor, "b h n n"]:
    biases = [one.bias(layer) for one in found]
    given = [bias for bias in biases if bias is not None]
    return sum(given[1:], given[0])
