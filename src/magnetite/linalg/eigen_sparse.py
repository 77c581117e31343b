"""The k lowest eigenpairs of a large sparse Hermitian matrix: restarted Lanczos iteration of a filter or an inverse."""

from collections.abc import Callable
from dataclasses import dataclass
from math import acosh, cosh, log
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from magnetite.linalg.inverse import Inverse
from magnetite.linalg.sparse import SparseHermitian, inner, lengths, mix
from magnetite.linalg.threads import single_threaded

SPARSE_TOLERANCE = 1e-6
"""Largest accepted residual `‖Lγ − λγ‖`, relative to the bound on `‖L‖`."""


def tolerance_for(size: int) -> float:
    """Tolerance for the solver: where it is cheap, small enough for vectors that agree with a dense solver's."""
    return 1e-10 if size <= 100_000 else SPARSE_TOLERANCE


SURVEY = 32
"""Steps of the plain Lanczos iteration that estimates the distribution of the eigenvalues."""

BELOW = 2
"""The filter amplifies about this many times k eigenvalues: with more it is flat, with fewer it amplifies all alike."""

DEGREES = 14, 160
"""Smallest and largest degree of a filter: orthogonalising a vector costs as much as some products."""

STEEPER = 1.5
"""A filter is replaced when a degree this many times its own would be better."""

GAIN = 1e5
"""Largest ratio between the amplifications of the k lowest eigenpairs: the last digits of the others are lost."""

LARGEST = 1e12
"""Largest amplification of an eigenpair."""

ROOM = 32
"""The basis has room for this many vectors in addition to 2k."""

AMPLIFIED = 1.05
"""Values of `ρ` above this belong to eigenvalues below the damped interval, where `ρ` is monotone."""

KEPT = 0.4
"""Share of the vectors beyond the k lowest that a restart keeps."""

EVERY = 4
"""Steps between tests of convergence."""

CANCELLED = 1e-2
"""Length of the remainder of a unit vector below which it is orthogonalised again."""

EXHAUSTED = 1e-13
"""Length of the remainder of a unit vector that is nothing but rounding errors: the Krylov space is invariant."""

CYCLES = 60

SHIFT = 1e-5
"""First shift of an inverse, relative to the bound on `‖L‖`; much smaller eigenvalues need a smaller one."""

FEW = 4
"""Matrix entries per row, the diagonal included, up to which an inverse is tried: trees, paths and the like."""

BUDGET = 500
"""Updates of entries per matrix entry that this may take; a filter needs some 1,000 products or more."""

RELATIVE = 1e-7
"""Residuals relative to the k-th eigenvalue that an inverse reaches without effort."""

Progress = Callable[[int, float], None]
"""Called after each cycle with the number of converged eigenpairs and the largest residual of the k lowest."""

Invert = Callable[[float, int], Inverse | None]
"""Makes `(L + sI)^{-1}`, given `s` and the largest number of updates of entries; None if it needs more."""


def lowest_sparse(
    matrix: SparseHermitian,
    k: int,
    tolerance: float = SPARSE_TOLERANCE,
    seed: int = 0,
    progress: Progress | None = None,
    invert: Invert | None = None,
) -> tuple[Float[Tensor, " k"], Shaped[Tensor, "k n"], Float[Tensor, " k"], float]:
    """Eigenvalues, orthonormal eigenvectors (rows), residuals `‖Lγ − λγ‖ / ‖L‖` up to `tolerance`, and the resolution.

    An eigenvalue may have been missed if it is below the k-th by no more than the resolution, relative to the k-th.

    The Lanczos iteration runs on `ρ(L)`, where the Chebyshev polynomial `ρ` is small between the highest eigenvalue and
    some value above the k lowest, and grows fast below: far fewer vectors than products have to be orthogonalised. A
    survey, then the Ritz values of each cycle choose `ρ`. A full basis is restarted from its best vectors. If the
    matrix has few entries and so has its inverse as a product of sparse factors, `ρ` is `1 / (λ + s)` instead, which
    needs the fewest vectors.

    The Krylov space of one vector contains one vector of each eigenspace. So, after convergence, another iteration
    begins with a random vector orthogonal to the k found ones, and searches for eigenvalues below the highest of them.

    Args:
        matrix: A sparse Hermitian matrix.
        k: Number of eigenpairs.
        tolerance: Largest residual, relative to `‖L‖`.
        seed: Seed of the random vectors.
        progress: Called after each cycle.
        invert: Makes inverses, if they may be used.
    """
    with single_threaded():
        search = _Search(matrix, k, tolerance, seed, invert)
        for _ in range(CYCLES):
            search.cycle()
            if progress is not None:
                progress(search.found, search.worst)
            if search.complete:
                break
        return search.result()


