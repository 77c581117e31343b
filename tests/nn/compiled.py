"""Compiles some models of the zoo and prints what happened, as JSON.

Run in a process of its own: pytest's checks of shapes wrap every function, and a compiler cannot look through them.
"""

import json
import sys

import torch
from torch._dynamo.testing import CompileCounterWithBackend

import magnetite as mt
from magnetite import nn
from magnetite.batching import Shape
from tests.nn.zoo import ZOO, encoded, generic_digraphs, some_pairs

SHAPES = [Shape(graphs=4, nodes=8, edges=16, pairs=112), Shape(graphs=4, nodes=16, edges=24, pairs=128, total=30)]


def report(name: str, backend: str) -> dict[str, object]:
    """Compilations and graph breaks over batches of two shapes, and how far the answers are from the plain ones.

    Models with positions of pairs are asked about pairs, the others about nodes.
    """
    torch._dynamo.reset()
    row, counter = ZOO[name], CompileCounterWithBackend(backend)
    model = row.pair_model() if row.pair_channels else row.model(nn.NodeHead(3))
    compiled = torch.compile(model, backend=counter, fullgraph=True, dynamic=False)
    difference, finite = 0.0, True
    for seed in range(2):
        graphs = generic_digraphs(seed)
        for shape in SHAPES:
            asked = some_pairs(graphs, seed) if row.pair_channels else None
            batch = mt.pad(graphs, shape=shape, asked=asked, **encoded(model, graphs))
            mask = batch.mask if batch.asked is None else batch.asked.mask
            answer = compiled(batch)
            difference = max(difference, float((answer - model(batch))[mask].detach().abs().max()))
            model.zero_grad()
            answer[mask].square().sum().backward()
            finite &= all(bool(p.grad.isfinite().all()) for p in model.parameters() if p.grad is not None)
    return {"compilations": counter.frame_count, "difference": difference, "finite": finite}


if __name__ == "__main__":
    torch.set_num_threads(1)
    backend, *names = sys.argv[1:]
    print(json.dumps({name: report(name, backend) for name in names}))  # noqa: T201
