"""Combinatorial and magnetic Laplacians: of dense batches, and of lists of node pairs."""

from dataclasses import dataclass, replace
from math import pi

import numpy as np
import torch
from jaxtyping import Complex, Float, Int, Shaped
from torch import Tensor

from magnetite.linalg.pairs import NodePairs, PairArrays
from magnetite.linalg.phase import Convention, convention_named, weight_and_angle
from magnetite.linalg.potential import Adaptive, Potential, Relative, absolute_potential
from magnetite.linalg.scale import times_power


@dataclass(frozen=True)
class Operator:
    """Which Laplacian: the magnetic one at potential `q`, or the combinatorial one, which is real, if `q` is zero.

    Args:
        q: Absolute, relative or adaptive potential; or a tensor of absolute ones, one per graph.
        normalised: `L_N` instead of `L_U`.
        convention: A name in `magnetite.linalg.phase.CONVENTIONS`.

    >>> Operator(q=0).dense(torch.tensor([[[0.0, 1.0], [0.0, 0.0]]])).tolist()
    [[[1.0, -1.0], [-1.0, 1.0]]]
    """

    q: Potential | Tensor = 0
    normalised: bool = True
    convention: str = "paper"

    @property
    def real(self) -> bool:
        """Whether the matrix is real for every graph."""
        if isinstance(self.q, Tensor):
            return False
        return (self.q.q if isinstance(self.q, Relative | Adaptive) else self.q) == 0

    @property
    def rule(self) -> Convention:
        """How weights and directions become entries."""
        return convention_named(self.convention)

    def dense(
        self, adjacency: Float[Tensor, "*batch n n"], exponent: Int[Tensor, "*batch"] | None = None
    ) -> Shaped[Tensor, "*batch n n"]:
        """The matrices of a dense batch, whose weights were divided by `2^exponent`; so are the matrices `L_U`."""
        if self.real:
            return laplacian(adjacency, self.normalised, self.convention)
        potential = self._of_divided(absolute_potential(self.q, adjacency), exponent)
        return magnetic_laplacian(adjacency, potential, self.normalised, self.convention)

    def entries(self, pairs: NodePairs) -> tuple[Shaped[Tensor, " m"], Float[Tensor, " m"]]:
        """`H[low, high]` of every node pair, complex, and its real value at phase 0, whose row sums are the degrees."""
        entries, weights = self.entry_arrays(pairs.arrays())
        return torch.from_numpy(entries), torch.from_numpy(weights)

    def entry_arrays(self, pairs: PairArrays) -> tuple[np.ndarray, np.ndarray]:
        """`entries` of arrays."""
        rule, forward, backward = self.rule, pairs.forward, pairs.backward
        weights = rule.weight(forward, backward)
        if self.real:
            entries = weights.astype(np.complex128)
        else:
            entries = rule.at_angle_arrays(weights, forward, backward, self._phases(pairs))
        if rule.self_loops:
            return entries, weights
        proper = pairs.low != pairs.high
        return np.where(proper, entries, 0), np.where(proper, weights, 0.0)

    def surplus(self, pairs: NodePairs) -> Float[Tensor, " m"]:
        """By how much the second result of `entries` exceeds the modulus of the first, without cancellation."""
        if self.real or self.rule.surplus is None:
            return torch.zeros_like(pairs.forward)
        phases = torch.from_numpy(self._phases(pairs.arrays()))
        return self.rule.surplus(pairs.forward, pairs.backward, phases)

    def settled(self, pairs: NodePairs) -> "Operator":
        """The same operator with the absolute potential of one graph and its weights, which its components need."""
        return self if self.real else replace(self, q=float(self._potential(pairs.arrays())[0]))

    def _phases(self, pairs: PairArrays) -> np.ndarray:
        """`2πq` for every node pair; a single number if all belong to one graph."""
        phases = 2 * pi * self._potential(pairs)
        return phases if len(pairs.sizes) == 1 else np.repeat(phases, np.diff(pairs.start))

    def of(self, graphs: Tensor | slice) -> "Operator":
        """The operator of some of the graphs, given their indices."""
        return replace(self, q=self.q[graphs]) if isinstance(self.q, Tensor) else self

    def _potential(self, pairs: PairArrays) -> np.ndarray:
        if isinstance(self.q, Tensor):
            potential = self.q.cpu().double().numpy()
        elif isinstance(self.q, Relative):
            potential = self.q.scaled_arrays(pairs.one_way, pairs.sizes)
        elif isinstance(self.q, Adaptive):
            potential = self.q.of_pairs(NodePairs.of_arrays(pairs)).numpy()
        else:
            potential = np.full(pairs.sizes.shape, float(self.q))
        if pairs.exponent is None:
            return potential
        return self._of_divided(torch.from_numpy(potential), torch.from_numpy(pairs.exponent)).numpy()

    def _of_divided(self, potential: Tensor, exponent: Tensor | None) -> Tensor:
        """The potential that gives divided weights the phases of the original ones."""
        return potential if exponent is None or not self.rule.by_weight else times_power(potential, exponent)


