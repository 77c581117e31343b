"""Sums over the pairs of each node: empty slots do not count, and the fused kernel equals plain operations."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from magnetite.nn.pair_layers import PairSum
from tests.nn.compiled_pair_sum import random_case

ROOT = Path(__file__).parent.parent.parent
SHAPES = [(8, 64, True), (8, 64, False), (1, 32, True), (3, 32, False), (6, 96, True), (7, 64, True), (16, 128, False)]
"""Features, hidden channels, and whether features are stored in half precision."""


def exact(layer: PairSum, pairs: torch.Tensor, sizes: torch.Tensor) -> torch.Tensor:
    """Graph by graph, in double precision."""
    weight, bias = (parameter.double() for parameter in layer.pair.parameters())
    sums = pairs.new_zeros(*pairs.shape[:2], len(bias), dtype=torch.float64)
    for graph, size in enumerate(sizes.tolist()):
        hidden = pairs[graph, :size, :size].double() @ weight.T + bias
        sums[graph, :size] = torch.nn.functional.gelu(hidden).sum(0)
    return sums


def assert_near(found: torch.Tensor, expected: torch.Tensor, error: float = 3e-6) -> None:
    """Sums of thousands of numbers in single precision are wrong by a share of the largest."""
    largest = float(expected.detach().abs().max())
    torch.testing.assert_close(found.double(), expected.double(), rtol=0, atol=error * largest)


@pytest.mark.parametrize("half", [False, True])
def test_plain_operations_are_the_formula(half: bool) -> None:
    layer, pairs, sizes = random_case(8, 64, half, "cpu")
    sums = layer.written_out(pairs, sizes)
    assert not sums[torch.arange(40) >= sizes[:, None]].any()
    assert_near(sums, exact(layer, pairs, sizes))


def test_half_precision_goes_through_autocast() -> None:
    layer, pairs, sizes = random_case(8, 64, True, "cpu")
    with torch.autocast("cpu", torch.bfloat16):
        sums = layer.sums(pairs, sizes)
    assert sums.dtype == torch.float32
    assert_near(sums, exact(layer, pairs, sizes), error=1e-2)


def run_in_a_process_of_its_own(device: str) -> dict[str, float]:
    """Compiled with PyTorch's compiler, and on a GPU as a CUDA graph: how far the slopes are from the plain ones."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}
    command = [sys.executable, "-m", "tests.nn.compiled_pair_sum", device]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.slow
def test_it_compiles_as_one_graph() -> None:
    errors = run_in_a_process_of_its_own("cpu")
    assert errors.keys() == {"eager", "compiled"}
    assert max(errors.values()) < 1e-5


@pytest.mark.gpu
def test_the_kernel_compiles_as_one_graph_and_is_captured() -> None:
    errors = run_in_a_process_of_its_own("cuda")
    assert errors.keys() == {"eager", "compiled", "captured"}
    assert max(errors.values()) < 1e-5


@pytest.mark.gpu
@pytest.mark.parametrize(("features", "hidden", "half"), SHAPES)
def test_fused_kernel_equals_plain_operations(features: int, hidden: int, half: bool) -> None:
    layer, pairs, sizes = random_case(features, hidden, half, "cuda")
    results = layer.sums(pairs, sizes), exact(layer, pairs, sizes)
    upper = torch.randn_like(results[0])
    slopes = [torch.autograd.grad(result, tuple(layer.pair.parameters()), upper.to(result.dtype)) for result in results]
    assert "pair_sum" in type(results[0].grad_fn).__name__
    assert_near(*results)
    for fused, plain in zip(*slopes, strict=True):
        assert_near(fused, plain)


@pytest.mark.gpu
def test_features_that_do_not_start_at_a_multiple_of_16_bytes() -> None:
    layer, pairs, sizes = random_case(8, 64, True, "cuda")
    shifted = torch.empty(pairs.numel() + 1, dtype=pairs.dtype, device="cuda")[1:].view(pairs.shape).copy_(pairs)
    assert torch.equal(layer.sums(shifted, sizes), layer.sums(pairs, sizes))


@pytest.mark.gpu
def test_features_with_slopes_take_plain_operations() -> None:
    layer, pairs, sizes = random_case(8, 64, False, "cuda")
    sums = layer.sums(pairs.requires_grad_(), sizes)
    (slope,) = torch.autograd.grad(sums.sum(), pairs)
    assert slope.any()
    assert not slope[0, sizes[0] :].any()
