"""What is differentiated: model and loss in one module, compiled as asked for."""

from typing import Any

import torch
from torch import Tensor

from magnetite.batching import Batch
from magnetite.nn import GraphModel
from magnetite.tasks import Task

RECOMPILATIONS = 128
"""Shapes that a compiled model may meet: those of chunks, for every kind of layer, and some growth of each."""


class Sealed:
    """A batch that Fabric passes on as it is: it would try to convert the fields of a frozen dataclass in place."""

    def __init__(self, batch: Batch):
        self.batch = batch


class Objective(torch.nn.Module):
    """Model and loss in one, so that they are compiled together."""

    def __init__(self, model: GraphModel, task: Task):
        super().__init__()
        self.model, self.task = model, task

    def forward(self, batch: Batch | Sealed) -> tuple[Tensor, Tensor]:
        """The sum of the losses of a batch, and the answers."""
        batch = batch.batch if isinstance(batch, Sealed) else batch
        outputs = self.model(batch)
        return self.task.loss(outputs, batch), outputs.detach()


def compiled(objective: Objective, mode: str, dynamic: bool) -> Any:
    """The objective to train with: as it is, as one graph, or with compiled layers; a shape, or for all shapes."""
    if mode == "none":
        return objective
    torch._dynamo.config.recompile_limit = RECOMPILATIONS
    if mode != "layers":
        return torch.compile(objective, dynamic=dynamic)
    for child in objective.model.children():
        for layer in child if isinstance(child, torch.nn.ModuleList) else [child]:
            layer.compile(dynamic=dynamic)
    return objective
