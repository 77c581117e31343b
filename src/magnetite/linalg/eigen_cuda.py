"""Batches of Hermitian matrices on CUDA: our own kernel for small matrices, else cuSOLVER's batched solver.

On CUDA, `torch.linalg.eigh` solves matrices of more than 32 rows one after the other; `cusolverDnXsyevBatched`, which
comes with torch, solves them together. It is called through ctypes from the library that torch has loaded, without a
compiler or another dependency. In single precision it is nearly twice as fast, so one driver solves in single and
refines in double precision.
"""

import ctypes
import functools
import warnings
from collections.abc import Callable
from pathlib import Path

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from magnetite.kernels.cuda.lowest_pairs import one_block_each, suits

Driver = Callable[[Tensor, int], tuple[Tensor, Tensor]]

WORKSPACE_BYTES = 8 * 2**30
"""Approximate limit of the memory for matrices and workspace of one call."""

_DATA_TYPE = {torch.float32: 0, torch.float64: 1, torch.complex64: 4, torch.complex128: 5}
_VECTORS, _LOWER = 1, 0


def cusolver_batched(
    matrices: Shaped[Tensor, "b n n"], k: int
) -> tuple[Float[Tensor, "b kept"], Shaped[Tensor, "b n kept"]]:
    """The k lowest eigenpairs by `cusolverDnXsyevBatched`, in the precision of the matrices."""
    values, vectors = _solve(matrices)
    return values[:, :k], vectors[:, :, :k]


def refined_batched(
    matrices: Shaped[Tensor, "b n n"], k: int, rounds: int = 2
) -> tuple[Float[Tensor, "b kept"], Shaped[Tensor, "b n kept"]]:
    """The k lowest eigenpairs, solved in single precision and refined in double (Ogita and Aishima, 2018).

    With `X` the single-precision vectors, `R = I − XᴴX` and `S = XᴴLX`, each round sets `λ_j = S_jj / (1 − R_jj)`,
    `E_ij = (S_ij + λ_j R_ij) / (λ_j − λ_i)` (or `R_ij / 2` where `λ_j − λ_i` is nearly zero), and `X ← X + X E`,
    for the k lowest columns only. Close eigenvalues may not converge, and then fail verification.
    """
    values, basis = _in_single(cusolver_batched, matrices, matrices.shape[-1])
    vectors = basis[:, :, :k]
    for _ in range(rounds):
        overlap = basis.mH @ vectors
        overlap.diagonal(dim1=1, dim2=2).sub_(1)
        image = basis.mH @ (matrices @ vectors)
        lowest = image.diagonal(dim1=1, dim2=2).real / (1 + overlap.diagonal(dim1=1, dim2=2).real)
        values = torch.cat([lowest, values[:, k:]], dim=1)
        gap = lowest[:, None, :] - values[:, :, None]
        # A gap below the resolution of single precision means nothing: only orthogonality is restored there.
        close = gap.abs() < 1e-5 * (values.abs().amax(1) / 2).clamp(min=1)[:, None, None]
        step = torch.where(close, -overlap / 2, (image - lowest[:, None, :] * overlap) / torch.where(close, 1, gap))
        vectors = vectors + basis @ step
        basis = torch.cat([vectors, basis[:, :, k:]], dim=2)
    return values[:, :k], vectors


def drivers(matrices: Shaped[Tensor, "b n n"], k: int, single: bool) -> list[Driver]:
    """Drivers for matrices of this type and size, in the order of trying; `single` allows single precision first."""
    library = _library() is not None
    chosen: list[Driver] = []
    if single:
        lower = matrices[:0].to(_single(matrices.dtype))
        if suits(lower, k) or library:
            chosen.append(functools.partial(_in_single, one_block_each if suits(lower, k) else cusolver_batched))
    if suits(matrices, k):
        chosen.append(one_block_each)
    elif library and matrices.shape[-1] > 32:
        chosen.append(refined_batched)
    return [*chosen, cusolver_batched] if library else chosen


def _in_single(driver: Driver, matrices: Tensor, k: int) -> tuple[Tensor, Tensor]:
    values, vectors = driver(matrices.to(_single(matrices.dtype)), k)
    return values.to(matrices.dtype.to_real()), vectors.to(matrices.dtype)


