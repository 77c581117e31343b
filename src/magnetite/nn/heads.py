"""Heads: what is asked about a graph, its nodes, its pairs of nodes, or its name."""

from collections.abc import Callable, Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from magnetite.batching import Batch, PaddedPairs
from magnetite.nn.layers import Norm, activation_named, masked_sum
from magnetite.nn.module import Module
from magnetite.nn.positions import Positions
from magnetite.nn.rows import as_rows, first_rows, joined, per_slot, slots

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


class PairHead(Head):
    """`[h_u, h_v, r, n]` → 2 × (linear, LayerNorm, activation) → linear, for the pairs that the batch asks about.

    The answer is `[p, outputs]`, one row a slot of `batch.asked`; without that `[b, n, n, outputs]`, source × target.
    The first layer is linear in its three parts, so `W [h_u, h_v, r] = W₁h_u + W₂h_v + W₃r` costs `n` products instead
    of `n²`. `r` is the sum of the nodes beside their number. `positive` ends in softplus, for distances.

    `pair_channels` features of the positions' pairs, if any, have a first layer of their own, whose result is added:
    beside `r` and `n`, which grow with the graph, the first LayerNorm would leave little of them. Without `pair_layer`
    they join before it.
    """

    def __init__(
        self,
        outputs: int = 1,
        hidden: int | None = None,
        pair_channels: int = 0,
        positive: bool = False,
        activation: str = "gelu",
        pair_layer: bool = True,
    ):
        super().__init__()
        self.outputs, self.hidden, self.positive = outputs, hidden, positive
        self.pair_channels, self.pair_layer = pair_channels, pair_layer
        self.activation = activation_named(activation)

    def setup(self, width: int) -> None:
        """Make the layers."""
        hidden = self.hidden or width
        self.ends = torch.nn.Linear(width, 2 * hidden)
        self.whole = torch.nn.Linear(width + 1, hidden, bias=False)
        if self.pair_channels:
            self.between = torch.nn.Linear(self.pair_channels, hidden, bias=self.pair_layer)
            self.between_norm = Norm(hidden) if self.pair_layer else None
        self.first_norm, self.second_norm = Norm(hidden), Norm(hidden)
        self.second = torch.nn.Linear(hidden, hidden)
        self.last = torch.nn.Linear(hidden, self.outputs)

    def forward(self, states: States, batch: Batch, positions: Positions) -> Float[Tensor, "*pairs outputs"]:
        """One row an asked pair, or one a pair of slots."""
        if batch.asked is not None:
            return self.several([states], [batch], [positions])[0]
        self._check_pairs(positions)
        source, target = (slots(rows, [batch])[0] for rows in self._ends([states], [batch]))
        return self._answer(source[:, :, None] + target[:, None], positions.pairs)

    def several(
        self, states: Sequence[Tensor], batches: Sequence[Batch], positions: Sequence[Positions]
    ) -> list[Tensor]:
        """The asked pairs of all batches together."""
        asked = [batch.asked for batch in batches if batch.asked is not None]
        if len(asked) < len(batches):
            return super().several(states, batches, positions)
        for part in positions:
            self._check_pairs(part)
        source, target = self._ends(states, batches)
        each = zip(asked, first_rows(batches), strict=True)
        moved = [(pairs.source + first, pairs.target + first) for pairs, first in each]
        pairs = _chosen(source, [ends[0] for ends in moved]) + _chosen(target, [ends[1] for ends in moved])
        between = [
            _pair_rows(part.pairs, one) for part, one in zip(positions, asked, strict=True) if part.pairs is not None
        ]
        answers = self._answer(pairs, joined(between) if between else None)
        return list(answers.split([one.mask.numel() for one in asked]))

    def _ends(self, states: Sequence[Tensor], batches: Sequence[Batch]) -> list[Float[Tensor, "rows hidden"]]:
        """`W₁h_u` and `W₂h_v + W₃r` of every slot, as rows."""
        source, target = self.ends(as_rows(states)).chunk(2, dim=-1)
        each = zip(states, batches, strict=True)
        read = [torch.cat([total(part, batch), batch.sizes[:, None].float()], dim=-1) for part, batch in each]
        whole = self.whole(joined(read)).split([len(batch) for batch in batches])
        return [source, target + per_slot(whole, batches)]

    def _answer(
        self, pairs: Float[Tensor, "*pairs hidden"], between: Float[Tensor, "*pairs c"] | None
    ) -> Float[Tensor, "*pairs outputs"]:
        pairs = self._first_layer(pairs, None if between is None else self.between(between))
        pairs = self.activation(self.second_norm(self.second(pairs)))
        answer = self._last(pairs)
        return torch.nn.functional.softplus(answer) if self.positive else answer

    def _first_layer(
        self, ends: Float[Tensor, "*pairs hidden"], between: Float[Tensor, "*pairs hidden"] | None
    ) -> Float[Tensor, "*pairs hidden"]:
        if between is None:
            return self.activation(self.first_norm(ends))
        if self.between_norm is None:
            return self.activation(self.first_norm(ends + between))
        return self.activation(self.first_norm(ends)) + self.activation(self.between_norm(between))

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


def _chosen(rows: Float[Tensor, "rows d"], numbers: Sequence[Int[Tensor, " _"]]) -> Float[Tensor, "p d"]:
    """Some of the rows, in single precision: the backward pass adds up one gradient for every pair."""
    return rows.float().index_select(0, joined(numbers))


def _pair_rows(pairs: Float[Tensor, "b n n c"], asked: PaddedPairs) -> Float[Tensor, "p c"]:
    slots = pairs.shape[1]
    return pairs.flatten(0, 2).index_select(0, asked.source * slots + asked.target % slots)


def _check_readout(name: str) -> str:
    if name not in READOUTS:
        raise ValueError(f"readout={name!r} is not known: choose one of {', '.join(READOUTS)}")
    return name
