"""The steps of WireRelations on CUDA, one block per network: `forward.cu`, `backward.cu`, `parallel_steps.cu`."""

from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from magnetite.kernels.cuda.launch import CAN_COMPILE, Kernel, knows_bfloat16
from paper.relations.loop import Networks

HERE = Path(__file__).parent
STATES, MOST_WIRES = (16, 32), 16
"""Sizes of vectors for which the matrices fit into registers; rows of a product on tensor cores."""

ORDER = Kernel(HERE / "parallel_steps.cu", "parallel_steps", warps=1, blocks=32)


def supports(start: Tensor, matrices: Sequence[Tensor], most: int) -> bool:
    """Whether the kernels take these tensors and this number of wires on this device."""
    known = start.shape[-1] in STATES and start.dtype == torch.float32 and most <= MOST_WIRES
    half = all(matrix.dtype == torch.bfloat16 for matrix in matrices)
    return start.is_cuda and known and half and CAN_COMPILE and knows_bfloat16(start.device)


def supports_order(wires: Tensor, most: int) -> bool:
    """Whether the kernel of `parallel_steps` takes this number of wires on this device."""
    return wires.is_cuda and most <= MOST_WIRES and CAN_COMPILE


def forward(
    start: Tensor, drive: Tensor, matrices: Sequence[Tensor], wires: Tensor, networks: Networks, most: int
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """As `loop.forward`."""
    kinds, mix, lean, change, shift = matrices
    rows, state = len(wires), start.shape[-1]
    states = start.new_empty(len(networks.first), most, most, state)
    before = start.new_empty(rows, most, 2, state)
    inner, changes = (mix.new_empty(rows, most, 4 * state) for _ in range(2))
    given = (start, drive, kinds, torch.cat([mix, lean], 1), change, shift)
    _launch("forward", given, wires, networks, (states, before, inner, changes), most)
    return states, before, inner, changes


def backward(
    upper: Tensor, kept: Sequence[Tensor], matrices: Sequence[Tensor], wires: Tensor, networks: Networks
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """As `loop.backward`."""
    mix, lean, change, shift = matrices
    before, inner, changes = kept
    of_start = upper.new_empty(len(networks.first), 2, before.shape[-1])
    of_inner, of_changes = torch.empty_like(inner), torch.empty_like(changes)
    of_drive = mix.new_empty(len(wires), len(mix))
    given = (upper, *kept, torch.cat([mix, lean], 1), change, shift)
    _launch("backward", given, wires, networks, (of_start, of_inner, of_changes, of_drive), before.shape[1])
    return of_start.sum(0), of_inner, of_changes, of_drive


def parallel_steps(wires: Tensor, networks: Networks, most: int) -> Tensor:  # noqa: ARG001 (the kernel allows MOST_WIRES)
    """As `loop.parallel_steps`."""
    found, count = wires.new_full((len(wires),), len(networks.counts)), len(networks.first)
    grid = ORDER.grid(wires.device, -(-count // 32))
    ORDER.launch(grid, (wires, networks.first, networks.sizes, networks.order, found), (count,), WIRES=MOST_WIRES)
    return found


def _launch(
    way: str, given: Sequence[Tensor], wires: Tensor, networks: Networks, results: Sequence[Tensor], most: int
) -> None:
    state, count = results[0].shape[-1], len(networks.first)
    kernel = Kernel(HERE / f"{way}.cu", f"relation_steps_{way}", warps=state // 8)
    tensors = (*given, wires, networks.first, networks.sizes, networks.order, *results)
    kernel.launch(count, tensors, (count, len(wires), most), STATE=state)
