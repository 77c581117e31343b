"""Phases: how the direction of an edge becomes a phase, and which phase an eigenvector gets."""

from collections.abc import Callable
from dataclasses import dataclass
from math import pi
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor

from magnetite.kernels.shared import TIE, ZERO


@dataclass(frozen=True)
class Convention:
    """How weights and directions become a Hermitian matrix `H`.

    The degrees are the row sums of `H` at phase 0, so `L_U = D − H` and `L_N = I − D^{-1/2} H D^{-1/2}` in every
    convention.

    Args:
        formula: The entry `H[u, v]` as readable text.
        weight: The entry at phase 0, which is real, from `w_uv` and `w_vu`, elementwise; 0 where both are 0. It takes
            tensors or NumPy arrays, and so does the angle.
        angle: The angle of the entry from `w_uv`, `w_vu` and the phase `2πq`, if its modulus is the weight.
        entry: The entry itself, if its modulus is not the weight.
        self_loops: Whether self-loops count.
        isolated: Diagonal entry of `L_N` at an isolated node.
        surplus: By how much the degree of a pair exceeds `|H[u, v]|`, computed without cancellation; 0 if None.
        by_weight: Whether phases grow with the weights, so that multiplying all weights changes the eigenvectors.
    """

    formula: str
    weight: Callable[[Any, Any], Any]
    angle: Callable[[Any, Any, Any], Any] | None = None
    entry: Callable[[Tensor, Tensor, Tensor], Tensor] | None = None
    self_loops: bool = True
    isolated: float = 1.0
    by_weight: bool = False
    surplus: Callable[[Tensor, Tensor, Tensor], Tensor] | None = None

    def hermitian(self, forward: Tensor, backward: Tensor, phase: Tensor) -> Tensor:
        """The entries `H[u, v]` from `w_uv`, `w_vu` and the phase `2πq`."""
        return self.at_angle(self.weight(forward, backward), forward, backward, phase)

    def at_angle(self, weight: Tensor, forward: Tensor, backward: Tensor, phase: Tensor) -> Tensor:
        """The same, where their values at phase 0 are known."""
        if self.entry is not None:
            return self.entry(forward, backward, phase)
        return torch.polar(weight, self.angle(forward, backward, phase))  # type: ignore[misc]

    def at_angle_arrays(
        self, weight: np.ndarray, forward: np.ndarray, backward: np.ndarray, phase: np.ndarray
    ) -> np.ndarray:
        """The same of arrays, with the same bits: sines and cosines are those of torch."""
        if self.entry is not None:
            return self.entry(*map(torch.from_numpy, (forward, backward, phase))).numpy()
        angle = self.angle(forward, backward, phase)  # type: ignore[misc]
        return torch.polar(torch.from_numpy(weight), torch.from_numpy(angle)).numpy()


def weight_and_angle(forward: Tensor, backward: Tensor, phase: Tensor | float) -> tuple[Tensor, Tensor]:
    """Modulus and angle of `H[u, v]` in the paper's convention.

    The modulus is the weight of a one-way edge, or the mean of the two weights of an antiparallel pair; the angle is
    `2πq (w_uv − w_vu) / (w_uv + w_vu)`.

    >>> weight_and_angle(torch.tensor([0.0, 2.0, 3.0]), torch.tensor([0.0, 0.0, 1.0]), phase=1.0)
    (tensor([0., 2., 2.]), tensor([0.0000, 1.0000, 0.5000]))
    """
    return _one_or_mean(forward, backward), _share(forward, backward, phase)


def _library(values: Any) -> Any:
    """NumPy or torch, which share the functions that the conventions need."""
    return np if isinstance(values, np.ndarray) else torch


def _one_or_mean(forward: Any, backward: Any) -> Any:
    total = forward + backward
    return _library(total).where((forward > 0) & (backward > 0), total / 2, total)


def _share(forward: Any, backward: Any, phase: Any) -> Any:
    total = forward + backward
    return phase * (forward - backward) / _library(total).where(total > 0, total, 1)


def _mean(forward: Any, backward: Any) -> Any:
    return (forward + backward) / 2


def _turn(forward: Any, backward: Any, phase: Any) -> Any:
    sign = _library(forward).sign
    return phase * (sign(forward) - sign(backward))


def _difference(forward: Any, backward: Any, phase: Any) -> Any:
    return phase * (forward - backward)


def _sum(forward: Any, backward: Any) -> Any:
    return forward + backward


def _multi_q(forward: Tensor, backward: Tensor, phase: Tensor) -> Tensor:
    return torch.complex((forward + backward) * phase.cos(), (forward - backward) * phase.sin())


def _multi_q_surplus(forward: Tensor, backward: Tensor, phase: Tensor) -> Tensor:
    total = forward + backward
    modulus = _multi_q(forward, backward, phase).abs()
    # (total² − modulus²) / (total + modulus)
    return 4 * forward * (backward / torch.where(total > 0, total + modulus, 1)) * phase.sin().square()


