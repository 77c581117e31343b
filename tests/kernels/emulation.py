"""CUDA kernels compiled for the CPU, with lanes as threads, so that tests need no GPU."""

import ctypes
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

import torch

from magnetite.kernels.cuda import launch as cuda_kernels
from magnetite.kernels.cuda.launch import Kernel

WARPS = Path(__file__).with_name("warps.hpp")
DYNAMIC = "extern __shared__ __align__(16) char shared[];", "char *const shared = dynamic_shared();"
CHECKS = ["-fsanitize=alignment,bounds", "-fno-sanitize-recover=all"]


@contextmanager
def emulated(folder: Path, grid: int = 2) -> Iterator[None]:
    """Run kernels on the CPU, in `grid` blocks one after the other; results that they do not write are NaN.

    A folder holds each kernel once, so all calls must use the same constants.
    """
    libraries: dict[Kernel, ctypes.CDLL] = {}

    def launch(
        kernel: Kernel,
        grid: int,
        tensors: Sequence[torch.Tensor],
        numbers: Sequence[int],
        shared_bytes: int = 0,
        **constants: int | str,
    ) -> None:
        tensors = [cuda_kernels.readable(tensor) for tensor in tensors]
        pointers = (ctypes.c_void_p * len(tensors))(*(tensor.data_ptr() for tensor in tensors))
        if kernel not in libraries:
            libraries[kernel] = _compiled(kernel, folder, len(numbers), constants)
        libraries[kernel].reserve(shared_bytes)
        libraries[kernel].emulate(grid, kernel.warps, pointers, (ctypes.c_int * len(numbers))(*numbers))
        assert libraries[kernel].intact(), f"{kernel.name} writes beyond {shared_bytes} bytes of shared memory"

    with mock.patch.object(Kernel, "launch", launch), mock.patch.object(Kernel, "grid", lambda *_: grid):
        torch.use_deterministic_algorithms(True)  # which fills new memory
        try:
            yield
        finally:
            torch.use_deterministic_algorithms(False)


def _compiled(kernel: Kernel, folder: Path, count: int, constants: dict[str, int | str]) -> ctypes.CDLL:
    entry, library = folder / f"{kernel.name}.cpp", folder / f"{kernel.name}.so"
    file, source = cuda_kernels.HERE / kernel.file, folder / f"{kernel.name}.cu"
    source.write_text(file.read_text().replace(*DYNAMIC))
    entry.write_text(
        f'#include "{WARPS}"\n#include "{source}"\n'
        f'extern "C" void emulate(int blocks, int warps, void **tensors, const int *numbers) '
        f"{{ run<{count}>(blocks, warps, {kernel.name}, tensors, numbers); }}\n"
    )
    options = [f"-D{name}={value}" for name, value in constants.items()]
    compiler = ["g++", "-std=c++20", "-O1", "-w", "-shared", "-fPIC", *CHECKS]
    compiler += [f"-I{place}" for place in (file.parent, cuda_kernels.HERE)]
    subprocess.run([*compiler, *options, entry, "-o", library], check=True)
    return ctypes.CDLL(str(library))
