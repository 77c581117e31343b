"""Shared by the tests of CUDA kernels: where they run, and when results are close enough."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch
from torch import Tensor

from tests.kernels.emulation import emulated

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]


@contextmanager
def kernels(folder: Path, device: str) -> Iterator[None]:
    """Kernels run where the tensors are: on the GPU, or emulated on the CPU."""
    if device == "cuda":
        yield
    else:
        with emulated(folder):
            yield


def assert_near(found: Tensor, expected: Tensor, error: float = 3e-6) -> None:
    """Errors of sums of thousands of numbers in single precision are relative to the largest."""
    largest = float(expected.detach().abs().max())
    torch.testing.assert_close(found.double(), expected.double(), rtol=0, atol=error * largest)


def gradients(result: Tensor, upper: Tensor, inputs: list[Tensor]) -> list[Tensor]:
    return list(torch.autograd.grad(result, inputs, upper.to(result.dtype)))
