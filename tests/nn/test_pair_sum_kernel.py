"""The CUDA kernel of `PairSum`, emulated on the processor, equals its formula."""

from pathlib import Path
from unittest import mock

import pytest
import torch

from magnetite.kernels.cuda.pair_sum import fused, fused_backward
from magnetite.nn import pair_layers
from tests.nn.compiled_pair_sum import random_case
from tests.nn.emulation import emulated
from tests.nn.test_pair_sum import SHAPES, assert_near, exact


@pytest.mark.slow
def test_operators_are_registered_as_torch_wants_them(tmp_path: Path) -> None:
    layer, pairs, sizes = random_case(7, 32, True, "cpu")
    weight, bias = layer.pair.parameters()
    with emulated(tmp_path):
        torch.library.opcheck(fused, (pairs, sizes, weight, bias))
        torch.library.opcheck(fused_backward, (pairs, sizes, weight.detach(), bias.detach(), torch.randn(5, 40, 32)))


@pytest.mark.slow
@pytest.mark.parametrize(("features", "hidden", "half"), SHAPES)
def test_kernel_equals_the_formula(features: int, hidden: int, half: bool, tmp_path: Path) -> None:
    layer, pairs, sizes = random_case(features, hidden, half, "cpu")
    expected = exact(layer, pairs, sizes)
    upper = torch.randn(expected.shape)
    slopes = torch.autograd.grad(expected, tuple(layer.pair.parameters()), upper.double())
    with emulated(tmp_path), mock.patch.object(pair_layers, "suits", lambda *_: True):
        sums = layer.sums(pairs, sizes)
        found = torch.autograd.grad(sums, tuple(layer.pair.parameters()), upper)

    assert not sums[torch.arange(sums.shape[1]) >= sizes[:, None]].any()
    assert_near(sums, expected)
    for mine, theirs in zip(found, slopes, strict=True):
        assert_near(mine, theirs)
