"""Small layers that several networks share."""

from collections.abc import Callable

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

ACTIVATIONS: dict[str, Callable[[], torch.nn.Module]] = {"gelu": torch.nn.GELU, "relu": torch.nn.ReLU}


def activation_named(name: str) -> torch.nn.Module:
    """The activation of this name.

    >>> activation_named("gelu")
    GELU(approximate='none')
    """
    if name not in ACTIVATIONS:
        raise ValueError(f"activation must be one of {', '.join(ACTIVATIONS)}, got {name!r}")
    return ACTIVATIONS[name]()


class Norm(torch.nn.LayerNorm):
    """LayerNorm in single precision for any input, since half precision cannot sum thousands of gradients accurately.

    If the width is not a multiple of 4, PyTorch's kernel uses a whole thread block per row, however short the row is;
    on a GPU, such rows are normalised by `by_moments`.

    >>> Norm(4)(torch.ones(2, 4, dtype=torch.bfloat16)).dtype
    torch.float32
    """

    def forward(self, input: Float[Tensor, "*rows d"]) -> Float[Tensor, "*rows d"]:
        """The normalised rows."""
        rows = input.float()
        return self.by_moments(rows) if rows.is_cuda and rows.shape[-1] % 4 else super().forward(rows)

    def by_moments(self, rows: Float[Tensor, "*rows d"]) -> Float[Tensor, "*rows d"]:
        """`w (x − μ) / √(σ² + ε) + b` in plain tensor operations.

        >>> Norm(2).by_moments(torch.tensor([[1.0, 3.0]])).round().tolist()
        [[-1.0, 1.0]]
        """
        variance, mean = torch.var_mean(rows, -1, correction=0, keepdim=True)
        return torch.addcmul(self.bias, (rows - mean) * torch.rsqrt(variance + self.eps), self.weight)


def full_precision(device: torch.device) -> torch.autocast:
    """Context manager that disables autocast."""
    return torch.autocast(device.type, enabled=False)


def aligned_linear(layer: torch.nn.Linear, values: Float[Tensor, "*rows c"]) -> Float[Tensor, "*rows d"]:
    """Apply a linear layer to inputs padded with zeros to a multiple of 8 channels, which tensor cores need.

    >>> layer = torch.nn.Linear(3, 2)
    >>> torch.allclose(aligned_linear(layer, torch.ones(4, 3)), layer(torch.ones(4, 3)))
    True
    """
    missing = 0, -values.shape[-1] % 8
    pad = torch.nn.functional.pad
    return torch.nn.functional.linear(pad(values, missing), pad(layer.weight, missing), layer.bias)


INITS = ("uniform", "fan-in")
"""How linear layers start: as PyTorch's, or as `start_by_fan_in` makes them."""


@torch.no_grad()
def start_by_fan_in(model: torch.nn.Module) -> None:
    """Draw the matrices of all linear layers anew, and set their biases to 0, as Haiku does by default.

    `W_ij = z_ij / √fan_in`, where `z` is normal, truncated to `[−2, 2]`. PyTorch's own matrices and biases are uniform
    in `±1/√fan_in`, with a standard deviation 1.5 times smaller.

    Args:
        model: The model, changed in place; parameters of other layers stay as they are.

    >>> layer = torch.nn.Linear(4, 8)
    >>> start_by_fan_in(layer)
    >>> layer.bias.abs().max().item(), layer.weight.abs().max().item() <= 1
    (0.0, True)
    """
    for layer in model.modules():
        if isinstance(layer, torch.nn.Linear):
            std = layer.in_features**-0.5
            torch.nn.init.trunc_normal_(layer.weight, std=std, a=-2 * std, b=2 * std)
            if layer.bias is not None:
                layer.bias.zero_()


def mean_and_std(values: Shaped[Tensor, "rows columns"]) -> tuple[Float[Tensor, " columns"], Float[Tensor, " columns"]]:
    """Mean and standard deviation of each column in double precision; 1 for a column that is constant in single one.

    Without rows, the mean is 0.

    >>> mean_and_std(torch.tensor([[1.0, 5.0], [3.0, 5.0]]))[1].tolist()
    [1.0, 1.0]
    """
    values = values.double()
    if not len(values):
        values = values.new_zeros(1, *values.shape[1:])
    mean, std = values.mean(0), values.std(0, correction=0)
    return mean, torch.where(std > 1e-7 * mean.abs(), std, 1.0)
