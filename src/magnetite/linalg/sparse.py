"""Sparse magnetic Laplacians of single graphs, and their products with blocks of vectors."""

import warnings
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING

import numpy as np
import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor

from magnetite.linalg.laplacian import Operator
from magnetite.linalg.pairs import NodePairs
from magnetite.linalg.scale import SQUARES_FROM
from magnetite.linalg.threads import on_cores

if TYPE_CHECKING:
    from scipy.sparse import csr_array

ROWS_PER_TASK = 8192
"""Rows that one thread multiplies at once."""

CACHED = 300_000
"""Size up to which a vector stays in the cache; the entries of larger ones are prefetched."""

AHEAD = 64
"""Number of matrix entries between prefetching an entry of a vector and using it, enough to hide memory latency."""


@dataclass(frozen=True)
class SparseHermitian:
    """A Hermitian matrix in compressed sparse rows, including the whole diagonal; `top` bounds its eigenvalues."""

    start: Int[Tensor, " rows"]
    columns: Int[Tensor, " nonzeros"]
    data: Shaped[Tensor, " nonzeros"]
    top: float

    @property
    def size(self) -> int:
        """Number of rows."""
        return self.start.numel() - 1

    def to(self, device: torch.device | str) -> "SparseHermitian":
        """The same matrix on `device`."""
        return SparseHermitian(self.start.to(device), self.columns.to(device), self.data.to(device), self.top)

    def to_scipy(self) -> "csr_array":
        """The same matrix for SciPy, sharing memory."""
        from scipy.sparse import csr_array

        arrays = self.data.numpy(), self.columns.numpy(), self.start.numpy()
        return csr_array(arrays, shape=(self.size, self.size))

    def filtered(self, vector: Shaped[Tensor, " n"], centre: float, half: float, degree: int) -> Shaped[Tensor, " n"]:
        """`T_d((centre − L) / half) v` with the Chebyshev polynomial `T_d`, by its three-term recurrence."""
        before, now = vector.clone(), torch.zeros_like(vector)
        self._combine(before, now, centre, -1 / half, 0.0)
        if degree > 1:
            self._combine(now, before, centre, -2 / half, 1.0, steps=degree - 1)
        return now if degree % 2 else before

    def times(self, vectors: Shaped[Tensor, "b n"]) -> Shaped[Tensor, "b n"]:
        """`L v` for each vector."""
        products = torch.zeros_like(vectors)
        for vector, product in zip(vectors.contiguous(), products, strict=True):
            self._combine(vector, product, 0.0, 1.0, 0.0)
        return products

    def _combine(self, x: Tensor, z: Tensor, shift: float, scale: float, carry: float, steps: int = 1) -> None:
        """`z ← scale · (L x − shift · x) − carry · z`, in place, on all cores; `x` and `z` swap from step to step."""
        ranges = _ranges(self.size)
        if self.data.is_cuda or (steps > 1 and len(ranges) > 1):
            for step in range(steps):
                old, new = (x, z) if step % 2 == 0 else (z, x)
                if self.data.is_cuda:
                    new.mul_(-carry).add_(self._csr @ old, alpha=scale).add_(old, alpha=-scale * shift)
                else:
                    self._combine(old, new, shift, scale, carry)
            return
        from magnetite.kernels.cpu.sparse import combine_complex, combine_real

        multiply = combine_complex if self.data.is_complex() else combine_real
        arrays = *self._arrays, _plain(x), _plain(z)
        ahead = AHEAD if self.size > CACHED else 0
        on_cores(lambda rows: multiply(*arrays, shift, scale, carry, rows.start, rows.stop, steps, ahead), ranges)

    @cached_property
    def _arrays(self) -> tuple[np.ndarray, ...]:
        """The matrix as kernels read it."""
        return self.start.numpy().view(np.uint64), self.columns.numpy().view(np.uint32), _plain(self.data)

    @cached_property
    def _csr(self) -> Tensor:
        """The same matrix for cuSPARSE."""
        return compressed_rows(self.start, self.columns, self.data)


def compressed_rows(
    start: Int[Tensor, " rows"], columns: Int[Tensor, " nonzeros"], data: Shaped[Tensor, " nonzeros"]
) -> Tensor:
    """A square matrix as torch and cuSPARSE read it, with 32-bit indices where they suffice.

    >>> compressed_rows(torch.tensor([0, 1, 2]), torch.tensor([1, 0]), torch.tensor([3.0, 4.0])).to_dense().tolist()
    [[0.0, 3.0], [4.0, 0.0]]
    """
    size, dtype = start.numel() - 1, torch.int32 if columns.numel() < 2**31 else torch.int64
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse", category=UserWarning)  # "beta", and unchecked indices
        indices = start.to(dtype), columns.to(dtype)
        return torch.sparse_csr_tensor(*indices, data, (size, size), check_invariants=False)


def _plain(values: Tensor) -> np.ndarray:
    """Rows of a real number, or of a real and an imaginary part."""
    return torch.view_as_real(values).numpy() if values.is_complex() else values.numpy()[:, None]


def sparse_laplacian(pairs: NodePairs, operator: Operator) -> SparseHermitian:
    """The Laplacian of one graph; real if the operator is.

    >>> from magnetite.linalg.pairs import pair_edges
    >>> pairs = pair_edges(torch.tensor([[0, 1], [1, 2]]), torch.tensor([0, 2]), torch.tensor([3]), None)
    >>> sparse_laplacian(pairs, Operator(0, normalised=False)).to_scipy().toarray().tolist()
    [[1.0, -1.0, 0.0], [-1.0, 2.0, -1.0], [0.0, -1.0, 1.0]]
    """
    count = int(pairs.count[0])
    entries, weights = operator.entries(pairs)
    entries = entries[:count].real.contiguous() if operator.real else entries[:count]
    return _assemble(pairs, entries, weights[:count], operator)


