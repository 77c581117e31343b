"""The k lowest eigenpairs on CUDA with one thread block per matrix: `lowest_pairs.cu`."""

from dataclasses import dataclass
from math import ceil, log2

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from magnetite.kernels.cuda.launch import CAN_COMPILE, Kernel, shared_limit

LARGEST = 1024
"""Up to this size the kernel is faster than cuSOLVER on an H200 (docs/engine/gpu.md)."""

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
    kept, plan = min(k, size), _Plan.of(size, matrices.element_size())
    return kept <= plan.threads and plan.shared_bytes(size, kept, matrices.element_size()) <= shared_limit(
        matrices.device
    )


def one_block_each(
    matrices: Shaped[Tensor, "b n n"], k: int
) -> tuple[Float[Tensor, "b kept"], Shaped[Tensor, "b n kept"]]:
    """The k lowest eigenpairs by tridiagonal form, multisection and twisted factorisations; not verified."""
    count, size, _ = matrices.shape
    kept, plan = min(k, size), _Plan.of(size, matrices.element_size())
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
    def of(cls, size: int, element: int) -> "_Plan":
        """The fastest on an H200 for matrices of this size, with entries of `element` bytes."""
        threads = 64 if size <= 32 else 128 if size <= 64 else 256 if size <= 128 else 512
        return cls(threads, 8 if size * element <= 8192 else 4, resident=size <= 128)

    def shared_bytes(self, n: int, k: int, element: int) -> int:
        """The memory that `carve` in the kernel lays out."""
        numbers = 3 * n + n % 2 + 2 * self.panel + self.threads // 32
        panels = max(2 * self.panel * n, k * (n | 1) if self.resident else 0)
        return 8 * (2 * n + k + k % 2) + element * (numbers + panels)
