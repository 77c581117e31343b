"""The steps of WireRelations as a loop of tensor operations: any device, any precision, any number of wires.

Step `t` handles the `t`-th node of every network that may have one, given the shapes of the batch, so that it can be
captured as a CUDA graph. Networks that have ended write to a spare row behind the others.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import gelu

EPSILON = 1e-5
"""Added to a variance before its square root is taken."""


class Networks(NamedTuple):
    """Where the nodes of each network lie; padding follows the last network.

    Args:
        first: First node of each network.
        sizes: Number of nodes of each network.
        order: Networks by descending padded size.
        counts: For each step, how many networks of this order may have a node.
    """

    first: Tensor
    sizes: Tensor
    order: Tensor
    counts: Sequence[int]


@dataclass(frozen=True, eq=False)
class Step:
    """One node of each of several networks.

    Args:
        network: Number of each network.
        row: Row of its node; of its last node if it has ended.
        target: Row to write to; the spare row if it has ended.
        live: Whether it has not ended.
    """

    network: Tensor
    row: Tensor
    target: Tensor
    live: Tensor


def forward(
    start: Tensor, drive: Tensor, matrices: Sequence[Tensor], wires: Tensor, networks: Networks, most: int
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Relations after the last node; then, for every node, relations before it, the inner layer and the changes.

    Matrices are kinds, mix, lean, change and shift.
    """
    kinds, mix, lean, change, shift = matrices
    rows, same = len(wires), torch.eye(most, dtype=torch.long, device=start.device)
    states = start[same].repeat(len(networks.first), 1, 1, 1)
    before = start.new_zeros(rows + 1, most, *start.shape)
    inner, changes = mix.new_zeros(rows + 1, most, len(mix)), mix.new_zeros(rows + 1, most, len(change))
    for step in _steps(networks, rows):
        pair = wires[step.row]
        lines = step.network[:, None], pair
        both, own = states[lines].transpose(1, 2), states[step.network, pair[:, 0], pair[:, 1]]
        aside = torch.addmm(drive[step.row], own.to(mix), lean.T)
        entered = both.flatten(2).to(mix) @ mix.T + aside[:, None] + kinds[kind_of(pair, most)]
        changed = gelu(entered) @ change.T
        before[step.target], inner[step.target], changes[step.target] = both, entered, changed
        after = _updated(both, changed, shift, pair, step.live)
        states[lines] = after
        states.transpose(1, 2)[lines] = after
    return states, before[:rows], inner[:rows], changes[:rows]


