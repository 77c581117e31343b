"""All steps of relations of wires as a loop of tensor operations: any device, any precision, any number of wires."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

import torch
from torch import Tensor
from torch.nn.functional import gelu

SMALLEST = 1e-5
"""Added to a variance before its root is taken."""


@dataclass(frozen=True, eq=False)
class Run:
    """The nodes of all networks in the order of their steps: step `t` has a node of each of the first `counts[t]`.

    `wires [rows, 2]` has the two of each node, `live` which rows are nodes at all; `starts` the first row of each step,
    `slots` how many rows each network has.
    """

    wires: Tensor
    live: Tensor
    starts: Tensor
    slots: Tensor
    counts: Sequence[int]


def forward(
    start: Tensor, drive: Tensor, matrices: Sequence[Tensor], run: Run, room: int
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The states after the last node; then, of every node, lines before it, what enters, and changes.

    Matrices are kinds, mix, lean, change and shift.
    """
    kinds, mix, lean, change, shift = matrices
    rows = len(run.wires)
    states = start[torch.eye(room, dtype=torch.long, device=start.device)].repeat(run.counts[0], 1, 1, 1)
    before = start.new_empty(rows, room, *start.shape)
    inner, changes = mix.new_empty(rows, room, len(mix)), mix.new_empty(rows, room, len(change))
    for here, network in _spans(run):
        pair, lines = run.wires[here], (network[:, None], run.wires[here])
        both, own = _arrive(states, network, pair, before[here], mix)
        aside = torch.addmm(drive[here], own, lean.T)
        bent = _enter(both @ mix.T, aside, kinds, pair, inner[here])
        torch.matmul(bent, change.T, out=changes[here])
        after = _leave(before[here], changes[here], shift, pair, run.live[here])
        states[lines] = after
        states.transpose(1, 2)[lines] = after
    return states, before, inner, changes


def backward(
    upper: Tensor, kept: Sequence[Tensor], matrices: Sequence[Tensor], run: Run
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The slopes of start; then, of every node, those of what enters, of changes, and of the drive.

    Matrices are mix, lean, change and shift.
    """
    before, inner, changes = kept
    mix, lean, change, shift = matrices
    lower = upper.clone()
    of_inner, of_changes = torch.empty_like(inner), torch.empty_like(changes)
    of_drive = mix.new_empty(len(run.wires), len(mix))
    nothing = lower.new_zeros(())  # a plain 0 would be copied to the GPU, which a captured step cannot
    for here, network in reversed(_spans(run)):
        pair, lines = run.wires[here], (network[:, None], run.wires[here])
        above = _gathered(lower, network, pair)
        lower.transpose(1, 2)[lines] = nothing
        direct = _unleave(above, before[here], changes[here], shift, run.live[here], of_changes[here])
        _unenter(of_changes[here] @ change, inner[here], of_inner[here])
        torch.sum(of_inner[here], 1, out=of_drive[here])
        lower[lines] = _returned(direct, of_inner[here] @ mix, of_drive[here] @ lean, pair)
    total, diagonal = lower.sum((0, 1, 2)), lower.diagonal(0, 1, 2).sum((0, 2))
    return torch.stack([total - diagonal, diagonal]), of_inner, of_changes, of_drive


def parallel_steps(run: Run, room: int) -> Tensor:
    """The parallel step of each node, the earliest that its wires allow; slots without a node come after all others."""
    free = run.wires.new_zeros(run.counts[0], room)
    found = torch.empty_like(run.wires[:, 0])
    for here, network in _spans(run):
        known, live = free[: len(network)], run.live[here]
        now = known.gather(1, run.wires[here])
        step = torch.where(live, now.amax(1), len(run.counts))
        found[here] = step
        known.scatter_(1, run.wires[here], torch.where(live[:, None], step[:, None] + 1, now))
    return found


def kind_of(pair: Tensor, room: int) -> Tensor:
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
    inner.copy_(through + aside[:, None] + kinds[kind_of(pair, inner.shape[1])])
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


def _spans(run: Run) -> list[tuple[slice, Tensor]]:
    """For each step, its rows and the numbers of its networks."""
    network = torch.arange(run.counts[0], device=run.wires.device)
    ends = pairwise(accumulate(run.counts, initial=0))
    return [(slice(first, last), network[: last - first]) for first, last in ends]
