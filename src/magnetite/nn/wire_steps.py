"""States that travel along wires, from node to node: all steps as one operator of torch, forwards and backwards.

Rows are nodes in the order of their steps, `counts[t]` of them in step `t`, so that a step is a slice. Autograd would
keep every step apart, and add up slopes of the matrices step by step; here they are one product for all steps.
"""

import functools
from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import gelu

SMALLEST = 1e-5
"""Added to a variance before its root is taken."""


def on_gpus_compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function as it is, or as few kernels where its first tensor is on a GPU."""
    compiled = functools.cache(lambda: torch.compile(function))

    @functools.wraps(function)
    def chosen(*tensors: Tensor) -> Any:
        return (compiled() if tensors[0].is_cuda else function)(*tensors)

    return chosen


@torch.library.custom_op("magnetite::wire_steps", mutates_args=())
def steps(
    start: Tensor, drive: Tensor, mix: Tensor, change: Tensor, shift: Tensor, came: Tensor, counts: Sequence[int]
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """First the `start` of all wires and then their states after each node, `[2 · rows, wires, d]`.

    `s = N(x + σ(g) ⊙ u)`, `[g, u] = C gelu(M x + drive) + shift`. `came` says where each `x` comes from, as the number
    of a wire among all of these. What follows is kept for the slopes: inner layers, changes, scales of the norm.
    """
    rows, wires, width = start.shape
    states = torch.cat([start, torch.empty_like(start)])
    known = states.view(-1, width)
    inner, changes = torch.empty_like(drive), drive.new_empty(rows, change.shape[0])
    scales = start.new_empty(rows, wires)
    for first, last in _spans(counts):
        before = known[came[first:last]]
        torch.addmm(drive[first:last], before.flatten(1).to(mix), mix.T, out=inner[first:last])
        torch.addmm(shift, gelu(inner[first:last]), change.T, out=changes[first:last])
        _change(before, changes[first:last], states[rows + first : rows + last], scales[first:last])
    return states, inner, changes, scales


@torch.library.custom_op("magnetite::wire_steps_slopes", mutates_args=())
def slopes(
    upper: Tensor, kept: Sequence[Tensor], mix: Tensor, change: Tensor, came: Tensor, counts: Sequence[int]
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """The slopes of start, drive, mix, change and shift."""
    states, inner, changes, scales = kept
    rows, width = came.shape[0], states.shape[-1]
    lower = upper.clone()
    known = lower.view(-1, width)
    of_inner, of_changes = torch.empty_like(inner), torch.empty_like(changes)
    for first, last in reversed(_spans(counts)):
        here = slice(rows + first, rows + last)
        direct = _unchange(lower[here], states[here], scales[first:last], changes[first:last], of_changes[first:last])
        _bend(of_changes[first:last] @ change, inner[first:last], of_inner[first:last])
        through = (of_inner[first:last] @ mix).view_as(direct)
        known.index_add_(0, came[first:last].flatten(), (direct + through).flatten(0, 1))
    before = states.view(-1, width)[came].flatten(1).to(mix)
    of_shift = of_changes.sum(0, dtype=torch.promote_types(mix.dtype, torch.float32)).to(mix)
    return lower[:rows].clone(), of_inner, of_inner.T @ before, of_changes.T @ gelu(inner), of_shift


@on_gpus_compiled
def _change(before: Tensor, changes: Tensor, after: Tensor, scales: Tensor) -> None:
    gate, update = _halves(changes, before)
    raw = before + gate.sigmoid() * update
    variance, mean = torch.var_mean(raw, dim=-1, correction=0, keepdim=True)
    scale = (variance + SMALLEST).rsqrt()
    after.copy_((raw - mean) * scale)
    scales.copy_(scale[..., 0])


@on_gpus_compiled
def _unchange(above: Tensor, after: Tensor, scales: Tensor, changes: Tensor, of_changes: Tensor) -> Tensor:
    """The slopes of the changes, by norm and gate, and of what came in where it goes around the inner layer."""
    gate, update = _halves(changes, after)
    raw = above - above.mean(-1, keepdim=True) - after * (above * after).mean(-1, keepdim=True)
    raw, opened = raw * scales[..., None], gate.sigmoid()
    of_changes.copy_(torch.stack([raw * update * opened * (1 - opened), raw * opened], dim=2).flatten(1))
    return raw


@on_gpus_compiled
def _bend(above: Tensor, inner: Tensor, of_inner: Tensor) -> None:
    """The slope of `x Φ(x)`, which is `Φ(x) + x φ(x)`, times what is above."""
    value = inner.to(torch.promote_types(inner.dtype, torch.float32))
    share, density = torch.special.ndtr(value), torch.exp(-(value**2) / 2) * (0.5 / torch.pi) ** 0.5
    of_inner.copy_(above * (share + value * density))


def _halves(changes: Tensor, like: Tensor) -> tuple[Tensor, Tensor]:
    gate, update = changes.to(like).unflatten(1, (like.shape[1], 2, -1)).unbind(2)
    return gate, update


def _spans(counts: Sequence[int]) -> list[tuple[int, int]]:
    return list(pairwise(accumulate(counts, initial=0)))


@steps.register_fake
def _(
    start: Tensor,
    drive: Tensor,
    mix: Tensor,  # noqa: ARG001
    change: Tensor,
    shift: Tensor,  # noqa: ARG001
    came: Tensor,  # noqa: ARG001
    counts: Sequence[int],  # noqa: ARG001
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    rows, wires, width = start.shape
    changes = drive.new_empty(rows, change.shape[0])
    return start.new_empty(2 * rows, wires, width), torch.empty_like(drive), changes, start.new_empty(rows, wires)


@slopes.register_fake
def _(
    upper: Tensor,
    kept: Sequence[Tensor],
    mix: Tensor,
    change: Tensor,
    came: Tensor,
    counts: Sequence[int],  # noqa: ARG001
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    start = upper.new_empty(came.shape[0], *upper.shape[1:])
    matrices = torch.empty_like(mix), torch.empty_like(change), change.new_empty(change.shape[0])
    return start, torch.empty_like(kept[1]), *matrices


def _keep(ctx: Any, inputs: Any, output: Any) -> None:
    _, _, mix, change, _, came, counts = inputs
    ctx.save_for_backward(*output, mix, change, came)
    ctx.counts = counts


def _slopes(ctx: Any, upper: Tensor, *_: Any) -> tuple[Tensor | None, ...]:
    *kept, mix, change, came = ctx.saved_tensors
    return *slopes(upper, kept, mix, change, came, ctx.counts), None, None


steps.register_autograd(_slopes, setup_context=_keep)
