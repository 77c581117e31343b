"""Fast training steps: model and loss are compiled, and whole steps of fixed shapes are replayed as CUDA graphs."""

import threading
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from magnetite.batching import Batch
from magnetite.kernels._compat import foreach_copy, set_up_compiler
from magnetite.nn import GraphModel, Positions
from magnetite.tasks import Task

WARM_UP = 3
"""Steps before the capture, in which kernels are compiled and libraries allocate their workspaces."""

RECOMPILATIONS = 32
"""How often the same code may be compiled again: layers of one kind share it, and batches may grow."""

CAPTURE_LOCK = threading.Lock()
"""Held during a capture, and while another thread prepares the next data, because its CUDA calls would break it."""

Input = Tensor | Batch
Shapes = tuple[torch.Size, ...]


class Objective(torch.nn.Module):
    """Model and loss in one module, so that they are compiled together.

    Args:
        model: The model.
        task: The task, which computes the loss.
    """

    def __init__(self, model: GraphModel, task: Task):
        super().__init__()
        self.model, self.task = model, task

    def forward(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Sum of the losses of a batch, and the outputs of the model."""
        states, read, positions = self.model.embed(batch)
        return self.score(self.model.body(states, read, positions), read, positions, batch)

    def score(self, states: Tensor, read: Batch, positions: Positions, batch: Batch) -> tuple[Tensor, Tensor]:
        """Loss and outputs from the states after the last layer, and the batch that the model read."""
        outputs = self.model.head(states, read, positions)
        return self.task.loss(outputs, batch), outputs.detach()


def compiled(objective: Objective, mode: str) -> Any:
    """The objective, compiled for training; as it is if most shapes of the model differ from batch to batch.

    Args:
        objective: Model and loss.
        mode: `none`, `whole` (one graph), or `layers` (embedding, layers, and head with loss separately; layers of the
            same kind are compiled once).
    """
    if mode == "none" or not getattr(objective.model, "capturable", True):
        return objective
    set_up_compiler(RECOMPILATIONS)
    if mode == "whole":
        return torch.compile(objective)
    model = objective.model
    ends = (model.position, model.embedding, model.head)
    for child in model.children():
        for layer in child if isinstance(child, torch.nn.ModuleList) else [child] * (child not in ends):
            layer.compile()
    model.embed, objective.score = torch.compile(model.embed), torch.compile(objective.score)
    return objective


class Captured:
    """A function that is replayed from a CUDA graph after it was called a few times with inputs of the same shapes.

    Inputs are copied into the tensors that the graph reads. The first calls run the function itself, so that its
    effects need not be undone.

    Args:
        function: The function; it returns nothing.
    """

    def __init__(self, function: Callable[..., None]):
        self.function = function
        self.calls: dict[Shapes, int] = {}
        self.graphs: dict[Shapes, _Graph] = {}
        self.side = torch.cuda.Stream()

    def __call__(self, *inputs: Input) -> None:
        """Call the function, or replay it."""
        shapes = tuple(tensor.shape for tensor in _tensors(inputs))
        calls = self.calls[shapes] = self.calls.get(shapes, 0) + 1
        if calls <= WARM_UP:
            self._warm_up(inputs)
            return
        if shapes not in self.graphs:
            self.graphs[shapes] = _Graph(self.function, inputs)
        self.graphs[shapes].replay(inputs)

    def _warm_up(self, inputs: tuple[Input, ...]) -> None:
        """Call the function on a side stream, which a capture requires."""
        self.side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.side):
            self.function(*inputs)
        torch.cuda.current_stream().wait_stream(self.side)


class _Graph:
    def __init__(self, function: Callable[..., None], inputs: tuple[Input, ...]):
        held = [item.clone() if isinstance(item, Tensor) else item.map(torch.clone) for item in inputs]
        self.held = _tensors(held)
        self.graph = torch.cuda.CUDAGraph()
        with CAPTURE_LOCK, torch.cuda.graph(self.graph, capture_error_mode="thread_local"):
            function(*held)

    def replay(self, inputs: tuple[Input, ...]) -> None:
        foreach_copy(self.held, _tensors(inputs))
        self.graph.replay()


def _tensors(inputs: tuple[Input, ...] | list[Input]) -> list[Tensor]:
    return [tensor for item in inputs for tensor in ([item] if isinstance(item, Tensor) else item.tensors())]
