"""The steps of WireRelations as one operator of torch.

Autograd would keep the tensors of every step apart, and add up the gradients of the matrices step by step; here these
are one product for all steps, and relations are updated in place. The steps are one CUDA kernel where it supports the
tensors, otherwise a loop.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import gelu

from paper.relations import cuda, loop
from paper.relations.loop import Networks, kind_of

KINDS = 5
"""Positions of a wire: below the first of the two, the first, between them, the second, above the second."""


@torch.library.custom_op("paper::relation_steps", mutates_args=())
def steps(
    start: Tensor,
    drive: Tensor,
    kinds: Tensor,
    mix: Tensor,
    lean: Tensor,
    change: Tensor,
    shift: Tensor,
    wires: Tensor,
    first: Tensor,
    sizes: Tensor,
    order: Tensor,
    counts: Sequence[int],
    most: int,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The relations `[networks, most, most, c]` after the last node; then what the gradients need.

    A node on wires `i` and `j` updates, for every wire `k`, `R_ik, R_jk ← N(R + σ(g) ⊙ u)`, where
    `[g, u] = C gelu(M [R_ik, R_jk] + L R_ij + kind_k + drive) + shift`. Initially `R_kk = start[1]`, all others are
    `start[0]`. Rows of `drive` and `wires` are nodes, network after network, in the order in which they act; `first` to
    `counts` are a `Networks`.
    """
    networks, matrices = Networks(first, sizes, order, counts), (kinds, mix, lean, change, shift)
    engine = cuda if cuda.supports(start, (drive, *matrices), most) else loop
    return engine.forward(start, drive, matrices, wires, networks, most)


@torch.library.custom_op("paper::relation_steps_gradients", mutates_args=())
def gradients(
    upper: Tensor,
    kept: Sequence[Tensor],
    matrices: Sequence[Tensor],
    wires: Tensor,
    first: Tensor,
    sizes: Tensor,
    order: Tensor,
    counts: Sequence[int],
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    """The gradients of start, drive, kinds, mix, lean, change and shift."""
    before, inner, _ = kept
    mix, most = matrices[0], before.shape[1]
    engine = cuda if cuda.supports(before, matrices, most) else loop
    networks = Networks(first, sizes, order, counts)
    of_start, of_inner, of_changes, of_drive = engine.backward(upper, kept, matrices, wires, networks)
    own = before[torch.arange(len(wires), device=wires.device), wires[:, 1], 0].to(mix)
    kind = (kind_of(wires, most)[..., None] == torch.arange(KINDS, device=wires.device)).to(mix)
    flat, flat_changes = of_inner.flatten(0, 1), of_changes.flatten(0, 1)
    return (
        of_start,
        of_drive,
        kind.flatten(0, 1).T @ flat,
        flat.T @ before.flatten(0, 1).flatten(1).to(mix),
        of_drive.T @ own,
        flat_changes.T @ gelu(inner).flatten(0, 1),
        flat_changes.new_ones(len(flat_changes)) @ flat_changes,  # faster than a sum over this many rows
    )


@torch.library.custom_op("paper::parallel_steps", mutates_args=())
def parallel_steps(
    wires: Tensor, first: Tensor, sizes: Tensor, order: Tensor, counts: Sequence[int], most: int
) -> Tensor:
    """The earliest parallel step of each node in which both of its wires are free; padding comes after all others."""
    engine = cuda if cuda.supports_order(wires, most) else loop
    return engine.parallel_steps(wires, Networks(first, sizes, order, counts), most)


@parallel_steps.register_fake
def _(wires: Tensor, *_: Any) -> Tensor:
    return torch.empty_like(wires[:, 0])


@steps.register_fake
def _(start: Tensor, drive: Tensor, kinds: Tensor, mix: Tensor, lean: Tensor, change: Tensor, *rest: Any) -> Any:  # noqa: ARG001
    _, wires, first, _, _, _, most = rest
    rows, state = len(wires), start.shape[-1]
    inner, changes = mix.new_empty(rows, most, len(mix)), mix.new_empty(rows, most, len(change))
    return start.new_empty(len(first), most, most, state), start.new_empty(rows, most, 2, state), inner, changes


@gradients.register_fake
def _(upper: Tensor, kept: Sequence[Tensor], matrices: Sequence[Tensor], wires: Tensor, *_: Any) -> Any:  # noqa: ARG001
    mix, lean, change, shift = (torch.empty_like(matrix) for matrix in matrices)
    start, drive = upper.new_empty(2, upper.shape[-1]), mix.new_empty(len(wires), len(mix))
    return start, drive, mix.new_empty(KINDS, len(mix)), mix, lean, change, shift


def _keep(ctx: Any, inputs: Any, output: Any) -> None:
    _, _, _, *matrices, wires, first, sizes, order, counts, _ = inputs
    ctx.save_for_backward(*output[1:], *matrices, wires, first, sizes, order)
    ctx.counts = counts
    ctx.mark_non_differentiable(*output[1:])
    ctx.set_materialize_grads(False)  # zeros for the kept tensors would be the largest thing written


def _gradients(ctx: Any, upper: Tensor | None, *_: Any) -> tuple[Tensor | None, ...]:
    if upper is None:
        return (None,) * 13
    kept, matrices, nodes = ctx.saved_tensors[:3], ctx.saved_tensors[3:7], ctx.saved_tensors[7:]
    return *gradients(upper, kept, matrices, *nodes, ctx.counts), *(None,) * 6


steps.register_autograd(_gradients, setup_context=_keep)
