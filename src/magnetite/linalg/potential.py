"""The potential q: by how much an edge changes the phase."""

from dataclasses import dataclass
from math import inf
from numbers import Integral, Real
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from magnetite.linalg.pairs import NodePairs, pair_edges

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

    def scaled_arrays(self, one_way: np.ndarray, size: np.ndarray) -> np.ndarray:
        """`scaled` of arrays."""
        return self.q / np.maximum(np.minimum(one_way, size), 1).astype(np.float64)


@dataclass(frozen=True)
class Adaptive:
    """A potential chosen for each graph by what its eigenvectors show above the noise; see `linalg.adaptive`.

    It equals `Relative(q)` on graphs of fewer than 100 nodes and on sparse ones (mean degree up to about 4). In large
    graphs with more edges, where `Relative` is too small to be seen, it is found in the spectrum: a quarter turn over
    the heights of the nodes, a fraction of it, or `1/C` where direction runs around a cycle of `C` classes. It depends
    on the graph alone: not on node numbers or other graphs, and it is the same for the reversed graph. For graphs of
    more than 10,000 nodes on a GPU, eigenvectors are computed there, otherwise on the CPU: in single precision on both,
    so that only a tie within its rounding may be decided otherwise.

    Args:
        q: The relative potential `q'`, at least 0; other values than 1/4 multiply the potential by `4q'`, and what
            exceeds 1/2 is mirrored, as `q` and `1-q` are the same up to conjugation.

    >>> path = torch.diag(torch.ones(3), 1)
    >>> Adaptive().absolute(path) == Relative(0.25).absolute(path)
    tensor(True)
    """

    q: float | int = 0.25

    def __post_init__(self) -> None:
        number = plain_number(self.q)
        if number is None or not 0 <= number < LARGEST:
            raise ValueError(f"an adaptive potential must be a finite number ≥ 0, got {self.q!r}: try Adaptive(0.25)")
        object.__setattr__(self, "q", number)

    def absolute(self, adjacency: Float[Tensor, "*batch n n"]) -> Float[Tensor, "*batch"]:
        """The absolute potential of each graph of a dense batch."""
        flat = adjacency.detach().reshape(-1, *adjacency.shape[-2:]).double().cpu()
        graph, source, target = (flat > 0).nonzero(as_tuple=True)
        ends = torch.searchsorted(graph, torch.arange(len(flat) + 1))
        sizes = torch.full((len(flat),), flat.shape[-1])
        pairs = pair_edges(torch.stack([source, target]), ends, sizes, flat[graph, source, target])
        return self.of_pairs(pairs).view(adjacency.shape[:-2]).to(adjacency)

    def of_pairs(self, pairs: NodePairs, quarter: Float[Tensor, " g"] | None = None) -> Float[Tensor, " g"]:
        """The absolute potential of each graph; `quarter` is that of `Adaptive(1/4)` if it is known."""
        if quarter is None:
            from magnetite.linalg.adaptive import adaptive_potentials

            quarter = adaptive_potentials(pairs)
        plain = Relative(self.q).scaled(pairs.one_way, pairs.sizes)
        turns = (4 * self.q * quarter) % 1
        return torch.where(
            quarter == Relative(0.25).scaled(pairs.one_way, pairs.sizes), plain, torch.minimum(turns, 1 - turns)
        )


class PotentialWarning(UserWarning):
    """A potential is so small that single precision hardly shows directions, or so large that phases are mirrored."""


Potential = float | int | Relative | Adaptive
"""An absolute potential, or how to find that of a graph."""


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
    if isinstance(q, Relative | Adaptive):
        return q
    number = plain_number(q)
    if number is None:
        given = " ".join(repr(q).split())
        raise ValueError(f"q must be a number in [0, 0.5], Relative(0.25), Adaptive() or a tuple of these, got {given}")
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


def absolute_potential(q: Potential | Tensor, adjacency: Float[Tensor, "*batch n n"]) -> Float[Tensor, "*batch"]:
    """The absolute potential of each graph of a dense batch."""
    if isinstance(q, Tensor):
        return q.to(adjacency)
    if isinstance(q, Relative | Adaptive):
        return q.absolute(adjacency)
    return torch.full(adjacency.shape[:-2], float(q), dtype=adjacency.dtype, device=adjacency.device)
