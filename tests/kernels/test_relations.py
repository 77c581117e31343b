"""The CUDA kernels of relations of wires, emulated on the processor, equal plain operations."""

from collections.abc import Sequence
from itertools import accumulate
from unittest import mock

import pytest
import torch
from torch import Tensor

from magnetite.kernels.cuda import relation as module
from magnetite.nn import relation_loop, relation_steps
from magnetite.nn.relation_loop import Run
from tests.kernels.emulation import emulated

COUNTS = [3, 3, 2, 2, 1]
LIVE = [True] * 9 + [False, True]


def drawn(room: int) -> Run:
    """Nodes on random wires; one slot has none."""
    rows = sum(COUNTS)
    generator = torch.Generator().manual_seed(room)
    wires = torch.stack([torch.randperm(room, generator=generator)[:2].sort().values for _ in range(rows)])
    starts, slots = torch.tensor(list(accumulate(COUNTS, initial=0)))[:-1], torch.tensor([5, 4, 2])
    return Run(wires, torch.tensor(LIVE), starts, slots, COUNTS)


def given(state: int, dtype: torch.dtype, offset: float = 0) -> list[Tensor]:
    """Start, drive, kinds, mix, lean, change and shift; what is rounded there is rounded here."""
    torch.manual_seed(0)
    inner = 4 * state
    shapes = ((2, state), (len(LIVE), inner), (relation_steps.KINDS, inner), (inner, 2 * state), (inner, state))
    shapes += ((inner, inner), (inner,))
    tensors = [torch.randn(shape) for shape in shapes]
    tensors = [tensor / tensor.shape[-1] ** 0.5 if 3 <= place < 6 else tensor for place, tensor in enumerate(tensors)]
    tensors[-1].view(2, 2, state)[:, 1] += offset
    start = tensors[0].to(torch.promote_types(dtype, torch.float32))
    return [part.requires_grad_() for part in (start, *(tensor.bfloat16().to(dtype) for tensor in tensors[1:]))]


def results(parts: Sequence[Tensor], run: Run, room: int) -> list[Tensor]:
    """The states after the last node, and slopes of all parts."""
    nodes = run.wires, run.live, run.starts, run.slots, run.counts
    states = relation_steps.steps(*parts, *nodes, room)[0]
    weights = torch.randn(states.shape, generator=torch.Generator().manual_seed(1))
    return [states, *torch.autograd.grad((states * weights.to(states)).sum(), list(parts))]


def errors(folder, state: int, room: int, offset: float = 0) -> list[float]:
    """Of the kernels against the loop in double precision, relative to the size of each result."""
    run = drawn(room)
    expected = results(given(state, torch.float64, offset), run, room)
    with emulated(folder), mock.patch.object(module, "suits", lambda *_: True):
        found = results(given(state, torch.bfloat16, offset), run, room)
    return [
        float((ours - plain).detach().norm() / plain.detach().norm())
        for ours, plain in zip(found, expected, strict=True)
    ]


@pytest.mark.parametrize(("state", "room"), [(16, 11), (32, 2), (32, 9), (32, 16)])
def test_states_and_slopes_of_the_kernels_are_those_of_the_loop(tmp_path, state, room):
    assert max(errors(tmp_path, state, room)) < 0.01  # a number in bfloat16 is right up to 0.004


def test_an_offset_that_the_norm_takes_away_does_no_harm(tmp_path):
    assert errors(tmp_path, 32, 5, offset=4096)[0] < 0.02


def test_parallel_steps_of_the_kernel_are_those_of_the_loop(tmp_path):
    run = drawn(5)
    with emulated(tmp_path):
        assert module.parallel_steps(run, 5).tolist() == relation_loop.parallel_steps(run, 5).tolist()


def test_parallel_steps_are_the_earliest_that_the_wires_allow():
    wires, steps = torch.tensor([[0, 1], [1, 2], [2, 3], [0, 1]]), torch.arange(4)
    run = Run(wires, torch.tensor([True, True, False, True]), steps, torch.tensor([4]), [1] * 4)
    assert relation_loop.parallel_steps(run, 4).tolist() == [0, 1, 4, 2]
    run = Run(wires, torch.tensor([True] * 4), steps, torch.tensor([4]), [1] * 4)
    assert relation_loop.parallel_steps(run, 4).tolist() == [0, 1, 2, 2]