@runtime_checkable
class Transform(Protocol):
    """A function `ρ` of the matrix: above 1 and decreasing where the lowest eigenvalues are, smaller elsewhere."""

    def times(self, matrix: SparseHermitian, vector: Shaped[Tensor, " n"], /) -> Shaped[Tensor, " n"]:
        """`ρ(L) v`."""
        ...

    def at(self, value: float) -> float:
        """`ρ(λ)`."""
        ...

    def inverse(self, found: Float[Tensor, " m"]) -> tuple[Float[Tensor, " m"], Float[Tensor, " m"]]:
        """`λ` for values of `ρ(λ)`, and `|ρ'(λ)|`."""
        ...


@dataclass(frozen=True)
class Filter:
    """`ρ(λ) = T_d((c − λ) / h)`: at most 1 in size between `low` and `top`, and monotone below `low`.

    Args:
        low: Lower end of the interval that is damped, `c − h`.
        top: Upper end of it, `c + h`.
        degree: Degree `d` of the Chebyshev polynomial.
    """

    low: float
    top: float
    degree: int

    @property
    def centre(self) -> float:
        """The middle of the damped interval."""
        return (self.top + self.low) / 2

    @property
    def half(self) -> float:
        """Half the length of the damped interval."""
        return (self.top - self.low) / 2

    def times(self, matrix: SparseHermitian, vector: Shaped[Tensor, " n"]) -> Shaped[Tensor, " n"]:
        """`ρ(L) v`."""
        return matrix.filtered(vector, self.centre, self.half, self.degree)

    def rate(self, value: float) -> float:
        """`log ρ(λ)` grows by this with each degree."""
        return acosh(max((self.centre - value) / self.half, 1.0))

    def at(self, value: float) -> float:
        """`ρ(λ)` below `low`, and 1 above."""
        return cosh(self.degree * self.rate(value))

    def inverse(self, found: Float[Tensor, " m"]) -> tuple[Float[Tensor, " m"], Float[Tensor, " m"]]:
        """`λ` for values of `ρ(λ)`, and `|ρ'(λ)|`; values up to 1 give `low`.

        >>> cubic = Filter(0.5, 2.0, 3)
        >>> value, slope = cubic.inverse(torch.tensor([cubic.at(0.25)], dtype=torch.float64))
        >>> value.round(decimals=9).tolist(), slope.round(decimals=3).tolist()
        ([0.25], [24.444])
        """
        angle = torch.acosh(found.clamp(min=1)) / self.degree
        steep = torch.where(
            angle > 0, self.degree * torch.sinh(self.degree * angle) / torch.sinh(angle), float(self.degree**2)
        )
        return self.centre - self.half * torch.cosh(angle), steep / self.half


@dataclass(frozen=True)
class Inversion:
    """`ρ(λ) = 2 (top + s) / (λ + s)`.

    Args:
        solver: `(L + sI)^{-1}`.
        shift: `s`, not negative.
        top: A bound on the eigenvalues.
    """

    solver: Inverse
    shift: float
    top: float

    @property
    def scale(self) -> float:
        """`ρ(λ) (λ + s)`."""
        return 2 * (self.top + self.shift)

    def times(self, _: SparseHermitian, vector: Shaped[Tensor, " n"]) -> Shaped[Tensor, " n"]:
        """`ρ(L) v`; the matrix itself is not needed."""
        return self.solver.times(vector).mul_(self.scale)

    def at(self, value: float) -> float:
        """`ρ(λ)`."""
        return self.scale / (value + self.shift)

    def inverse(self, found: Float[Tensor, " m"]) -> tuple[Float[Tensor, " m"], Float[Tensor, " m"]]:
        """`λ` for values of `ρ(λ)`, and `|ρ'(λ)|`; values up to 1 count as 1."""
        shifted = self.scale / found.clamp(min=1)
        return shifted - self.shift, self.scale / shifted.square()


