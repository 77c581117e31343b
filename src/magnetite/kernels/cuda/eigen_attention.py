"""`eigen_attention` on CUDA with one warp a node: `eigen_attention.cu`, compiled at run time, as operators of torch."""

import torch
from torch import Tensor

from magnetite.kernels.cuda.launch import CAN_COMPILE, Kernel

MOST_TOKENS, MOST_WIDTH, MOST_CHANNELS = 32, 17, 16
"""What the lanes of a warp and the shared memory of a block can hold."""

FORWARD = Kernel("eigen_attention.cu", "eigen_attention_forward", warps=2, blocks=16)
BACKWARD = Kernel("eigen_attention.cu", "eigen_attention_backward", warps=2, blocks=4)
"""Backwards as many blocks as the registers hold at once, since each writes slopes of its own."""


def suits(tokens: Tensor, channels: int) -> bool:
    """Whether the kernel takes such tokens `[b, n, t, w]`, and there is a torch that can compile it."""
    count, width = tokens.shape[2:]
    fits = count <= MOST_TOKENS and width <= MOST_WIDTH and channels <= MOST_CHANNELS and channels % 4 == 0
    return tokens.is_cuda and tokens.dtype == torch.float32 and fits and CAN_COMPILE


@torch.library.custom_op("magnetite::eigen_attention", mutates_args=())
def fused(x: Tensor, mask: Tensor, sizes: Tensor, inner: Tensor, bias: Tensor, out: Tensor, heads: int) -> Tensor:
    """`x + W_o softmax(q kᵀ/√c) v` of tokens `[b, n, t, w]`, without the last layer's bias; zeros in empty slots."""
    result = x.new_empty(x.shape)
    _launch(FORWARD, FORWARD.grid(x.device, x.shape[0] * x.shape[1]), (x, mask, sizes, inner, bias, out, result), heads)
    return result


@torch.library.custom_op("magnetite::eigen_attention_backward", mutates_args=())
def fused_backward(
    x: Tensor, mask: Tensor, sizes: Tensor, inner: Tensor, bias: Tensor, out: Tensor, upper: Tensor, heads: int
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The slopes of tokens, inner matrix, inner bias and outer matrix."""
    grid = BACKWARD.grid(x.device, x.shape[0] * x.shape[1])
    width, channels = out.shape
    lower = x.new_empty(x.shape)
    inner_slopes = torch.empty(grid * BACKWARD.warps, 3 * channels, width + 1, device=x.device)
    out_slopes = torch.empty(grid * BACKWARD.warps, width, channels, device=x.device)
    _launch(BACKWARD, grid, (x, mask, sizes, inner, bias, out, upper, lower, inner_slopes, out_slopes), heads)
    both = inner_slopes.sum(0)
    return lower, both[:, :width].contiguous(), both[:, width].contiguous(), out_slopes.sum(0)


def _launch(kernel: Kernel, grid: int, tensors: tuple[Tensor, ...], heads: int) -> None:
    x, mask, sizes, inner, bias, out, *results = tensors
    graphs, nodes, tokens, width = x.shape
    constants = {"TOKENS": tokens, "WIDTH": width, "HEADS": heads, "CHANNELS": out.shape[1] // heads}
    given = (x, mask, sizes.long(), inner, bias, out)
    kernel.launch(grid, (*given, *results), (graphs * nodes, nodes), **constants)


@fused.register_fake
def _(x: Tensor, *_: object) -> Tensor:
    return x.new_empty(x.shape)


@fused_backward.register_fake
def _(
    x: Tensor,
    mask: Tensor,  # noqa: ARG001
    sizes: Tensor,  # noqa: ARG001
    inner: Tensor,
    bias: Tensor,
    out: Tensor,
    *_: object,
) -> tuple[Tensor, ...]:
    return x.new_empty(x.shape), torch.empty_like(inner), torch.empty_like(bias), torch.empty_like(out)


def _keep(ctx, inputs, output) -> None:  # noqa: ARG001
    *tensors, ctx.heads = inputs
    ctx.save_for_backward(*tensors)


def _slopes(ctx, upper: Tensor) -> tuple[Tensor | None, ...]:
    tokens, inner, bias, out = fused_backward(*ctx.saved_tensors, upper, ctx.heads)
    return tokens, None, None, inner, bias, out, None


fused.register_autograd(_slopes, setup_context=_keep)
