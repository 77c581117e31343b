"""Weights of any size: a graph's weights are divided by a power of two before sums and products of them are formed.

The largest weight is then in [1, 2), so that no tolerance is absolute and nothing overflows. A power of two is exact:
all bits of a result are those without it, wherever that was finite.
"""

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor

FLOOR = 2.0**-1000
"""Smallest weight relative to the largest of its graph; smaller ones count as this, so that no edge disappears."""


SQUARES_FROM = 2.0**-480
"""The squares of smaller numbers lose bits."""


def divided(
    weights: Shaped[Tensor, " m"] | None, edge_ptr: Int[Tensor, " starts"]
) -> tuple[Float[Tensor, " m"] | None, Int[Tensor, " b"]]:
    """The weights `w / 2^e` in double precision, and the exponents `e` of the graphs; None and 0 if there are none.

    >>> divided(torch.tensor([3.0, 5.0, 1e-300], dtype=torch.float64), torch.tensor([0, 2, 2, 3]))
    (tensor([0.7500, 1.2500, 1.3394], dtype=torch.float64), tensor([  2,   0, -997]))
    """
    if weights is None:
        return None, edge_ptr.new_zeros(len(edge_ptr) - 1)
    counts = edge_ptr.diff()
    weights = weights.detach().double()
    exponent = exponents(weights, edge_ptr)
    each = torch.repeat_interleave(exponent, counts, output_size=weights.numel())
    return times_power(weights, -each).clamp_(min=FLOOR), exponent


def exponents(weights: Float[Tensor, " m"], edge_ptr: Int[Tensor, " starts"]) -> Int[Tensor, " b"]:
    """`e` with `2^e ≤ max w < 2^(e+1)` of each graph; 0 if it has no edges."""
    counts = edge_ptr.diff()
    graph = torch.repeat_interleave(counts, output_size=weights.numel())
    largest = weights.new_zeros(counts.shape).scatter_reduce_(0, graph, weights, "amax")
    return torch.where(largest > 0, torch.frexp(largest).exponent.long() - 1, 0)


def times_power(values: Float[Tensor, "..."], exponent: Int[Tensor, "..."]) -> Float[Tensor, "..."]:
    """`values · 2^exponent`, in two steps, since a single factor may not be a finite number.

    >>> times_power(torch.tensor([3.0, 5e-324], dtype=torch.float64), torch.tensor([-1, 1074])).tolist()
    [1.5, 1.0]
    """
    half = exponent >> 1
    return values * _power(half) * _power(exponent - half)


def root_power(exponent: Int[Tensor, "*shape"]) -> tuple[Float[Tensor, "*shape"], Int[Tensor, "*shape"]]:
    """`f ∈ {1, 2}` and `e` with `√(2^exponent x) = √(f x) · 2^e`."""
    half = exponent >> 1
    return (exponent - 2 * half + 1).double(), half


def _power(exponent: Tensor) -> Tensor:
    """`2^exponent` of a normal number, from its bits: `torch.pow` is not exact everywhere."""
    return ((exponent + 1023) << 52).view(torch.float64)
