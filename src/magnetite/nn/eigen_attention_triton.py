"""The Triton kernels of `eigen_attention`: a program goes from node to node, weights and all scores in registers.

Products are taken on tensor cores in three passes of TF32, which keeps the digits of single precision. The channels of
all heads lie side by side; a head's scores are products with the other heads' channels set to zero.
"""

# pyright: reportMissingImports=false

import torch
import triton
import triton.language as tl
from torch import Tensor

PROGRAMS_OF_A_PROCESSOR = 8
WARPS = {16: 1, 32: 2, 64: 4}
"""Warps of a program by its padded number of tokens."""


@triton.jit
def _dot(left, right):
    return tl.dot(left, right, input_precision="tf32x3")


@triton.jit
def _weight(inner, bias, part, W: tl.constexpr, WP: tl.constexpr, D: tl.constexpr, DP: tl.constexpr):
    """The matrix of queries, keys or values, `[WP, DP]`, with the bias as row W."""
    w, d = tl.arange(0, WP)[:, None], tl.arange(0, DP)[None, :]
    matrix = tl.load(inner + (part * D + d) * W + w, mask=(w < W) & (d < D), other=0.0)
    return tl.where(w == W, tl.load(bias + part * D + d, mask=d < D, other=0.0), matrix)


@triton.jit
def _out_weight(out, W: tl.constexpr, WP: tl.constexpr, D: tl.constexpr, DP: tl.constexpr):
    """The matrix back to tokens, `[DP, WP]`."""
    d, w = tl.arange(0, DP)[:, None], tl.arange(0, WP)[None, :]
    return tl.load(out + w * D + d, mask=(w < W) & (d < D), other=0.0)


@triton.jit
def _tokens(x, node, count, T: tl.constexpr, W: tl.constexpr, WP: tl.constexpr):
    """The tokens of a node, `[T, WP]`, zero beyond."""
    t, w = tl.arange(0, T)[:, None], tl.arange(0, WP)[None, :]
    return tl.load(x + tl.full((), node, tl.int64) * count * W + t * W + w, mask=(t < count) & (w < W), other=0.0)


@triton.jit
def _store_tokens(x, node, count, tile, T: tl.constexpr, W: tl.constexpr, WP: tl.constexpr):
    t, w = tl.arange(0, T)[:, None], tl.arange(0, WP)[None, :]
    tl.store(x + tl.full((), node, tl.int64) * count * W + t * W + w, tile, mask=(t < count) & (w < W))


@triton.jit
def _open_keys(mask, graph, count, T: tl.constexpr):
    t = tl.arange(0, T)[None, :]
    return tl.load(mask + graph * count + t, mask=t < count, other=0) != 0


@triton.jit
def _softmax(query, key, open_keys):
    """`[T, T]`; a row without an open key is zero."""
    scores = tl.where(open_keys, _dot(query, tl.trans(key)), -1e30)
    weight = tl.where(open_keys, tl.exp(scores - tl.max(scores, 1)[:, None]), 0.0)
    return weight / tl.maximum(tl.sum(weight, 1), 1e-30)[:, None]


