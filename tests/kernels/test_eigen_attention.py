"""The kernel of attention over the eigenvectors of each node equals its formula."""

from pathlib import Path

import pytest
import torch
from torch import Tensor

from magnetite.kernels.cuda.eigen_attention import fused, fused_backward
from tests.kernels.cases import DEVICES, assert_near, gradients, kernels

NODES = 9
SHAPES = [(25, 17, 4, 4), (5, 6, 2, 6), (16, 17, 4, 4), (1, 5, 4, 1), (32, 9, 4, 2)]
"""Tokens per node, their width, heads, and channels per head."""


def random_case(tokens: int, width: int, heads: int, channels: int, device: str) -> tuple[Tensor, ...]:
    """Tokens, mask, inner matrix and bias, outer matrix; each node has one token at least."""
    torch.manual_seed(tokens)
    mask = torch.rand(NODES, tokens) < 0.7
    mask[:, 0] = True
    inner, out = torch.nn.Linear(width, 3 * heads * channels), torch.nn.Linear(heads * channels, width)
    given = torch.randn(NODES, tokens, width), mask, inner.weight, inner.bias, out.weight
    return tuple(tensor.detach().to(device) for tensor in given)


def formula(x: Tensor, mask: Tensor, inner: Tensor, bias: Tensor, out: Tensor, heads: int) -> Tensor:
    """`x + W_o softmax(q kᵀ/√c) v`, head by head."""
    parts = (x @ inner.T + bias).unflatten(-1, (3, heads, -1))
    results = []
    for head in range(heads):
        query, key, value = parts[..., head, :].unbind(-2)
        scores = query @ key.mT / query.shape[-1] ** 0.5
        results.append(scores.masked_fill(~mask[:, None], -torch.inf).softmax(-1) @ value)
    return x + torch.cat(results, -1) @ out.T


@pytest.mark.slow
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("shape", SHAPES)
def test_the_kernel_is_the_formula(shape: tuple[int, int, int, int], device: str, tmp_path: Path) -> None:
    x, mask, *weights = random_case(*shape, device)
    upper = torch.randn_like(x)
    exact = [tensor.double().requires_grad_() for tensor in (x, *weights)]
    expected = formula(exact[0], mask, *exact[1:], shape[2])
    inputs = [tensor.requires_grad_() for tensor in (x, *weights)]
    with kernels(tmp_path, device):
        found = fused(inputs[0], mask, *inputs[1:], shape[2])
        mine = gradients(found, upper, inputs)
    assert_near(found, expected, 1e-5)
    for one, two in zip(mine, gradients(expected, upper, exact), strict=True):
        assert_near(one, two, 3e-5)


@pytest.mark.slow
def test_operators_are_registered_as_torch_requires(tmp_path: Path) -> None:
    x, mask, *weights = random_case(5, 6, 2, 4, "cpu")
    with kernels(tmp_path, "cpu"):
        torch.library.opcheck(fused, (x, mask, *weights, 2))
        torch.library.opcheck(fused_backward, (x, mask, *weights, torch.randn_like(x), 2))
