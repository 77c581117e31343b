"""A whole step of fixed shapes as one CUDA graph: a replay costs one launch instead of hundreds."""

import threading
from collections.abc import Callable

import torch
from torch import Tensor

from magnetite.batching import Batch

WARM_UP = 3
"""Steps before the capture, in which kernels are compiled and libraries take their workspaces."""

ALONE = threading.Lock()
"""Held by who captures, and by who computes the next data in another thread, whose calls might spoil a capture."""

Input = Tensor | Batch
Shapes = tuple[torch.Size, ...]


class Captured:
    """Work that is replayed from a CUDA graph once inputs of the same shapes were met a few times.

    Inputs are copied to where the graph reads them. The first times the work is done as it is, so nothing has to be
    taken back.
    """

    def __init__(self, work: Callable[..., None]):
        self.work = work
        self.met: dict[Shapes, int] = {}
        self.graphs: dict[Shapes, _Graph] = {}
        self.side = torch.cuda.Stream()

    def __call__(self, *inputs: Input) -> None:
        """Do the work."""
        shapes = tuple(tensor.shape for tensor in _tensors(inputs))
        met = self.met[shapes] = self.met.get(shapes, 0) + 1
        if met <= WARM_UP:
            self._warm_up(inputs)
            return
        if shapes not in self.graphs:
            self.graphs[shapes] = _Graph(self.work, inputs)
        self.graphs[shapes].replay(inputs)

    def _warm_up(self, inputs: tuple[Input, ...]) -> None:
        """Once on a stream of its own, as a capture needs it."""
        self.side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.side):
            self.work(*inputs)
        torch.cuda.current_stream().wait_stream(self.side)


class _Graph:
    def __init__(self, work: Callable[..., None], inputs: tuple[Input, ...]):
        held = [item.clone() if isinstance(item, Tensor) else item.map(torch.clone) for item in inputs]
        self.held = _tensors(held)
        self.graph = torch.cuda.CUDAGraph()
        with ALONE, torch.cuda.graph(self.graph, capture_error_mode="thread_local"):
            work(*held)

    def replay(self, inputs: tuple[Input, ...]) -> None:
        torch._foreach_copy_(self.held, _tensors(inputs))  # pyright: ignore[reportPrivateImportUsage]
        self.graph.replay()


def _tensors(inputs: tuple[Input, ...] | list[Input]) -> list[Tensor]:
    return [tensor for item in inputs for tensor in ([item] if isinstance(item, Tensor) else item.tensors())]