CONVENTIONS: dict[str, Convention] = {
    "paper": Convention("w or (w_uv+w_vu)/2 if both · exp(i2πq (w_uv−w_vu)/(w_uv+w_vu))", _one_or_mean, _share),
    "networkx": Convention(
        "(w_uv+w_vu)/2 · exp(i2πq δ), δ = ±1 on a one-way edge, 0 on a pair", _mean, _turn, isolated=0.0
    ),
    "pygsd": Convention(
        "(w_uv+w_vu)/2 · exp(i2πq (w_uv−w_vu)), no self-loops", _mean, _difference, self_loops=False, by_weight=True
    ),
    "multi-q": Convention("w_uv exp(i2πq) + w_vu exp(−i2πq)", _sum, entry=_multi_q, surplus=_multi_q_surplus),
}
"""Conventions found in papers and libraries, by name."""


def convention_named(name: str) -> Convention:
    """The convention of this name.

    >>> convention_named("other")
    Traceback (most recent call last):
    ValueError: convention must be one of paper, networkx, pygsd, multi-q, got 'other'
    """
    if name not in CONVENTIONS:
        raise ValueError(f"convention must be one of {', '.join(CONVENTIONS)}, got {name!r}")
    return CONVENTIONS[name]


def normalise(
    vectors: Shaped[Tensor, "b n k"], root: Int[Tensor, " b"] | None = None
) -> tuple[Shaped[Tensor, "b n k"], Bool[Tensor, "b k"]]:
    """Rotate every eigenvector so that its value at the root is real and positive.

    An eigenvector is unique up to a phase; this choice depends on the graph only, not on the solver or the node order.

    1. The first eigenvector is rotated until its `|γ|`-weighted mean direction, `Σ_v γ_v`, is real and positive.
    2. The root is the given node, or the node of the largest angle (the foremost source); among equal angles the node
       of the largest modulus; among nodes equal in both, all of them together, so that no node id decides.
    3. `γ_j ← γ_j · conj(sgn Σ_{u∈root} γ_{u,j})`. Where that sum is numerically zero, `Σ_v |γ_v|γ_v` replaces it.
    4. Where that vanishes too, `Σ_v γ_v²` determines the axis, and the largest `|Re|` is made positive.

    Returns the vectors, and whether the graph alone determined the phase of each. Where a symmetry of the graph turns a
    vector into a multiple of itself (a directed cycle, two nodes that mirror each other), no rule can, and the node
    order decides.

    Reversing all edges conjugates `L` and so each eigenvector. With a given root, the normalised vectors are then
    conjugated exactly. Otherwise the root of the reversed graph is its own foremost source, which was the last sink.

    >>> path = torch.polar(torch.ones(3), torch.tensor([0.2, 0.1, 0.0]) + 2.5)[None, :, None]
    >>> normalise(path)[0].angle().squeeze().mul(10).round().tolist()
    [0.0, -1.0, -2.0]
    """
    if root is None:
        first, certain = _orient(vectors[..., :1], vectors[..., :1].sum(1))
        weight = _foremost(first[..., 0])
    else:
        weight = torch.nn.functional.one_hot(root, vectors.shape[1]).to(vectors.dtype.to_real())
        certain = torch.ones_like(root, dtype=torch.bool)[:, None]
    at_root = torch.einsum("bn,bnk->bk", weight.to(vectors), vectors)
    rotated, decided = _orient(vectors, at_root)
    return rotated, decided & (certain | (at_root.abs() <= ZERO))


def _foremost(first: Shaped[Tensor, "b n"]) -> Float[Tensor, "b n"]:
    """1 at the node (or the tied nodes) of the largest angle and, among those, the largest modulus; else 0."""
    modulus = first.abs()
    angle = first.angle()
    # Rounding must not decide on which side of the branch cut the opposite direction lies.
    angle = torch.where(angle < TIE - pi, angle + 2 * pi, angle).masked_fill(modulus <= ZERO, -torch.inf)
    leading = angle >= angle.amax(1, keepdim=True) - TIE
    modulus = modulus.masked_fill(~leading, -1)
    return (modulus >= modulus.amax(1, keepdim=True) - TIE).to(modulus)


def _orient(
    vectors: Shaped[Tensor, "b n k"], reference: Shaped[Tensor, "b k"]
) -> tuple[Shaped[Tensor, "b n k"], Bool[Tensor, "b k"]]:
    """Rotate each vector so that `reference`, or its replacement where it vanishes, becomes real and positive."""
    mean = (vectors.abs() * vectors).sum(1)
    direction = torch.where(reference.abs() > ZERO, reference, mean)
    decided = direction.abs() > ZERO
    if not decided.all():
        axis, known = _axis(vectors)
        direction, decided = torch.where(decided, direction, axis), decided | known
    return vectors * direction.sgn().conj()[:, None, :], decided


def _axis(vectors: Shaped[Tensor, "b n k"]) -> tuple[Shaped[Tensor, "b k"], Bool[Tensor, "b k"]]:
    """The direction of `√Σγ²` that makes the largest |Re| positive; where it vanishes, that of the largest entry."""
    square = (vectors * vectors).sum(1)
    lead = vectors.gather(1, (vectors.abs() > vectors.abs().amax(1, keepdim=True) - TIE).int().argmax(1)[:, None])[:, 0]
    axis = torch.where(square.abs() > ZERO, square, lead * lead).sgn().sqrt()
    real = (vectors * axis.conj()[:, None, :]).real
    largest = real.abs() > real.abs().amax(1, keepdim=True) - TIE
    sign = real.gather(1, largest.int().argmax(1)[:, None])[:, 0].sgn()
    one_signed = ((real * sign[:, None, :] > 0) | ~largest).all(1)
    return axis * sign, (square.abs() > ZERO) & one_signed
