"""The k lowest eigenpairs on CUDA with one thread block per matrix: `lowest_pairs.cu`."""

from math import ceil, log2

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from magnetite.kernels.cuda.launch import CAN_COMPILE, Kernel, shared_limit

LARGEST = {torch.complex128: 200, torch.float64: 256, torch.complex64: 256}
"""Up to these sizes the kernel is faster than cuSOLVER on an H200 (docs/engine/gpu.md)."""

_CONSTANTS = {
    torch.complex64: {"REAL": "float", "COMPLEX": 1},
    torch.complex128: {"REAL": "double", "COMPLEX": 1},
    torch.float64: {"REAL": "double", "COMPLEX": 0},
}


def suits(matrices: Shaped[Tensor, "b n n"], k: int) -> bool:
    """Whether the kernel supports matrices of this type and size, and this torch can compile it."""
    size = matrices.shape[-1]
    if not 2 <= size <= LARGEST.get(matrices.dtype, 0) or not CAN_COMPILE:
        return False
    kept, threads = min(k, size), _threads(size, matrices.element_size())
    limit = shared_limit(matrices.device)
    return kept <= threads and _shared_bytes(size, kept, matrices.element_size(), threads) <= limit


def one_block_each(
    matrices: Shaped[Tensor, "b n n"], k: int
) -> tuple[Float[Tensor, "b kept"], Shaped[Tensor, "b n kept"]]:
    """The k lowest eigenpairs by tridiagonal form, multisection and twisted factorisations; not verified."""
    count, size, _ = matrices.shape
    kept, threads = min(k, size), _threads(size, matrices.element_size())
    work = matrices.clone(memory_format=torch.contiguous_format)
    values = torch.empty((count, kept), dtype=matrices.dtype.to_real(), device=matrices.device)
    vectors = torch.empty((count, size, kept), dtype=matrices.dtype, device=matrices.device)
    lanes = min(32, 1 << int(log2(threads // kept)))
    # The number of 32-row tiles is a constant of the kernel: few variants, since each takes seconds to compile.
    tiles = 2 if size <= 64 else 4 if size <= 128 else 8
    Kernel("lowest_pairs.cu", "lowest_pairs", warps=threads // 32).launch(
        count,
        (work, values, vectors),
        (size, kept, lanes, ceil(55 / log2(lanes + 1))),
        _shared_bytes(size, kept, matrices.element_size(), threads),
        **_CONSTANTS[matrices.dtype],
        THREADS=threads,
        TILES=tiles,
    )
    return values, vectors


def _threads(size: int, element: int) -> int:
    """The fastest of 128, 256, 512 and 1,024 threads on an H200, rounded so that there are few variants."""
    return 128 if size <= 64 else 256 if size <= (112 if element == 16 else 128) else 512


def _shared_bytes(n: int, k: int, element: int, threads: int) -> int:
    """The memory that `carve` in the kernel lays out."""
    return 8 * (2 * n + k + k % 2) + element * (n * k + (n * k) % 2 + (3 + threads // 32) * n)
