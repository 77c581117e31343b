"""Forward + backward of the head for pairs: its ends by kernels of our own, against those of PyTorch's compiler.

    PYTHONPATH=src python benchmarks/pair_head.py            # writes results/benchmark-pair-head.json

One process, the paper's width in bf16, a batch of playground graphs with the pairs that are asked about. Where there is
a GPU, both sides are compiled and captured as CUDA graphs; without one there is only the plain head. `of limit` is
against the time in which memory could move the rows of pairs that two ends and the products between them read and
write, at the bandwidth that a copy reaches in the same run; rows of nodes, which are fewer, are not counted.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from unittest import mock

import torch
from magnetite.nn.positions import Positions
from magnetite.training.objective import set_up_compiler
from rich.console import Console
from rich.table import Table
from timing import bandwidth, begun, seconds
from torch import Tensor

import magnetite as mt
from magnetite import nn
from magnetite.batching import Batch
from magnetite.kernels.cuda import pair_head as pair_head_cuda
from magnetite.tasks import Playground
from magnetite.training.capture import Captured

WIDTH = 256
TARGETS = ("directed-distance", "undirected-distance")


def draw(target: str, graphs: int, device: str, seed: int) -> Batch:
    """A batch of training graphs."""
    drawn = next(Playground(target=target).stream(seed, graphs, device))
    return mt.pad(drawn.graphs, asked=drawn.targets.asked())


def least_bytes(pairs: int) -> int:
    """Rows of bfloat16 that are read or written, by the first end, products and the last end, and back."""
    forward = 1 + 2 + 1
    backward = 2 + 2 + 2 + 1  # the last end, slopes of rows, slopes of the matrix, the first end
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
    """Seconds a step, and the slopes of the nodes' states."""
    torch.manual_seed(seed)
    device = batch.device.type
    head = nn.PairHead(positive=True)
    head.setup(WIDTH)
    states = torch.randn(*batch.mask.shape, WIDTH, device=device, requires_grad=True)
    hidden: AbstractContextManager[object] = nullcontext()
    if side == "compiled":
        hidden = mock.patch.object(pair_head_cuda, "suits", lambda *_: False)
    with hidden:
        torch.compiler.reset()
        answer = torch.compile(head.to(device), dynamic=False) if device == "cuda" else head
        step = step_of(answer, states)
        step(batch)
        slopes = states.grad
        work = Captured(step) if device == "cuda" else step
        return seconds(lambda: work(batch), device, 3), slopes


def apart(one: Tensor, two: Tensor) -> float:
    """How far both are from each other, as a share of the larger."""
    return float((one - two).norm() / torch.maximum(one.norm(), two.norm()))


def main() -> None:
    """Measure, print the table, write the JSON."""
    options, device, record = begun("benchmark-pair-head", __doc__, graphs=384)
    set_up_compiler()
    speed, result = bandwidth(device), {}
    table = Table("target", "side", "pairs", "ms", "of limit")
    for target in TARGETS:
        batch = draw(target, options.graphs, device, options.seed)
        pairs = batch.asked.mask.numel()
        limit, rows, slopes = least_bytes(pairs) / speed, {}, {}
        for side in ("fused", "compiled") if device == "cuda" else ("plain",):
            spent, slopes[side] = measure(side, batch, options.seed)
            rows[side] = {"milliseconds": spent * 1e3, "of_limit": spent / limit}
            table.add_row(target, side, f"{pairs:,}", f"{spent * 1e3:.2f}", f"{spent / limit:.1f}")
        result[target] = {"pairs": pairs, "limit_milliseconds": limit * 1e3, "sides": rows}
        if "fused" in rows:
            result[target]["slopes_apart"] = apart(slopes["fused"], slopes["compiled"])
            result[target]["times_as_fast"] = rows["compiled"]["milliseconds"] / rows["fused"]["milliseconds"]
    Console().print(table)
    record.write(options.out, result)


if __name__ == "__main__":
    main()
