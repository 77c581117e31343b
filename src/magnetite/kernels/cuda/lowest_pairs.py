"""The k lowest eigenpairs on CUDA with one thread block a matrix: `lowest_pairs.cu`, compiled at run time."""

import functools
from math import ceil, log2
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

LARGEST = {torch.complex128: 200, torch.float64: 256, torch.complex64: 256}
"""Up to these sizes the kernel won against cuSOLVER on an H200 (docs/engine-gpu.md)."""

_OPTIONS = {
    torch.complex64: ["-DREAL=float", "-DCOMPLEX=1"],
    torch.complex128: ["-DREAL=double", "-DCOMPLEX=1"],
    torch.float64: ["-DREAL=double", "-DCOMPLEX=0"],
}


def suits(matrices: Shaped[Tensor, "b n n"], k: int) -> bool:
    """Whether the kernel takes such matrices: their size, the wanted pairs, and a torch that can compile it."""
    size = matrices.shape[-1]
    if not 2 <= size <= LARGEST.get(matrices.dtype, 0) or not hasattr(torch.cuda, "_compile_kernel"):
        return False
    kept, threads = min(k, size), _threads(size, matrices.element_size())
    limit = torch.cuda.get_device_properties(matrices.device).shared_memory_per_block_optin
    return kept <= threads and _shared_bytes(size, kept, matrices.element_size(), threads) <= limit


def one_block_each(
    matrices: Shaped[Tensor, "b n n"], k: int
) -> tuple[Float[Tensor, "b kept"], Shaped[Tensor, "b n kept"]]:
    """The k lowest eigenpairs by tridiagonal form, multisection and twisted factorisations; unverified."""
    count, size, _ = matrices.shape
    kept, threads = min(k, size), _threads(size, matrices.element_size())
    work = matrices.clone(memory_format=torch.contiguous_format)
    values = torch.empty((count, kept), dtype=matrices.dtype.to_real(), device=matrices.device)
    vectors = torch.empty((count, size, kept), dtype=matrices.dtype, device=matrices.device)
    lanes = min(32, 1 << int(log2(threads // kept)))
    arguments = [work, values, vectors, size, kept, lanes, ceil(55 / log2(lanes + 1))]
    with torch.cuda.device(matrices.device):
        # How many times 32 rows it is compiled for: few variants, because each takes seconds at first.
        tiles = 2 if size <= 64 else 4 if size <= 128 else 8
        kernel = _kernel(matrices.dtype, threads, tiles, matrices.device.index or 0)
        shared = _shared_bytes(size, kept, matrices.element_size(), threads)
        kernel(grid=(count, 1, 1), block=(threads, 1, 1), args=arguments, shared_mem=shared)
    return values, vectors


def _threads(size: int, element: int) -> int:
    """The fastest of 128, 256, 512 and 1,024 on an H200, to the nearest size that keeps the variants few."""
    return 128 if size <= 64 else 256 if size <= (112 if element == 16 else 128) else 512


def _shared_bytes(n: int, k: int, element: int, threads: int) -> int:
    """What `carve` in the kernel lays out."""
    return 8 * (2 * n + k + k % 2) + element * (n * k + (n * k) % 2 + (3 + threads // 32) * n)


@functools.cache
def _kernel(dtype: torch.dtype, threads: int, tiles: int, device: int) -> Any:
    source = Path(__file__).with_name("lowest_pairs.cu").read_text(encoding="utf-8")
    options = [*_OPTIONS[dtype], f"-DTHREADS={threads}", f"-DTILES={tiles}"]
    kernel = torch.cuda._compile_kernel(source, "lowest_pairs", nvcc_options=options)  # pyright: ignore[reportPrivateUsage]
    kernel.set_shared_memory_config(torch.cuda.get_device_properties(device).shared_memory_per_block_optin)
    return kernel
