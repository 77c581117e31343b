"""Sums over the node pairs of each landing node on CUDA, one warp per landing node: operators of torch."""

import torch
from torch import Tensor

from magnetite.kernels.cuda.launch import CAN_COMPILE, Kernel

MOST_FEATURES, MOST_HIDDEN = 16, 128
"""As many numbers as fit into the registers of a lane."""

FORWARD = Kernel("pair_sum.cu", "pair_sum_forward", warps=8, blocks=16)
BACKWARD = Kernel("pair_sum.cu", "pair_sum_backward", warps=8, blocks=3)
"""Blocks per multiprocessor in the backward pass: as many as the registers allow; each writes its own gradients."""


def suits(pairs: Tensor, weight: Tensor) -> bool:
    """Whether the kernel supports such pairs `[b, n, n, f]`, which get no gradients, and this torch can compile it."""
    hidden, features = weight.shape
    fits = 1 <= features <= MOST_FEATURES and hidden % 32 == 0 and hidden <= MOST_HIDDEN
    known = pairs.dtype in (torch.float32, torch.float16) and weight.dtype == torch.float32
    return pairs.is_cuda and known and not pairs.requires_grad and fits and CAN_COMPILE


@torch.library.custom_op("magnetite::pair_sum", mutates_args=())
def fused(pairs: Tensor, sizes: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """`S[g, v] = Σ_u gelu(W p[g, u, v] + b)` over the `sizes[g]` nodes of each graph; zero in padding."""
    sums = torch.empty(*pairs.shape[:2], weight.shape[0], device=pairs.device)
    nodes = sums.shape[0] * sums.shape[1]
    _launch(FORWARD, FORWARD.grid(pairs.device, nodes), (pairs, sizes, weight, bias, sums))
    return sums


@torch.library.custom_op("magnetite::pair_sum_backward", mutates_args=())
def fused_backward(pairs: Tensor, sizes: Tensor, weight: Tensor, bias: Tensor, upper: Tensor) -> tuple[Tensor, Tensor]:
    """The gradients of weight and bias."""
    grid = BACKWARD.grid(pairs.device, upper.shape[0] * upper.shape[1])
    hidden, features = weight.shape
    gradients = torch.empty(grid * BACKWARD.warps, hidden, features + 1, device=pairs.device)
    _launch(BACKWARD, grid, (pairs, sizes, weight, bias, upper, gradients))
    both = gradients.sum(0)
    return both[:, :features].contiguous(), both[:, features].contiguous()


def _launch(kernel: Kernel, grid: int, tensors: tuple[Tensor, ...]) -> None:
    pairs, sizes, weight, *_ = tensors
    graphs, nodes = pairs.shape[:2]
    hidden, features = weight.shape
    constants = {"FEATURES": features, "HIDDEN": hidden, "HALF": int(pairs.dtype == torch.float16)}
    kernel.launch(grid, (pairs, sizes.long(), *tensors[2:]), (graphs * nodes, nodes), **constants)


@fused.register_fake
def _(pairs: Tensor, sizes: Tensor, weight: Tensor, bias: Tensor) -> Tensor:  # noqa: ARG001
    return torch.empty(*pairs.shape[:2], weight.shape[0], device=pairs.device)


@fused_backward.register_fake
def _(pairs: Tensor, sizes: Tensor, weight: Tensor, bias: Tensor, upper: Tensor) -> tuple[Tensor, Tensor]:  # noqa: ARG001
    return torch.empty_like(weight), torch.empty_like(bias)


def _keep(ctx, inputs, output) -> None:  # noqa: ARG001
    ctx.save_for_backward(*inputs)


def _gradients(ctx, upper: Tensor) -> tuple[Tensor | None, ...]:
    weight, bias = fused_backward(*ctx.saved_tensors, upper)
    return None, None, weight, bias


fused.register_autograd(_gradients, setup_context=_keep)
