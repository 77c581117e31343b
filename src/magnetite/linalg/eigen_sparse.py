"""The k lowest eigenpairs of a large sparse Hermitian matrix: block Krylov subspaces of a Chebyshev filter."""

from collections.abc import Callable
from math import acosh, ceil, log

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from magnetite.linalg.sparse import SparseHermitian, inner, mix
from magnetite.linalg.threads import single_threaded

SPARSE_TOLERANCE = 1e-6
"""Largest accepted residual `‖Lγ − λγ‖`, relative to the bound on `‖L‖`."""


def tolerance_for(size: int) -> float:
    """Tolerance for the solver: where it is cheap, small enough for vectors that agree with a dense solver's."""
    return 1e-10 if size <= 100_000 else SPARSE_TOLERANCE


STEPS = 16
"""Blocks that a cycle adds to the subspace; more if 2k vectors would not fit."""

SPARE = 8
"""Vectors kept from cycle to cycle in addition to the k lowest."""

DEGREES = (8, 24, 40, 40, 80, 160)
"""Degree of the filter in the first cycles; the last value is used in all others."""

GAIN = 1e6
"""Largest amplification of an unconverged eigenpair by a filter, so that a block does not collapse to one vector."""

CAUTION = 2
"""Factor by which the degree exceeds what would suffice at the rate of the last cycle."""

CANCELLED = 1e-2
"""Length of the remainder of a unit vector below which it is orthogonalised again."""

TOGETHER = 32
"""Number of vectors multiplied with the whole basis in one pass over it."""

CYCLES = 60

Progress = Callable[[int, float], None]
"""Called after each cycle with the number of converged eigenpairs and the largest residual of the k lowest."""


def lowest_sparse(
    matrix: SparseHermitian,
    k: int,
    tolerance: float = SPARSE_TOLERANCE,
    seed: int = 0,
    progress: Progress | None = None,
) -> tuple[Float[Tensor, " k"], Shaped[Tensor, "k n"], Float[Tensor, " k"]]:
    """Eigenvalues, orthonormal eigenvectors (rows) and residuals `‖Lγ − λγ‖ / ‖L‖`, none above `tolerance`.

    A cycle extends the best vectors of the last one by the block Krylov space of `ρ(L)`, where the Chebyshev polynomial
    `ρ` is small between the highest eigenvalue and a Ritz value above the k lowest, and grows fast below; then a
    Rayleigh–Ritz step chooses the best vectors for `L` itself. Converged vectors are projected out of the filter. The
    first block is random, and so is a component of the first block of every cycle, so that further copies of a repeated
    eigenvalue are found.

    Args:
        matrix: A sparse Hermitian matrix.
        k: Number of eigenpairs.
        tolerance: Largest residual, relative to `‖L‖`.
        seed: Seed of the random vectors.
        progress: Called after each cycle.
    """
    with single_threaded():
        space = _Subspace(matrix, k, tolerance * matrix.top, seed)
        for _ in range(CYCLES):
            space.cycle()
            if progress is not None:
                progress(space.found, float(space.residuals[:k].max() / matrix.top))
            if space.found == k:
                break
    return space.values[:k], space.vectors[:k], space.residuals[:k] / matrix.top


