"""What any two wires of a network have to do with each other, changed node by node: all steps as one operator of torch.

Autograd would keep every step apart, and add up slopes of the matrices step by step; here they are one product for all
steps, and the states are changed where they lie. The steps are a CUDA kernel where one fits, otherwise a loop.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import gelu

from magnetite.kernels.cuda import relation as relation_cuda
from magnetite.nn import relation_loop
from magnetite.nn.relation_loop import Run, kind_of

KINDS = 5
"""Where a wire can be: below the first of the two, on it, between them, on the second, above it."""


@torch.library.custom_op("magnetite::relation_steps", mutates_args=())
def steps(
    start: Tensor,
    drive: Tensor,
    kinds: Tensor,
    mix: Tensor,
    lean: Tensor,
    change: Tensor,
    shift: Tensor,
    wires: Tensor,
    live: Tensor,
    starts: Tensor,
    slots: Tensor,
    counts: Sequence[int],
    room: int,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The relations `[networks, room, room, c]` after the last node; then what the slopes need.

    Of a node on wires `i` and `j`, and any wire `k`: `R_ik, R_jk ← N(R + σ(g) ⊙ u)` of both, where
    `[g, u] = C gelu(M [R_ik, R_jk] + L R_ij + kind_k + drive) + shift`. At first `R_kk = start[1]`, all others are
    `start[0]`. Rows of `drive` are the nodes, in the order of a `Run`; one that is not `live` changes nothing.
    """
    run, matrices = Run(wires, live, starts, slots, counts), (kinds, mix, lean, change, shift)
    engine = relation_cuda if relation_cuda.suits(start, (drive, *matrices), room) else relation_loop
    return engine.forward(start, drive, matrices, run, room)


@torch.library.custom_op("magnetite::relation_steps_slopes", mutates_args=())
def slopes(
    upper: Tensor,
    kept: Sequence[Tensor],
    matrices: Sequence[Tensor],
    wires: Tensor,
    live: Tensor,
    starts: Tensor,
    slots: Tensor,
    counts: Sequence[int],
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    """The slopes of start, drive, kinds, mix, lean, change and shift."""
    before, inner, _ = kept
    mix, room = matrices[0], before.shape[1]
    engine = relation_cuda if relation_cuda.suits(before, matrices, room) else relation_loop
    run = Run(wires, live, starts, slots, counts)
    of_start, of_inner, of_changes, of_drive = engine.backward(upper, kept, matrices, run)
    own = before[torch.arange(len(wires), device=wires.device), wires[:, 1], 0].to(mix)
    place = (kind_of(wires, room)[..., None] == torch.arange(KINDS, device=wires.device)).to(mix)
    flat, flat_changes = of_inner.flatten(0, 1), of_changes.flatten(0, 1)
    return (
        of_start,
        of_drive,
        place.flatten(0, 1).T @ flat,
        flat.T @ before.flatten(0, 1).flatten(1).to(mix),
        of_drive.T @ own,
        flat_changes.T @ gelu(inner).flatten(0, 1),
        flat_changes.new_ones(len(flat_changes)) @ flat_changes,  # a sum over so many rows takes longer
    )


@torch.library.custom_op("magnetite::parallel_steps", mutates_args=())
def parallel_steps(
    wires: Tensor, live: Tensor, starts: Tensor, slots: Tensor, counts: Sequence[int], room: int
) -> Tensor:
    """The parallel step of each node of a `Run`, the earliest that its wires allow; slots without a node come last."""
    run = Run(wires, live, starts, slots, counts)
    engine = relation_cuda if relation_cuda.orders(wires, room) else relation_loop
    return engine.parallel_steps(run, room)


@parallel_steps.register_fake
def _(
    wires: Tensor,
    live: Tensor,  # noqa: ARG001
    starts: Tensor,  # noqa: ARG001
    slots: Tensor,  # noqa: ARG001
    counts: Sequence[int],  # noqa: ARG001
    room: int,  # noqa: ARG001
) -> Tensor:
    return torch.empty_like(wires[:, 0])


@steps.register_fake
def _(
    start: Tensor,
    drive: Tensor,  # noqa: ARG001
    kinds: Tensor,  # noqa: ARG001
    mix: Tensor,
    lean: Tensor,  # noqa: ARG001
    change: Tensor,
    shift: Tensor,  # noqa: ARG001
    wires: Tensor,
    live: Tensor,  # noqa: ARG001
    starts: Tensor,  # noqa: ARG001
    slots: Tensor,  # noqa: ARG001
    counts: Sequence[int],
    room: int,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    rows, width = len(wires), start.shape[-1]
    inner, changes = mix.new_empty(rows, room, len(mix)), mix.new_empty(rows, room, len(change))
    return start.new_empty(counts[0], room, room, width), start.new_empty(rows, room, 2, width), inner, changes


@slopes.register_fake
def _(
    upper: Tensor,
    kept: Sequence[Tensor],  # noqa: ARG001
    matrices: Sequence[Tensor],
    wires: Tensor,
    live: Tensor,  # noqa: ARG001
    starts: Tensor,  # noqa: ARG001
    slots: Tensor,  # noqa: ARG001
    counts: Sequence[int],  # noqa: ARG001
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    inner = len(matrices[0])
    start, drive = upper.new_empty(2, upper.shape[-1]), matrices[0].new_empty(len(wires), inner)
    mix, lean, change, shift = (torch.empty_like(matrix) for matrix in matrices)
    return start, drive, mix.new_empty(KINDS, inner), mix, lean, change, shift


def _keep(ctx: Any, inputs: Any, output: Any) -> None:
    _, _, _, *matrices, wires, live, starts, slots, counts, _ = inputs
    ctx.save_for_backward(*output[1:], *matrices, wires, live, starts, slots)
    ctx.counts = counts
    ctx.mark_non_differentiable(*output[1:])
    ctx.set_materialize_grads(False)  # of what is only kept: zeros of its size would be the largest thing written


def _slopes(ctx: Any, upper: Tensor | None, *_: Any) -> tuple[Tensor | None, ...]:
    if upper is None:
        return (None,) * 13
    kept, matrices, run = ctx.saved_tensors[:3], ctx.saved_tensors[3:7], ctx.saved_tensors[7:]
    return *slopes(upper, kept, matrices, *run, ctx.counts), *(None,) * 6


steps.register_autograd(_slopes, setup_context=_keep)
