"""The head for pairs of nodes."""

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from magnetite.batching import Batch, PaddedPairs
from magnetite.kernels.cuda import pair_head as pair_head_cuda
from magnetite.nn.heads import Head, States, total
from magnetite.nn.layers import Norm, activation_named
from magnetite.nn.positions import Positions
from magnetite.nn.rows import as_rows, first_rows, joined, per_slot, slots


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
        return self._answer(self._first(source[:, :, None] + target[:, None], self._between(positions.pairs)))

    def several(
        self, states: Sequence[Tensor], batches: Sequence[Batch], positions: Sequence[Positions]
    ) -> list[Tensor]:
        """The asked pairs of all batches together."""
        asked = [batch.asked for batch in batches if batch.asked is not None]
        if len(asked) < len(batches):
            return super().several(states, batches, positions)
        for part in positions:
            self._check_pairs(part)
        each = list(zip(asked, first_rows(batches), strict=True))
        u = joined([pairs.source + first for pairs, first in each])
        v = joined([pairs.target + first for pairs, first in each])
        features = [
            _pair_rows(part.pairs, one) for part, one in zip(positions, asked, strict=True) if part.pairs is not None
        ]
        between = self._between(joined(features) if features else None)
        source, target = self._ends(states, batches)
        answers = self._answer(self._first_of_rows(source, target, u, v, between))
        return list(answers.split([one.mask.numel() for one in asked]))

    def _ends(self, states: Sequence[Tensor], batches: Sequence[Batch]) -> list[Float[Tensor, "rows hidden"]]:
        """`W₁h_u` and `W₂h_v + W₃r` of every slot, as rows."""
        source, target = self.ends(as_rows(states)).chunk(2, dim=-1)
        each = zip(states, batches, strict=True)
        read = [torch.cat([total(part, batch), batch.sizes[:, None].float()], dim=-1) for part, batch in each]
        whole = self.whole(joined(read)).split([len(batch) for batch in batches])
        return [source, target + per_slot(whole, batches)]

    def _between(self, features: Float[Tensor, "*pairs c"] | None) -> Float[Tensor, "*pairs hidden"] | None:
        return None if features is None else self.between(features)

    def _first_of_rows(
        self,
        source: Float[Tensor, "rows hidden"],
        target: Float[Tensor, "rows hidden"],
        u: Int[Tensor, " p"],
        v: Int[Tensor, " p"],
        between: Float[Tensor, "p hidden"] | None,
    ) -> Float[Tensor, "p hidden"]:
        """The first layer of pairs `(u, v)` of rows; the ends by a kernel, if nothing joins them before the norm."""
        norm, alone = self.first_norm, between is None or self.between_norm is not None
        if not (alone and self._fuses(norm, source)):
            return self._first(_chosen(source, u) + _chosen(target, v), between)
        scale, shift = norm.weight.float(), norm.bias.float()
        ends = pair_head_cuda.first(source.float(), target.float(), u.long(), v.long(), scale, shift)
        return self._beside(ends, between)

    def _first(
        self, ends: Float[Tensor, "*pairs hidden"], between: Float[Tensor, "*pairs hidden"] | None
    ) -> Float[Tensor, "*pairs hidden"]:
        if between is not None and self.between_norm is None:
            return self.activation(self.first_norm(ends + between))
        return self._beside(self.activation(self.first_norm(ends)), between)

    def _beside(
        self, ends: Float[Tensor, "*pairs hidden"], between: Float[Tensor, "*pairs hidden"] | None
    ) -> Float[Tensor, "*pairs hidden"]:
        """What the ends say, and what lies between them."""
        if between is None or self.between_norm is None:
            return ends
        return ends + self.activation(self.between_norm(between))

    def _answer(self, pairs: Float[Tensor, "*pairs hidden"]) -> Float[Tensor, "*pairs outputs"]:
        answer = self._last(self.second(pairs))
        return torch.nn.functional.softplus(answer) if self.positive else answer

    def _last(self, pairs: Float[Tensor, "*pairs hidden"]) -> Float[Tensor, "*pairs outputs"]:
        """One output is a sum, which a kernel or compiler joins to what is before it; as a product it is slow."""
        norm = self.second_norm
        if self.outputs == 1 and self._fuses(norm, pairs):
            parameters = (norm.weight.float(), norm.bias.float(), self.last.weight[0].float())
            return pair_head_cuda.last(pairs.bfloat16(), *parameters)[..., None] + self.last.bias
        pairs = self.activation(norm(pairs))
        if self.outputs > 1:
            return self.last(pairs).float()
        return (pairs.float() * self.last.weight).sum(-1, keepdim=True) + self.last.bias

    def _fuses(self, norm: Norm, given: Tensor) -> bool:
        return pair_head_cuda.suits(norm, self.activation, given.device)

    def _check_pairs(self, positions: Positions) -> None:
        given = 0 if positions.pairs is None else positions.pairs.shape[-1]
        if given != self.pair_channels:
            raise ValueError(
                f"positions give {given} channels a pair, this PairHead takes {self.pair_channels}: make it with "
                f"pair_channels={given}"
            )


def _chosen(rows: Float[Tensor, "rows d"], numbers: Int[Tensor, " p"]) -> Float[Tensor, "p d"]:
    """Some of the rows, in single precision: the backward pass adds up one gradient for every pair."""
    return rows.float().index_select(0, numbers)


def _pair_rows(pairs: Float[Tensor, "b n n c"], asked: PaddedPairs) -> Float[Tensor, "p c"]:
    slots = pairs.shape[1]
    return pairs.flatten(0, 2).index_select(0, asked.source * slots + asked.target % slots)
