"""The optimiser: AdamW, adaptive gradient clipping, and a learning rate with warm-up and cosine decay."""

import math
from collections.abc import Iterable
from itertools import groupby

import torch
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
        if not members:
            return
        gradients = [parameter.grad for parameter in members if parameter.grad is not None]
        numbers = torch.cat([tensor.reshape(-1) for tensor in (*members, *gradients)]).view(2, -1)
        groups = [list(group) for _, group in groupby(members, _columns)]
        spans = numbers.split([sum(one.numel() for one in group) for group in groups], dim=1)
        rows = [span.unflatten(1, (-1, _columns(group[0]))) for span, group in zip(spans, groups, strict=True)]
        weight_norms, gradient_norms = torch.cat([torch.linalg.vector_norm(each, dim=2) for each in rows], dim=1)
        allowed = self.factor * weight_norms.clamp(min=SMALLEST_NORM)
        scales = (allowed / gradient_norms.clamp(min=1e-30)).clamp(max=1).split([each.shape[1] for each in rows])
        for each, scale in zip(rows, scales, strict=True):
            each[1].mul_(scale[:, None])
        pieces = numbers[1].split([gradient.numel() for gradient in gradients])
        foreach_copy(gradients, [piece.view_as(gradient) for piece, gradient in zip(pieces, gradients, strict=True)])


def _columns(parameter: Parameter) -> int:
    """Length of the rows of a matrix, or of a whole vector."""
    return parameter.numel() // (parameter.shape[0] if parameter.ndim > 1 else 1)
