"""The CUDA kernels of `relation_steps`, emulated on the processor, equal plain operations."""

from collections.abc import Sequence
from unittest import mock

import pytest
import torch
from torch import Tensor

from magnetite.nn import relation_steps
from magnetite.nn import relation_steps_cuda as module
from tests.nn.emulation import emulated

COUNTS, ROOM = [3, 3, 2, 2, 1], 5
WIRES = [[0, 1], [1, 3], [0, 4], [3, 4], [0, 2], [1, 2], [1, 3], [0, 1], [2, 3], [0, 1], [2, 4]]
LIVE = [True] * 9 + [False, True]


def given(state: int, dtype: torch.dtype) -> list[Tensor]:
    """Start, drive, kinds, mix, lean, change and shift; what is rounded there is rounded here."""
    torch.manual_seed(0)
    inner = 4 * state
    shapes = ((2, state), (len(WIRES), inner), (relation_steps.KINDS, inner), (inner, 2 * state), (inner, state))
    shapes += ((inner, inner), (inner,))
    tensors = [torch.randn(shape) for shape in shapes]
    tensors = [tensor / tensor.shape[-1] ** 0.5 if 3 <= place < 6 else tensor for place, tensor in enumerate(tensors)]
    start = tensors[0].to(torch.promote_types(dtype, torch.float32))
    return [part.requires_grad_() for part in (start, *(tensor.bfloat16().to(dtype) for tensor in tensors[1:]))]


def run(parts: Sequence[Tensor]) -> list[Tensor]:
    """The states after the last node, and slopes of all parts."""
    states = relation_steps.steps(*parts, torch.tensor(WIRES), torch.tensor(LIVE), COUNTS, ROOM)[0]
    weights = torch.randn(states.shape, generator=torch.Generator().manual_seed(1))
    return [states, *torch.autograd.grad((states * weights.to(states)).sum(), list(parts))]


@pytest.mark.parametrize("state", module.STATES)
def test_states_and_slopes_of_the_kernels_are_those_of_plain_operations(tmp_path, state):
    expected = run(given(state, torch.float64))
    with emulated(tmp_path), mock.patch.object(module, "suits", lambda *_: True):
        found = run(given(state, torch.bfloat16))
    for place, (ours, plain) in enumerate(zip(found, expected, strict=True)):
        assert ours.isfinite().all()
        error = float((ours - plain).detach().norm() / plain.detach().norm())
        assert error < 0.01, (place, error)  # a number in bfloat16 is right up to 0.004


def test_parallel_steps_of_the_kernel_are_those_of_the_loop(tmp_path):
    wires, live = torch.tensor(WIRES), torch.tensor(LIVE)
    expected = relation_steps.parallel_steps(wires, live, COUNTS, ROOM)
    with emulated(tmp_path):
        assert module.parallel_steps(wires, live, COUNTS).tolist() == expected.tolist()