class _Subspace:
    """Ritz pairs of a matrix, improved cycle by cycle."""

    def __init__(self, matrix: SparseHermitian, k: int, tolerance: float, seed: int):
        self.matrix, self.k, self.tolerance = matrix, k, tolerance
        self.random = torch.Generator().manual_seed(seed)
        self.steps = max(STEPS, -(-(2 * k + SPARE) // matrix.block))
        self.basis = matrix.data.new_empty((k + SPARE + self.steps * matrix.block, matrix.size))
        self.vectors = self.basis.new_empty((0, matrix.size))
        self.values = self.residuals = self.basis.new_empty(0, dtype=torch.float64)
        self.turn, self.degree, self.worst = 0, DEGREES[0], matrix.top

    @property
    def found(self) -> int:
        """Number of lowest eigenpairs that have all converged."""
        open_pairs = (self.residuals[: self.k] >= self.tolerance).nonzero()
        return int(open_pairs[0]) if open_pairs.numel() else min(self.k, self.residuals.numel())

    def cycle(self) -> None:
        """Build a Krylov space orthogonal to the converged vectors, then choose the best of its and the old vectors."""
        found = self.found
        self._plan()
        self.basis[:found] = self.vectors[:found]
        size, block = found, self._first_block()
        for _ in range(self.steps):
            block = self._orthonormal(self._filter(block), size)
            if not len(block):
                break
            self.basis[size : size + len(block)] = block
            size += len(block)
        old = self._orthonormal(self.vectors[found:], size)
        self.basis[size : size + len(old)] = old
        self._rayleigh_ritz(size + len(old))
        self.turn += 1

    def _plan(self) -> None:
        """The degree of the next filters: as planned, or lower if the progress of the last cycle suggests it."""
        planned = DEGREES[min(self.turn, len(DEGREES) - 1)]
        worst = float(self.residuals[: self.k].max()) if self.turn else self.worst
        if self.turn > 1 and self.tolerance < worst < self.worst:
            needed = self.degree * log(worst / self.tolerance) / log(self.worst / worst)
            planned = min(planned, max(DEGREES[0], ceil(CAUTION * needed)))
        self.degree, self.worst = planned, worst

    def _first_block(self) -> Tensor:
        """Linear combinations of the unconverged vectors, and some noise to find eigenvectors that were missed."""
        noise = self._noise(self.matrix.block, self.matrix.size)
        if not self.turn:
            return noise
        found = self.found
        mixture = mix(self._noise(len(noise), len(self.vectors) - found), self.vectors[found:])
        block = mixture + noise * (0.1 * torch.linalg.vector_norm(mixture) / torch.linalg.vector_norm(noise))
        # The last few eigenpairs converge fastest from their own vectors.
        few = self.vectors[found : self.k]
        if len(few) < len(block):
            block[: len(few)] = few
        return block

    def _noise(self, *shape: int) -> Tensor:
        return torch.randn(shape, dtype=self.basis.dtype, generator=self.random).to(self.basis.device)

    def _filter(self, block: Tensor) -> Tensor:
        """`ρ(L) X`; converged vectors are projected out from time to time, before rounding lets them grow back."""
        high = self.matrix.top
        # Not the first value above the k lowest, which is too close for the filter to separate.
        low = float(self.values[min(self.k + SPARE, len(self.values) - 1)]) if self.turn else high / 2
        centre, half = (high + low) / 2, (high - low) / 2

        def rate(pair: int) -> float:
            value = float(self.values[pair]) if self.turn else 0.0
            return acosh(max((centre - value) / half, 1 + 1e-9))

        found = min(self.found, self.k - 1)
        degree = max(1, min(self.degree, int(acosh(GAIN) / rate(found))))
        pause = max(1, int(acosh(GAIN) / rate(0)))
        known = self.vectors[:found]
        before = self.matrix.pack(_without(block, known))
        now = self.matrix.combine(before, torch.zeros_like(before), centre, 1 / half, 0.0)
        for step in range(2, degree + 1):
            before, now = now, self.matrix.combine(now, before, centre, 2 / half, 1.0)
            if found and step % pause == 0:
                before, now = self._clean(before, known, len(block)), self._clean(now, known, len(block))
        return self.matrix.unpack(now, len(block))

    def _clean(self, packed: Tensor, known: Tensor, count: int) -> Tensor:
        return self.matrix.pack(_without(self.matrix.unpack(packed, count), known))

    def _orthonormal(self, block: Tensor, size: int) -> Tensor:
        """An orthonormal basis of the component of the block that is orthogonal to the current basis."""
        lengths = torch.linalg.vector_norm(block, dim=1, keepdim=True).clamp(min=1e-300)
        block = _without(block / lengths, self.basis[:size])
        # The remainder of a vector that has mostly cancelled is not orthogonal yet.
        if len(block) and float(torch.linalg.vector_norm(block, dim=1).min()) < CANCELLED:
            block = _without(_orthonormalise(block), self.basis[:size])
        return _orthonormalise(block)

    def _rayleigh_ritz(self, size: int) -> None:
        basis = self.basis[:size]
        # The products (L v_j)ᴴ v_i give the conjugate of VᴴLV, and therefore of its eigenvectors.
        products = [inner(basis, self.matrix.times(some)) for some in basis.split(TOGETHER)]
        small = torch.cat(products, dim=1)
        self.values, turn = torch.linalg.eigh((small + small.mH) / 2)
        self.vectors = mix(turn.mH[: self.k + SPARE].contiguous(), basis)
        kept = self.values[: len(self.vectors), None]
        self.residuals = torch.linalg.vector_norm(self.matrix.times(self.vectors) - kept * self.vectors, dim=1)


def _without(block: Shaped[Tensor, "b n"], known: Shaped[Tensor, "f n"]) -> Shaped[Tensor, "b n"]:
    """The vectors without their components along the known ones."""
    return block - mix(inner(block, known), known) if len(known) else block


def _orthonormalise(block: Shaped[Tensor, "b n"]) -> Shaped[Tensor, "left n"]:
    """An orthonormal basis of the vectors' span, by the eigenvectors of their Gram matrix, twice.

    The vectors are components of unit vectors: those shorter than 1e-12 are rounding errors, and left out.
    """
    for _ in range(2):
        if len(block):
            squares, turn = torch.linalg.eigh(inner(block, block))
            whole = squares > (1e-14 * squares[-1]).clamp(min=1e-24)
            block = mix((turn[:, whole] * squares[whole].rsqrt()).mH.contiguous(), block)
    return block
