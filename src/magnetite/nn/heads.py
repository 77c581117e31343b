"""Heads: what is asked about a graph, its nodes, its pairs of nodes, or its name."""

from collections.abc import Callable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from magnetite.batching import Batch, PaddedPairs
from magnetite.nn.layers import activation_named, masked_sum
from magnetite.nn.module import Module
from magnetite.nn.positions import Positions

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


class GraphHead(Head):
    """`W r + b` of the readout `r` of a whole graph: `[b, outputs]`."""

    def __init__(self, outputs: int, readout: str = "cls"):
        super().__init__()
        self.outputs, self.needs_cls = outputs, _check_readout(readout) == "cls"
        self.readout = READOUTS[readout]

    def setup(self, width: int) -> None:
        """Make the matrix."""
        self.linear = torch.nn.Linear(width, self.outputs)

    def forward(self, states: States, batch: Batch, positions: Positions) -> Float[Tensor, "b outputs"]:  # noqa: ARG002
        """One row a graph."""
        return self.linear(self.readout(states, batch)).float()


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


class PairHead(Head):
    """`[h_u, h_v, r, n]` → 2 × (linear, LayerNorm, activation) → linear, for the pairs that the batch asks about.

    The answer is `[p, outputs]`, one row a slot of `batch.asked`; without that `[b, n, n, outputs]`, source × target.
    The first layer is linear in its three parts, so `W [h_u, h_v, r] = W₁h_u + W₂h_v + W₃r` costs `n` products instead
    of `n²`. `r` is the sum of the nodes beside their number. `pair_channels` features of the positions' pairs, if any,
    join in the first layer. `positive` ends in softplus, for distances.
    """

    def __init__(
        self,
        outputs: int = 1,
        hidden: int | None = None,
        pair_channels: int = 0,
        positive: bool = False,
        activation: str = "gelu",
    ):
        super().__init__()
        self.outputs, self.hidden, self.pair_channels, self.positive = outputs, hidden, pair_channels, positive
        self.activation = activation_named(activation)

    def setup(self, width: int) -> None:
        """Make the layers."""
        hidden = self.hidden or width
        self.ends = torch.nn.Linear(width, 2 * hidden)
        self.whole = torch.nn.Linear(width + 1, hidden, bias=False)
        self.between = torch.nn.Linear(self.pair_channels, hidden, bias=False) if self.pair_channels else None
        self.first_norm, self.second_norm = torch.nn.LayerNorm(hidden), torch.nn.LayerNorm(hidden)
        self.second = torch.nn.Linear(hidden, hidden)
        self.last = torch.nn.Linear(hidden, self.outputs)

    def forward(self, states: States, batch: Batch, positions: Positions) -> Float[Tensor, "*pairs outputs"]:
        """One row an asked pair, or one a pair of slots."""
        self._check_pairs(positions)
        source, target = self.ends(states).chunk(2, dim=-1)
        count = batch.sizes[:, None].float()
        whole = self.whole(torch.cat([total(states, batch), count], dim=-1))
        target, between = target + whole[:, None], positions.pairs
        if batch.asked is None:
            pairs = source[:, :, None] + target[:, None]
        else:
            pairs = _rows(source, batch.asked.source) + _rows(target, batch.asked.target)
            between = None if between is None else _pair_rows(between, batch.asked)
        if self.between is not None and between is not None:
            pairs = pairs + self.between(between)
        pairs = self.activation(self.first_norm(pairs))
        pairs = self.activation(self.second_norm(self.second(pairs)))
        answer = self._last(pairs)
        return torch.nn.functional.softplus(answer) if self.positive else answer

    def _last(self, pairs: Float[Tensor, "*pairs hidden"]) -> Float[Tensor, "*pairs outputs"]:
        """One output is a sum, which a compiler joins to the layers before it; as a product of matrices it is slow."""
        if self.outputs > 1:
            return self.last(pairs).float()
        return (pairs.float() * self.last.weight).sum(-1, keepdim=True) + self.last.bias

    def _check_pairs(self, positions: Positions) -> None:
        given = 0 if positions.pairs is None else positions.pairs.shape[-1]
        if given != self.pair_channels:
            raise ValueError(
                f"positions give {given} channels a pair, this PairHead takes {self.pair_channels}: make it with "
                f"pair_channels={given}"
            )


def _rows(states: States, rows: Int[Tensor, " p"]) -> Float[Tensor, "p d"]:
    """Rows of the flattened slots, in single precision: the backward pass adds up one gradient for every pair."""
    return states.float().flatten(0, 1).index_select(0, rows)


def _pair_rows(pairs: Float[Tensor, "b n n c"], asked: PaddedPairs) -> Float[Tensor, "p c"]:
    slots = pairs.shape[1]
    return pairs.flatten(0, 2).index_select(0, asked.source * slots + asked.target % slots)


def _check_readout(name: str) -> str:
    if name not in READOUTS:
        raise ValueError(f"readout={name!r} is not known: choose one of {', '.join(READOUTS)}")
    return name
