"""The potential q: by how much an edge changes the phase."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite

import torch
from jaxtyping import Float, Int
from torch import Tensor


@dataclass(frozen=True)
class Relative:
    """A potential relative to the graph: `q = q' / max(min(m→, n), 1)`, with `m→` one-way edges and `n` nodes.

    No simple path has more than `min(m→, n)` one-way edges, so with `q' ≤ 1/4` the phases of two nodes differ by at
    most 90°.

    Args:
        q: The relative potential `q'`, at least 0.

    >>> path = torch.diag(torch.ones(3), 1)
    >>> Relative(0.75).absolute(path).item()
    0.25
    """

    q: float | int

    def __post_init__(self) -> None:
        if not (isfinite(self.q) and self.q >= 0):
            raise ValueError(f"a relative potential must be a finite number ≥ 0, got {self.q}: try Relative(0.25)")

    def absolute(self, adjacency: Float[Tensor, "*batch n n"]) -> Float[Tensor, "*batch"]:
        """The absolute potential of each graph of a dense batch."""
        one_way = ((adjacency > 0) & (adjacency.mT == 0)).sum((-2, -1))
        return self.scaled(one_way, torch.full_like(one_way, adjacency.shape[-1])).to(adjacency)

    def scaled(self, one_way: Int[Tensor, "*batch"], size: Int[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        """The absolute potential of graphs with these numbers of one-way edges and nodes."""
        return self.q / torch.minimum(one_way, size).clamp(min=1).double()


Potential = float | int | Relative


def check_potential(q: object) -> None:
    """Raise a `ValueError` unless `q` is a potential or a tuple of them; absolute ones lie in `[0, 0.5]`.

    >>> check_potential(0.7)
    Traceback (most recent call last):
    ValueError: q=0.7 is outside [0, 0.5]: q and 1-q mirror each other; try q=0.25
    """
    if isinstance(q, Sequence) and not isinstance(q, str):
        if not q:
            raise ValueError("q must contain at least one potential, got (): try q=(0.1, 0.2)")
        for single in q:
            check_potential(single)
    elif isinstance(q, bool | str) or not isinstance(q, float | int | Relative):
        raise ValueError(f"q must be a number in [0, 0.5], Relative(0.25), or a tuple of these, got {q!r}")
    elif not isinstance(q, Relative) and not 0 <= q <= 0.5:
        raise ValueError(f"q={q} is outside [0, 0.5]: q and 1-q mirror each other; try q=0.25")


def absolute_potential(q: Potential, adjacency: Float[Tensor, "*batch n n"]) -> Float[Tensor, "*batch"]:
    """The absolute potential of each graph of a dense batch."""
    if isinstance(q, Relative):
        return q.absolute(adjacency)
    return torch.full(adjacency.shape[:-2], float(q), dtype=adjacency.dtype, device=adjacency.device)
