"""`eigen_attention` on CUDA with one warp a node: `eigen_attention.cu`, compiled at run time, as operators of torch."""

import functools
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

MOST_TOKENS, MOST_WIDTH, MOST_CHANNELS = 32, 17, 16
"""What the lanes of a warp and the shared memory of a block can hold."""

CAN_COMPILE = hasattr(torch.cuda, "_compile_kernel")

THREADS, WARPS = 64, 2
"""Of a block, as in the kernel."""

BLOCKS = {"eigen_attention_forward": 16, "eigen_attention_backward": 4}
"""Blocks a multiprocessor; backwards as many as its registers hold, since each writes slopes of its own."""


def suits(tokens: Tensor, channels: int) -> bool:
    """Whether the kernel takes such tokens `[b, n, t, w]`, and there is a torch that can compile it."""
    count, width = tokens.shape[2:]
    fits = count <= MOST_TOKENS and width <= MOST_WIDTH and channels <= MOST_CHANNELS and channels % 4 == 0
    return tokens.is_cuda and tokens.dtype == torch.float32 and fits and CAN_COMPILE


@torch.library.custom_op("magnetite::eigen_attention", mutates_args=())
def fused(x: Tensor, mask: Tensor, inner: Tensor, bias: Tensor, out: Tensor, heads: int) -> Tensor:
    """`x + W_o softmax(q kᵀ/√c) v` of contiguous tokens `[b, n, t, w]`, without the bias of the last layer."""
    result = torch.empty_like(x)
    _launch(
        "eigen_attention_forward", (x, mask, inner, bias, out), (result,), heads, _blocks("eigen_attention_forward", x)
    )
    return result


@torch.library.custom_op("magnetite::eigen_attention_backward", mutates_args=())
def fused_backward(
    x: Tensor, mask: Tensor, inner: Tensor, bias: Tensor, out: Tensor, upper: Tensor, heads: int
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The slopes of tokens, inner matrix, inner bias and outer matrix."""
    blocks = _blocks("eigen_attention_backward", x)
    width, channels = out.shape
    lower = torch.empty_like(x)
    inner_slopes = torch.empty(blocks * WARPS, 3 * channels, width + 1, device=x.device)
    out_slopes = torch.empty(blocks * WARPS, width, channels, device=x.device)
    results = (upper.contiguous(), lower, inner_slopes, out_slopes)
    _launch("eigen_attention_backward", (x, mask, inner, bias, out), results, heads, blocks)
    both = inner_slopes.sum(0)
    return lower, both[:, :width].contiguous(), both[:, width].contiguous(), out_slopes.sum(0)


def _launch(name: str, given: tuple[Tensor, ...], results: tuple[Tensor, ...], heads: int, blocks: int) -> None:
    x, out = given[0], given[4]
    graphs, nodes, tokens, width = x.shape
    with torch.cuda.device(x.device):
        kernel = _kernel(name, tokens, width, heads, out.shape[1] // heads, x.device.index or 0)
        arguments = [*(tensor.contiguous() for tensor in given), *results, graphs * nodes, nodes]
        kernel(grid=(blocks, 1, 1), block=(THREADS, 1, 1), args=arguments)


def _blocks(name: str, x: Tensor) -> int:
    processors = torch.cuda.get_device_properties(x.device).multi_processor_count
    return min(-(-x.shape[0] * x.shape[1] // WARPS), processors * BLOCKS[name])


@functools.cache
def _kernel(name: str, tokens: int, width: int, heads: int, channels: int, device: int) -> Any:  # noqa: ARG001 (one a device)
    source = Path(__file__).with_name("eigen_attention.cu").read_text(encoding="utf-8")
    shape = {"TOKENS": tokens, "WIDTH": width, "HEADS": heads, "CHANNELS": channels}
    options = [f"-D{constant}={value}" for constant, value in shape.items()]
    return torch.cuda._compile_kernel(source, name, nvcc_options=options)  # pyright: ignore[reportPrivateUsage]


@fused.register_fake
def _(x: Tensor, *_: object) -> Tensor:
    return torch.empty_like(x)


@fused_backward.register_fake
def _(x: Tensor, mask: Tensor, inner: Tensor, bias: Tensor, out: Tensor, *_: object) -> tuple[Tensor, ...]:  # noqa: ARG001
    return torch.empty_like(x), torch.empty_like(inner), torch.empty_like(bias), torch.empty_like(out)


def _keep(ctx, inputs, output) -> None:  # noqa: ARG001
    *tensors, ctx.heads = inputs
    ctx.save_for_backward(*tensors)


def _slopes(ctx, upper: Tensor) -> tuple[Tensor | None, ...]:
    tokens, inner, bias, out = fused_backward(*ctx.saved_tensors, upper, ctx.heads)
    return tokens, None, inner, bias, out, None


fused.register_autograd(_slopes, setup_context=_keep)
