"""Forward + backward of `TopologicalGRU`: all levels in one CUDA kernel, against a loop over the levels.

    python benchmarks/recurrence.py           # writes results/benchmark-recurrence.json

One process, single precision, the width of the preset `best` of sorting networks, on a batch of its training data.
The loop is the same formula by operations of torch; without a GPU there is only the loop. The times include the order
of the levels, which is computed on the CPU. Ends with an error if a gradient of the two differs by more than `LARGEST`
of its norm.
"""

from unittest import mock

import torch
from rich.console import Console
from rich.table import Table
from timing import begun, seconds
from torch import Tensor

import magnetite as mt
from magnetite import nn
from magnetite.kernels.cuda import recurrence
from magnetite.nn.embeddings import CategoryEdges
from magnetite.training.config import configuration

LARGEST = 1e-4


def measure(
    fused: bool, network: nn.TopologicalGRU, states: Tensor, batch: mt.batching.Batch
) -> tuple[float, list[Tensor]]:
    """Seconds per step, and the gradients."""
    inputs, suits = [states, *network.parameters()], recurrence.suits
    with mock.patch.object(recurrence, "suits", lambda given: fused and suits(given)):

        def step() -> list[Tensor]:
            return list(torch.autograd.grad(network(states, batch).square().mean(), inputs))

        gradients = step()
        return seconds(lambda: (step(), None)[1], batch.device.type, 2), gradients


def main() -> None:
    """Measure, print the table, write the JSON."""
    options, device, record = begun("benchmark-recurrence", __doc__, graphs=256)
    config = configuration("sorting", "none", "best")
    graphs = next(config.task.stream(options.seed, options.graphs)).graphs
    torch.manual_seed(options.seed)
    network = nn.TopologicalGRU(config.model.width, edge_features=CategoryEdges({"ports": (2, 2)})).to(device)
    batch = mt.batch(graphs, device=device)
    states = torch.randn(batch.num_nodes, config.model.width, device=device, requires_grad=True)
    sides = {"fused": True, "loop": False} if device == "cuda" else {"loop": False}
    found = {name: measure(fused, network, states, batch) for name, fused in sides.items()}
    table, result = Table("side", "ms"), {"graphs": len(batch), "nodes": batch.num_nodes, "sides": {}}
    for name, (spent, _) in found.items():
        table.add_row(name, f"{spent * 1e3:.2f}")
        result["sides"][name] = {"milliseconds": spent * 1e3}
    Console().print(table)
    if "fused" in found:
        both = zip(*(gradients for _, gradients in found.values()), strict=True)
        result["gradients_apart"] = max(float((one - two).norm() / two.norm()) for one, two in both)
        result["times_as_fast"] = found["loop"][0] / found["fused"][0]
        print(f"gradients {result['gradients_apart']:.1e} apart, {result['times_as_fast']:.1f} times as fast")
        if not result["gradients_apart"] < LARGEST:
            raise SystemExit(f"gradients differ by {result['gradients_apart']:.1e} of their norm, more than {LARGEST}")
    record.write(options.out, result)


if __name__ == "__main__":
    main()
