"""Which multiple of an eigenvector? A choice that depends on the graph alone, not on the solver or the node order."""

from math import pi

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor

ZERO = 1e-4
"""Sums and entries of unit vectors below this carry no dependable phase."""

TIE = 1e-5
"""Angles (in radians) and moduli closer than this are equal."""


def normalise(
    vectors: Shaped[Tensor, "b n k"], root: Int[Tensor, " b"] | None = None
) -> tuple[Shaped[Tensor, "b n k"], Bool[Tensor, "b k"]]:
    """Rotate every eigenvector so that its value at the root is real and positive.

    1. The first eigenvector is turned until its `|γ|`-weighted mean direction, `Σ_v γ_v`, is real and positive.
    2. The root is the given node, or the one of the largest angle (the foremost source); among equal angles the one of
       the largest modulus; among those that are equal in both, all of them together, so that no node id decides.
    3. `γ_j ← γ_j · conj(sgn Σ_{u∈root} γ_{u,j})`. Where that sum is numerically zero, `Σ_v |γ_v|γ_v` takes its place.
    4. Where that vanishes too, `Σ_v γ_v²` fixes the axis, and the largest `|Re|` is made positive.

    Returns the vectors, and whether the graph alone decided the phase of each: where a symmetry of the graph turns a
    vector into a multiple of itself (a directed circle, two nodes that mirror each other), no rule can, and the node
    order decides.

    Reversing all edges conjugates `L` and so each eigenvector. With a given root the normalised vectors are then
    conjugated exactly; with a found one, the reversed graph's root is its own foremost source, the other's last sink.

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
    turned, decided = _orient(vectors, at_root)
    return turned, decided & (certain | (at_root.abs() <= ZERO))


def _foremost(first: Shaped[Tensor, "b n"]) -> Float[Tensor, "b n"]:
    """1 at the node (or the tied nodes) of the largest angle and, among those, the largest modulus; else 0."""
    modulus = first.abs()
    angle = first.angle()
    # Rounding must not decide on which side of the cut the opposite direction lies.
    angle = torch.where(angle < TIE - pi, angle + 2 * pi, angle).masked_fill(modulus <= ZERO, -torch.inf)
    leading = angle >= angle.amax(1, keepdim=True) - TIE
    modulus = modulus.masked_fill(~leading, -1)
    return (modulus >= modulus.amax(1, keepdim=True) - TIE).to(modulus)


def _orient(
    vectors: Shaped[Tensor, "b n k"], wanted: Shaped[Tensor, "b k"]
) -> tuple[Shaped[Tensor, "b n k"], Bool[Tensor, "b k"]]:
    """Turn each vector so that `wanted` becomes real and positive, or what replaces it where it vanishes."""
    mean = (vectors.abs() * vectors).sum(1)
    direction = torch.where(wanted.abs() > ZERO, wanted, mean)
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
