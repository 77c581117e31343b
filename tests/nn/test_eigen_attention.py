"""Attention over the eigenvectors of each node: the fused kernel equals what it fuses."""

import pytest
import torch

from magnetite.nn.eigen_attention import eigen_attention, written_out


def _random(tokens: int, heads: int, channels: int, device: str) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator(device).manual_seed(tokens)
    inner = torch.randn(3, 5, tokens, 3, heads, channels, device=device, generator=generator)
    mask = torch.rand(3, tokens, device=device, generator=generator) < 0.7
    mask[:, 0] = True
    return inner.requires_grad_(), mask


def test_equals_one_softmax_at_a_time() -> None:
    inner, mask = _random(7, 2, 3, "cpu")
    result = written_out(inner, mask)
    for graph in range(3):
        query, key, value = inner[graph, 4, :, :, 1].unbind(1)
        open_keys = mask[graph]
        weight = (query @ key[open_keys].T / 3**0.5).softmax(-1)
        torch.testing.assert_close(result[graph, 4, :, 1], weight @ value[open_keys])


@pytest.mark.gpu
@pytest.mark.parametrize(("tokens", "heads", "channels"), [(25, 4, 4), (5, 2, 3), (40, 4, 4), (1, 1, 1), (64, 4, 16)])
def test_fused_kernel_equals_plain_operations(tokens: int, heads: int, channels: int) -> None:
    inner, mask = _random(tokens, heads, channels, "cuda")
    upper = torch.randn(3, 5, tokens, heads, channels, device="cuda")
    results = [function(inner, mask) for function in (eigen_attention, written_out)]
    slopes = [torch.autograd.grad(result, inner, upper)[0] for result in results]
    torch.testing.assert_close(*results, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(*slopes, rtol=1e-4, atol=1e-5)


@pytest.mark.gpu
def test_more_nodes_than_a_launch_grid_of_torch_takes() -> None:
    inner = torch.randn(70, 1000, 4, 3, 1, 2, device="cuda")
    mask = torch.ones(70, 4, dtype=torch.bool, device="cuda")
    torch.testing.assert_close(eigen_attention(inner, mask)[-1], written_out(inner[-1:], mask[-1:])[0])
