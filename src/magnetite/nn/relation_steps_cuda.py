"""`relation_steps` on CUDA with one block a network: `relation_forward.cu` and `relation_backward.cu`."""

import functools
from collections.abc import Sequence
from itertools import accumulate

import torch
from torch import Tensor

from magnetite.nn.cuda_kernels import CAN_COMPILE, Kernel

STATES, MOST_WIRES = (16, 32), 16
"""Numbers a vector for which the matrices fit into registers; the rows of a product on tensor cores."""

ORDER = Kernel("relation_forward.cu", "parallel_steps", warps=1, blocks=32)


def suits(start: Tensor, mix: Tensor, room: int) -> bool:
    """Whether the kernels take such states and matrices, and there is a torch to compile them."""
    known = start.shape[-1] in STATES and start.dtype == torch.float32 and mix.dtype == torch.bfloat16
    return mix.is_cuda and known and room <= MOST_WIRES and CAN_COMPILE


def forward(
    start: Tensor,
    drive: Tensor,
    matrices: Sequence[Tensor],
    wires: Tensor,
    live: Tensor,
    counts: Sequence[int],
    room: int,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The states after the last node; then, of every node, lines before it, what enters, and changes.

    Matrices are kinds, mix, lean, change and shift.
    """
    kinds, mix, lean, change, shift = matrices
    rows, state = len(wires), start.shape[-1]
    states = start.new_empty(counts[0], room, room, state)
    before = start.new_empty(rows, room, 2, state)
    inner, changes = (mix.new_empty(rows, room, 4 * state) for _ in range(2))
    given = (start, drive, kinds, torch.cat([mix, lean], 1), change, shift, wires, live, *_places(counts, wires.device))
    _launch("forward", state, (*given, states, before, inner, changes), counts, room)
    return states, before, inner, changes


def backward(
    upper: Tensor,
    kept: Sequence[Tensor],
    matrices: Sequence[Tensor],
    wires: Tensor,
    live: Tensor,
    counts: Sequence[int],
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The slopes of start; then, of every node, those of what enters, of changes, and of the drive.

    Matrices are mix, lean, change and shift.
    """
    mix, lean, change, shift = matrices
    before, inner, changes = kept
    room, state = before.shape[1], before.shape[-1]
    of_start = upper.new_empty(counts[0], 2, state)
    of_inner, of_changes, of_drive = (
        torch.empty_like(inner),
        torch.empty_like(changes),
        mix.new_empty(len(wires), len(mix)),
    )
    given = (upper, *kept, torch.cat([mix, lean], 1), change, shift, wires, live, *_places(counts, wires.device))
    _launch("backward", state, (*given, of_start, of_inner, of_changes, of_drive), counts, room)
    return of_start.sum(0), of_inner, of_changes, of_drive


def parallel_steps(wires: Tensor, live: Tensor, counts: Sequence[int]) -> Tensor:
    """The parallel step of each node, among at most `MOST_WIRES` wires."""
    found = torch.empty_like(wires[:, 0])
    grid = ORDER.grid(wires.device, -(-counts[0] // 32))
    tensors = (wires, live, *_places(counts, wires.device), found)
    ORDER.launch(grid, tensors, (counts[0], len(counts)), STATE=STATES[0])
    return found


def _launch(way: str, state: int, tensors: Sequence[Tensor], counts: Sequence[int], room: int) -> None:
    kernel = Kernel(f"relation_{way}.cu", f"relation_steps_{way}", warps=state // 8, blocks=2)
    kernel.launch(counts[0], tensors, (counts[0], room), STATE=state)


def _places(counts: Sequence[int], device: torch.device) -> tuple[Tensor, Tensor]:
    """The first row of each step, and the slots of each network."""
    return _kept_places(tuple(counts), device)


@functools.cache  # a captured step reads them: they must not be forgotten
def _kept_places(counts: tuple[int, ...], device: torch.device) -> tuple[Tensor, Tensor]:
    starts = torch.tensor(list(accumulate(counts, initial=0)), device=device)
    slots = (torch.tensor(counts)[:, None] > torch.arange(counts[0])).sum(0)
    return starts, slots.to(device)
