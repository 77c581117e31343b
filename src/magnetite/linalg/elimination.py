"""The k lowest eigenpairs of a connected graph from the inverse of its Laplacian, accurate relative to themselves.

Errors of a solver that multiplies by `L` are relative to `‖L‖`, which one heavy edge makes much larger than the
eigenvalues asked for. Here the graph's nodes are eliminated without a subtraction (`kernels.cpu.elimination`), and a
block Krylov space of the inverse finds the largest eigenvalues `1/λ`. Where these are far apart, they are found one
order of magnitude after the other, each time without the vectors that are known.
"""

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from magnetite.linalg.inverse import Eliminator, Inverse
from magnetite.linalg.laplacian import Operator
from magnetite.linalg.pairs import NodePairs
from magnetite.linalg.threads import single_threaded

BUDGET = 10**9
"""Largest number of updates of entries, some 10 s; beyond, the matrix fills up, and another solver is needed."""

BASIS_NUMBERS = 10**8
"""Largest number of entries of the basis of a Krylov space."""

BLOCK = 8
"""Number of vectors that a step adds to the space."""

NEAR = 1e-2
"""Pairs with a smaller `1/λ`, relative to the largest, are left to the next round."""

CONVERGED = 1e-12
"""Largest accepted residual of the inverse, relative to its largest eigenvalue."""

FLOOR = 1e-5, 3
"""A residual below the first number that has not halved in the second number of tests is due to rounding errors."""

CONFIRMED = 1e-6
"""The same for the eigenvalue after the last, which only has to be larger than that."""


def lowest_by_elimination(
    pairs: NodePairs, operator: Operator, k: int, seed: int = 0
) -> tuple[Float[Tensor, " k"], Shaped[Tensor, "k n"]] | None:
    """Eigenvalues and orthonormal eigenvectors (rows) of one connected graph; None if that takes too long.

    Args:
        pairs: The node pairs of the graph.
        operator: Which Laplacian, with an absolute potential.
        k: Number of eigenpairs.
        seed: Seed of the random vectors.
    """
    inverse = Eliminator(pairs, operator).inverse(0.0, BUDGET)
    if inverse is None:
        return None
    random = torch.Generator().manual_seed(seed)
    n, k = inverse.size, min(k, inverse.size)
    known = inverse.null if inverse.null is not None else inverse.empty()
    scales = torch.full((known.shape[1],), torch.inf, dtype=torch.float64)
    with single_threaded():
        while known.shape[1] < n:
            missing = k - known.shape[1]
            found = _largest(inverse, known, max(missing, 1), random, CONVERGED if missing > 0 else CONFIRMED)
            if found is None:
                return None
            # A repeated eigenvalue has more copies than a block has vectors: one that was missed shows up here.
            if missing <= 0 and float(found[0][0]) <= float(scales.sort(descending=True).values[k - 1]) * (1 + 1e-9):
                break
            if missing <= 0:
                found = _largest(inverse, known, 1, random, CONVERGED)
                if found is None:
                    return None
            scales, known = torch.cat([scales, found[0]]), torch.cat([known, found[1]], dim=1)
    order = torch.sort(scales, descending=True, stable=True).indices[:k]
    vectors = known[:, order].T.contiguous()
    return scales[order].reciprocal(), vectors if inverse.turn is None else vectors * inverse.turn


def _largest(
    inverse: Inverse, known: Tensor, count: int, random: torch.Generator, tolerance: float
) -> tuple[Tensor, Tensor] | None:
    """Up to `count` largest eigenpairs of the inverse, of one order of magnitude, orthogonal to the known vectors."""
    n = inverse.size
    room = min(n - known.shape[1], max(BASIS_NUMBERS // n, 4 * BLOCK))
    basis, images = inverse.empty(), inverse.empty()
    block, due = torch.randn((n, BLOCK), dtype=inverse.dtype, generator=random), 2 * BLOCK + count
    worst: list[float] = []
    while basis.shape[1] < room:
        block = _orthonormal(block, known, basis)[:, : room - basis.shape[1]]
        if not block.shape[1]:
            block = _orthonormal(torch.randn((n, BLOCK), dtype=inverse.dtype, generator=random), known, basis)
            block = block[:, : room - basis.shape[1]]
            if not block.shape[1]:
                break
        image = _without(inverse.times(block), known)
        if not bool(torch.isfinite(torch.linalg.vector_norm(image))):
            return None
        basis, images = torch.cat([basis, block], dim=1), torch.cat([images, image], dim=1)
        block, width = image, basis.shape[1]
        if width < due and width < room:
            continue
        due = width + max(BLOCK, width // 4)
        small = basis.mH @ images
        values, turns = torch.linalg.eigh((small + small.mH) / 2)
        values, turns = values.flip(0), turns.flip(1)
        some = turns[:, :count]
        residual = torch.linalg.vector_norm(images @ some - basis @ some * values[:count], dim=0)
        near = values[:count] >= NEAR * values[0]
        done = residual <= tolerance * values[0]
        if bool((done | ~near).all()) or basis.shape[1] == n - known.shape[1]:
            close = max(int(near.sum()), 1)
            return values[:close], basis @ turns[:, :close]
        worst.append(float(residual[near].max() / values[0]))
        if worst[-1] < FLOOR[0] and len(worst) > FLOOR[1] and worst[-1] > worst[-1 - FLOOR[1]] / 2:
            return None
    return None


def _orthonormal(block: Tensor, known: Tensor, basis: Tensor) -> Tensor:
    """An orthonormal basis of what the block adds to the known vectors and the basis."""
    block = block / torch.linalg.vector_norm(block, dim=0).clamp(min=1e-300)
    for _ in range(2):
        block = _without(_without(block, known), basis)
        whole, triangle = torch.linalg.qr(block)
        kept = triangle.diagonal().abs() > 1e-10
        block = whole[:, kept]
    return _without(_without(block, known), basis)


def _without(block: Tensor, known: Tensor) -> Tensor:
    return block - known @ (known.mH @ block) if known.shape[1] else block
