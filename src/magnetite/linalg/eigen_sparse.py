"""The k lowest eigenpairs of a large sparse Hermitian matrix: block Krylov subspaces of a Chebyshev filter."""

from collections.abc import Callable
from math import acosh, ceil, log

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from magnetite.linalg.sparse import SparseHermitian, inner, mix
from magnetite.linalg.threads import single_threaded

SPARSE_TOLERANCE = 1e-6
"""Largest residual `‖Lγ − λγ‖`, relative to the bound on `‖L‖`, that passes."""


def tolerance_for(size: int) -> float:
    """What is asked of the solver: where it is cheap, enough digits for vectors that agree with a dense solver's."""
    return 1e-10 if size <= 100_000 else SPARSE_TOLERANCE


STEPS = 16
"""Blocks that a cycle adds to the subspace, or more where twice the wanted vectors would not fit."""

SPARE = 8
"""Vectors kept from cycle to cycle beyond the wanted ones."""

DEGREES = (8, 24, 40, 40, 80, 160)
"""Degree of the filter in the first cycles; the last one stays."""

GAIN = 1e6
"""A filter lifts no pair that is still open by more than this: a block must not collapse to its lowest vector."""

CAUTION = 2
"""How many times the degree that would suffice at the last cycle's rate is taken."""

CANCELLED = 1e-2
"""Length of the rest of a unit vector below which it is made orthogonal once more."""

TOGETHER = 32
"""Vectors whose products with the whole basis are taken in one pass over it."""

CYCLES = 60

Progress = Callable[[int, float], None]
"""Called after each cycle with the number of pairs found and the largest residual of those wanted."""


def lowest_sparse(
    matrix: SparseHermitian,
    k: int,
    tolerance: float = SPARSE_TOLERANCE,
    seed: int = 0,
    progress: Progress | None = None,
) -> tuple[Float[Tensor, " k"], Shaped[Tensor, "k n"], Float[Tensor, " k"]]:
    """Eigenvalues, orthonormal eigenvectors (rows) and residuals `‖Lγ − λγ‖ / ‖L‖`, none above `tolerance`.

    A cycle extends the best vectors of the one before by the block Krylov space of `ρ(L)`, where the Chebyshev
    polynomial `ρ` is small between the highest eigenvalue and a Ritz value above the k wanted ones, and grows fast
    below; then Rayleigh and Ritz choose the best vectors for `L` itself. Pairs that are found are projected out of the
    filter. The start is random from `seed`, and so is a part of every cycle's first block, so that further copies of a
    repeated eigenvalue are found.
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

    def __init__(self, matrix: SparseHermitian, k: int, wanted: float, seed: int):
        self.matrix, self.k, self.wanted = matrix, k, wanted
        self.random = torch.Generator().manual_seed(seed)
        self.steps = max(STEPS, -(-(2 * k + SPARE) // matrix.block))
        self.basis = matrix.data.new_empty((k + SPARE + self.steps * matrix.block, matrix.size))
        self.vectors = self.basis.new_empty((0, matrix.size))
        self.values = self.residuals = self.basis.new_empty(0, dtype=torch.float64)
        self.turn, self.degree, self.worst = 0, DEGREES[0], matrix.top

    @property
    def found(self) -> int:
        """How many of the lowest wanted pairs have passed."""
        open_pairs = (self.residuals[: self.k] >= self.wanted).nonzero()
        return int(open_pairs[0]) if open_pairs.numel() else min(self.k, self.residuals.numel())

    def cycle(self) -> None:
        """Build a Krylov space beside the pairs that are found, then choose the best vectors in it and the old ones."""
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
        """The degree of the next filters: as planned, or what the last cycle's progress says is enough."""
        planned = DEGREES[min(self.turn, len(DEGREES) - 1)]
        worst = float(self.residuals[: self.k].max()) if self.turn else self.worst
        if self.turn > 1 and self.wanted < worst < self.worst:
            needed = self.degree * log(worst / self.wanted) / log(self.worst / worst)
            planned = min(planned, max(DEGREES[0], ceil(CAUTION * needed)))
        self.degree, self.worst = planned, worst

    def _first_block(self) -> Tensor:
        """Mixtures of the pairs that are still open, and some noise for what was missed."""
        noise = self._noise(self.matrix.block, self.matrix.size)
        if not self.turn:
            return noise
        found = self.found
        mixture = mix(self._noise(len(noise), len(self.vectors) - found), self.vectors[found:])
        block = mixture + noise * (0.1 * torch.linalg.vector_norm(mixture) / torch.linalg.vector_norm(noise))
        # The last few open pairs are best served by starting from their own vectors.
        few = self.vectors[found : self.k]
        if len(few) < len(block):
            block[: len(few)] = few
        return block

    def _noise(self, *shape: int) -> Tensor:
        return torch.randn(shape, dtype=self.basis.dtype, generator=self.random).to(self.basis.device)

    def _filter(self, block: Tensor) -> Tensor:
        """`ρ(L) X`: the found vectors are projected out now and then, before rounding lets them grow back."""
        high = self.matrix.top
        # Not the first value above the wanted ones: too close to them for the filter to tell them apart.
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
        """The part of the block outside the basis, orthonormal; what is inside it is left out."""
        lengths = torch.linalg.vector_norm(block, dim=1, keepdim=True).clamp(min=1e-300)
        block = _without(block / lengths, self.basis[:size])
        # What is left of a vector after most of it cancelled is not yet orthogonal.
        if len(block) and float(torch.linalg.vector_norm(block, dim=1).min()) < CANCELLED:
            block = _without(_orthonormalise(block), self.basis[:size])
        return _orthonormalise(block)

    def _rayleigh_ritz(self, size: int) -> None:
        basis = self.basis[:size]
        # The products (L v_j)ᴴ v_i make the conjugate of VᴴLV, and so of its eigenvectors.
        parts = [inner(basis, self.matrix.times(some)) for some in basis.split(TOGETHER)]
        small = torch.cat(parts, dim=1)
        self.values, turn = torch.linalg.eigh((small + small.mH) / 2)
        self.vectors = mix(turn.mH[: self.k + SPARE].contiguous(), basis)
        kept = self.values[: len(self.vectors), None]
        self.residuals = torch.linalg.vector_norm(self.matrix.times(self.vectors) - kept * self.vectors, dim=1)


def _without(block: Shaped[Tensor, "b n"], known: Shaped[Tensor, "f n"]) -> Shaped[Tensor, "b n"]:
    """The vectors without their parts along the known ones."""
    return block - mix(inner(block, known), known) if len(known) else block


def _orthonormalise(block: Shaped[Tensor, "b n"]) -> Shaped[Tensor, "left n"]:
    """An orthonormal basis of the vectors' span, by the eigenvectors of their Gram matrix, twice.

    The vectors are parts of unit vectors: what is shorter than 1e-12 is rounding, and left out.
    """
    for _ in range(2):
        if len(block):
            squares, turn = torch.linalg.eigh(inner(block, block))
            whole = squares > (1e-14 * squares[-1]).clamp(min=1e-24)
            block = mix((turn[:, whole] * squares[whole].rsqrt()).mH.contiguous(), block)
    return block
