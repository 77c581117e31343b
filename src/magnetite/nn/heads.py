"""Heads: what is asked about a graph, its nodes, or its name."""

from collections.abc import Callable, Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from magnetite.batching import Batch
from magnetite.nn.layers import masked_sum
from magnetite.nn.module import Module
from magnetite.nn.positions import Positions
from magnetite.nn.rows import joined

States = Float[Tensor, "b n d"]


def cls(states: States, batch: Batch) -> Float[Tensor, "b d"]:  # noqa: ARG001
    """The state of the token in the last slot."""
    return states[:, -1].float()


def total(states: States, batch: Batch) -> Float[Tensor, "b d"]:
    """`Σ_v h_v`."""
    return masked_sum(states, batch.mask)


def mean(states: States, batch: Batch) -> Float[Tensor, "b d"]:
    """`Σ_v h_v / n`."""
    return total(states, batch) / batch.sizes[:, None].clamp(min=1)


def largest(states: States, batch: Batch) -> Float[Tensor, "b d"]:
    """`max_v h_v`, zero of an empty graph: what one node says is not drowned by many."""
    filled = states.float().masked_fill(~batch.mask[..., None], -torch.inf).amax(1)
    return torch.where(batch.graph_mask[:, None], filled, 0.0)


READOUTS: dict[str, Callable[[States, Batch], Float[Tensor, "b d"]]] = {
    "cls": cls,
    "mean": mean,
    "sum": total,
    "max": largest,
}


class Head(Module):
    """Base: `setup` makes the parameters once the model's width is known."""

    needs_cls = False

    def setup(self, width: int) -> None:
        """Make the parameters."""
        raise NotImplementedError

    def forward(self, states: States, batch: Batch, positions: Positions) -> Tensor:
        """The answer, in single precision."""
        raise NotImplementedError

    def several(
        self, states: Sequence[Tensor], batches: Sequence[Batch], positions: Sequence[Positions]
    ) -> list[Tensor]:
        """The answers for batches of several shapes: what models call; by default, `forward` of each."""
        return [self(*each) for each in zip(states, batches, positions, strict=True)]


class GraphHead(Head):
    """`W r + b` of the readout `r` of a whole graph: `[b, outputs]`."""

    def __init__(self, outputs: int, readout: str = "cls"):
        super().__init__()
        self.outputs, self.needs_cls = outputs, _check_readout(readout) == "cls"
        self.readout = READOUTS[readout]

    def setup(self, width: int) -> None:
        """Make the matrix."""
        self.linear = torch.nn.Linear(width, self.outputs)

    def forward(self, states: States, batch: Batch, positions: Positions) -> Float[Tensor, "b outputs"]:
        """One row a graph."""
        return self.several([states], [batch], [positions])[0]

    def several(
        self,
        states: Sequence[Tensor],
        batches: Sequence[Batch],
        positions: Sequence[Positions],  # noqa: ARG002
    ) -> list[Tensor]:
        """The graphs of all batches together."""
        read = [self.readout(*each) for each in zip(states, batches, strict=True)]
        return list(self.linear(joined(read)).float().split([len(batch) for batch in batches]))


class SequenceHead(Head):
    """A word for each of some positions: `[b, length, vocabulary]`, one matrix a position.

    At evaluation the logits of the words in `lowered` are reduced, which words that stand for anything need.
    """

    def __init__(self, vocabulary: int, length: int = 5, readout: str = "cls", lowered: dict[int, float] | None = None):
        super().__init__()
        self.vocabulary, self.length, self.needs_cls = vocabulary, length, _check_readout(readout) == "cls"
        self.readout = READOUTS[readout]
        offsets = torch.zeros(vocabulary)
        for word, offset in (lowered or {}).items():
            offsets[int(word)] = -offset
        self.register_buffer("offsets", offsets, persistent=False)

    offsets: Tensor

    def setup(self, width: int) -> None:
        """Make the matrices."""
        self.linear = torch.nn.Linear(width, self.length * self.vocabulary)

    def forward(self, states: States, batch: Batch, positions: Positions) -> Float[Tensor, "b length words"]:  # noqa: ARG002
        """One row of logits a position."""
        logits = self.linear(self.readout(states, batch)).float().unflatten(-1, (self.length, self.vocabulary))
        return logits if self.training else logits + self.offsets


class NodeHead(Head):
    """`W h_v + b`: `[b, n, outputs]`; what stands in empty slots means nothing."""

    def __init__(self, outputs: int):
        super().__init__()
        self.outputs = outputs

    def setup(self, width: int) -> None:
        """Make the matrix."""
        self.linear = torch.nn.Linear(width, self.outputs)

    def forward(self, states: States, batch: Batch, positions: Positions) -> Float[Tensor, "b n outputs"]:  # noqa: ARG002
        """One row a slot."""
        return self.linear(states).float()


def _check_readout(name: str) -> str:
    if name not in READOUTS:
        raise ValueError(f"readout={name!r} is not known: choose one of {', '.join(READOUTS)}")
    return name
