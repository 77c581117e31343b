"""The optimiser: AdamW, adaptive clipping, averages, and a learning rate with warm-up and cosine decay."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import groupby

import torch
from torch import Tensor
from torch.nn import Parameter

from magnetite.kernels._compat import foreach_copy

SMALLEST_NORM = 1e-3
"""Rows of smaller norm are clipped as if they had this norm, so that parameters can leave zero."""


def learning_rate(step: int, steps: int, warmup: int, peak: float) -> float:
    """Linear up to `peak` over `warmup` steps, then `peak · (1 + cos πt)/2` down to 0 at the end.

    Args:
        step: Current step, from 0.
        steps: Number of steps of the whole run.
        warmup: Number of steps in which the rate rises.
        peak: Largest rate.

    >>> [round(learning_rate(step, steps=8, warmup=2, peak=1.0), 3) for step in range(8)]
    [0.5, 1.0, 1.0, 0.933, 0.75, 0.5, 0.25, 0.067]
    """
    if step < warmup:
        return peak * (step + 1) / warmup
    return peak * (1 + math.cos(math.pi * (step - warmup) / max(1, steps - warmup))) / 2


def adamw(
    parameters: Iterable[Parameter], betas: tuple[float, float], weight_decay: float, device: torch.device
) -> torch.optim.AdamW:
    """Fused AdamW whose learning rate is a tensor, so that a compiled or captured step does not depend on its value.

    Args:
        parameters: The parameters.
        betas: The two decay rates.
        weight_decay: Weight decay.
        device: Device of the parameters.
    """
    rate = torch.zeros((), device=device)
    capturable = device.type == "cuda"
    return torch.optim.AdamW(
        parameters, lr=rate, betas=betas, weight_decay=weight_decay, fused=True, capturable=capturable
    )


def set_learning_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    """Write the rate into the tensor of the optimiser, without synchronising with the device."""
    for group in optimizer.param_groups:
        group["lr"].fill_(rate)


class AdaptiveClipping:
    """`g_i ← g_i · min(1, λ max(‖w_i‖, ε) / ‖g_i‖)` for each row `i` of each parameter (Brock et al. 2021).

    A row of a matrix belongs to one output; a vector counts as one row. Rows of equal length are processed together, so
    that the number of kernels does not grow with the depth of the model; nothing synchronises with the device.

    Args:
        parameters: The parameters.
        factor: `λ`, the largest norm of a row of a gradient relative to that row of the parameter.

    >>> weight = Parameter(torch.tensor([[3.0, 4.0], [0.0, 0.0]]))
    >>> weight.grad = torch.ones(2, 2)
    >>> AdaptiveClipping([weight], factor=0.1)()
    >>> weight.grad.norm(dim=1)
    tensor([5.0000e-01, 1.0000e-04])
    """

    def __init__(self, parameters: Iterable[Parameter], factor: float):
        self.factor = factor
        self.parameters = sorted((one for one in parameters if one.numel()), key=_columns)

    @torch.no_grad()
    def __call__(self) -> None:
        """Clip the gradients in place."""
        members = [parameter for parameter in self.parameters if parameter.grad is not None]
        gradients = [parameter.grad for parameter in members if parameter.grad is not None]
        if members:
            foreach_copy(gradients, clipped(members, gradients, self.factor))


class UpdateClipping:
    """`w_i ← w_i + u_i · min(1, λ max(‖w_i‖, ε) / ‖u_i‖)`, where `u` is the update of an optimiser, row by row.

    The update includes the learning rate and weight decay, so that clipping limits how far a step changes a row, and
    not what enters the moments of AdamW. Nothing synchronises with the device.

    Args:
        parameters: The parameters.
        factor: `λ`, the largest norm of a row of an update relative to that row of the parameter.

    >>> weight = Parameter(torch.tensor([[3.0, 4.0], [0.0, 0.0]]))
    >>> with UpdateClipping([weight], factor=0.1)():
    ...     weight.data += 1
    >>> (weight.data - torch.tensor([[3.0, 4.0], [0.0, 0.0]])).norm(dim=1)
    tensor([5.0000e-01, 1.0000e-04])
    """

    def __init__(self, parameters: Iterable[Parameter], factor: float):
        self.factor = factor
        self.parameters = sorted((one for one in parameters if one.numel()), key=_columns)

    @contextmanager
    def __call__(self) -> Iterator[None]:
        """Clip what the block changes."""
        before = [parameter.detach().clone() for parameter in self.parameters]
        yield
        if not self.parameters:
            return
        with torch.no_grad():
            updates = [after - old for after, old in zip(self.parameters, before, strict=True)]
            kept = clipped(before, updates, self.factor)
            foreach_copy(self.parameters, [old + update for old, update in zip(before, kept, strict=True)])


def clipped(weights: Sequence[Tensor], changes: Sequence[Tensor], factor: float) -> list[Tensor]:
    """Changes of weights whose rows have at most `factor` times the norm of the row of the weight.

    Args:
        weights: The weights; those with rows of equal length follow each other.
        changes: One change for each weight.
        factor: Largest norm of a row of a change relative to that row of the weight.
    """
    # Not concatenated: a GPU would give the largest of all tensors as few threads as the smallest.
    numbers = weights[0].new_empty(2, sum(weight.numel() for weight in weights))
    counts = [weight.numel() for weight in weights]
    places = [piece.view_as(one) for row in numbers for piece, one in zip(row.split(counts), weights, strict=True)]
    foreach_copy(places, [*weights, *changes])
    groups = [list(group) for _, group in groupby(weights, _columns)]
    spans = numbers.split([sum(one.numel() for one in group) for group in groups], dim=1)
    rows = [span.unflatten(1, (-1, _columns(group[0]))) for span, group in zip(spans, groups, strict=True)]
    weight_norms, change_norms = torch.cat([torch.linalg.vector_norm(each, dim=2) for each in rows], dim=1)
    allowed = factor * weight_norms.clamp(min=SMALLEST_NORM)
    scales = (allowed / change_norms.clamp(min=1e-30)).clamp(max=1).split([each.shape[1] for each in rows])
    for each, scale in zip(rows, scales, strict=True):
        each[1].mul_(scale[:, None])
    return places[len(weights) :]


class Average:
    """The average of the parameters over the steps, `θ̄ ← β θ̄ + (1 − β) θ`, after a plain mean of the first steps.

    In step `t = 1, 2, …` the weight of `θ` is `max(1 − β, 1/t)`, so that the start, which is random, is forgotten.

    Args:
        parameters: The parameters by name.
        decay: `β`; 0 keeps no average, and `used` then has no effect.

    >>> weight = Parameter(torch.tensor([1.0]))
    >>> average = Average({"weight": weight}, decay=0.75)
    >>> for step, value in enumerate([2.0, 4.0, 6.0]):
    ...     weight.data = torch.tensor([value])
    ...     average.prepare(step)
    ...     average.update()
    >>> with average.used():
    ...     print(weight.item())
    4.0
    >>> weight.item()
    6.0
    """

    def __init__(self, parameters: Mapping[str, Parameter], decay: float):
        self.parameters, self.decay = (dict(parameters) if decay else {}), decay
        self.values = {name: one.detach().clone() for name, one in self.parameters.items()}
        self.weight = torch.zeros((), device=next(iter(self.values.values())).device) if self.values else None

    def prepare(self, step: int) -> None:
        """Write the weight of this step, from 0, into a tensor, so that a captured update does not depend on it."""
        if self.weight is not None:
            self.weight.fill_(max(1 - self.decay, 1 / (step + 1)))

    @torch.no_grad()
    def update(self) -> None:
        """Add the parameters after a step."""
        if self.weight is not None:
            for name, value in self.values.items():
                value.lerp_(self.parameters[name], self.weight)

    @contextmanager
    def used(self) -> Iterator[None]:
        """Within the block, the parameters have their averages; they stay in place, as captured steps need."""
        present = [one.detach().clone() for one in self.parameters.values()]
        self._set(list(self.values.values()))
        try:
            yield
        finally:
            self._set(present)

    @torch.no_grad()
    def _set(self, values: Sequence[Tensor]) -> None:
        if values:
            foreach_copy(list(self.parameters.values()), values)


def _columns(parameter: Tensor) -> int:
    """Length of the rows of a matrix, or of a whole vector."""
    return parameter.numel() // (parameter.shape[0] if parameter.ndim > 1 else 1)
