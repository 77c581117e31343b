"""Forward and backward of a fixed shape as one CUDA graph: a replay costs one launch instead of hundreds."""

from collections.abc import Callable, Iterable

import torch
from torch import Tensor
from torch.nn import Parameter

from magnetite.batching import Batch, Shape

WARM_UP = 3
"""Runs before the capture, in which kernels are compiled and libraries take their workspaces."""

Work = Callable[[Batch, Tensor], None]
"""Adds the gradients and the loss of a batch, divided by a total, to those that are there."""


class Captured:
    """`work` with a CUDA graph for every shape that it meets; gradients are added up in place.

    Batches are copied to where the graph reads them. What warm-up runs add to gradients and losses is taken back.
    """

    def __init__(self, work: Work, parameters: Iterable[Parameter], losses: Tensor):
        self.work, self.changed = work, [losses]
        self.graphs: dict[Shape, _Graph] = {}
        for parameter in parameters:
            parameter.grad = torch.zeros_like(parameter)
            self.changed.append(parameter.grad)

    def __call__(self, batch: Batch, total: Tensor) -> None:
        """Do the work on a batch."""
        graphs, nodes = batch.mask.shape
        shape = Shape(graphs, nodes, batch.edge_mask.numel())
        if shape not in self.graphs:
            kept = [tensor.clone() for tensor in self.changed]
            self.graphs[shape] = _Graph(self.work, batch, total)
            torch._foreach_copy_(self.changed, kept)  # pyright: ignore[reportPrivateImportUsage]
        self.graphs[shape].replay(batch, total)


class _Graph:
    def __init__(self, work: Work, batch: Batch, total: Tensor):
        self.batch, self.total = batch.map(torch.clone), total.clone()
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(WARM_UP):
                work(self.batch, self.total)
        torch.cuda.current_stream().wait_stream(side)
        self.graph = torch.cuda.CUDAGraph()
        # Another thread may be encoding the next pool: only what this one does belongs to the graph.
        with torch.cuda.graph(self.graph, capture_error_mode="thread_local"):
            work(self.batch, self.total)

    def replay(self, batch: Batch, total: Tensor) -> None:
        torch._foreach_copy_(self.batch.tensors(), batch.tensors())  # pyright: ignore[reportPrivateImportUsage]
        self.total.copy_(total)
        self.graph.replay()