@triton.jit
def _forward(
    x, mask, inner, bias, out, y, all_nodes, nodes, count, scale,
    T: tl.constexpr, W: tl.constexpr, WP: tl.constexpr, D: tl.constexpr, DP: tl.constexpr, H: tl.constexpr,
):  # fmt: skip
    column = tl.arange(0, WP)[None, :]
    head_of = tl.arange(0, DP)[None, :] // (D // H)
    to_query = _weight(inner, bias, 0, W, WP, D, DP)
    to_key = _weight(inner, bias, 1, W, WP, D, DP)
    to_value = _weight(inner, bias, 2, W, WP, D, DP)
    back = _out_weight(out, W, WP, D, DP)
    for node in range(tl.program_id(0), all_nodes, tl.num_programs(0)):
        open_keys = _open_keys(mask, node // nodes, count, T)
        tokens = _tokens(x, node, count, T, W, WP)
        tile = tl.where(column == W, 1.0, tokens)
        query, key, value = _dot(tile, to_query) * scale, _dot(tile, to_key), _dot(tile, to_value)
        mixed = tl.zeros((T, DP), tl.float32)
        for head in tl.static_range(H):
            here = head_of == head
            weight = _softmax(tl.where(here, query, 0.0), key, open_keys)
            mixed += _dot(weight, tl.where(here, value, 0.0))
        _store_tokens(y, node, count, tokens + _dot(mixed, back), T, W, WP)


@triton.jit
def _backward(
    x, mask, inner, bias, out, upper, lower, inner_slopes, out_slopes, all_nodes, nodes, count, scale,
    T: tl.constexpr, W: tl.constexpr, WP: tl.constexpr, D: tl.constexpr, DP: tl.constexpr, H: tl.constexpr,
):  # fmt: skip
    column = tl.arange(0, WP)[None, :]
    head_of = tl.arange(0, DP)[None, :] // (D // H)
    to_query = _weight(inner, bias, 0, W, WP, D, DP)
    to_key = _weight(inner, bias, 1, W, WP, D, DP)
    to_value = _weight(inner, bias, 2, W, WP, D, DP)
    back = _out_weight(out, W, WP, D, DP)
    slope_query = tl.zeros((WP, DP), tl.float32)
    slope_key = tl.zeros((WP, DP), tl.float32)
    slope_value = tl.zeros((WP, DP), tl.float32)
    slope_back = tl.zeros((DP, WP), tl.float32)
    for node in range(tl.program_id(0), all_nodes, tl.num_programs(0)):
        open_keys = _open_keys(mask, node // nodes, count, T)
        tile = tl.where(column == W, 1.0, _tokens(x, node, count, T, W, WP))
        given = _tokens(upper, node, count, T, W, WP)
        query, key, value = _dot(tile, to_query) * scale, _dot(tile, to_key), _dot(tile, to_value)
        given_mixed = _dot(given, tl.trans(back))
        mixed = tl.zeros((T, DP), tl.float32)
        given_query = tl.zeros((T, DP), tl.float32)
        given_key = tl.zeros((T, DP), tl.float32)
        given_value = tl.zeros((T, DP), tl.float32)
        for head in tl.static_range(H):
            here = head_of == head
            query_here, given_here = tl.where(here, query, 0.0), tl.where(here, given_mixed, 0.0)
            weight = _softmax(query_here, key, open_keys)
            mixed += _dot(weight, tl.where(here, value, 0.0))
            given_value += _dot(tl.trans(weight), given_here)
            slope = _dot(given_here, tl.trans(value))
            slope = weight * (slope - tl.sum(weight * slope, 1)[:, None])
            given_query += _dot(slope, tl.where(here, key, 0.0))
            given_key += _dot(tl.trans(slope), query_here)
        given_query *= scale
        result = given + _dot(given_query, tl.trans(to_query)) + _dot(given_key, tl.trans(to_key))
        _store_tokens(lower, node, count, result + _dot(given_value, tl.trans(to_value)), T, W, WP)
        turned = tl.trans(tile)
        slope_query += _dot(turned, given_query)
        slope_key += _dot(turned, given_key)
        slope_value += _dot(turned, given_value)
        slope_back += _dot(tl.trans(mixed), given)
    w, d = tl.arange(0, WP)[:, None], tl.arange(0, DP)[None, :]
    inner_slopes += tl.program_id(0) * 3 * WP * DP + w * DP + d
    tl.store(inner_slopes, slope_query)
    tl.store(inner_slopes + WP * DP, slope_key)
    tl.store(inner_slopes + 2 * WP * DP, slope_value)
    tl.store(out_slopes + tl.program_id(0) * DP * WP + tl.trans(d) * WP + tl.trans(w), slope_back)


def _padded(length: int) -> int:
    return max(16, triton.next_power_of_2(length))


def _constants(x: Tensor, out: Tensor, heads: int) -> dict[str, int]:
    width, inner = out.shape
    tokens = _padded(x.shape[2])
    shapes = {"T": tokens, "W": width, "WP": _padded(width + 1), "D": inner, "DP": _padded(inner), "H": heads}
    return {**shapes, "num_warps": WARPS[tokens]}


def _programs(x: Tensor) -> int:
    processors = torch.cuda.get_device_properties(x.device).multi_processor_count if x.is_cuda else 1
    return min(x.shape[0] * x.shape[1], processors * PROGRAMS_OF_A_PROCESSOR)


def _scalars(x: Tensor, out: Tensor, heads: int) -> tuple[int, int, int, float]:
    graphs, nodes, tokens, _ = x.shape
    return graphs * nodes, nodes, tokens, (out.shape[1] // heads) ** -0.5


@torch.library.custom_op("magnetite::eigen_attention", mutates_args=())
def fused(x: Tensor, mask: Tensor, inner: Tensor, bias: Tensor, out: Tensor, heads: int) -> Tensor:
    """`x + W_o softmax(q kᵀ/√c) v` of contiguous tokens `[b, n, t, w]`, without the bias of the last layer."""
    result = torch.empty_like(x)
    tensors = (x, mask.contiguous(), inner.contiguous(), bias, out.contiguous(), result)
    _forward[(_programs(x),)](*tensors, *_scalars(x, out, heads), **_constants(x, out, heads))
    return result


@torch.library.custom_op("magnetite::eigen_attention_backward", mutates_args=())
def fused_backward(
    x: Tensor, mask: Tensor, inner: Tensor, bias: Tensor, out: Tensor, upper: Tensor, heads: int
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The slopes of tokens, inner matrix, inner bias and outer matrix."""
    constants = _constants(x, out, heads)
    programs, padded, channels = _programs(x), constants["WP"], constants["DP"]
    lower = torch.empty_like(x)
    inner_slopes = torch.empty(programs, 3, padded, channels, device=x.device)
    out_slopes = torch.empty(programs, channels, padded, device=x.device)
    tensors = (x, mask.contiguous(), inner.contiguous(), bias, out.contiguous(), upper.contiguous(), lower)
    _backward[(programs,)](*tensors, inner_slopes, out_slopes, *_scalars(x, out, heads), **constants)
    width, depth = out.shape
    both = inner_slopes.sum(0)[:, : width + 1, :depth].transpose(1, 2).flatten(0, 1)
    slope_out = out_slopes.sum(0)[:depth, :width].T.contiguous()
    return lower, both[:, :width].contiguous(), both[:, width].contiguous(), slope_out


@fused.register_fake
def _(x: Tensor, mask: Tensor, inner: Tensor, bias: Tensor, out: Tensor, heads: int) -> Tensor:  # noqa: ARG001
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