def dense_adjacency(
    edges: Int[Tensor, "2 m"], graph: Int[Tensor, " m"], weights: Tensor | None, count: int, size: int
) -> Float[Tensor, "count size size"]:
    """Adjacency matrices `A[g, u, v] = w` of graphs of one size, in double precision; repeated edges are summed.

    >>> edges, graph = torch.tensor([[0, 1], [1, 0]]), torch.tensor([0, 1])
    >>> dense_adjacency(edges, graph, None, count=2, size=2).tolist()
    [[[0.0, 1.0], [0.0, 0.0]], [[0.0, 0.0], [1.0, 0.0]]]
    """
    source, target = edges.long()
    place = (graph * size + source) * size + target
    values = torch.ones_like(place, dtype=torch.float64) if weights is None else weights.double()
    flat = torch.zeros(count * size * size, dtype=torch.float64, device=edges.device)
    return flat.index_add_(0, place, values).view(count, size, size)


def magnetic_laplacian(
    adjacency: Float[Tensor, "*batch n n"],
    q: float | Float[Tensor, "*batch"],
    normalised: bool = True,
    convention: str = "paper",
) -> Complex[Tensor, "*batch n n"]:
    """Magnetic Laplacian `L_N = I − (D^{-1/2} A_s D^{-1/2}) ⊙ exp(iΘ)`, or `L_U = D − A_s ⊙ exp(iΘ)`.

    In the paper's convention `A_s[u,v]` is the weight of a one-way edge or the mean of an antiparallel pair, and
    `Θ[u,v] = 2πq (w_uv − w_vu) / (w_uv + w_vu)`. Self-loops count as undirected. The formula is taken literally at an
    isolated node: `L_N[v,v] = 1`, `L_U[v,v] = 0`.

    Args:
        adjacency: Weights `A[u, v]` of the edges `u → v`.
        q: Absolute potential, one for all graphs or one per graph.
        normalised: `L_N` instead of `L_U`.
        convention: A name in `magnetite.linalg.phase.CONVENTIONS`.

    >>> path = torch.diag(torch.ones(2), 1)
    >>> magnetic_laplacian(path, q=0.25, normalised=False)[0].real.round().tolist()
    [1.0, 0.0, 0.0]
    >>> magnetic_laplacian(path, q=0.25, normalised=False)[:, 0].imag.round().tolist()
    [0.0, 1.0, 0.0]
    """
    rule = convention_named(convention)
    place, forward, backward = _connected(adjacency, rule)
    phase = 2 * pi * torch.as_tensor(q, dtype=adjacency.dtype, device=adjacency.device)
    phase = phase[..., None, None].expand_as(adjacency)[place]
    hermitian = torch.zeros_like(adjacency, dtype=adjacency.dtype.to_complex())
    hermitian[place] = rule.hermitian(forward, backward, phase)
    weight = _symmetric_weight(adjacency, place, forward, backward, rule)
    return _laplacian(hermitian, weight.sum(-1), normalised, rule.isolated)