class _Space:
    """An orthonormal basis, and the projection of `ρ(L)` onto the part of it that is not fixed."""

    def __init__(self, matrix: SparseHermitian, rows: int, random: torch.Generator):
        self.matrix, self.random = matrix, random
        self.basis = matrix.data.new_empty((rows, matrix.size))
        # Real, as in every Lanczos iteration: the couplings are lengths, or lengths times a real rotation.
        self.projection = torch.zeros((rows, rows), dtype=torch.float64)
        self.fixed = self.size = 0
        self.next: Tensor | None = None
        self.values = self.residuals = torch.zeros(0, dtype=torch.float64)
        self.turn, self.coupling = torch.zeros((0, 0), dtype=torch.float64), 0.0

    def begin(self, fixed: Tensor, kept: Tensor, values: Tensor, start: Tensor | None) -> None:
        """A new basis of vectors that are only kept orthogonal, Ritz vectors with their values, and a first vector."""
        self.fixed, self.size = len(fixed), len(fixed) + len(kept)
        self.basis[: self.fixed], self.basis[self.fixed : self.size] = fixed, kept
        self.projection.zero_()
        self.projection.diagonal()[: len(kept)] = values
        self.next = None if start is None else self._orthonormal(start)

    def survey(self, rho: Transform, steps: int) -> None:
        """A Lanczos iteration whose vectors are not kept orthogonal: enough to tell where many eigenvalues are."""
        before, left = None, 0.0
        while self.size < steps and self.next is not None:
            vector = self.basis[self.size] = self.next
            image = rho.times(self.matrix, vector)
            length = _length(image)
            own = _take(image, vector, before, left)
            column, before = self.size, vector
            self.projection[column, column] = own
            if column:
                self.projection[column - 1, column] = self.projection[column, column - 1] = left
            left = _length(image)
            self.size += 1
            self.next = image / left if left > EXHAUSTED * length else None
        self._solve(0.0)

    def grow(self, rho: Transform, limit: int, enough: Callable[[], bool]) -> None:
        """Extend the Krylov space of `ρ(L)` until the basis has `limit` vectors or `enough` says so."""
        steps, left = 0, 0.0
        while self.size < limit:
            before = self.basis[self.size - 1] if steps and self.next is not None else None
            vector = self.next if self.next is not None else self._orthonormal(self.noise())
            if vector is None:
                break
            self.basis[self.size] = vector
            self.size += 1
            image = rho.times(self.matrix, vector)
            weights, rest, length, left = self._split(image, before, left)
            column = self.size - self.fixed - 1
            self.projection[: column + 1, column] = self.projection[column, : column + 1] = weights[self.fixed :]
            self.next = rest.div_(left) if left > EXHAUSTED * length else None
            steps += 1
            if self.size == limit or steps % EVERY == 0:
                self._solve(0.0 if self.next is None else left)
                if enough():
                    break

    def lowest(self, count: int) -> Shaped[Tensor, "count n"]:
        """The Ritz vectors of the `count` largest values of `ρ`."""
        return mix(self.turn[:, :count].mT.to(self.basis), self.basis[self.fixed : self.size])

    def lowest_images(self, count: int) -> Shaped[Tensor, "count n"]:
        """`ρ(L) v / ρ` of these vectors `v`, which the iteration knows: what `ρ` damps is damped once more."""
        if self.next is None:
            return self.lowest(count)
        along = self.coupling * self.turn[-1, :count] / self.values[:count]
        return self.lowest(count).addr_(along.to(self.next), self.next)

    def noise(self) -> Shaped[Tensor, " n"]:
        """A random vector."""
        return torch.randn(self.matrix.size, dtype=self.basis.dtype, generator=self.random).to(self.basis.device)

    def _solve(self, coupling: float) -> None:
        """Values of `ρ(L)` in descending order, and their residuals."""
        size = self.size - self.fixed
        values, turn = torch.linalg.eigh(self.projection[:size, :size])
        self.values, self.turn, self.coupling = values.flip(0), turn.flip(1), coupling
        self.residuals = coupling * self.turn[-1].abs()

    def _split(self, image: Tensor, before: Tensor | None, coupling: float) -> tuple[Tensor, Tensor, float, float]:
        """Real parts of the components along the basis, the remainder, and the lengths of the image and of it.

        One pass over the basis spreads what is left of the errors of the vectors before, unless the components are
        small. So the two large ones of a Lanczos step are removed first; without a vector before, there are two passes.
        """
        basis, length = self.basis[: self.size], _length(image)
        weights = torch.zeros(self.size, dtype=torch.float64)
        if before is not None:
            weights[-1], weights[-2] = _take(image, basis[-1], before, coupling), coupling
        left = length
        for _ in range(1 if before is not None else 2):
            along = inner(image[None], basis)
            image.sub_(mix(along, basis)[0])
            weights += along[0].real.double().cpu()
            left = _length(image)
        # What cancels once more is nothing but rounding errors.
        if left < CANCELLED * length:
            image.sub_(mix(inner(image[None], basis), basis)[0])
            left, last = _length(image), left
            left = left if left > CANCELLED * last else 0.0
        return weights, image, length, left

    def _orthonormal(self, vector: Tensor) -> Tensor | None:
        """The component orthogonal to the basis, as a unit vector; None if there is none."""
        for _ in range(2):
            length = _length(vector)
            if self.size and length:
                vector = vector - mix(inner(vector[None], self.basis[: self.size]), self.basis[: self.size])[0]
            left = _length(vector)
            if left <= EXHAUSTED * length or not length:
                return None
            vector = vector / left
        return vector


