"""The k lowest eigenpairs on CUDA with one thread block per matrix: `lowest_pairs.cu`."""

from dataclasses import dataclass
from math import ceil, log2

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from magnetite.kernels.cuda.launch import CAN_COMPILE, Kernel, shared_limit

LARGEST = 1024
"""Largest matrix that the kernel is tried on, and of the measurements in results/benchmark-eigen-gpu.json."""

RESIDENT_ROWS = 256
"""Up to this size, vectors in shared memory were faster at every size that was measured."""

RESIDENT_BYTES = 2**17
"""Vectors that take more are in global memory, so that a multiprocessor has room for other blocks."""

_CONSTANTS = {
    torch.complex64: {"REAL": "float", "COMPLEX": 1},
    torch.complex128: {"REAL": "double", "COMPLEX": 1},
    torch.float64: {"REAL": "double", "COMPLEX": 0},
}


def suits(matrices: Shaped[Tensor, "b n n"], k: int) -> bool:
    """Whether the kernel supports matrices of this type and size, and this torch can compile it."""
    size = matrices.shape[-1]
    if matrices.dtype not in _CONSTANTS or not 2 <= size <= LARGEST or not CAN_COMPILE:
        return False
    return _plan(matrices, k) is not None


def one_block_each(
    matrices: Shaped[Tensor, "b n n"], k: int
) -> tuple[Float[Tensor, "b kept"], Shaped[Tensor, "b n kept"]]:
    """The k lowest eigenpairs by tridiagonal form, multisection and twisted factorisations; not verified."""
    count, size, _ = matrices.shape
    kept, plan = min(k, size), _plan(matrices, k)
    if plan is None:
        raise ValueError(f"the {k} lowest eigenpairs of {size} rows need more memory or threads than a block has")
    work = matrices.clone(memory_format=torch.contiguous_format)
    values = torch.empty((count, kept), dtype=matrices.dtype.to_real(), device=matrices.device)
    vectors = torch.empty((count, kept, size), dtype=matrices.dtype, device=matrices.device)
    lanes = min(32, 1 << int(log2(plan.threads // kept)))
    Kernel("lowest_pairs.cu", "lowest_pairs", warps=plan.threads // 32).launch(
        count,
        (work, values, vectors),
        (size, kept, lanes, ceil(55 / log2(lanes + 1))),
        plan.shared_bytes(size, kept, matrices.element_size()),
        **_CONSTANTS[matrices.dtype],
        THREADS=plan.threads,
        PANEL=plan.panel,
        RESIDENT=int(plan.resident),
    )
    return values, vectors.mT


def _plan(matrices: Shaped[Tensor, "b n n"], k: int) -> "_Plan | None":
    size = matrices.shape[-1]
    return _Plan.of(size, min(k, size), matrices.element_size(), shared_limit(matrices.device))


@dataclass(frozen=True)
class _Plan:
    """Constants of the kernel: few combinations, since each takes seconds to compile.

    Args:
        threads: Number of threads per block.
        panel: Number of columns that are eliminated before the matrix is updated.
        resident: Whether the vectors are in shared memory until they are done.
    """

    threads: int
    panel: int
    resident: bool

    @classmethod
    def of(cls, size: int, kept: int, element: int, limit: int) -> "_Plan | None":
        """The fastest on an H200 for `kept` eigenpairs of matrices of this size; None if none is possible.

        Args:
            size: Number of rows.
            kept: Number of eigenpairs.
            element: Bytes of an entry.
            limit: Bytes of shared memory that a block may have.
        """
        # One thread per row in single precision, where a row takes half the time; two in double, but no more than 512.
        rows = 1 << (size - 1).bit_length()
        threads = min(max(32, rows * element // 8), 8192 // element)
        resident = size <= RESIDENT_ROWS and kept * size * element <= RESIDENT_BYTES
        # Eight columns are better than four wherever they fit.
        plans = cls(threads, 8, resident), cls(threads, 8, False), cls(threads, 4, False)
        possible = (plan for plan in plans if kept <= threads and plan.shared_bytes(size, kept, element) <= limit)
        return next(possible, None)

    def shared_bytes(self, n: int, k: int, element: int) -> int:
        """The memory that `carve` in the kernel lays out."""
        numbers = 3 * n + n % 2 + 2 * self.panel + self.threads // 32
        panels = max(2 * self.panel * n, k * (n | 1) if self.resident else 0)
        return 8 * (2 * n + k + k % 2) + element * (numbers + panels)
