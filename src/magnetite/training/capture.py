"""A whole step of fixed shapes as one CUDA graph: a replay costs one launch instead of hundreds."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from magnetite.batching import Batch

WARM_UP = 3
"""Steps before the capture, in which kernels are compiled and libraries take their workspaces."""

Step = Callable[[Sequence[Batch], Tensor], None]
"""Moves the parameters by the mean loss of some batches: their loss over a total."""

Shapes = tuple[tuple[int, ...], ...]


class Captured:
    """A step that is replayed from a CUDA graph once its shapes were met a few times.

    Batches are copied to where the graph reads them. The first steps of each kind are done as they are, so nothing has
    to be taken back.
    """

    def __init__(self, step: Step):
        self.step = step
        self.met: dict[Shapes, int] = {}
        self.graphs: dict[Shapes, _Graph] = {}
        self.side = torch.cuda.Stream()

    def __call__(self, batches: Sequence[Batch], total: Tensor) -> None:
        """Do the step."""
        shapes = tuple(tuple(tensor.shape) for batch in batches for tensor in batch.tensors())
        met = self.met[shapes] = self.met.get(shapes, 0) + 1
        if met <= WARM_UP:
            self._warm_up(batches, total)
            return
        if shapes not in self.graphs:
            self.graphs[shapes] = _Graph(self.step, batches, total)
        self.graphs[shapes].replay(batches, total)

    def _warm_up(self, batches: Sequence[Batch], total: Tensor) -> None:
        """One step on a stream of its own, as a capture needs it."""
        self.side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.side):
            self.step(batches, total)
        torch.cuda.current_stream().wait_stream(self.side)


class _Graph:
    def __init__(self, step: Step, batches: Sequence[Batch], total: Tensor):
        self.batches, self.total = [batch.map(torch.clone) for batch in batches], total.clone()
        self.held = [tensor for batch in self.batches for tensor in batch.tensors()]
        self.graph = torch.cuda.CUDAGraph()
        # Another thread may be encoding the next pool: only what this one does belongs to the graph.
        with torch.cuda.graph(self.graph, capture_error_mode="thread_local"):
            step(self.batches, self.total)

    def replay(self, batches: Sequence[Batch], total: Tensor) -> None:
        given = [tensor for batch in batches for tensor in batch.tensors()]
        torch._foreach_copy_(self.held, given)  # pyright: ignore[reportPrivateImportUsage]
        self.total.copy_(total)
        self.graph.replay()