def _take(image: Tensor, vector: Tensor, before: Tensor | None, coupling: float) -> float:
    """Remove from the image of a vector the components along it, which is returned, and along the one before."""
    own = _dot(vector, image)
    image.sub_(vector, alpha=own)
    if before is not None:
        image.sub_(before, alpha=coupling)
    return own


def _dot(some: Shaped[Tensor, " n"], other: Shaped[Tensor, " n"]) -> float:
    """The real part of the inner product."""
    if some.is_complex():
        some, other = torch.view_as_real(some).flatten(), torch.view_as_real(other).flatten()
    return float(some @ other)


def _length(vector: Shaped[Tensor, " n"]) -> float:
    """The norm of a vector, many times as fast as PyTorch's for complex numbers."""
    return _dot(vector, vector) ** 0.5


class _Filters:
    """Chooses filters: the first by a survey of the spectrum, others by the Ritz values of a cycle."""

    def __init__(self, space: _Space, k: int, rows: int, tolerance: float):
        self.top, self.k, self.tolerance, self.room = space.matrix.top, k, tolerance, rows - k
        self.target = BELOW * k
        plain, nothing = Filter(0.0, self.top, 1), space.basis[:0]
        space.begin(nothing, nothing, torch.zeros(0), space.noise())
        space.survey(plain, min(SURVEY, rows))
        # The weights of a random vector on the Ritz values, times n, are numbers of eigenvalues.
        self.ritz = plain.centre - plain.half * space.values
        self.counts = (space.turn[0].square() * space.matrix.size).cumsum(0)
        self.start = space.lowest(min(8, len(self.ritz))).sum(0)
        self.rho = self._steep(self._quantile(self.target), self._quantile(0.75 * k), float(self.ritz[0]))

    def unsettled(self, found: Float[Tensor, " m"]) -> bool:  # noqa: ARG002
        """Whether converged values need another filter: never."""
        return False

    def replan(self, found: Float[Tensor, " m"]) -> bool:
        """Choose another filter if the values of this one, found in a cycle, suggest it."""
        values = self.rho.inverse(found)[0]
        above = int((found > AMPLIFIED).sum())
        if above < min(self.k + 2, len(values)):
            # Fewer than k eigenvalues are amplified: the interval begins too low.
            self.target *= 2
            # Far above the lowest eigenvalues, half as much again would be beyond thousands of others.
            higher = min(1.5 * self.rho.low, self.rho.low + 0.05 * (self.top - self.rho.low))
            low = max(self._quantile(self.target), higher, self.rho.low + 1e-3 * self.top)
            self.rho = self._steep(low, self.rho.low, float(values[0]))
            return True
        low, last = float(values[self.target]) if above > self.target else self.rho.low, float(values[self.k - 1])
        steeper = self._steep(low, last, float(values[0]), most=4 * self.rho.degree)
        if steeper.degree <= STEEPER * self.rho.degree:
            return False
        self.rho = steeper
        return True

    def _quantile(self, count: float | int) -> float:
        """A value with about `count` eigenvalues below."""
        place = int(torch.searchsorted(self.counts, torch.tensor(count, dtype=torch.float64)))
        return float(self.ritz[min(max(place, 1), len(self.ritz) - 1)])

    def _steep(self, low: float, last: float, first: float, most: int = 24) -> Filter:
        """The filter that is small from `low` on, with a degree that lets the basis resolve the k-th value `last`."""
        top = self.top
        if low - last < 1e-6 * low:  # a repeated eigenvalue
            low = last + 1e-3 * (top - last)
        low = min(low, 0.95 * top)
        shape = Filter(low, top, 1)
        slow, fast = max(shape.rate(last), 1e-9), max(shape.rate(first), 1e-9)
        wanted = log(2 * top / self.tolerance) / max(self.room, 1) / slow
        limits = log(LARGEST) / fast, log(GAIN) / max(fast - slow, 1e-9), most, DEGREES[1]
        return Filter(low, top, max(1, int(min(max(wanted, DEGREES[0]), *limits))))


