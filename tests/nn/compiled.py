"""Compiles some models of the zoo and prints a report as JSON.

Run in a process of its own: in pytest, every function is wrapped to check shapes, and a compiler cannot look through
the wrappers.
"""

import json
import sys

import torch
from torch import Tensor
from torch._dynamo.testing import CompileCounterWithBackend

from magnetite import nn
from magnetite.batching import Batch, BatchShape, Bucket, gather
from magnetite.kernels._compat import foreach_copy
from tests.batching.cases import some_query
from tests.nn.zoo import ZOO, encoded, generic_digraphs

SHAPES = [
    BatchShape((Bucket(3, 8),), nodes=24, edges=64, queries=112),
    BatchShape((Bucket(1, 8), Bucket(2, 16)), nodes=32, edges=64, queries=128),
]


def batch_of(model: nn.GraphModel, seed: int, shape: BatchShape, device: str) -> Batch:
    """Graphs of this seed in a batch of fixed shape, with query pairs for a `PairHead`."""
    graphs = generic_digraphs(seed)
    query = some_query(graphs, seed) if isinstance(model.head, nn.PairHead) else None
    return gather(graphs, torch.arange(len(graphs)), shape, encoded(model, graphs), query).to(device)


def mask_of(batch: Batch) -> Tensor:
    """Which answers are real."""
    return batch.node_mask if batch.query is None else batch.query.mask


def captured(model: nn.GraphModel, given: Batch, later: Batch) -> float:
    """Greatest error of the gradients of a captured CUDA graph that is replayed with another batch."""

    def gradients(batch: Batch) -> list[Tensor | None]:
        loss = (model(batch).square() * mask_of(batch)[:, None]).sum()
        return list(torch.autograd.grad(loss, list(model.parameters()), allow_unused=True))

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            gradients(given)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        found = gradients(given)
    foreach_copy(given.tensors(), later.tensors())
    graph.replay()
    pairs = [(one, other) for one, other in zip(found, gradients(later), strict=True) if one is not None]
    return max(float((one - other).abs().max() / (1 + other.abs().max())) for one, other in pairs)


def report(name: str, backend: str, device: str) -> dict[str, object]:
    """Number of compilations over batches of two shapes, and greatest difference of the answers and gradients.

    Models with pair features answer for query pairs, the others for nodes.
    """
    torch._dynamo.reset()
    row, counter = ZOO[name], CompileCounterWithBackend(backend)
    model = (row.pair_model() if row.pair_channels else row.model(nn.NodeHead(3))).to(device)
    compiled = torch.compile(model, backend=counter, fullgraph=True, dynamic=False)
    parameters, difference = list(model.parameters()), 0.0
    for seed in range(2):
        for shape in SHAPES:
            batch = batch_of(model, seed, shape, device)
            found = []
            for function in (compiled, model):
                answer = function(batch)[mask_of(batch)]
                gradients = torch.autograd.grad(answer.square().mean(), parameters, allow_unused=True)
                found.append([answer, *(gradient for gradient in gradients if gradient is not None)])
            errors = [float((one - other).detach().abs().max()) for one, other in zip(*found, strict=True)]
            difference = max(difference, *errors)
    result: dict[str, object] = {"compilations": counter.frame_count, "difference": difference}
    if device == "cuda":
        result["captured"] = captured(model, *(batch_of(model, seed, SHAPES[1], device) for seed in range(2)))
    return result


if __name__ == "__main__":
    torch.set_num_threads(1)
    backend, device, *names = sys.argv[1:]
    print(json.dumps({name: report(name, backend, device) for name in names}))  # noqa: T201
