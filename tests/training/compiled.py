"""Compares compiled objectives with plain ones and prints how far apart they are, as JSON.

Run in a process of its own: pytest's checks of shapes wrap every function, and a compiler cannot look through them.
"""

import json
import sys

import torch

from magnetite.batching import Shape
from magnetite.tasks import draw
from magnetite.training.models import build_model
from magnetite.training.objective import Objective, Sealed, compiled
from magnetite.training.pools import Pool
from magnetite.training.presets import configuration

SMALL = ["model.width=64", "model.layers=2"]
CASES = {
    "sorting, magnetic": ("sorting", "magnetic", [*SMALL, "encoding.k=8"]),
    "sorting, walks": ("sorting", "walks", SMALL),
    "sorting, relations": ("sorting", "none", ["model.name=relations", "model.width=64", "model.state=16"]),
    "sorting, both, local": (
        "sorting",
        "magnetic+walks",
        [*SMALL, "encoding.k=8", "encoding.scaling=parts", "model.local=1", "model.length_scaled=true"],
    ),
    "distances, magnetic": ("distances", "magnetic", [*SMALL, "encoding.k=8"]),
    "distances in DAGs, walks": ("distances", "walks", [*SMALL, "task.acyclic=true"]),
    "distances, relative walks": ("distances", "relative-walks", SMALL),
    "distances in DAGs, walks between pairs": (
        "distances",
        "magnetic",
        [*SMALL, "encoding.k=8", "encoding.pair_steps=16", "task.acyclic=true"],
    ),
    "distances, multi-q": (
        "distances",
        "multi-q",
        [*SMALL, "encoding.k=8", "encoding.bias=true", "encoding.pairs=true"],
    ),
    "distances, SVD": ("distances", "svd", [*SMALL, "encoding.k=8"]),
    "distances, GNN": ("distances", "none", ["model.name=gnn", "model.width=64"]),
    "distances, MagNet": ("distances", "none", ["model.name=magnet", "model.width=64"]),
}
"""Task, encoding and changes of the paper's preset; signs and dropout are not drawn, as in an evaluation."""


def slopes(objective, batches) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
    """The loss, and the gradients of all parameters."""
    objective.zero_grad()
    loss, _ = objective(Sealed(batches))
    loss.backward()
    slopes = {name: parameter.grad for name, parameter in objective.named_parameters()}
    return loss.detach(), {name: slope.clone() for name, slope in slopes.items() if slope is not None}


def difference(name: str, device: str, graphs: int) -> float:
    """The largest difference of loss and gradients, relative to the largest entry of each."""
    task, encoding, changes = CASES[name]
    config = configuration(task, encoding, "paper", overrides=[*changes, f"task.train={graphs}"])
    model = build_model(config.task, config.encoding, config.model, seed=0)
    objective = Objective(model, config.task).to(device).eval()
    encodings = {} if model.position is None else model.position.encodings()
    pool = Pool.encode(draw(config.task, "train", device), encodings)
    ids = pool.graphs.sizes.argsort()[:graphs]
    shapes = [Shape.of(pool.graphs, part, pool.asked) for part in ids.split(graphs // 2)]
    batches = pool.batches(ids, shapes)
    loss, expected = slopes(objective, batches)
    torch.compiler.reset()
    again, found = slopes(compiled(objective, "layers"), batches)
    pairs = [(again, loss), *((found[key], slope) for key, slope in expected.items())]
    return max(float((one - other).abs().max() / (other.abs().max() + 1e-6)) for one, other in pairs)


if __name__ == "__main__":
    chosen, count = sys.argv[1], int(sys.argv[2])
    names = sys.argv[3:] or list(CASES)
    print(json.dumps({name: difference(name, chosen, count) for name in names}))  # noqa: T201
