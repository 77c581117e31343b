"""Runs `PairSum` eagerly, compiled and as a CUDA graph, and prints how far its slopes are from the plain ones, as JSON.

Run in a process of its own: pytest's checks of shapes wrap every function, and a compiler cannot look through them.
"""

import json
import sys

import torch
from torch import Tensor

from magnetite.nn.pair_layers import PairSum


def random_case(features: int, hidden: int, half: bool, device: str) -> tuple[PairSum, Tensor, Tensor]:
    """A layer and features of pairs of five graphs, one of them empty, with numbers in the empty slots too."""
    torch.manual_seed(features)
    layer = PairSum(features, hidden, 8, "gelu").to(device)
    torch.nn.init.normal_(layer.pair.weight, std=2.0)  # far beyond where the activation bends
    sizes = torch.tensor([32, 0, 1, 40, 33], device=device)
    pairs = torch.randn(5, 40, 40, features, device=device)
    return layer, pairs.half() if half else pairs, sizes


def captured(layer: PairSum, pairs: Tensor, sizes: Tensor, upper: Tensor) -> list[Tensor]:
    """The slopes from a replay of a graph that was captured while other features lay in the same place."""
    given, graph = torch.zeros_like(pairs), torch.cuda.CUDAGraph()
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            slopes(layer, layer.sums, given, sizes, upper)
    torch.cuda.current_stream().wait_stream(side)
    with torch.cuda.graph(graph):
        found = slopes(layer, layer.sums, given, sizes, upper)
    given.copy_(pairs)
    graph.replay()
    return found


def slopes(layer: PairSum, function, pairs: Tensor, sizes: Tensor, upper: Tensor) -> list[Tensor]:
    """Slopes of the weights, of the layer of pairs."""
    return list(torch.autograd.grad(function(pairs, sizes), tuple(layer.pair.parameters()), upper))


def report(device: str) -> dict[str, float]:
    """Greatest errors, as shares of the largest slope."""
    layer, pairs, sizes = random_case(8, 64, True, device)
    upper = torch.randn(5, 40, 64, device=device)
    expected = slopes(layer, layer.written_out, pairs.float(), sizes, upper)
    compiled = torch.compile(layer.sums, fullgraph=True)
    found = {
        "eager": slopes(layer, layer.sums, pairs, sizes, upper),
        "compiled": slopes(layer, compiled, pairs, sizes, upper),
    }
    if device == "cuda":
        found["captured"] = captured(layer, pairs, sizes, upper)
    return {
        name: max(float((one - two).abs().max() / two.abs().max()) for one, two in zip(mine, expected, strict=True))
        for name, mine in found.items()
    }


if __name__ == "__main__":
    torch.set_num_threads(1)
    print(json.dumps(report(sys.argv[1])))  # noqa: T201
