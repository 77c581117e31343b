"""Which Laplacian: one description for dense batches, for lists of pairs and for sparse matrices."""

from dataclasses import dataclass, replace
from math import pi

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from magnetite.linalg.laplacian import Convention, convention_named, laplacian, magnetic_laplacian
from magnetite.linalg.pairs import Pairs
from magnetite.linalg.potential import Potential, Relative, absolute_potential


@dataclass(frozen=True)
class Operator:
    """The magnetic Laplacian at potential `q`, or the combinatorial one, real, where `q` is zero.

    >>> Operator(q=0).dense(torch.tensor([[[0.0, 1.0], [0.0, 0.0]]])).tolist()
    [[[1.0, -1.0], [-1.0, 1.0]]]
    """

    q: Potential = 0
    normalised: bool = True
    convention: str = "paper"

    @property
    def real(self) -> bool:
        """Whether the matrix is real whatever the graph."""
        return (self.q.q if isinstance(self.q, Relative) else self.q) == 0

    @property
    def rule(self) -> Convention:
        """How weights and directions become entries."""
        return convention_named(self.convention)

    def dense(self, adjacency: Float[Tensor, "*batch n n"]) -> Shaped[Tensor, "*batch n n"]:
        """The matrices of a dense batch."""
        if self.real:
            return laplacian(adjacency, self.normalised, self.convention)
        return magnetic_laplacian(adjacency, absolute_potential(self.q, adjacency), self.normalised, self.convention)

    def entries(self, pairs: Pairs) -> tuple[Shaped[Tensor, " m"], Float[Tensor, " m"]]:
        """`H[low, high]` of every pair, complex, and at phase 0: the weights whose row sums are the degrees."""
        weights = self.rule.hermitian(pairs.forward, pairs.backward, torch.zeros_like(pairs.forward)).real
        if self.real:
            entries = weights.to(torch.complex128)
        else:
            phase = torch.repeat_interleave(2 * pi * self._potential(pairs), pairs.start.diff())
            entries = self.rule.hermitian(pairs.forward, pairs.backward, phase)
        if self.rule.self_loops:
            return entries, weights.contiguous()
        proper = pairs.low != pairs.high
        return torch.where(proper, entries, 0), torch.where(proper, weights, 0.0)

    def settled(self, pairs: Pairs) -> "Operator":
        """The same for one graph with its absolute potential, as its parts need it."""
        return self if self.real else replace(self, q=float(self._potential(pairs)[0]))

    def _potential(self, pairs: Pairs) -> Float[Tensor, " g"]:
        if isinstance(self.q, Relative):
            return self.q.scaled(pairs.one_way, pairs.sizes)
        return torch.full(pairs.sizes.shape, float(self.q), dtype=torch.float64)
