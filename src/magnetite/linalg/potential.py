"""The potential q: by how much an edge changes the phase."""

from dataclasses import dataclass
from math import inf
from numbers import Integral, Real
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

LARGEST = 2**1023
"""Larger integers cannot be converted to floats."""


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
        number = plain_number(self.q)
        if number is None or not 0 <= number < LARGEST:
            raise ValueError(f"a relative potential must be a finite number ≥ 0, got {self.q!r}: try Relative(0.25)")
        object.__setattr__(self, "q", number)

    def absolute(self, adjacency: Float[Tensor, "*batch n n"]) -> Float[Tensor, "*batch"]:
        """The absolute potential of each graph of a dense batch."""
        one_way = ((adjacency > 0) & (adjacency.mT == 0)).sum((-2, -1))
        return self.scaled(one_way, torch.full_like(one_way, adjacency.shape[-1])).to(adjacency)

    def scaled(self, one_way: Int[Tensor, "*batch"], size: Int[Tensor, "*batch"]) -> Float[Tensor, "*batch"]:
        """The absolute potential of graphs with these numbers of one-way edges and nodes."""
        return self.q / torch.minimum(one_way, size).clamp(min=1).double()


Potential = float | int | Relative


def checked_potential(q: Any) -> Potential | tuple[Potential, ...]:
    """A potential, or a tuple of them from a tuple, list or array; absolute ones lie in `[0, 0.5]`.

    >>> checked_potential([0.1, Relative(0.25)])
    (0.1, Relative(q=0.25))
    >>> checked_potential(0.7)
    Traceback (most recent call last):
    ValueError: q=0.7 is outside [0, 0.5]: q and 1-q mirror each other; try q=0.25
    """
    if isinstance(q, np.ndarray | Tensor) and q.ndim == 1:
        q = q.tolist()
    if not isinstance(q, list | tuple):
        return _checked_single(q)
    if not q:
        raise ValueError("q must contain at least one potential, got (): try q=(0.1, 0.2)")
    return tuple(map(_checked_single, q))


def _checked_single(q: Any) -> Potential:
    if isinstance(q, Relative):
        return q
    number = plain_number(q)
    if number is None:
        given = " ".join(repr(q).split())
        raise ValueError(f"q must be a number in [0, 0.5], Relative(0.25), or a tuple of these, got {given}")
    if not 0 <= number <= 0.5:
        raise ValueError(f"q={q} is outside [0, 0.5]: q and 1-q mirror each other; try q=0.25")
    return number


def plain_number(value: Any) -> float | int | None:
    """A real number of Python, NumPy or torch as one of Python; None if it is none: true and false are not numbers."""
    if isinstance(value, Tensor | np.ndarray) and value.ndim == 0:
        value = value.item()
    if isinstance(value, bool | np.bool_) or not isinstance(value, Real):
        return None
    try:
        return int(value) if isinstance(value, Integral) else float(value)
    except OverflowError:  # a fraction or an integer of more than 308 digits
        return inf


def absolute_potential(q: Potential, adjacency: Float[Tensor, "*batch n n"]) -> Float[Tensor, "*batch"]:
    """The absolute potential of each graph of a dense batch."""
    if isinstance(q, Relative):
        return q.absolute(adjacency)
    return torch.full(adjacency.shape[:-2], float(q), dtype=adjacency.dtype, device=adjacency.device)
