"""The CUDA kernel of `eigen_attention`, emulated on the processor, equals plain operations."""

from pathlib import Path
from unittest import mock

import pytest
import torch

from magnetite.nn import eigen_attention as module
from magnetite.nn.eigen_attention import Weights, eigen_attention, written_out
from tests.nn.emulation import emulated
from tests.nn.test_eigen_attention import random_case


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(25, 17, 4, 4), (5, 6, 2, 6), (16, 17, 4, 4), (1, 5, 4, 1), (32, 9, 4, 2)])
def test_kernel_equals_plain_operations(shape: tuple[int, int, int, int], tmp_path: Path) -> None:
    x, mask, sizes, weights = random_case(*shape, "cpu")
    upper = torch.randn_like(x)
    expected = written_out(x, mask, sizes, weights, shape[2])
    slopes = torch.autograd.grad(expected, (x, *weights), upper)
    with emulated(tmp_path), mock.patch.object(module, "suits", lambda *_, **__: True):
        result = eigen_attention(x, mask, sizes, weights, shape[2])
        found = torch.autograd.grad(result, (x, *weights), upper)

    empty = torch.arange(x.shape[1]) >= sizes[:, None]
    assert not result[empty].any()
    assert not found[0][empty].any()
    torch.testing.assert_close(result, expected, rtol=1e-4, atol=1e-5)
    for name, mine, theirs in zip(("tokens", *Weights._fields), found, slopes, strict=True):
        torch.testing.assert_close(
            mine, theirs, rtol=1e-4, atol=1e-4, msg=lambda message, name=name: f"{name}: {message}"
        )
