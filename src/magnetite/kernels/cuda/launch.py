"""CUDA kernels that lie beside this file as text: compiled at run time for the shapes they are asked for, and launched.

They give a warp to each node or pair, and a block to a few neighbouring warps, or a block to each graph.
"""

import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

CAN_COMPILE = hasattr(torch.cuda, "_compile_kernel")


def knows_bfloat16(device: torch.device) -> bool:
    """Whether this GPU rounds to bfloat16, and multiplies it on tensor cores."""
    return torch.cuda.get_device_properties(device).major >= 8  # a constant to torch.compile


@dataclass(frozen=True)
class Kernel:
    """A function of a file, the warps of its blocks, and the most blocks that `grid` gives a multiprocessor."""

    file: str | Path
    name: str
    warps: int
    blocks: int = 1

    def grid(self, device: torch.device, nodes: int) -> int:
        """Blocks for so many nodes or pairs, at least one; each takes several if there are more than warps."""
        processors = torch.cuda.get_device_properties(device).multi_processor_count
        return max(1, min(-(-nodes // self.warps), processors * self.blocks))

    def launch(self, grid: int, tensors: Sequence[Tensor], numbers: Sequence[int], **constants: int) -> None:
        """Run `grid` blocks on pointers to the tensors, made `readable`, and the numbers as C integers."""
        device = tensors[0].device
        with torch.cuda.device(device):
            function = _compiled(self, tuple(constants.items()), device.index or 0)
            arguments = [*map(readable, tensors), *numbers]
            function(grid=(grid, 1, 1), block=(32 * self.warps, 1, 1), args=arguments)


def readable(tensor: Tensor) -> Tensor:
    """The tensor, or a copy, contiguous and aligned to 16 bytes: kernels read several numbers in one go.

    >>> readable(torch.arange(8.0)[1:]).data_ptr() % 16
    0
    """
    tensor = tensor.contiguous()
    return tensor if tensor.data_ptr() % 16 == 0 else tensor.clone()


@functools.cache
def _compiled(kernel: Kernel, constants: tuple[tuple[str, int], ...], device: int) -> Any:  # noqa: ARG001 (one a device)
    source = _source(kernel.file)
    options = [f"-D{name}={value}" for name, value in constants]
    return torch.cuda._compile_kernel(source, kernel.name, nvcc_options=options)  # pyright: ignore[reportPrivateUsage]


def _source(file: str | Path, seen: set[Path] | None = None) -> str:
    """The text of a kernel, with the files that it includes, each once: the compiler does not know where they lie."""
    seen, here = set() if seen is None else seen, Path(__file__).parent
    path = here / file
    if path in seen:
        return ""
    seen.add(path)

    def included(found: re.Match[str]) -> str:
        beside = path.parent / found[1]
        return _source(beside if beside.exists() else here / found[1], seen)

    return re.sub(r'^#include "(.+)"$', included, path.read_text(encoding="utf-8"), flags=re.MULTILINE)
