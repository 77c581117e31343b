"""Forward + backward of `TopologicalGRU` by kernels, against the same formulas by operations of torch.

    python benchmarks/recurrence.py     # writes results/benchmark-recurrence.json, or benchmark-recurrence-cpu.json

One process, single precision, the width of the preset `best` of sorting networks, on a batch of its training data. On a
GPU one kernel takes all levels; on a CPU, one thread of it here, kernels take one level each, and torch multiplies the
matrices. The times include the order of the levels, which is computed on the CPU. Ends with an error if a gradient of
the two differs by more than `LARGEST` of its norm.
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
from magnetite.nn import recurrent
from magnetite.nn.embeddings import CategoryEdges
from magnetite.training.config import configuration

LARGEST = 1e-4


def measure(
    fused: bool, network: nn.TopologicalGRU, states: Tensor, batch: mt.batching.Batch
) -> tuple[float, list[Tensor]]:
    """Seconds per step, and the gradients."""
    inputs, suits, has_kernels = [states, *network.parameters()], recurrence.suits, recurrent._has_kernels
    with (
        mock.patch.object(recurrence, "suits", lambda given: fused and suits(given)),
        mock.patch.object(recurrent, "_has_kernels", lambda given: fused and has_kernels(given)),
    ):

        def step() -> list[Tensor]:
            return list(torch.autograd.grad(network(states, batch).square().mean(), inputs))

        gradients = step()
        return seconds(lambda: (step(), None)[1], batch.device.type, 2), gradients


def main() -> None:
    """Measure, print the table, write the JSON."""
    options, device, record = begun("benchmark-recurrence", __doc__, graphs=256)
    if device == "cpu":
        torch.set_num_threads(1)
    config = configuration("sorting", "none", "best")
    graphs = next(config.task.stream(options.seed, options.graphs)).graphs
    torch.manual_seed(options.seed)
    network = nn.TopologicalGRU(config.model.width, edge_features=CategoryEdges({"ports": (2, 2)})).to(device)
    batch = mt.batch(graphs, device=device)
    states = torch.randn(batch.num_nodes, config.model.width, device=device, requires_grad=True)
    sides = {"kernels": True, "operations of torch": False}
    found = {name: measure(fused, network, states, batch) for name, fused in sides.items()}
    table, result = Table("side", "ms"), {"graphs": len(batch), "nodes": batch.num_nodes, "sides": {}}
    for name, (spent, _) in found.items():
        table.add_row(name, f"{spent * 1e3:.2f}")
        result["sides"][name] = {"milliseconds": spent * 1e3}
    Console().print(table)
    (ours, one), (loop, other) = found.values()
    result["gradients_apart"] = max(float((a - b).norm() / b.norm()) for a, b in zip(one, other, strict=True))
    result["times_as_fast"] = loop / ours
    print(f"gradients {result['gradients_apart']:.1e} apart, {result['times_as_fast']:.1f} times as fast")
    if not result["gradients_apart"] < LARGEST:
        raise SystemExit(f"gradients differ by {result['gradients_apart']:.1e} of their norm, more than {LARGEST}")
    record.write(options.out, result)


if __name__ == "__main__":
    main()
