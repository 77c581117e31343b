"""What any two wires of a network have to do with each other, changed node by node: all steps as one operator of torch.

Nodes act on two wires, and come in the order of their steps: step `t` has a node of each of the first `counts[t]`
networks. Autograd would keep every step apart, and add up slopes of the matrices step by step; here they are one
product for all steps, and the states are changed where they lie.
"""

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import gelu

from magnetite.nn import relation_steps_cuda as cuda

KINDS = 5
"""Where a wire can be: below the first of the two, on it, between them, on the second, above it."""

SMALLEST = 1e-5
"""Added to a variance before its root is taken."""


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
    counts: Sequence[int],
    room: int,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The relations `[networks, room, room, c]` after the last node; then what the slopes need.

    Of a node on wires `i` and `j`, and any wire `k`: `R_ik, R_jk ← N(R + σ(g) ⊙ u)` of both, where
    `[g, u] = C gelu(M [R_ik, R_jk] + L R_ij + kind_k + drive) + shift`. At first `R_kk = start[1]`, all others are
    `start[0]`. Rows of `wires [rows, 2]` and `drive` are the nodes; one that is not `live` changes nothing.
    """
    if cuda.suits(start, mix, room):
        return cuda.forward(start, drive, (kinds, mix, lean, change, shift), wires, live, counts, room)
    rows = len(wires)
    states = start[torch.eye(room, dtype=torch.long, device=start.device)].repeat(counts[0], 1, 1, 1)
    before = start.new_empty(rows, room, *start.shape)
    inner, changes = mix.new_empty(rows, room, len(mix)), mix.new_empty(rows, room, len(change))
    for here, network in spans(counts, wires.device):
        pair, lines = wires[here], (network[:, None], wires[here])
        both, own = _arrive(states, network, pair, before[here], mix)
        aside = torch.addmm(drive[here], own, lean.T)
        bent = _enter(both @ mix.T, aside, kinds, pair, inner[here])
        torch.matmul(bent, change.T, out=changes[here])
        after = _leave(before[here], changes[here], shift, pair, live[here])
        states[lines] = after
        states.transpose(1, 2)[lines] = after
    return states, before, inner, changes


@torch.library.custom_op("magnetite::relation_steps_slopes", mutates_args=())
def slopes(
    upper: Tensor,
    kept: Sequence[Tensor],
    matrices: Sequence[Tensor],
    wires: Tensor,
    live: Tensor,
    counts: Sequence[int],
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    """The slopes of start, drive, kinds, mix, lean, change and shift."""
    before, inner, _ = kept
    mix = matrices[0]
    walk = cuda.backward if cuda.suits(before, mix, before.shape[1]) else _walk_back
    of_start, of_inner, of_changes, of_drive = walk(upper, kept, matrices, wires, live, counts)
    own = before[torch.arange(len(wires), device=wires.device), wires[:, 1], 0].to(mix)
    place = (_kind(wires, before.shape[1])[..., None] == torch.arange(KINDS, device=wires.device)).to(mix)
    flat = of_inner.flatten(0, 1)
    return (
        of_start,
        of_drive,
        place.flatten(0, 1).T @ flat,
        flat.T @ before.flatten(0, 1).flatten(1).to(mix),
        of_drive.T @ own,
        of_changes.flatten(0, 1).T @ gelu(inner).flatten(0, 1),
        of_changes.sum((0, 1), dtype=before.dtype).to(mix),
    )


def _walk_back(
    upper: Tensor,
    kept: Sequence[Tensor],
    matrices: Sequence[Tensor],
    wires: Tensor,
    live: Tensor,
    counts: Sequence[int],
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The slopes of start; then, of every node, those of what enters, of changes, and of the drive."""
    before, inner, changes = kept
    mix, lean, change, shift = matrices
    lower = upper.clone()
    of_inner, of_changes = torch.empty_like(inner), torch.empty_like(changes)
    of_drive = mix.new_empty(len(wires), len(mix))
    nothing = lower.new_zeros(())  # a plain 0 would be copied to the GPU, which a captured step cannot
    for here, network in reversed(spans(counts, wires.device)):
        pair, lines = wires[here], (network[:, None], wires[here])
        above = _gathered(lower, network, pair)
        lower.transpose(1, 2)[lines] = nothing
        direct = _unleave(above, before[here], changes[here], shift, live[here], of_changes[here])
        _unenter(of_changes[here] @ change, inner[here], of_inner[here])
        torch.sum(of_inner[here], 1, out=of_drive[here])
        lower[lines] = _returned(direct, of_inner[here] @ mix, of_drive[here] @ lean, pair)
    total, diagonal = lower.sum((0, 1, 2)), lower.diagonal(0, 1, 2).sum((0, 2))
    return torch.stack([total - diagonal, diagonal]), of_inner, of_changes, of_drive


