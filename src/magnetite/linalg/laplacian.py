"""Combinatorial and magnetic Laplacians of dense batches, in the conventions found in the wild."""

from collections.abc import Callable
from dataclasses import dataclass
from math import pi

import torch
from jaxtyping import Complex, Float, Int
from torch import Tensor


@dataclass(frozen=True)
class Convention:
    """How weights and directions become a Hermitian matrix.

    `hermitian(w_uv, w_vu, φ)` is the entry `H[u, v]` for the phase `φ = 2πq`, elementwise. The degrees are the row sums
    of `H` at `φ = 0`, so `L_U = D − H` and `L_N = I − D^{-1/2} H D^{-1/2}` in every convention.
    """

    formula: str
    hermitian: Callable[[Tensor, Tensor, Tensor], Tensor]
    self_loops: bool = True
    isolated: float = 1.0


def _paper(forward: Tensor, backward: Tensor, phase: Tensor) -> Tensor:
    total = forward + backward
    both = (forward > 0) & (backward > 0)
    return torch.polar(torch.where(both, total / 2, total), phase * (forward - backward) / total)


def _networkx(forward: Tensor, backward: Tensor, phase: Tensor) -> Tensor:
    turn = (forward > 0).to(phase) - (backward > 0).to(phase)
    return torch.polar((forward + backward) / 2, phase * turn)


def _pygsd(forward: Tensor, backward: Tensor, phase: Tensor) -> Tensor:
    return torch.polar((forward + backward) / 2, phase * (forward - backward))


def _multi_q(forward: Tensor, backward: Tensor, phase: Tensor) -> Tensor:
    return torch.complex((forward + backward) * phase.cos(), (forward - backward) * phase.sin())


CONVENTIONS: dict[str, Convention] = {
    "paper": Convention("w or (w_uv+w_vu)/2 if both · exp(i2πq (w_uv−w_vu)/(w_uv+w_vu))", _paper),
    "networkx": Convention(
        "(w_uv+w_vu)/2 · exp(i2πq δ), δ = ±1 on a one-way edge, 0 on a pair", _networkx, isolated=0.0
    ),
    "pygsd": Convention("(w_uv+w_vu)/2 · exp(i2πq (w_uv−w_vu)), no self-loops", _pygsd, self_loops=False),
    "multi-q": Convention("w_uv exp(i2πq) + w_vu exp(−i2πq)", _multi_q),
}


def convention_named(name: str) -> Convention:
    """Look a convention up, with an error that lists them."""
    if name not in CONVENTIONS:
        raise ValueError(f"unknown convention {name!r}: choose one of {', '.join(CONVENTIONS)}")
    return CONVENTIONS[name]


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
    `Θ[u,v] = 2πq (w_uv − w_vu) / (w_uv + w_vu)`. The other conventions are in `CONVENTIONS`. Self-loops count as
    undirected. An isolated node keeps the literal formula: `L_N[v,v] = 1`, `L_U[v,v] = 0`.

    >>> path = torch.diag(torch.ones(2), 1)
    >>> magnetic_laplacian(path, q=0.25, normalised=False)[0].real.round().tolist()
    [1.0, 0.0, 0.0]
    >>> magnetic_laplacian(path, q=0.25, normalised=False)[:, 0].imag.round().tolist()
    [0.0, 1.0, 0.0]
    """
    rule = convention_named(convention)
    place, forward, backward = _connected_pairs(adjacency, rule)
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

    >>> laplacian(torch.tensor([[0.0, 1.0], [0.0, 0.0]]), normalised=False).tolist()
    [[1.0, -1.0], [-1.0, 1.0]]
    """
    rule = convention_named(convention)
    weight = _symmetric_weight(adjacency, *_connected_pairs(adjacency, rule), rule)
    return _laplacian(weight, weight.sum(-1), normalised, rule.isolated)


def _connected_pairs(adjacency: Tensor, rule: Convention) -> tuple[Tensor, Tensor, Tensor]:
    """Where two nodes touch, and the weights there and back."""
    backward = adjacency.mT
    place = (adjacency > 0) | (backward > 0)
    if not rule.self_loops:
        place.diagonal(dim1=-2, dim2=-1).fill_(False)
    return place, adjacency[place], backward[place]


def _symmetric_weight(adjacency: Tensor, place: Tensor, forward: Tensor, backward: Tensor, rule: Convention) -> Tensor:
    """`H` at phase 0: the symmetrised weights."""
    weight = torch.zeros_like(adjacency)
    weight[place] = rule.hermitian(forward, backward, torch.zeros_like(forward)).real
    return weight


def _laplacian(hermitian: Tensor, degree: Tensor, normalised: bool, isolated: float) -> Tensor:
    if not normalised:
        return torch.diag_embed(degree).to(hermitian) - hermitian
    scale = torch.where(degree > 0, degree.rsqrt(), 0)
    diagonal = torch.where(degree > 0, 1.0, isolated)
    result = -(hermitian * scale[..., :, None] * scale[..., None, :])
    result.diagonal(dim1=-2, dim2=-1).add_(diagonal)
    return result


def shifted_laplacian(
    adjacency: Float[Tensor, "*batch n n"], q: float
) -> tuple[Float[Tensor, "*batch n n"], Float[Tensor, "*batch n n"]]:
    """`L_N − I = −D^{-1/2} A_s D^{-1/2} ⊙ exp(iΘ)`, real and imaginary part; isolated nodes have rows of zeros."""
    forward, backward, total = adjacency, adjacency.mT, adjacency + adjacency.mT
    weight = torch.where((forward > 0) & (backward > 0), total / 2, total)
    degree = weight.sum(-1)
    scale = torch.where(degree > 0, degree.clamp(min=torch.finfo(degree.dtype).tiny).rsqrt(), 0)
    angle = 2 * pi * q * (forward - backward) / torch.where(total > 0, total, 1)
    shifted = -weight * scale[..., :, None] * scale[..., None, :]
    return shifted * angle.cos(), shifted * angle.sin()
