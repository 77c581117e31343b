"""The Triton kernels of `eigen_attention`: one program a node, all heads, scores in registers only."""

# pyright: reportMissingImports=false

import torch
import triton
import triton.language as tl
from torch import Tensor

WARPS_OF_TOKENS = {16: 1, 32: 1, 64: 4}


@triton.jit
def _probabilities(inner, step, head, scale, mask_row, mask_column, T: tl.constexpr, H: tl.constexpr, C: tl.constexpr):
    """Softmax of the scores of one head of one node, `[T, T]`."""
    row, column = tl.arange(0, T), tl.arange(0, T)
    scores = tl.zeros((T, T), tl.float32)
    for c in tl.static_range(C):
        query = tl.load(inner + row * step + head * C + c, mask=mask_row, other=0.0)
        key = tl.load(inner + column * step + (H + head) * C + c, mask=mask_column, other=0.0)
        scores += query[:, None] * key[None, :]
    scores = tl.where(mask_column[None, :], scores * scale, -1e30)
    weight = tl.exp(scores - tl.max(scores, 1)[:, None])
    weight = tl.where(mask_column[None, :], weight, 0.0)
    return weight / tl.maximum(tl.sum(weight, 1)[:, None], 1e-30)


@triton.jit
def _forward(inner, mask, out, tokens, nodes, scale, T: tl.constexpr, H: tl.constexpr, C: tl.constexpr):
    node = tl.program_id(0).to(tl.int64)
    step = 3 * H * C
    row, column = tl.arange(0, T), tl.arange(0, T)
    real = row < tokens
    open_keys = tl.load(mask + (node // nodes) * tokens + column, mask=column < tokens, other=0) != 0
    inner += node * tokens * step
    out += node * tokens * H * C
    for head in tl.static_range(H):
        weight = _probabilities(inner, step, head, scale, real, open_keys, T, H, C)
        for c in tl.static_range(C):
            value = tl.load(inner + column * step + (2 * H + head) * C + c, mask=open_keys, other=0.0)
            mixed = tl.sum(weight * value[None, :], 1)
            tl.store(out + row * (H * C) + head * C + c, mixed, mask=real)


@triton.jit
def _backward(inner, mask, upper, lower, tokens, nodes, scale, T: tl.constexpr, H: tl.constexpr, C: tl.constexpr):
    node = tl.program_id(0).to(tl.int64)
    step = 3 * H * C
    row, column = tl.arange(0, T), tl.arange(0, T)
    real, real_column = row < tokens, column < tokens
    open_keys = tl.load(mask + (node // nodes) * tokens + column, mask=real_column, other=0) != 0
    inner += node * tokens * step
    lower += node * tokens * step
    upper += node * tokens * H * C
    for head in tl.static_range(H):
        weight = _probabilities(inner, step, head, scale, real, open_keys, T, H, C)
        slope = tl.zeros((T, T), tl.float32)
        for c in tl.static_range(C):
            given = tl.load(upper + row * (H * C) + head * C + c, mask=real, other=0.0)
            value = tl.load(inner + column * step + (2 * H + head) * C + c, mask=open_keys, other=0.0)
            slope += given[:, None] * value[None, :]
            tl.store(lower + column * step + (2 * H + head) * C + c, tl.sum(weight * given[:, None], 0), real_column)
        slope = weight * (slope - tl.sum(weight * slope, 1)[:, None]) * scale
        for c in tl.static_range(C):
            query = tl.load(inner + row * step + head * C + c, mask=real, other=0.0)
            key = tl.load(inner + column * step + (H + head) * C + c, mask=open_keys, other=0.0)
            tl.store(lower + row * step + head * C + c, tl.sum(slope * key[None, :], 1), mask=real)
            tl.store(lower + column * step + (H + head) * C + c, tl.sum(slope * query[:, None], 0), real_column)


def _launch(kernel, inner: Tensor, mask: Tensor, *tensors: Tensor) -> None:
    graphs, nodes, tokens, _, heads, channels = inner.shape
    width = max(16, triton.next_power_of_2(tokens))
    constants = {"T": width, "H": heads, "C": channels, "num_warps": WARPS_OF_TOKENS[width]}
    kernel[(graphs * nodes,)](inner, mask, *tensors, tokens, nodes, channels**-0.5, **constants)


@torch.library.custom_op("magnetite::eigen_attention", mutates_args=())
def fused(inner: Tensor, mask: Tensor) -> Tensor:
    """`softmax(q kᵀ/√c) v` of contiguous `[b, n, t, 3, h, c]`."""
    out = torch.empty_like(inner[:, :, :, 0])
    _launch(_forward, inner, mask, out)
    return out


@torch.library.custom_op("magnetite::eigen_attention_backward", mutates_args=())
def fused_backward(inner: Tensor, mask: Tensor, upper: Tensor) -> Tensor:
    """The slope of the input, given that of the output."""
    lower = torch.empty_like(inner)
    _launch(_backward, inner, mask, upper.contiguous(), lower)
    return lower


@fused.register_fake
def _(inner: Tensor, mask: Tensor) -> Tensor:  # noqa: ARG001
    return torch.empty(inner.shape[:3] + inner.shape[4:], dtype=inner.dtype, device=inner.device)


@fused_backward.register_fake
def _(inner: Tensor, mask: Tensor, upper: Tensor) -> Tensor:  # noqa: ARG001
    return torch.empty_like(inner)


def _keep(ctx, inputs, output) -> None:  # noqa: ARG001
    ctx.save_for_backward(*inputs)


def _slopes(ctx, upper: Tensor) -> tuple[Tensor, None]:
    return fused_backward(*ctx.saved_tensors, upper), None


fused.register_autograd(_slopes, setup_context=_keep)
