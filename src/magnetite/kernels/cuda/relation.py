"""Relations of wires on CUDA with one block a network: `relation_forward.cu`, `relation_backward.cu`."""

from collections.abc import Sequence

import torch
from torch import Tensor

from magnetite.kernels.cuda.launch import CAN_COMPILE, Kernel, knows_bfloat16
from magnetite.nn.relation_loop import Run

STATES, MOST_WIRES = (16, 32), 16
"""Numbers a vector for which the matrices fit into registers; the rows of a product on tensor cores."""

ORDER = Kernel("parallel_steps.cu", "parallel_steps", warps=1, blocks=32)


def suits(start: Tensor, matrices: Sequence[Tensor], room: int) -> bool:
    """Whether the kernels take such states and matrices, and this GPU and this torch the kernels."""
    known = start.shape[-1] in STATES and start.dtype == torch.float32 and room <= MOST_WIRES
    halved = all(matrix.dtype == torch.bfloat16 for matrix in matrices)
    return start.is_cuda and known and halved and CAN_COMPILE and knows_bfloat16(start.device)


def orders(wires: Tensor, room: int) -> bool:
    """Whether the kernel of `parallel_steps` takes so many wires, and there is a torch to compile it."""
    return wires.is_cuda and room <= MOST_WIRES and CAN_COMPILE


def forward(
    start: Tensor, drive: Tensor, matrices: Sequence[Tensor], run: Run, room: int
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """As `relation_loop.forward`."""
    kinds, mix, lean, change, shift = matrices
    rows, state = len(run.wires), start.shape[-1]
    states = start.new_empty(run.counts[0], room, room, state)
    before = start.new_empty(rows, room, 2, state)
    inner, changes = (mix.new_empty(rows, room, 4 * state) for _ in range(2))
    given = (start, drive, kinds, torch.cat([mix, lean], 1), change, shift)
    _launch("forward", given, run, (states, before, inner, changes), room)
    return states, before, inner, changes


def backward(
    upper: Tensor, kept: Sequence[Tensor], matrices: Sequence[Tensor], run: Run
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """As `relation_loop.backward`."""
    mix, lean, change, shift = matrices
    before, inner, changes = kept
    of_start = upper.new_empty(run.counts[0], 2, before.shape[-1])
    of_inner, of_changes = torch.empty_like(inner), torch.empty_like(changes)
    of_drive = mix.new_empty(len(run.wires), len(mix))
    given = (upper, *kept, torch.cat([mix, lean], 1), change, shift)
    _launch("backward", given, run, (of_start, of_inner, of_changes, of_drive), before.shape[1])
    return of_start.sum(0), of_inner, of_changes, of_drive


def parallel_steps(run: Run, room: int) -> Tensor:  # noqa: ARG001 (the kernel has room for the most)
    """As `relation_loop.parallel_steps`."""
    found, networks = torch.empty_like(run.wires[:, 0]), run.counts[0]
    grid = ORDER.grid(run.wires.device, -(-networks // 32))
    ORDER.launch(
        grid, (run.wires, run.live, run.starts, run.slots, found), (networks, len(run.counts)), WIRES=MOST_WIRES
    )
    return found


def _launch(way: str, given: Sequence[Tensor], run: Run, results: Sequence[Tensor], room: int) -> None:
    state = results[0].shape[-1]
    kernel = Kernel(f"relation_{way}.cu", f"relation_steps_{way}", warps=state // 8)
    tensors = (*given, run.wires, run.live, run.starts, run.slots, *results)
    kernel.launch(run.counts[0], tensors, (run.counts[0], room), STATE=state)