def _kind(pair: Tensor, room: int) -> Tensor:
    """For each wire, where it is: `[nodes, room]`."""
    wire = torch.arange(room, device=pair.device)
    low, high = pair[:, :1], pair[:, 1:]
    return (wire >= low).long() + (wire > low) + (wire >= high) + (wire > high)


def _arrive(states: Tensor, network: Tensor, pair: Tensor, before: Tensor, like: Tensor) -> tuple[Tensor, Tensor]:
    """What both wires have to do with each wire, `[nodes, room, 2 c]`, and with each other; the first is kept."""
    lines = states[network[:, None], pair]
    before.copy_(lines.transpose(1, 2))
    own = states[network, pair[:, 0], pair[:, 1]]
    return lines.transpose(1, 2).flatten(2).to(like), own.to(like)


def _enter(through: Tensor, aside: Tensor, kinds: Tensor, pair: Tensor, inner: Tensor) -> Tensor:
    inner.copy_(through + aside[:, None] + kinds[_kind(pair, inner.shape[1])])
    return gelu(inner)


def _leave(before: Tensor, changes: Tensor, shift: Tensor, pair: Tensor, live: Tensor) -> Tensor:
    """The lines of both wires, `[nodes, 2, room, c]`; what they have to do with each other stands in both."""
    gate, update = _halves(changes, shift, before)
    raw = before + gate.sigmoid() * update
    variance, mean = torch.var_mean(raw, dim=-1, correction=0, keepdim=True)
    after = (raw - mean) * (variance + SMALLEST).rsqrt()
    after = torch.where(live[:, None, None, None], after, before)
    first, second = after.unbind(2)
    wire = torch.arange(before.shape[1], device=pair.device)
    each = first.gather(1, pair[:, 1:, None].expand(-1, 1, first.shape[-1]))
    return torch.stack([first, torch.where((wire == pair[:, :1])[..., None], each, second)], dim=1)


def _gathered(lower: Tensor, network: Tensor, pair: Tensor) -> Tensor:
    """Slopes of what `_leave` gave, which was written into lines and columns: `[nodes, room, 2, c]`."""
    lines, columns = lower[network[:, None], pair], lower.transpose(1, 2)[network[:, None], pair]
    wire = torch.arange(lines.shape[2], device=pair.device)
    itself = wire == pair[..., None]  # where line and column cross, there is one entry
    each = torch.where(itself[..., None], lines, lines + columns)
    other = torch.stack([torch.zeros_like(itself[:, 0]), wire == pair[:, :1]], dim=1)
    return torch.where(other[..., None], 0, each).transpose(1, 2)


def _unleave(above: Tensor, before: Tensor, changes: Tensor, shift: Tensor, live: Tensor, of_changes: Tensor) -> Tensor:
    """The slopes of the changes, by norm and gate, and of what came in where it goes around the inner layer."""
    gate, update = _halves(changes, shift, before)
    opened = gate.sigmoid()
    raw = before + opened * update
    variance, mean = torch.var_mean(raw, dim=-1, correction=0, keepdim=True)
    scale = (variance + SMALLEST).rsqrt()
    after = (raw - mean) * scale
    of_raw = (above - above.mean(-1, keepdim=True) - after * (above * after).mean(-1, keepdim=True)) * scale
    alive = live[:, None, None, None]
    both = torch.stack([of_raw * update * opened * (1 - opened), of_raw * opened], dim=3)
    of_changes.copy_(torch.where(alive[..., None], both, 0).flatten(2))
    return torch.where(alive, of_raw, above)