def laplacian(
    adjacency: Float[Tensor, "*batch n n"], normalised: bool = True, convention: str = "paper"
) -> Float[Tensor, "*batch n n"]:
    """Combinatorial Laplacian `L_N = I − D^{-1/2} A_s D^{-1/2}` or `L_U = D − A_s`: the magnetic one at `q = 0`, real.

    Args:
        adjacency: Weights `A[u, v]` of the edges `u → v`.
        normalised: `L_N` instead of `L_U`.
        convention: A name in `magnetite.linalg.phase.CONVENTIONS`.

    >>> laplacian(torch.tensor([[0.0, 1.0], [0.0, 0.0]]), normalised=False).tolist()
    [[1.0, -1.0], [-1.0, 1.0]]
    """
    rule = convention_named(convention)
    weight = _symmetric_weight(adjacency, *_connected(adjacency, rule), rule)
    return _laplacian(weight, weight.sum(-1), normalised, rule.isolated)


def shifted_laplacian(
    edges: Int[Tensor, "2 m"], weights: Float[Tensor, " m"], size: int, q: float
) -> tuple[Int[Tensor, "2 entries"], Float[Tensor, " entries"], Float[Tensor, " entries"]]:
    """`L_N − I = −D^{-1/2} A_s D^{-1/2} ⊙ exp(iΘ)` as sparse entries: rows and columns, real and imaginary parts.

    There are `2m` entries, sorted by row and column, for any edges, so that a compiled model has fixed shapes: where
    edges repeat or are antiparallel, one entry of a node pair has the value, and the others are zero. Isolated nodes
    have no entries.

    Args:
        edges: Source and target of each edge.
        weights: Weights of the edges; those of weight 0 do not count.
        size: Number of nodes.
        q: Absolute potential.

    >>> ends, real, imag = shifted_laplacian(torch.tensor([[0], [1]]), torch.ones(1), size=2, q=0.25)
    >>> ends.tolist(), real.abs().round().tolist(), imag.tolist()
    ([[0, 1], [1, 0]], [0.0, 0.0], [-1.0, 1.0])
    """
    source, target = edges
    numbers, order = torch.cat([source * size + target, target * size + source]).sort()
    first = torch.ones_like(numbers, dtype=torch.bool)
    first[1:] = numbers[1:] != numbers[:-1]
    pair = first.cumsum(0) - 1
    both = torch.zeros(2 * weights.numel(), 2, dtype=weights.dtype, device=weights.device)
    both[: weights.numel(), 0], both[weights.numel() :, 1] = weights, weights
    forward, backward = torch.zeros_like(both).index_add(0, pair, both[order])[pair].unbind(1)
    weight, angle = weight_and_angle(forward, backward, 2 * pi * q)
    weight = weight * first
    row, column = numbers // size, numbers % size
    degree = torch.zeros(size, dtype=weight.dtype, device=weight.device).index_add(0, row, weight)
    scale = torch.where(degree > 0, degree.clamp(min=torch.finfo(degree.dtype).tiny).rsqrt(), 0)
    shifted = -weight * scale[row] * scale[column]
    return torch.stack([row, column]), shifted * angle.cos(), shifted * angle.sin()


def _connected(adjacency: Tensor, rule: Convention) -> tuple[Tensor, Tensor, Tensor]:
    """Where two nodes are connected, and the weights in both directions."""
    backward = adjacency.mT
    place = (adjacency > 0) | (backward > 0)
    if not rule.self_loops:
        place.diagonal(dim1=-2, dim2=-1).fill_(False)
    return place, adjacency[place], backward[place]


def _symmetric_weight(adjacency: Tensor, place: Tensor, forward: Tensor, backward: Tensor, rule: Convention) -> Tensor:
    """`H` at phase 0: the symmetrised weights."""
    weight = torch.zeros_like(adjacency)
    weight[place] = rule.weight(forward, backward)
    return weight


def _laplacian(hermitian: Tensor, degree: Tensor, normalised: bool, isolated: float) -> Tensor:
    if not normalised:
        return torch.diag_embed(degree).to(hermitian) - hermitian
    scale = torch.where(degree > 0, degree.rsqrt(), 0)
    diagonal = torch.where(degree > 0, 1.0, isolated)
    result = -(hermitian * scale[..., :, None] * scale[..., None, :])
    result.diagonal(dim1=-2, dim2=-1).add_(diagonal)
    return result