def _single(dtype: torch.dtype) -> torch.dtype:
    return torch.complex64 if dtype.is_complex else torch.float32


def _solve(matrices: Tensor) -> tuple[Tensor, Tensor]:
    size = matrices.shape[-1]
    step = max(1, WORKSPACE_BYTES // (4 * size * size * matrices.element_size()))
    solved = [_solve_together(some) for some in matrices.split(step)]
    return torch.cat([pair[0] for pair in solved]), torch.cat([pair[1] for pair in solved])


def _solve_together(matrices: Tensor) -> tuple[Tensor, Tensor]:
    """One call of the library. Its matrices are column-major: it reads `conj(L)`, and its vectors come as rows."""
    library = _library()
    if library is None:
        raise RuntimeError("torch's cuSOLVER has no batched solver")
    vectors = matrices.clone(memory_format=torch.contiguous_format)
    count, size, _ = vectors.shape
    values = torch.empty((count, size), dtype=vectors.dtype.to_real(), device=vectors.device)
    info = torch.empty(count, dtype=torch.int32, device=vectors.device)
    with torch.cuda.device(vectors.device):
        handle, parameters = _handle(vectors.device.index or 0)
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        _check(library.cusolverDnSetStream(handle, stream), "cusolverDnSetStream")
        problem = (
            handle, parameters, _VECTORS, _LOWER, ctypes.c_int64(size),
            _DATA_TYPE[vectors.dtype], ctypes.c_void_p(vectors.data_ptr()), ctypes.c_int64(size),
            _DATA_TYPE[values.dtype], ctypes.c_void_p(values.data_ptr()), _DATA_TYPE[vectors.dtype],
        )  # fmt: skip
        on_device, on_host = ctypes.c_size_t(), ctypes.c_size_t()
        needed = (ctypes.byref(on_device), ctypes.byref(on_host), ctypes.c_int64(count))
        _check(library.cusolverDnXsyevBatched_bufferSize(*problem, *needed), "cusolverDnXsyevBatched_bufferSize")
        workspace = torch.empty(max(on_device.value, 1), dtype=torch.uint8, device=vectors.device)
        host = ctypes.create_string_buffer(max(on_host.value, 1))
        buffers = (ctypes.c_void_p(workspace.data_ptr()), on_device, host, on_host)
        status = library.cusolverDnXsyevBatched(
            *problem, *buffers, ctypes.c_void_p(info.data_ptr()), ctypes.c_int64(count)
        )
        _check(status, "cusolverDnXsyevBatched")
    # Matrices that the library itself reports as failed must not pass verification.
    values.masked_fill_((info != 0)[:, None], torch.nan)
    return values, vectors.mH


@functools.cache
def _library() -> ctypes.CDLL | None:
    # A first decomposition makes torch load cuSOLVER.
    torch.linalg.eigvalsh(torch.eye(2, device="cuda"))
    maps = Path("/proc/self/maps")  # only on Linux
    lines = maps.read_text().splitlines() if maps.exists() else []
    for path in sorted({line.split()[-1] for line in lines if "libcusolver.so" in line}):
        library = ctypes.CDLL(path)
        if hasattr(library, "cusolverDnXsyevBatched"):
            return library
    warnings.warn("torch's cuSOLVER has no batched solver: eigenpairs on CUDA are solved one by one", stacklevel=2)
    return None


@functools.cache
def _handle(_device: int) -> tuple[ctypes.c_void_p, ctypes.c_void_p]:
    """One handle per device, created while that device is current."""
    library = _library()
    handle, parameters = ctypes.c_void_p(), ctypes.c_void_p()
    if library is not None:
        _check(library.cusolverDnCreate(ctypes.byref(handle)), "cusolverDnCreate")
        _check(library.cusolverDnCreateParams(ctypes.byref(parameters)), "cusolverDnCreateParams")
    return handle, parameters


def _check(status: int, function: str) -> None:
    if status != 0:
        raise RuntimeError(f"{function} failed with status {status}")