class _Inversions:
    """Chooses the shift of an inverse: below the k-th eigenvalue, but not so far that the first drowns the others."""

    def __init__(self, rho: Inversion, k: int, invert: Callable[[float], Inverse | None]):
        self.rho, self.k, self.invert = rho, k, invert
        self.start = None

    def unsettled(self, found: Float[Tensor, " m"]) -> bool:
        """Choose a smaller shift if this one is too large to tell converged values apart."""
        return self.k > 1 and self.replan(found)  # a single eigenvalue may be zero

    def replan(self, found: Float[Tensor, " m"]) -> bool:
        """Choose a smaller shift if the k-th value, found in a cycle, is below this one."""
        last, top = float(self.rho.inverse(found[: self.k])[0][-1]), self.rho.top
        shift = max(0.1 * last, 1e-15 * top)
        if last >= self.rho.shift or shift >= self.rho.shift:
            return False
        solver = self.invert(shift)
        assert solver is not None  # it has the entries of the first
        self.rho = Inversion(solver, shift, top)
        return True


class _Search:
    """The k lowest eigenpairs, cycle by cycle."""

    def __init__(
        self,
        matrix: SparseHermitian,
        k: int,
        tolerance: float,
        seed: int,
        invert: Invert | None,
    ):
        self.matrix, self.k, self.tolerance = matrix, k, tolerance * matrix.top
        # Estimates of residuals are good to a small factor; where they were not, the next cycle goes on.
        self.aim = 0.3 * self.tolerance
        self.rows = min(2 * k + ROOM, matrix.size)
        self.space = _Space(matrix, min(self.rows + k, matrix.size), torch.Generator().manual_seed(seed))
        self.nothing = self.space.basis[:0].clone()
        self.found, self.worst, self.complete = 0, 1.0, False
        self.plan = self._inversions(invert) or _Filters(self.space, k, self.rows, self.tolerance)
        self.start: Tensor | None = self.plan.start
        self.kept, self.kept_values = self.nothing, torch.zeros(0)

    @property
    def rho(self) -> Transform:
        """What the iteration runs on now."""
        return self.plan.rho

    def _inversions(self, invert: Invert | None) -> _Inversions | None:
        """Inverses, if the matrix has few entries and they do not take too long."""
        matrix, budget = self.matrix, BUDGET * self.matrix.data.numel()
        if invert is None or matrix.data.numel() > FEW * matrix.size:
            return None
        solver = invert(SHIFT * matrix.top, budget)
        if solver is None:
            return None
        return _Inversions(
            Inversion(solver, SHIFT * matrix.top, matrix.top), self.k, lambda shift: invert(shift, budget)
        )

    # Cycles

    def cycle(self) -> None:
        """Fill the basis, or stop early if the k lowest have converged; then restart it, or look for missed ones."""
        space = self.space
        space.begin(self.nothing, self.kept, self.kept_values, self.start)
        space.grow(self.rho, self.rows, self._converged)
        count = len(space.values)
        if count == self.matrix.size:
            self._finish(count)  # all vectors there are: the k lowest are among them, whatever `ρ` is
            return
        converged = self._converged()
        changed = converged and self.plan.unsettled(space.values)
        if converged and not changed:
            self._finish(self.k)
            return
        estimates = self._estimates()
        self.found = int((estimates < self.aim).long().cumprod(0).sum())
        self.worst = float(estimates.max() / self.matrix.top) if len(estimates) else 1.0
        keep = min(self.k + int(KEPT * max(count - self.k, 0)), count)
        self.kept, self.kept_values, self.start = space.lowest(keep), space.values[:keep], space.next
        self.vectors = self.kept[: self.k]
        if changed or self.plan.replan(space.values):
            # The Ritz values of another function are not known: one vector carries on what was found.
            weights = torch.randn((1, keep), dtype=torch.float64, generator=space.random)
            self.start, self.kept = mix(weights.to(self.kept), self.kept)[0], self.nothing
            self.kept_values = torch.zeros(0)

    def _estimates(self) -> Float[Tensor, " k"]:
        """Residuals of the k lowest for `L` itself."""
        _, slopes = self.rho.inverse(self.space.values[: self.k])
        return self.space.residuals[: self.k] / slopes

    def _converged(self) -> bool:
        values = self.space.values
        if not (len(values) > self.k and bool(values[self.k - 1] > AMPLIFIED)):
            return False
        last = float(self.rho.inverse(values[self.k - 1 : self.k])[0])
        return bool((self._estimates() < self._goal(self.aim, last)).all())

    def _scale(self, last: float) -> float:
        """What errors of rounding of the k-th eigenvalue are relative to."""
        return last + self.plan.rho.shift if isinstance(self.plan, _Inversions) else self.matrix.top

    def _goal(self, aim: float, last: float) -> float:
        """The residual to reach; an inverse makes it small relative to the k-th eigenvalue too."""
        return min(aim, RELATIVE * self._scale(last)) if isinstance(self.plan, _Inversions) else aim

    def _margin(self, last: float) -> float:
        """How far below the k-th eigenvalue another one must be to be told apart from it."""
        return max(10 * self._goal(self.tolerance, last), 1e-9 * self._scale(last))

    def _finish(self, count: int) -> None:
        """Verify the residuals, then search the complement."""
        space = self.space
        # A residual of an inverse says nothing about large eigenvalues, which a product with `L` would bring back.
        inverse = isinstance(self.plan, _Inversions)
        self.vectors = space.lowest_images(count) if inverse else space.lowest(count)
        going_on, values = space.next, space.values[:count]
        self._rayleigh_ritz()
        if bool((self.residuals >= self.tolerance).any()) and len(space.values) < self.matrix.size:
            self.aim /= 10
            self.kept, self.kept_values, self.start = space.lowest(count), values, going_on
            return
        if count == self.matrix.size or self._nothing_missed():
            self.found, self.complete = self.k, True

    def _rayleigh_ritz(self) -> None:
        """The best vectors for `L` itself within the span of the found ones, and their residuals."""
        images = self.matrix.times(self.vectors)
        # The products (L v_j)ᴴ v_i give the conjugate of VᴴLV, and therefore of its eigenvectors.
        small = inner(self.vectors, images)
        self.eigenvalues, turn = torch.linalg.eigh((small + small.mH) / 2)
        rotation = turn.mH.contiguous()
        self.vectors, images = mix(rotation, self.vectors), mix(rotation, images)
        kept = self.eigenvalues[:, None]
        self.residuals = lengths(images - kept * self.vectors)
        self.worst = float(self.residuals.max() / self.matrix.top)

    def _nothing_missed(self) -> bool:
        """Whether the complement of the found vectors has no eigenvalue below theirs; if it has, they are added."""
        space, last = self.space, float(self.eigenvalues[-1])
        edge = self.rho.at(last)
        below = self.rho.at(last - self._margin(last))

        def missed() -> int:
            return int((space.values - space.residuals > below).sum())

        def enough() -> bool:
            value, residual = float(space.values[0]), float(space.residuals[0])
            if missed():
                slopes = self.rho.inverse(space.values)[1]
                return bool((space.residuals / slopes)[: missed()].max() < self.aim)
            return residual < 1e-8 * edge or (residual < 1e-4 * edge and value + 100 * residual < edge)

        space.begin(self.vectors, self.nothing, torch.zeros(0), space.noise())
        space.grow(self.rho, min(self.rows + self.k, self.matrix.size), enough)
        count = missed() if len(space.values) else 0
        if not count:
            return True
        count = min(count, max(self.rows - self.k - 2 * EVERY, 1))  # the next cycle needs room; others are found later
        values = torch.tensor([self.rho.at(float(value)) for value in self.eigenvalues], dtype=torch.float64)
        self.kept = torch.cat([self.vectors, space.lowest(count)])
        self.kept_values, self.start = torch.cat([values, space.values[:count]]), space.next
        return False

    def result(self) -> tuple[Tensor, Tensor, Tensor, float]:
        """What was found, converged or not."""
        if not self.complete:
            self._rayleigh_ritz()
        values = self.eigenvalues[: self.k]
        last = float(values[-1])
        resolution = self._margin(last) / max(last, 1e-300)
        return values, self.vectors[: self.k], self.residuals[: self.k] / self.matrix.top, resolution