def backward(
    upper: Tensor, kept: Sequence[Tensor], matrices: Sequence[Tensor], wires: Tensor, networks: Networks
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Gradients of start; then, for every node, those of the inner layer, the changes and the drive.

    Matrices are mix, lean, change and shift.
    """
    before, inner, changes = kept
    mix, lean, change, shift = matrices
    rows, lower = len(wires), upper.clone()
    of_inner, of_changes = (part.new_zeros(rows + 1, *part.shape[1:]) for part in (inner, changes))
    of_drive = mix.new_zeros(rows + 1, len(mix))
    zero = lower.new_zeros(())  # a plain 0 would be copied to the GPU, which a captured step cannot do
    for step in reversed(list(_steps(networks, rows))):
        pair = wires[step.row]
        lines = step.network[:, None], pair
        above = _gathered(lower, step.network, pair)
        lower.transpose(1, 2)[lines] = zero
        direct, to_changes = _updated_back(above, before[step.row], changes[step.row], shift, step.live)
        to_inner = ((to_changes.to(change) @ change) * _gelu_gradient(inner[step.row])).to(inner)
        to_drive = to_inner.sum(1)
        of_changes[step.target], of_inner[step.target], of_drive[step.target] = (
            to_changes.to(changes),
            to_inner,
            to_drive,
        )
        lower[lines] = _returned(direct, to_inner @ mix, to_drive @ lean, pair)
    total, diagonal = lower.sum((0, 1, 2)), lower.diagonal(0, 1, 2).sum((0, 2))
    return torch.stack([total - diagonal, diagonal]), of_inner[:rows], of_changes[:rows], of_drive[:rows]


def parallel_steps(wires: Tensor, networks: Networks, most: int) -> Tensor:
    """The earliest parallel step of each node in which both of its wires are free; padding comes after all others."""
    free = wires.new_zeros(len(networks.first), most)
    found = wires.new_full((len(wires) + 1,), len(networks.counts))
    for step in _steps(networks, len(wires)):
        lines = step.network[:, None], wires[step.row]
        now = free[lines]
        earliest = now.amax(1)
        found[step.target] = earliest
        free[lines] = torch.where(step.live[:, None], earliest[:, None] + 1, now)
    return found[:-1]


def kind_of(pair: Tensor, most: int) -> Tensor:
    """Position of each wire relative to the two wires of a node: `[nodes, most]`."""
    wire = torch.arange(most, device=pair.device)
    low, high = pair[:, :1], pair[:, 1:]
    return (wire >= low).long() + (wire > low) + (wire >= high) + (wire > high)


def _steps(networks: Networks, rows: int) -> Iterator[Step]:
    for number, count in enumerate(networks.counts):
        network = networks.order[:count]
        first, size = networks.first[network], networks.sizes[network]
        live = size > number
        row = first + (size - 1).clamp(max=number)
        yield Step(network, row, torch.where(live, row, rows), live)


def _updated(before: Tensor, changes: Tensor, shift: Tensor, pair: Tensor, live: Tensor) -> Tensor:
    """Relations of both wires, `[nodes, 2, most, c]`; the relation between the two is the same in both."""
    gate, update = _halves(changes, shift, before)
    raw = before + gate.sigmoid() * update
    variance, mean = torch.var_mean(raw, dim=-1, correction=0, keepdim=True)
    after = (raw - mean) * (variance + EPSILON).rsqrt()
    after = torch.where(live[:, None, None, None], after, before)
    first, second = after.unbind(2)
    wire = torch.arange(before.shape[1], device=pair.device)
    own = first.gather(1, pair[:, 1:, None].expand(-1, 1, first.shape[-1]))
    return torch.stack([first, torch.where((wire == pair[:, :1])[..., None], own, second)], dim=1)


def _gathered(lower: Tensor, network: Tensor, pair: Tensor) -> Tensor:
    """Gradients of the output of `_updated`, which is written to rows and columns: `[nodes, most, 2, c]`."""
    lines, columns = lower[network[:, None], pair], lower.transpose(1, 2)[network[:, None], pair]
    wire = torch.arange(lines.shape[2], device=pair.device)
    itself = wire == pair[..., None]  # where row and column cross, there is one entry
    each = torch.where(itself[..., None], lines, lines + columns)
    other = torch.stack([torch.zeros_like(itself[:, 0]), wire == pair[:, :1]], dim=1)
    return torch.where(other[..., None], 0, each).transpose(1, 2)


def _updated_back(above: Tensor, before: Tensor, changes: Tensor, shift: Tensor, live: Tensor) -> tuple[Tensor, Tensor]:
    """Gradients of the relations before a node, past the inner layer, and of the changes."""
    gate, update = _halves(changes, shift, before)
    opened = gate.sigmoid()
    raw = before + opened * update
    variance, mean = torch.var_mean(raw, dim=-1, correction=0, keepdim=True)
    scale = (variance + EPSILON).rsqrt()
    after = (raw - mean) * scale
    of_raw = (above - above.mean(-1, keepdim=True) - after * (above * after).mean(-1, keepdim=True)) * scale
    alive = live[:, None, None, None]
    both = torch.stack([of_raw * update * opened * (1 - opened), of_raw * opened], dim=3)
    return torch.where(alive, of_raw, above), torch.where(alive[..., None], both, 0).flatten(2)


def _gelu_gradient(inner: Tensor) -> Tensor:
    """The derivative of `x Φ(x)`, which is `Φ(x) + x φ(x)`."""
    value = inner.to(torch.promote_types(inner.dtype, torch.float32))
    return torch.special.ndtr(value) + value * torch.exp(-(value**2) / 2) * (0.5 / torch.pi) ** 0.5


def _returned(direct: Tensor, through: Tensor, own: Tensor, pair: Tensor) -> Tensor:
    """Gradients of the relations before a node, `[nodes, 2, most, c]`, along all paths."""
    wire = torch.arange(direct.shape[1], device=pair.device)
    each = torch.where((wire == pair[:, 1:])[..., None], own[:, None], 0)
    aside = torch.stack([each, torch.zeros_like(each)], dim=2)
    return (direct + through.view_as(direct) + aside).transpose(1, 2)


def _halves(changes: Tensor, shift: Tensor, like: Tensor) -> tuple[Tensor, Tensor]:
    gate, update = (changes.to(like) + shift.to(like)).unflatten(2, (2, 2, -1)).unbind(3)
    return gate, update
