"""Attention over the eigenvectors of each node: the fused kernel equals what it fuses."""

import pytest
import torch

from magnetite.nn.eigen_attention import Weights, eigen_attention, written_out


def random_case(
    tokens: int, width: int, heads: int, channels: int, device: str
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, Weights]:
    """Three graphs in five slots each, one of them full and one of them empty."""
    torch.manual_seed(tokens)
    x = torch.randn(3, 5, tokens, width, device=device, requires_grad=True)
    mask = torch.rand(3, tokens, device=device) < 0.7
    mask[:, 0] = True
    layers = torch.nn.Linear(width, 3 * heads * channels), torch.nn.Linear(heads * channels, width)
    sizes = torch.tensor([3, 5, 0], device=device)
    return x, mask, sizes, Weights(*(parameter for layer in layers for parameter in layer.to(device).parameters()))


def test_equals_one_softmax_at_a_time() -> None:
    x, mask, sizes, weights = random_case(7, 5, 2, 3, "cpu")
    result = written_out(x, mask, sizes, weights, heads=2)
    assert not result[0, 3:].any()
    assert not result[2].any()
    for graph in range(2):
        parts = (x[graph, 2] @ weights.inner.T + weights.inner_bias).view(7, 3, 2, 3)
        open_keys = mask[graph]
        heads = []
        for head in range(2):
            query, key, value = parts[:, :, head].unbind(1)
            heads.append((query @ key[open_keys].T / 3**0.5).softmax(-1) @ value[open_keys])
        expected = x[graph, 2] + torch.cat(heads, -1) @ weights.out.T + weights.out_bias
        torch.testing.assert_close(result[graph, 2], expected)


def test_what_stands_in_empty_slots_changes_nothing() -> None:
    x, mask, sizes, weights = random_case(7, 5, 2, 3, "cpu")
    empty = torch.arange(5) >= sizes[:, None]
    other = torch.where(empty[..., None, None], torch.randn_like(x), x)
    results = [written_out(tokens, mask, sizes, weights, heads=2) for tokens in (x, other)]
    assert torch.equal(*results)
    upper = torch.randn_like(x)
    slopes = [
        torch.autograd.grad(results[0], (x, *weights), given, retain_graph=True)
        for given in (upper, upper * ~empty[..., None, None])
    ]
    for ignoring, given_none in zip(*slopes, strict=True):
        assert torch.equal(ignoring, given_none)


@pytest.mark.gpu
@pytest.mark.parametrize(
    "shape", [(25, 17, 4, 4), (5, 6, 2, 6), (16, 17, 4, 4), (1, 5, 4, 1), (32, 17, 4, 4), (40, 17, 4, 4)]
)
def test_fused_kernel_equals_plain_operations(shape: tuple[int, int, int, int]) -> None:
    x, mask, sizes, weights = random_case(*shape, "cuda")
    upper = torch.randn_like(x)
    results = [function(x, mask, sizes, weights, shape[2]) for function in (eigen_attention, written_out)]
    slopes = [torch.autograd.grad(result, (x, *weights), upper) for result in results]
    torch.testing.assert_close(*results, rtol=1e-4, atol=1e-4)
    for fused, plain in zip(*slopes, strict=True):
        torch.testing.assert_close(fused, plain, rtol=1e-3, atol=1e-3)


@pytest.mark.gpu
def test_more_nodes_than_a_launch_grid_of_torch_takes() -> None:
    *_, weights = random_case(4, 3, 1, 4, "cuda")
    x = torch.randn(70, 1000, 4, 3, device="cuda")
    mask = torch.ones(70, 4, dtype=torch.bool, device="cuda")
    sizes = torch.full((70,), 990, device="cuda")
    result = eigen_attention(x, mask, sizes, weights, 1)[-1]
    torch.testing.assert_close(result, written_out(x[-1:], mask[-1:], sizes[-1:], weights, 1)[0], rtol=1e-4, atol=1e-4)
