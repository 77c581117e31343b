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


class Norm(torch.nn.LayerNorm):
    """LayerNorm in single precision, whatever comes in: half precision adds up thousands of slopes to a wrong sum.

    Rows whose width is no multiple of 4 get a block of threads each from PyTorch's kernel, however short they are: on a
    GPU those go through `by_moments`.

    >>> Norm(4)(torch.ones(2, 4, dtype=torch.bfloat16)).dtype
    torch.float32
    """

    def forward(self, input: Float[Tensor, "*rows d"]) -> Float[Tensor, "*rows d"]:
        """The normalised rows."""
        rows = input.float()
        return self.by_moments(rows) if rows.is_cuda and rows.shape[-1] % 4 else super().forward(rows)

    def by_moments(self, rows: Float[Tensor, "*rows d"]) -> Float[Tensor, "*rows d"]:
        """`w (x − μ) / √(σ² + ε) + b`, written out.

        >>> Norm(2).by_moments(torch.tensor([[1.0, 3.0]])).round().tolist()
        [[-1.0, 1.0]]
        """
        variance, mean = torch.var_mean(rows, -1, correction=0, keepdim=True)
        return torch.addcmul(self.bias, (rows - mean) * torch.rsqrt(variance + self.eps), self.weight)


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


def aligned_linear(layer: torch.nn.Linear, values: Float[Tensor, "*rows c"]) -> Float[Tensor, "*rows d"]:
    """The layer on rows filled up with zeros to a multiple of 8, without which tensor cores read number by number.

    >>> layer = torch.nn.Linear(3, 2)
    >>> torch.allclose(aligned_linear(layer, torch.ones(4, 3)), layer(torch.ones(4, 3)))
    True
    """
    room = 0, -values.shape[-1] % 8
    pad = torch.nn.functional.pad
    return torch.nn.functional.linear(pad(values, room), pad(layer.weight, room), layer.bias)
