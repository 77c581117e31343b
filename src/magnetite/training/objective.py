"""What is differentiated: model and loss in one module, compiled as asked for."""

from collections.abc import Sequence
from typing import Any

import torch
import torch._inductor.async_compile
import torch._inductor.config
from torch import Tensor

from magnetite.batching import Batch
from magnetite.nn import GraphModel
from magnetite.nn.model import Part
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
        parts = self.model.embed(sealed.batches)
        return self.score(self.model.body(parts), parts)

    def score(self, states: Sequence[Tensor], parts: Sequence[Part]) -> tuple[Tensor, list[Tensor]]:
        """The same from what comes out of the model's body."""
        outputs = self.model.read(states, parts)
        losses = [self.task.loss(answer, part.batch) for answer, part in zip(outputs, parts, strict=True)]
        return torch.stack(losses).sum(), [answer.detach() for answer in outputs]


def set_up_compiler() -> None:
    """Let what is compiled be compiled often enough, and keep the compiler from what it gets wrong.

    Its processes start now, so that they are there once data are: they load PyTorch, and until they have, kernels are
    compiled one by one.
    """
    torch._dynamo.config.recompile_limit = RECOMPILATIONS
    # Sums over rows and columns in one kernel: wrong shapes in torch 2.11 (issue 178080), and in torch 2.13, too,
    # sometimes values that were never written (issue 193061).
    if hasattr(torch._inductor.config.triton, "mix_order_reduction"):
        torch._inductor.config.triton.mix_order_reduction = False
    torch._inductor.async_compile.maybe_warm_pool()


def compiled(objective: Objective, mode: str) -> Any:
    """The objective to train with: as it is, as one graph, or as compiled parts.

    The parts are what comes before the model's body, each layer of the body (those of one kind are compiled once), and
    what comes after.
    """
    if mode == "none":
        return objective
    set_up_compiler()
    if mode != "layers":
        return torch.compile(objective)
    model = objective.model
    ends = (model.position, model.embedding, model.head)
    for child in model.children():
        for layer in child if isinstance(child, torch.nn.ModuleList) else [child] * (child not in ends):
            layer.compile()
    model.embed, objective.score = torch.compile(model.embed), torch.compile(objective.score)
    return objective
