"""Pairs of nodes that are asked about, with the answers that are wanted: packed, and in the slots of a batch."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Bool, Int, Int16, Shaped
from torch import Tensor

from magnetite.packed import Axis, Packed, counts_of


@dataclass(frozen=True, eq=False)
class PaddedPairs:
    """Asked pairs in the slots of a batch, graph after graph, then the empty slots.

    `source` and `target` are rows of the batch's flattened slots, `graph · n + node`; those that `mask` leaves out
    point anywhere, each at another row.
    """

    source: Int[Tensor, " p"]
    target: Int[Tensor, " p"]
    mask: Bool[Tensor, " p"]
    wanted: Int16[Tensor, " p"]


@dataclass(frozen=True, eq=False, kw_only=True)
class AskedPairs(Packed):
    """Some ordered pairs of nodes of each graph, and one whole number that is wanted for each.

    `ends` are source and target, as numbers of nodes within their graph.

    >>> pointers = {"node_ptr": torch.tensor([0, 3]), "asked_ptr": torch.tensor([0, 2])}
    >>> ends, wanted = torch.tensor([[0, 0], [1, 2]]), torch.tensor([1, 2], dtype=torch.int16)
    >>> AskedPairs(ends=ends, wanted=wanted, **pointers)
    AskedPairs(1 graphs, 2 pairs)
    """

    asked_ptr: Int[Tensor, " starts"]
    ends: Int[Tensor, "2 asked"]
    wanted: Int16[Tensor, " asked"]

    pointers: ClassVar[tuple[str, ...]] = ("node_ptr", "asked_ptr")
    axes: ClassVar[dict[str, tuple[Axis, int]]] = {"ends": ("asked", 1), "wanted": ("asked", 0)}

    def __repr__(self) -> str:
        return f"AskedPairs({len(self)} graphs, {self.wanted.numel()} pairs)"

    @property
    def counts(self) -> Int[Tensor, " graphs"]:
        """Number of pairs of each graph."""
        return self.asked_ptr.diff()

    def in_slots(self, ids: Int[Tensor, " b"], real: Bool[Tensor, " b"], nodes: int, slots: int) -> PaddedPairs:
        """The pairs of the chosen graphs, those that are `real`, in so many slots, without waiting for a GPU.

        Slot `j` belongs to the first graph up to which more than `j` pairs are asked. `nodes` are the slots for nodes
        of each graph.
        """
        counts = counts_of(self.asked_ptr, ids) * real
        until = counts.cumsum(0)
        slot = torch.arange(slots, device=self.device)
        mask = slot < until[-1]
        graph = torch.searchsorted(until, slot, right=True).clamp(max=ids.numel() - 1)
        place = torch.where(mask, (self.asked_ptr[ids] - until + counts)[graph] + slot, 0)
        rows = graph * nodes + columns(self.ends, place)
        # Not all at row 0, where thousands of atomic additions of nothing would wait for each other on a GPU.
        source, target = torch.where(mask, rows, slot % (ids.numel() * nodes))
        return PaddedPairs(source, target, mask, torch.where(mask, columns(self.wanted, place), 0))


def columns(values: Shaped[Tensor, "... all"], place: Int[Tensor, "*p"]) -> Shaped[Tensor, "..."]:
    """`values[..., place]`; zeros where there are none at all."""
    return values[..., place] if values.shape[-1] else values.new_zeros(*values.shape[:-1], *place.shape)
