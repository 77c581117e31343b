"""Forward + backward of WireRelations: all steps of a network in one CUDA block, against a loop of tensor operations.

    python benchmarks/relations.py            # writes results/benchmark-relations.json

One process, networks of lengths 7 to 11, bf16. On a GPU, both sides are captured as CUDA graphs, so that launches from
Python do not count; without a GPU there is only the loop. `of limit` is the ratio to the time in which memory could
move the tensors that the steps have to write in the forward pass, and read and write in the backward pass, at the
bandwidth of a copy in the same run.
"""

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from unittest import mock

import torch
from rich.console import Console
from rich.table import Table
from timing import bandwidth, begun, seconds

import magnetite as mt
from magnetite import nn
from magnetite.batching import Batch
from magnetite.tasks import Sorting
from magnetite.training.capture import Captured

sys.path.insert(0, str(Path(__file__).parent.parent))
from paper.relations import WireRelations, cuda

WIDTH, STATE, WIRES = 256, 32, 11


def training_batch(graphs: int, device: str, seed: int) -> Batch:
    """A batch of training networks."""
    return mt.batch(next(Sorting().stream(seed, graphs, device)).graphs)


def step_of(model: WireRelations) -> Callable[[Batch], None]:
    """Forward and backward."""

    def step(batch: Batch) -> None:
        model.zero_grad(set_to_none=False)
        with torch.autocast(batch.device.type, torch.bfloat16):
            answer = model(batch)
        answer.square().sum().backward()

    return step


def least_bytes(nodes: int) -> int:
    """Bytes that the steps write in the forward pass, and read and write in the backward pass."""
    lines, inner = 2 * STATE * 4, 4 * STATE * 2
    return nodes * WIRES * ((lines + 2 * inner) + (lines + 2 * inner) + 2 * inner)


def side(name: str) -> AbstractContextManager[object]:
    """Hide the kernel from the loop."""
    return mock.patch.object(cuda, "supports", lambda *_: False) if name == "loop" else nullcontext()


def main() -> None:
    """Measure, print the table, write the JSON."""
    options, device, record = begun("benchmark-relations", __doc__, graphs=512)
    batch = training_batch(options.graphs, device, options.seed)
    limit = least_bytes(int(batch.sizes.sum())) / bandwidth(device)
    rows = {}
    for name in ("fused", "loop") if device == "cuda" else ("loop",):
        torch.manual_seed(options.seed)
        model = WireRelations(WIDTH, nn.GraphHead(2), state=STATE, wires=WIRES).to(device)
        with side(name):
            step = step_of(model)
            captured = Captured(step) if device == "cuda" else step
            spent = seconds(lambda work=captured: work(batch), device, 3)
        rows[name] = {"milliseconds": spent * 1e3, "graphs_per_second": len(batch) / spent, "of_limit": spent / limit}
    if "fused" in rows:
        rows["fused"]["times_as_fast"] = rows["loop"]["milliseconds"] / rows["fused"]["milliseconds"]
    table = Table("side", "ms", "graphs/s", "of limit")
    for name, row in rows.items():
        table.add_row(name, f"{row['milliseconds']:.2f}", f"{row['graphs_per_second']:,.0f}", f"{row['of_limit']:.1f}")
    Console().print(table)
    record.write(options.out, {"graphs": options.graphs, "limit_milliseconds": limit * 1e3, "sides": rows})


if __name__ == "__main__":
    main()
