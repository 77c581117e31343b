"""Attention over the eigenvectors of each node on CUDA, one warp per node: operators of torch."""

import torch
from torch import Tensor

from magnetite.kernels.cuda.launch import CAN_COMPILE, Kernel

MOST_TOKENS, MOST_WIDTH, MOST_CHANNELS = 32, 17, 16
"""Limits of the lanes of a warp and the shared memory of a block."""

FORWARD = Kernel("eigen_attention.cu", "eigen_attention_forward", warps=2, blocks=16)
BACKWARD = Kernel("eigen_attention.cu", "eigen_attention_backward", warps=2, blocks=4)
"""Blocks per multiprocessor in the backward pass: as many as the registers allow; each writes its own gradients."""


def suits(tokens: Tensor, channels: int) -> bool:
    """Whether the kernel supports such tokens `[nodes, t, w]`, and this torch can compile it."""
    count, width = tokens.shape[1:]
    fits = count <= MOST_TOKENS and width <= MOST_WIDTH and channels <= MOST_CHANNELS and channels % 4 == 0
    return tokens.is_cuda and tokens.dtype == torch.float32 and fits and CAN_COMPILE


@torch.library.custom_op("magnetite::eigen_attention", mutates_args=())
def fused(x: Tensor, mask: Tensor, inner: Tensor, bias: Tensor, out: Tensor, heads: int) -> Tensor:
    """`x + W_o softmax(q kᵀ/√c) v` of tokens `[nodes, t, w]`, without the bias of the last layer."""
    result = x.new_empty(x.shape)
    _launch(FORWARD, FORWARD.grid(x.device, len(x)), (x, mask, inner, bias, out, result), heads)
    return result


@torch.library.custom_op("magnetite::eigen_attention_backward", mutates_args=())
def fused_backward(
    x: Tensor, mask: Tensor, inner: Tensor, bias: Tensor, out: Tensor, upper: Tensor, heads: int
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The gradients of tokens, inner matrix, inner bias and outer matrix."""
    grid = BACKWARD.grid(x.device, len(x))
    width, channels = out.shape
    lower = x.new_empty(x.shape)
    of_inner = torch.empty(grid * BACKWARD.warps, 3 * channels, width + 1, device=x.device)
    of_out = torch.empty(grid * BACKWARD.warps, width, channels, device=x.device)
    _launch(BACKWARD, grid, (x, mask, inner, bias, out, upper, lower, of_inner, of_out), heads)
    both = of_inner.sum(0)
    return lower, both[:, :width].contiguous(), both[:, width].contiguous(), of_out.sum(0)


def _launch(kernel: Kernel, grid: int, tensors: tuple[Tensor, ...], heads: int) -> None:
    nodes, tokens, width = tensors[0].shape
    constants = {"TOKENS": tokens, "WIDTH": width, "HEADS": heads, "CHANNELS": tensors[4].shape[1] // heads}
    kernel.launch(grid, tensors, (nodes,), **constants)


@fused.register_fake
def _(x: Tensor, *_: object) -> Tensor:
    return x.new_empty(x.shape)


@fused_backward.register_fake
def _(x: Tensor, mask: Tensor, inner: Tensor, bias: Tensor, out: Tensor, *_: object) -> tuple[Tensor, ...]:  # noqa: ARG001
    return x.new_empty(x.shape), torch.empty_like(inner), torch.empty_like(bias), torch.empty_like(out)


def _keep(ctx, inputs, output) -> None:  # noqa: ARG001
    *tensors, ctx.heads = inputs
    ctx.save_for_backward(*tensors)


def _gradients(ctx, upper: Tensor) -> tuple[Tensor | None, ...]:
    tokens, inner, bias, out = fused_backward(*ctx.saved_tensors, upper, ctx.heads)
    return tokens, None, inner, bias, out, None


fused.register_autograd(_gradients, setup_context=_keep)
