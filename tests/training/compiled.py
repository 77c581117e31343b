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

PLAIN = ["model.dropout=0.0", "model.width=64", "model.layers=2"]
CASES = {
    "sorting, magnetic": ("sorting", "magnetic", ["encoding.dropout=0.0", "encoding.k=8"]),
    "sorting, walks": ("sorting", "walks", []),
    "distances, magnetic": ("playground", "magnetic", ["encoding.dropout=0.0", "encoding.k=8"]),
    "distances in DAGs, walks": ("playground", "walks", ["task.acyclic=true"]),
}


def slopes(objective, batches) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
    """The loss, and the gradients of all parameters."""
    objective.zero_grad()
    loss, _ = objective(Sealed(batches))
    loss.backward()
    return loss.detach(), {name: parameter.grad.clone() for name, parameter in objective.named_parameters()}


def difference(name: str, device: str, graphs: int) -> float:
    """The largest difference of loss and gradients, relative to the largest entry of each."""
    task, encoding, changes = CASES[name]
    config = configuration(task, encoding, "paper", overrides=[*PLAIN, *changes, f"task.train={graphs}"])
    model = build_model(config.task, config.encoding, config.model, seed=0)
    objective = Objective(model, config.task).to(device)
    pool = Pool.encode(draw(config.task, "train", device), model.position.encodings())
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
    print(json.dumps({name: difference(name, chosen, count) for name in CASES}))  # noqa: T201
