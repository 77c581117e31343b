"""The kernel that sums over the pairs of each node equals its formula."""

from pathlib import Path

import pytest
import torch
from torch import Tensor

from magnetite.kernels.cuda.pair_sum import fused, fused_backward
from tests.kernels.cases import DEVICES, assert_near, gradients, kernels

SHAPES = [(8, 64, True), (8, 64, False), (1, 32, True), (3, 32, False), (6, 96, True), (7, 64, True), (16, 128, False)]
"""Features, hidden channels, and whether features are stored in half precision."""


def random_case(features: int, hidden: int, half: bool, device: str) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Features of the pairs of five graphs, one of them empty, with numbers in the padding too; sizes and weights."""
    torch.manual_seed(features)
    weight, bias = 2 * torch.randn(hidden, features), torch.randn(hidden)  # reaches both ends of the activation
    pairs, sizes = torch.randn(5, 40, 40, features), torch.tensor([32, 0, 1, 40, 33])
    given = pairs.half() if half else pairs, sizes, weight, bias
    return tuple(tensor.to(device) for tensor in given)  # pyright: ignore[reportReturnType]


def formula(pairs: Tensor, sizes: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Graph by graph."""
    sums = [weight.new_zeros(pairs.shape[1], len(bias)) for _ in sizes]
    for graph, size in enumerate(sizes.tolist()):
        hidden = pairs[graph, :size, :size].to(weight) @ weight.T + bias
        sums[graph] = torch.nn.functional.pad(torch.nn.functional.gelu(hidden).sum(0), (0, 0, 0, len(pairs[0]) - size))
    return torch.stack(sums)


@pytest.mark.slow
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("features", "hidden", "half"), SHAPES)
def test_the_kernel_is_the_formula(features: int, hidden: int, half: bool, device: str, tmp_path: Path) -> None:
    pairs, sizes, *weights = random_case(features, hidden, half, device)
    exact = [tensor.double().requires_grad_() for tensor in weights]
    expected = formula(pairs, sizes, *exact)
    upper = torch.randn(expected.shape).to(device)
    inputs = [tensor.requires_grad_() for tensor in weights]
    with kernels(tmp_path, device):
        found = fused(pairs, sizes, *inputs)
        mine = gradients(found, upper, inputs)
    assert not found[torch.arange(40, device=device) >= sizes[:, None]].any()
    assert_near(found, expected)
    for one, two in zip(mine, gradients(expected, upper, exact), strict=True):
        assert_near(one, two)


@pytest.mark.gpu
def test_features_may_start_at_any_address() -> None:
    pairs, sizes, *weights = random_case(8, 64, True, "cuda")
    shifted = torch.empty(pairs.numel() + 1, dtype=pairs.dtype, device="cuda")[1:].view(pairs.shape).copy_(pairs)
    assert torch.equal(fused(shifted, sizes, *weights), fused(pairs, sizes, *weights))


@pytest.mark.slow
def test_operators_are_registered_as_torch_requires(tmp_path: Path) -> None:
    pairs, sizes, weight, bias = random_case(7, 32, True, "cpu")
    with kernels(tmp_path, "cpu"):
        torch.library.opcheck(fused, (pairs, sizes, weight.requires_grad_(), bias.requires_grad_()))
        torch.library.opcheck(fused_backward, (pairs, sizes, weight.detach(), bias.detach(), torch.randn(5, 40, 32)))
