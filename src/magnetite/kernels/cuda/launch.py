"""How CUDA kernels are compiled and launched: sources are text, compiled at run time for the shapes that occur.

Most kernels give one warp to each node or pair of nodes, with a few neighbouring warps per block; some give one block
to each graph or matrix.
"""

import functools
import re
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from magnetite.kernels import _compat

HERE = Path(__file__).parent
CAN_COMPILE = _compat.can_compile_cuda()


def knows_bfloat16(device: torch.device) -> bool:
    """Whether this GPU rounds to bfloat16 and multiplies it on tensor cores."""
    return torch.cuda.get_device_properties(device).major >= 8  # a constant to torch.compile


@dataclass(frozen=True)
class Kernel:
    """A function in a CUDA source file.

    Args:
        file: Name of a file in this folder, or the path of a file elsewhere, which may include headers of this folder.
        name: Name of the function.
        warps: Number of warps per block.
        blocks: Largest number of blocks per multiprocessor that `grid` returns.
    """

    file: str | Path
    name: str
    warps: int
    blocks: int = 1

    def grid(self, device: torch.device, count: int) -> int:
        """Number of blocks for `count` nodes or pairs, at least one; with fewer warps, each takes several."""
        processors = torch.cuda.get_device_properties(device).multi_processor_count
        return max(1, min(-(-count // self.warps), processors * self.blocks))

    def launch(
        self,
        grid: int,
        tensors: Sequence[Tensor],
        numbers: Sequence[int],
        shared_bytes: int = 0,
        **constants: int | str,
    ) -> None:
        """Run `grid` blocks.

        Args:
            grid: Number of blocks.
            tensors: Arguments passed as pointers; those that are not `readable` are copied.
            numbers: Arguments passed as C integers.
            shared_bytes: Dynamic shared memory per block.
            constants: Macros, for each combination of which the kernel is compiled.
        """
        device = tensors[0].device
        with torch.cuda.device(device):
            _attach(device)
            function = _compiled(self, tuple(constants.items()), device.index or 0, shared_bytes > 0)
            arguments = [*map(readable, tensors), *numbers]
            function(grid=(grid, 1, 1), block=(32 * self.warps, 1, 1), args=arguments, shared_mem=shared_bytes)


_attached = threading.local()


def _attach(device: torch.device) -> None:
    """Make the device's context current in this thread, once.

    torch does so with its first own kernel of a thread; in a backward thread, ours may come before that.
    """
    known: set[int] = _attached.__dict__.setdefault("devices", set())
    index = device.index or 0
    if index not in known:
        torch.cuda.mem_get_info(device)
        known.add(index)


def shared_limit(device: torch.device) -> int:
    """Bytes of shared memory that a block may have at most."""
    return torch.cuda.get_device_properties(device).shared_memory_per_block_optin


def readable(tensor: Tensor) -> Tensor:
    """The tensor, or a copy that is contiguous and aligned to 16 bytes, since kernels read several numbers at once.

    >>> readable(torch.arange(8.0)[1:]).data_ptr() % 16
    0
    """
    tensor = tensor.contiguous()
    return tensor if tensor.data_ptr() % 16 == 0 else tensor.clone()


@functools.cache
def _compiled(kernel: Kernel, constants: tuple[tuple[str, int | str], ...], device: int, shared: bool) -> Any:
    options = [f"-D{name}={value}" for name, value in constants]
    limit = shared_limit(torch.device("cuda", device)) if shared else 0
    return _compat.compile_cuda(source(HERE / kernel.file), kernel.name, options, limit)


def source(path: Path, seen: set[Path] | None = None) -> str:
    """The text of a source file with the files that it includes, each once: the compiler cannot open them itself.

    Included files are looked for beside the file, then in this folder.
    """
    seen = set() if seen is None else seen
    if path in seen:
        return ""
    seen.add(path)

    def included(found: re.Match[str]) -> str:
        beside = path.parent / found[1]
        return source(beside if beside.exists() else HERE / found[1], seen)

    return re.sub(r'^#include "(.+)"$', included, path.read_text(encoding="utf-8"), flags=re.MULTILINE)
