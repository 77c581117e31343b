"""Forward + backward of `PairHead`: its first and last layer as CUDA kernels, against PyTorch's compiler.

    python benchmarks/pair_head.py            # writes results/benchmark-pair-head.json

One process, the paper's width in bf16, a batch of random digraphs with query pairs. On a GPU, both sides are compiled
and captured as CUDA graphs; without a GPU there is only the plain head. `of limit` is the ratio to the time in which
memory could move the rows of pairs that the layers read and write, at the bandwidth of a copy in the same run; rows of
nodes, which are fewer, are not counted.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from unittest import mock

import torch
from rich.console import Console
from rich.table import Table
from timing import bandwidth, begun, seconds
from torch import Tensor

import magnetite as mt
from magnetite import nn
from magnetite.batching import Batch
from magnetite.kernels._compat import set_up_compiler
from magnetite.kernels.cuda import pair_head as pair_head_cuda
from magnetite.nn.encoders import Positions
from magnetite.tasks import Distances
from magnetite.training.capture import Captured

WIDTH = 256
TARGETS = ("directed-distance", "undirected-distance")


def training_batch(target: str, graphs: int, device: str, seed: int) -> Batch:
    """A batch of training graphs."""
    examples = next(Distances(target=target).stream(seed, graphs, device))
    return mt.batch(examples.graphs, query=examples.targets.query())


def least_bytes(pairs: int) -> int:
    """Bytes of the bfloat16 rows that the first layer, the products and the last layer read and write."""
    forward = 1 + 2 + 1
    backward = 2 + 2 + 2 + 1  # the last layer, gradients of rows, gradients of the matrix, the first layer
    return pairs * WIDTH * 2 * (forward + backward)


def step_of(head: torch.nn.Module, states: Tensor) -> Callable[[Batch], None]:
    """Forward and backward."""

    def step(batch: Batch) -> None:
        states.grad = None
        head.zero_grad()
        with torch.autocast(batch.device.type, torch.bfloat16):
            answer = head(states, batch, Positions())
        answer.square().sum().backward()

    return step


def measure(side: str, batch: Batch, seed: int) -> tuple[float, Tensor]:
    """Seconds per step, and the gradients of the node states."""
    torch.manual_seed(seed)
    device = batch.device.type
    head = nn.PairHead(positive=True)
    head.setup(WIDTH)
    states = torch.randn(batch.num_nodes, WIDTH, device=device, requires_grad=True)
    hidden: AbstractContextManager[object] = nullcontext()
    if side == "compiled":
        hidden = mock.patch.object(pair_head_cuda, "suits", lambda *_: False)
    with hidden:
        torch.compiler.reset()
        answer = torch.compile(head.to(device), dynamic=False) if device == "cuda" else head
        step = step_of(answer, states)
        step(batch)
        gradients = states.grad
        work = Captured(step) if device == "cuda" else step
        return seconds(lambda: work(batch), device, 3), gradients


def apart(one: Tensor, two: Tensor) -> float:
    """Relative distance."""
    return float((one - two).norm() / torch.maximum(one.norm(), two.norm()))


def main() -> None:
    """Measure, print the table, write the JSON."""
    options, device, record = begun("benchmark-pair-head", __doc__, graphs=384)
    set_up_compiler(recompilations=64)
    speed, result = bandwidth(device), {}
    table = Table("target", "side", "pairs", "ms", "of limit")
    for target in TARGETS:
        batch = training_batch(target, options.graphs, device, options.seed)
        pairs = batch.query.mask.numel()
        limit, rows, gradients = least_bytes(pairs) / speed, {}, {}
        for side in ("fused", "compiled") if device == "cuda" else ("plain",):
            spent, gradients[side] = measure(side, batch, options.seed)
            rows[side] = {"milliseconds": spent * 1e3, "of_limit": spent / limit}
            table.add_row(target, side, f"{pairs:,}", f"{spent * 1e3:.2f}", f"{spent / limit:.1f}")
        result[target] = {"pairs": pairs, "limit_milliseconds": limit * 1e3, "sides": rows}
        if "fused" in rows:
            result[target]["gradients_apart"] = apart(gradients["fused"], gradients["compiled"])
            result[target]["times_as_fast"] = rows["compiled"]["milliseconds"] / rows["fused"]["milliseconds"]
    Console().print(table)
    record.write(options.out, result)


if __name__ == "__main__":
    main()
