"""Compares compiled objectives with plain ones and prints how far apart they are, as JSON.

Run in a process of its own: pytest's checks of shapes wrap every function, and a compiler cannot look through them.
"""

import json
import sys

import torch

from magnetite.batching import BatchShape, gather
from magnetite.batching.buckets import split_sizes
from magnetite.training.capture import Objective, compiled
from magnetite.training.config import configuration
from magnetite.training.data import Pool
from magnetite.training.models import build_model

SMALL = ["model.width=64", "model.layers=2"]
CASES = {
    "sorting, magnetic": ("sorting", "magnetic", [*SMALL, "encoding.k=8"]),
    "sorting, walks": ("sorting", "walks", SMALL),
    "sorting, both, local": (
        "sorting",
        "magnetic+relative-walks",
        [*SMALL, "encoding.k=8", "encoding.scaling=parts", "model.local=1", "model.length_scaled=true"],
    ),
    "distances, magnetic": ("distances", "magnetic", [*SMALL, "encoding.k=8"]),
    "distances in DAGs, walks": ("distances", "walks", [*SMALL, "task.acyclic=true"]),
    "distances, relative walks": ("distances", "walks+relative-walks", SMALL),
    "distances in DAGs, walks between pairs": (
        "distances",
        "magnetic+pair-walks",
        [*SMALL, "encoding.k=8", "task.acyclic=true"],
    ),
    "distances, multi-q": (
        "distances",
        "multi-q",
        [*SMALL, "encoding.k=8", "encoding.bias=true", "encoding.pairs=true"],
    ),
    "distances, SVD": ("distances", "svd", [*SMALL, "encoding.rank=8"]),
    "distances, GNN": ("distances", "none", ["model.name=gnn", "model.width=64"]),
    "distances, MagNet": ("distances", "none", ["model.name=magnet", "model.width=64"]),
}
"""Task, encoding and changes of the paper's preset; without random signs and dropout, as in an evaluation."""


def gradients(objective, batch) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
    """The loss, and the gradients of all parameters."""
    objective.zero_grad()
    loss, _ = objective(batch)
    loss.backward()
    found = {name: parameter.grad for name, parameter in objective.named_parameters()}
    return loss.detach(), {name: gradient.clone() for name, gradient in found.items() if gradient is not None}


def difference(name: str, device: str, graphs: int) -> float:
    """The largest difference of loss and gradients, relative to the largest entry of each."""
    task, encoding, changes = CASES[name]
    config = configuration(task, encoding, "paper", overrides=[*changes, f"task.train={graphs}"])
    model = build_model(config.task, config.encoding, config.model, seed=0)
    objective = Objective(model, config.task).to(device).eval()
    encodings = {} if model.position is None else model.position.encodings()
    pool = Pool.encode(config.task.examples("train", device), encodings)
    ids = pool.graphs.sizes.argsort()[:graphs]
    sizes, edges = pool.graphs.sizes[ids], pool.graphs.edge_ptr.diff()[ids]
    queries = 0 if pool.query is None else int(pool.query.counts[ids].sum())
    buckets = split_sizes(sizes.cpu().numpy())[0]
    shape = BatchShape(buckets, int(sizes.sum()) + 5, int(edges.sum()) + 5, queries + 5)
    batch = gather(pool.graphs, ids, shape, pool.encodings, pool.query)
    loss, expected = gradients(objective, batch)
    torch.compiler.reset()
    again, found = gradients(compiled(objective, "layers"), batch)
    both = [(again, loss), *((found[key], gradient) for key, gradient in expected.items())]
    return max(float((one - other).abs().max() / (other.abs().max() + 1e-6)) for one, other in both)


if __name__ == "__main__":
    chosen, count = sys.argv[1], int(sys.argv[2])
    names = sys.argv[3:] or list(CASES)
    print(json.dumps({name: difference(name, chosen, count) for name in names}))  # noqa: T201