def _unenter(above: Tensor, inner: Tensor, of_inner: Tensor) -> None:
    """The slope of `x Φ(x)`, which is `Φ(x) + x φ(x)`, times what is above."""
    value = inner.to(torch.promote_types(inner.dtype, torch.float32))
    share, density = torch.special.ndtr(value), torch.exp(-(value**2) / 2) * (0.5 / torch.pi) ** 0.5
    of_inner.copy_(above * (share + value * density))


def _returned(direct: Tensor, through: Tensor, own: Tensor, pair: Tensor) -> Tensor:
    """Slopes of the lines of both wires, `[nodes, 2, room, c]`, on all ways that they came in."""
    wire = torch.arange(direct.shape[1], device=pair.device)
    each = torch.where((wire == pair[:, 1:])[..., None], own[:, None], 0)
    aside = torch.stack([each, torch.zeros_like(each)], dim=2)
    return (direct + through.view_as(direct) + aside).transpose(1, 2)


def _halves(changes: Tensor, shift: Tensor, like: Tensor) -> tuple[Tensor, Tensor]:
    gate, update = (changes.to(like) + shift.to(like)).unflatten(2, (2, 2, -1)).unbind(3)
    return gate, update


def spans(counts: Sequence[int], device: torch.device) -> list[tuple[slice, Tensor]]:
    """For each step, its rows and the numbers of its networks."""
    network = torch.arange(counts[0], device=device)
    ends = pairwise(accumulate(counts, initial=0))
    return [(slice(first, last), network[: last - first]) for first, last in ends]


@torch.library.custom_op("magnetite::parallel_steps", mutates_args=())
def parallel_steps(wires: Tensor, live: Tensor, counts: Sequence[int], room: int) -> Tensor:
    """The parallel step of each node, the earliest that its wires allow; slots without a node come after all others.

    >>> wires = torch.tensor([[0, 1], [1, 2], [2, 3], [0, 1]])
    >>> parallel_steps(wires, torch.tensor([True] * 4), [1, 1, 1, 1], room=4).tolist()
    [0, 1, 2, 2]
    """
    if wires.is_cuda and cuda.CAN_COMPILE and room <= cuda.MOST_WIRES:
        return cuda.parallel_steps(wires, live, counts)
    free = wires.new_zeros(counts[0], room)
    found = torch.empty_like(wires[:, 0])
    for here, network in spans(counts, wires.device):
        known = free[: len(network)]
        step = torch.where(live[here], known.gather(1, wires[here]).amax(1), len(counts))
        found[here] = step
        known.scatter_(1, wires[here], (step + 1)[:, None].expand(-1, 2))
    return found


@parallel_steps.register_fake
def _(wires: Tensor, live: Tensor, counts: Sequence[int], room: int) -> Tensor:  # noqa: ARG001
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
    counts: Sequence[int],  # noqa: ARG001
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    inner = len(matrices[0])
    start, drive = upper.new_empty(2, upper.shape[-1]), matrices[0].new_empty(len(wires), inner)
    mix, lean, change, shift = (torch.empty_like(matrix) for matrix in matrices)
    return start, drive, mix.new_empty(KINDS, inner), mix, lean, change, shift


def _keep(ctx: Any, inputs: Any, output: Any) -> None:
    _, _, _, *matrices, wires, live, counts, _ = inputs
    ctx.save_for_backward(*output[1:], *matrices, wires, live)
    ctx.counts = counts
    ctx.mark_non_differentiable(*output[1:])
    ctx.set_materialize_grads(False)  # of what is only kept: zeros of its size would be the largest thing written


def _slopes(ctx: Any, upper: Tensor | None, *_: Any) -> tuple[Tensor | None, ...]:
    if upper is None:
        return (None,) * 11
    kept, matrices, (wires, live) = ctx.saved_tensors[:3], ctx.saved_tensors[3:7], ctx.saved_tensors[7:]
    return *slopes(upper, kept, matrices, wires, live, ctx.counts), None, None, None, None


steps.register_autograd(_slopes, setup_context=_keep)
