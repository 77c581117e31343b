"""Small parts that several networks share: activations by name, and masked sums."""

from collections.abc import Callable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

ACTIVATIONS: dict[str, Callable[[], torch.nn.Module]] = {"gelu": torch.nn.GELU, "relu": torch.nn.ReLU}


def activation_named(name: str) -> torch.nn.Module:
    """The activation of this name.

    >>> activation_named("gelu")
    GELU(approximate='none')
    """
    if name not in ACTIVATIONS:
        raise ValueError(f"activation={name!r} is not known: choose one of {', '.join(ACTIVATIONS)}")
    return ACTIVATIONS[name]()


def filled(sizes: Int[Tensor, " b"], slots: int) -> Bool[Tensor, "b slots"]:
    """Which of the slots hold a node of their graph.

    >>> filled(torch.tensor([2, 0]), slots=3).tolist()
    [[True, True, False], [False, False, False]]
    """
    return torch.arange(slots, device=sizes.device) < sizes[:, None]


def masked_sum(states: Float[Tensor, "b n d"], mask: Bool[Tensor, "b n"]) -> Float[Tensor, "b d"]:
    """`Σ_v h_v` over the filled slots, in single precision.

    >>> masked_sum(torch.ones(1, 3, 2), torch.tensor([[True, True, False]])).tolist()
    [[2.0, 2.0]]
    """
    return (states.float() * mask[..., None]).sum(1)


def full_precision(device: torch.device) -> torch.autocast:
    """A region that autocast leaves in single precision."""
    return torch.autocast(device.type, enabled=False)
