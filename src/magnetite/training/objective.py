"""What is differentiated: model and loss in one module, compiled as asked for."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from magnetite.batching import Batch
from magnetite.nn import GraphModel
from magnetite.tasks import Task

RECOMPILATIONS = 32
"""How often what is compiled may be compiled again: layers of one kind share it, and chunks may grow."""


class Sealed:
    """Batches that Fabric passes on as they are: it would try to convert the fields of a frozen dataclass in place."""

    def __init__(self, batches: Sequence[Batch]):
        self.batches = batches


class Objective(torch.nn.Module):
    """Model and loss in one, so that they are compiled together."""

    def __init__(self, model: GraphModel, task: Task):
        super().__init__()
        self.model, self.task = model, task

    def forward(self, sealed: Sealed) -> tuple[Tensor, list[Tensor]]:
        """The sum of the losses of all batches, and the answers."""
        outputs = self.model.answers(sealed.batches)
        losses = [self.task.loss(answer, batch) for answer, batch in zip(outputs, sealed.batches, strict=True)]
        return torch.stack(losses).sum(), [answer.detach() for answer in outputs]


def compiled(objective: Objective, mode: str) -> Any:
    """The objective to train with: as it is, as one graph, or with compiled layers.

    Layers that meet one shape are compiled for it; those that meet another are compiled once more, for all shapes.
    """
    if mode == "none":
        return objective
    torch._dynamo.config.recompile_limit = RECOMPILATIONS
    if mode != "layers":
        return torch.compile(objective)
    for child in objective.model.children():
        for layer in child if isinstance(child, torch.nn.ModuleList) else [child]:
            layer.compile()
    return objective