def gauged_laplacian(pairs: NodePairs, operator: Operator) -> tuple[SparseHermitian, Shaped[Tensor, " n"] | None]:
    """The Laplacian of one graph as `L = S M Sᴴ` with real `M` and diagonal `S`, if a gauge transformation exists.

    Returns `M` and the diagonal of `S`; `L` and None if there is none, or if `L` is real.
    """
    if operator.real:
        return sparse_laplacian(pairs, operator), None
    entries, weights = (values[: int(pairs.count[0])] for values in operator.entries(pairs))
    turn = find_turn(pairs, entries)
    return _assemble(pairs, entries if turn is None else entries.abs(), weights, operator), turn


def find_turn(pairs: NodePairs, entries: Shaped[Tensor, " m"]) -> Shaped[Tensor, " n"] | None:
    """The diagonal of `S` with real `Sᴴ H S`, for the entries `H` of one graph; None if there is none."""
    from magnetite.kernels.cpu.pairs import find_gauge

    n, count = int(pairs.sizes[0]), int(pairs.count[0])
    turn = np.empty(n, np.complex128)
    links, queue, known = np.empty((2, 2 * count), np.int64), np.empty(n, np.int64), np.empty(n, np.bool_)
    # Only their phases matter here, but the kernel squares the entries.
    turns = torch.where(entries.abs() < SQUARES_FROM, entries / SQUARES_FROM, entries)
    arrays = pairs.low[:count].numpy(), pairs.high[:count].numpy(), turns.numpy()
    if not find_gauge(*arrays, 0, count, n, np.empty(n + 2, np.int64), links[0], links[1], queue, known, turn):
        return None
    return torch.from_numpy(turn)


def _assemble(pairs: NodePairs, entries: Tensor, weights: Tensor, operator: Operator) -> SparseHermitian:
    from magnetite.kernels.cpu.sparse import fill_rows, row_starts

    n, count = int(pairs.sizes[0]), int(pairs.count[0])
    low, high = pairs.low[:count].numpy(), pairs.high[:count].numpy()
    diagonal, scale = scaled_degrees(low, high, weights.numpy(), n, operator)
    start = np.empty(n + 1, np.int64)
    row_starts(low, high, n, start)
    columns, data = np.empty(start[-1], np.int32), np.empty(start[-1], entries.numpy().dtype)
    fill_rows(low, high, entries.numpy(), diagonal, scale, start, np.empty(n, np.int64), columns, data)
    top = 2.0 if operator.normalised else float(np.add.reduceat(np.abs(data), start[:-1]).max())
    return SparseHermitian(torch.from_numpy(start), torch.from_numpy(columns), torch.from_numpy(data), top)


def scaled_degrees(
    low: np.ndarray, high: np.ndarray, weights: np.ndarray, n: int, operator: Operator
) -> tuple[np.ndarray, np.ndarray]:
    """The diagonal of `D` or `I`, and the factors `D^{-1/2}` or 1 of rows and columns."""
    from magnetite.kernels.cpu.dense import scale_all_rows

    diagonal, scale = np.empty(n), np.empty(n)
    scale_all_rows(low, high, weights, 0, low.size, n, operator.normalised, operator.rule.isolated, diagonal, scale)
    return diagonal, scale


def inner(some: Shaped[Tensor, "f n"], others: Shaped[Tensor, "g n"]) -> Shaped[Tensor, "f g"]:
    """`⟨others_j, some_i⟩ = Σ conj(others_j) some_i` of long vectors, on all cores.

    The partial sums do not depend on the number of cores, so neither do the bits of the result.

    >>> inner(torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0, 4.0], [0.0, 1.0]])).tolist()
    [[11.0, 2.0]]
    """
    if some.is_cuda:
        # A single product of few rows, whose sums are long, would keep a part of the GPU busy only.
        whole = some.shape[1] // ROWS_PER_TASK * ROWS_PER_TASK
        parts = (each[:, :whole].unflatten(1, (-1, ROWS_PER_TASK)).transpose(0, 1) for each in (some, others))
        return torch.bmm(next(parts), next(parts).mH).sum(0) + some[:, whole:] @ others[:, whole:].mH
    sums = on_cores(lambda rows: some[:, rows] @ others[:, rows].mH, _ranges(some.shape[1]))
    return sums[0] if len(sums) == 1 else torch.stack(sums).sum(0)


def mix(weights: Shaped[Tensor, "f g"], vectors: Shaped[Tensor, "g n"]) -> Shaped[Tensor, "f n"]:
    """`weights @ vectors` for long vectors, on all cores.

    >>> mix(torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0, 4.0], [0.0, 1.0]])).tolist()
    [[3.0, 6.0]]
    """
    if vectors.is_cuda:
        return weights @ vectors
    result = vectors.new_empty((len(weights), vectors.shape[1]))

    def run(rows: slice) -> None:
        torch.mm(weights, vectors[:, rows], out=result[:, rows])

    on_cores(run, _ranges(vectors.shape[1]))
    return result


def lengths(vectors: Shaped[Tensor, "f n"]) -> Float[Tensor, " f"]:
    """The norms of vectors, many times as fast as PyTorch's for complex numbers.

    >>> lengths(torch.tensor([[3.0, 4.0j]])).tolist()
    [5.0]
    """
    plain = torch.view_as_real(vectors).flatten(1) if vectors.is_complex() else vectors
    return torch.linalg.vector_norm(plain, dim=1)


@cache
def _ranges(size: int) -> tuple[slice, ...]:
    return tuple(slice(first, min(first + ROWS_PER_TASK, size)) for first in range(0, size, ROWS_PER_TASK))
