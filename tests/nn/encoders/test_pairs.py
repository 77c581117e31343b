"""Layers of pair features: padding does not count, and the fused kernel equals plain operations."""

import pytest
import torch

from magnetite.nn.encoders.pairs import PairBias, PairSum

SHAPES = [(8, 64, True), (8, 64, False), (1, 32, True), (3, 32, False), (6, 96, True), (7, 64, True), (16, 128, False)]
"""Features, hidden channels, and whether features are stored in half precision."""


def random_case(
    features: int, hidden: int, half: bool, device: str
) -> tuple[PairSum, torch.Tensor, torch.Tensor, list[int]]:
    """A layer and pair features of five graphs, with numbers in the padding too."""
    torch.manual_seed(features)
    layer = PairSum(features, hidden, 8, "gelu").to(device)
    torch.nn.init.normal_(layer.pair.weight, std=2.0)  # covers the whole range of the activation
    sizes = [32, 2, 1, 40, 33]
    mask = (torch.arange(40) < torch.tensor(sizes)[:, None]).to(device)
    pairs = torch.randn(5, 40, 40, features, device=device)
    return layer, pairs.half() if half else pairs, mask, sizes


def formula(layer: PairSum, pairs: torch.Tensor, sizes: list[int]) -> torch.Tensor:
    """Graph by graph, in double precision."""
    weight, bias = (parameter.double() for parameter in layer.pair.parameters())
    sums = pairs.new_zeros(*pairs.shape[:2], len(bias), dtype=torch.float64)
    for graph, size in enumerate(sizes):
        hidden = pairs[graph, :size, :size].double() @ weight.T + bias
        sums[graph, :size] = torch.nn.functional.gelu(hidden).sum(0)
    return sums


def assert_near(found: torch.Tensor, expected: torch.Tensor, error: float = 3e-6) -> None:
    """Sums of thousands of numbers in single precision have an error relative to the largest."""
    largest = float(expected.detach().abs().max())
    torch.testing.assert_close(found.double(), expected.double(), rtol=0, atol=error * largest)


@pytest.mark.parametrize("half", [False, True])
def test_sums_are_the_formula(half):
    layer, pairs, mask, sizes = random_case(8, 64, half, "cpu")
    sums = layer.plain_sum_starts(pairs, mask)
    assert not sums[~mask].any()
    assert_near(sums, formula(layer, pairs, sizes))


def test_half_precision_goes_through_autocast():
    layer, pairs, mask, sizes = random_case(8, 64, True, "cpu")
    with torch.autocast("cpu", torch.bfloat16):
        sums = layer.sum_starts(pairs, mask)
    assert sums.dtype == torch.float32
    assert_near(sums, formula(layer, pairs, sizes), error=1e-2)


def test_biases_are_linear_and_contiguous():
    layer, pairs = PairBias(3, heads=2, layers=4), [torch.randn(2, 8, 8, 3), torch.randn(1, 16, 16, 3).half()]
    weights = layer.linear.weight.view(4, 2, 3)
    for weight, biases in zip(weights, layer(pairs), strict=True):
        for bias, features in zip(biases, pairs, strict=True):
            torch.testing.assert_close(bias, torch.einsum("buvf,hf->bhuv", features.float(), weight))
            assert bias.stride(-1) == 1


@pytest.mark.gpu
@pytest.mark.parametrize(("features", "hidden", "half"), SHAPES)
def test_the_fused_kernel_equals_plain_operations(features, hidden, half):
    layer, pairs, mask, sizes = random_case(features, hidden, half, "cuda")
    results = layer.sum_starts(pairs, mask), formula(layer, pairs, sizes)
    upper, weights = torch.randn_like(results[0]), tuple(layer.pair.parameters())
    gradients = [torch.autograd.grad(result, weights, upper.to(result.dtype)) for result in results]
    assert "pair_sum" in type(results[0].grad_fn).__name__
    assert_near(*results)
    for fused, plain in zip(*gradients, strict=True):
        assert_near(fused, plain)


@pytest.mark.gpu
def test_features_with_gradients_take_plain_operations():
    layer, pairs, mask, sizes = random_case(8, 64, False, "cuda")
    (gradient,) = torch.autograd.grad(layer.sum_starts(pairs.requires_grad_(), mask).sum(), pairs)
    assert gradient.any()
    assert not gradient[0, sizes[0] :].any()
