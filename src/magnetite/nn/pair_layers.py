"""From features of pairs of nodes to what a transformer takes: one vector a node, or biases of attention."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from magnetite.kernels.cuda.pair_sum import fused, suits
from magnetite.nn.layers import activation_named, filled


class PairSum(torch.nn.Module):
    """`ζ(v) = f₁(Σ_u f₂(p(u, v)))`.

    `f₂` is linear with an activation: what a second linear layer could do to each pair, the first of `f₁` does to their
    sum. So the `n²` pairs only ever have `hidden` channels, and a kernel on a GPU sums them without storing them.
    """

    def __init__(self, channels: int, hidden: int, width: int, activation: str):
        super().__init__()
        self.pair = torch.nn.Linear(channels, hidden)
        self.activation = activation_named(activation)
        self.node = torch.nn.Sequential(
            torch.nn.Linear(hidden, width), activation_named(activation), torch.nn.Linear(width, width)
        )

    def forward(self, pairs: Float[Tensor, "b n n c"], sizes: Int[Tensor, " b"]) -> Float[Tensor, "b n d"]:
        """One vector a node, from its pairs with all nodes of its graph; empty slots get one that means nothing."""
        return self.node(self.sums(pairs, sizes))

    def sums(self, pairs: Float[Tensor, "b n n c"], sizes: Int[Tensor, " b"]) -> Float[Tensor, "b n hidden"]:
        """`Σ_u f₂(p(u, v))` in single precision, zero in empty slots."""
        if isinstance(self.activation, torch.nn.GELU) and suits(pairs, self.pair.weight):
            return fused(pairs, sizes, self.pair.weight, self.pair.bias)
        return self.written_out(pairs, sizes)

    def written_out(self, pairs: Float[Tensor, "b n n c"], sizes: Int[Tensor, " b"]) -> Float[Tensor, "b n hidden"]:
        """The same in plain tensor operations."""
        mask = filled(sizes, pairs.shape[1])
        hidden = self.activation(_linear(self.pair, pairs)).float()
        return (hidden * mask[:, :, None, None]).sum(1) * mask[..., None]


class PairBias(torch.nn.Module):
    """`B[u, v] = w · p(u, v)` with a `w` for each layer and head; a constant would be lost in the softmax."""

    def __init__(self, channels: int, heads: int, layers: int):
        super().__init__()
        self.shape = layers, heads
        self.linear = torch.nn.Linear(channels, layers * heads, bias=False)

    def forward(self, pairs: Float[Tensor, "b n n c"]) -> tuple[Float[Tensor, "b h n n"], ...]:
        """One bias a layer."""
        biases = (
            _linear(self.linear, pairs).permute(0, 3, 1, 2).contiguous()
        )  # the kernels of attention want rows of keys
        return biases.unflatten(1, self.shape).unbind(1)


def _linear(layer: torch.nn.Linear, pairs: Float[Tensor, "b n n c"]) -> Float[Tensor, "b n n d"]:
    """The layer of pairs that may be stored in half precision; autocast rounds them in its own way."""
    return layer(pairs if torch.is_autocast_enabled(pairs.device.type) else pairs.to(layer.weight.dtype))
