"""The CUDA kernels of WireRelations, emulated on the CPU, agree with the loop of tensor operations."""

from collections.abc import Sequence
from unittest import mock

import pytest
import torch
from torch import Tensor

from paper.relations import cuda, loop, steps
from paper.relations.loop import Networks
from tests.kernels.emulation import emulated

ROWS = 13
NETWORKS = Networks(torch.tensor([0, 4, 9]), torch.tensor([4, 5, 2]), torch.tensor([1, 0, 2]), [3, 3, 2, 2, 1])
"""Eleven nodes of three networks, and two rows of padding."""


def random_wires(most: int) -> Tensor:
    """Two wires per node."""
    generator = torch.Generator().manual_seed(most)
    return torch.stack([torch.randperm(most, generator=generator)[:2].sort().values for _ in range(ROWS)])


def given(state: int, dtype: torch.dtype, offset: float = 0) -> list[Tensor]:
    """Start, drive, kinds, mix, lean, change and shift, all but the first rounded to bfloat16."""
    torch.manual_seed(0)
    inner = 4 * state
    shapes = ((2, state), (ROWS, inner), (steps.KINDS, inner), (inner, 2 * state), (inner, state))
    shapes += ((inner, inner), (inner,))
    tensors = [torch.randn(shape) for shape in shapes]
    tensors = [tensor / tensor.shape[-1] ** 0.5 if 3 <= place < 6 else tensor for place, tensor in enumerate(tensors)]
    tensors[-1].view(2, 2, state)[:, 1] += offset
    start = tensors[0].to(torch.promote_types(dtype, torch.float32))
    return [part.requires_grad_() for part in (start, *(tensor.bfloat16().to(dtype) for tensor in tensors[1:]))]


def results(parts: Sequence[Tensor], most: int) -> list[Tensor]:
    """The relations after the last node, and the gradients of all parts."""
    states = steps.steps(*parts, random_wires(most), *NETWORKS, most)[0]
    weights = torch.randn(states.shape, generator=torch.Generator().manual_seed(1))
    return [states, *torch.autograd.grad((states * weights.to(states)).sum(), list(parts))]


def errors(folder, state: int, most: int, offset: float = 0) -> list[float]:
    """Relative errors of the kernels against the loop in double precision."""
    expected = results(given(state, torch.float64, offset), most)
    with emulated(folder), mock.patch.object(cuda, "supports", lambda *_: True):
        found = results(given(state, torch.bfloat16, offset), most)
    return [
        float((ours - plain).detach().norm() / plain.detach().norm())
        for ours, plain in zip(found, expected, strict=True)
    ]


@pytest.mark.parametrize(("state", "most"), [(16, 11), (32, 2), (32, 9), (32, 16)])
def test_the_kernels_agree_with_the_loop(tmp_path, state, most):
    assert max(errors(tmp_path, state, most)) < 0.01  # bfloat16 has a relative error of 0.004


def test_an_offset_that_the_norm_removes_costs_no_precision(tmp_path):
    assert errors(tmp_path, 32, 5, offset=4096)[0] < 0.02


def test_parallel_steps_of_kernel_and_loop_are_equal(tmp_path):
    wires = random_wires(5)
    with emulated(tmp_path):
        found = cuda.parallel_steps(wires, NETWORKS, 5)
    assert found.tolist() == loop.parallel_steps(wires, NETWORKS, 5).tolist()


def test_parallel_steps_are_the_earliest_that_the_wires_allow():
    wires, one = torch.tensor([[0, 1], [1, 2], [2, 3], [0, 1]]), torch.tensor([0])
    networks = Networks(one, torch.tensor([4]), one, [1] * 5)
    assert loop.parallel_steps(wires, networks, 4).tolist() == [0, 1, 2, 2]
    networks = Networks(one, torch.tensor([3]), one, [1] * 5)
    assert loop.parallel_steps(wires, networks, 4).tolist() == [0, 1, 2, 5]
