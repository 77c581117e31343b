"""The filled slots of batches as rows without gaps: what looks at no neighbour is not done for empty slots."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from magnetite.batching import Batch
from magnetite.nn.rows import as_rows

Rows = Float[Tensor, "_ d"]


@dataclass(frozen=True, eq=False)
class Packing:
    """Which slot each row comes from, and which row each slot goes to.

    There are more rows than filled slots, if fewer are filled than there is room for: `real` says which come from one.
    """

    slot: Int[Tensor, " rows"]
    real: Bool[Tensor, " rows"]
    row: Int[Tensor, " slots"]
    filled: Bool[Tensor, " slots"]

    @classmethod
    def of(cls, filled: Bool[Tensor, " slots"], room: int) -> "Packing":
        """The packing of at most `room` filled slots, without waiting for a GPU.

        >>> packing = Packing.of(torch.tensor([True, False, False, True]), room=3)
        >>> packing.slot.tolist(), packing.real.tolist(), packing.row.tolist()
        ([0, 3, 3], [True, True, False], [0, 0, 0, 1])
        """
        count = filled.cumsum(0)
        numbers = torch.arange(1, room + 1, device=filled.device)
        slot = torch.searchsorted(count, numbers).clamp(max=filled.numel() - 1)
        return cls(slot, numbers <= count[-1], (count - 1).clamp(min=0), filled)


@dataclass(frozen=True, eq=False)
class Tokens:
    """The slots of batches as rows: packed, where the batches say how many nodes they hold at most, else one a slot.

    >>> import magnetite as mt
    >>> from magnetite.batching import Shape
    >>> batch = mt.pad(mt.Digraphs.from_edges([[0], [1]]), shape=Shape(1, 8, 8, total=3))
    >>> tokens = Tokens.of([batch], [batch.mask])
    >>> packed = tokens.pack(torch.arange(8.0)[:, None])
    >>> packed[:, 0].tolist(), tokens.spread(packed)[:, 0].tolist()
    ([0.0, 1.0, 0.0], [0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0])
    """

    batches: Sequence[Batch]
    packing: Packing | None

    @classmethod
    def of(cls, batches: Sequence[Batch], filled: Sequence[Bool[Tensor, "_ _"]], more: int = 0) -> "Tokens":
        """The slots that are filled, by the nodes of the graphs and by so many `more` of each graph."""
        room = sum(batch.total + more * len(batch) for batch in batches)
        known = all(batch.total for batch in batches) and room < sum(mask.numel() for mask in filled)
        return cls(batches, Packing.of(as_rows(filled), room) if known else None)

    def pack(self, slots: Rows) -> Rows:
        """The rows of the filled slots; a row that is none is zero."""
        way = self.packing
        return slots if way is None else _Move.apply(slots, way.slot, way.real, way.row, way.filled)  # type: ignore[return-value]

    def spread(self, rows: Rows) -> Rows:
        """The slots that the rows came from; empty ones are zero."""
        way = self.packing
        return rows if way is None else _Move.apply(rows, way.row, way.filled, way.slot, way.real)  # type: ignore[return-value]


class _Move(torch.autograd.Function):
    """`out[i] = given[there[i]]` where `real[i]`, else 0. Slopes go back the same way, gathered as well.

    No two rows go to the same place, which autograd does not know: it would add them up one by one.
    """

    @staticmethod
    def forward(given: Tensor, there: Tensor, real: Tensor, back: Tensor, back_real: Tensor) -> Tensor:  # noqa: ARG004
        return torch.where(real[:, None], given.index_select(0, there), 0)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, ...], output: Tensor) -> None:  # noqa: ARG004
        ctx.save_for_backward(*inputs[3:])

    @staticmethod
    def backward(ctx: Any, upper: Tensor) -> tuple[Tensor | None, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        back, real = ctx.saved_tensors
        return torch.where(real[:, None], upper.index_select(0, back), 0), None, None, None, None
