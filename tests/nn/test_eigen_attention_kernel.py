"""The CUDA kernel of `eigen_attention`, compiled for the processor with lanes as threads: right without a GPU."""

import ctypes
import subprocess
from pathlib import Path
from typing import Any

import pytest
import torch

from magnetite.nn import eigen_attention_cuda
from magnetite.nn.eigen_attention import Weights, written_out
from tests.nn.test_eigen_attention import random_case

SOURCE = Path(eigen_attention_cuda.__file__).with_name("eigen_attention.cu")
WARPS = Path(__file__).with_name("warps.hpp")
ENTRY = """
#include "{warps}"
#include "{source}"
typedef const float *In;
typedef float *Out;
extern "C" void forward(In x, const bool *mask, In inner, In bias, In out, Out y, int all, int nodes) {{
    launch(2, eigen_attention_forward, x, mask, inner, bias, out, y, all, nodes);
}}
extern "C" void backward(In x, const bool *mask, In inner, In bias, In out, In upper, Out lower, Out inner_slopes,
                         Out out_slopes, int all, int nodes) {{
    launch(2, eigen_attention_backward, x, mask, inner, bias, out, upper, lower, inner_slopes, out_slopes, all, nodes);
}}
"""


def _compiled(folder: Path, tokens: int, width: int, heads: int, channels: int) -> ctypes.CDLL:
    entry, library = folder / "entry.cpp", folder / "kernel.so"
    entry.write_text(ENTRY.format(warps=WARPS, source=SOURCE))
    shape = {"TOKENS": tokens, "WIDTH": width, "HEADS": heads, "CHANNELS": channels}
    constants = [f"-D{name}={value}" for name, value in shape.items()]
    checks = ["-fsanitize=alignment,bounds", "-fno-sanitize-recover=all"]
    subprocess.run(
        ["g++", "-std=c++20", "-O1", "-w", "-shared", "-fPIC", *checks, *constants, entry, "-o", library], check=True
    )
    return ctypes.CDLL(str(library))


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(25, 17, 4, 4), (5, 6, 2, 6), (16, 17, 4, 4), (1, 5, 4, 1), (32, 9, 4, 2)])
def test_kernel_equals_plain_operations(shape: tuple[int, int, int, int], tmp_path: Path) -> None:
    _, width, heads, channels = shape
    library = _compiled(tmp_path, *shape)
    x, mask, weights = random_case(*shape, "cpu")
    upper = torch.randn_like(x)
    expected = written_out(x, mask, weights, heads)
    slopes = torch.autograd.grad(expected, (x, *weights), upper)

    y, lower = torch.empty_like(x), torch.empty_like(x)
    inner_slopes = torch.empty(4, 3 * heads * channels, width + 1)
    out_slopes = torch.empty(4, width, heads * channels)
    given = [x, mask, *weights[:3]]
    counts = x.shape[0] * x.shape[1], x.shape[1]
    _call(library.forward, [*given, y], counts)
    _call(library.backward, [*given, upper, lower, inner_slopes, out_slopes], counts)

    torch.testing.assert_close(y + weights.out_bias, expected, rtol=1e-4, atol=1e-5)
    inner, out = inner_slopes.sum(0), out_slopes.sum(0)
    found = Weights(inner[:, :width], inner[:, width], out, slopes[4])
    for name, mine, theirs in zip(("tokens", *Weights._fields), (lower, *found), slopes, strict=True):
        torch.testing.assert_close(
            mine, theirs, rtol=1e-4, atol=1e-4, msg=lambda message, name=name: f"{name}: {message}"
        )


def _call(function: Any, tensors: list[torch.Tensor], counts: tuple[int, int]) -> None:
    function(*(ctypes.c_void_p(tensor.data_ptr()) for tensor in tensors), *counts)
