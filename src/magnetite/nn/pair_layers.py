"""From features of pairs of nodes to what a transformer takes: one vector a node, or biases of attention."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from magnetite.nn.layers import activation_named


class PairSum(torch.nn.Module):
    """`ζ(v) = f₁(Σ_u f₂(p(u, v)))`.

    `f₂` is linear with an activation: what a second linear layer could do to each pair, the first of `f₁` does to their
    sum. So the `n²` pairs only ever have `hidden` channels, and a compiler can sum them without storing them.
    """

    def __init__(self, channels: int, hidden: int, width: int, activation: str):
        super().__init__()
        self.pair = torch.nn.Linear(channels, hidden)
        self.activation = activation_named(activation)
        self.node = torch.nn.Sequential(
            torch.nn.Linear(hidden, width), activation_named(activation), torch.nn.Linear(width, width)
        )

    def forward(self, pairs: Float[Tensor, "b n n c"], mask: Bool[Tensor, "b n"]) -> Float[Tensor, "b n d"]:
        """One vector a node, from its pairs with all nodes that the mask names."""
        return self.node((self.activation(self.pair(pairs)).float() * mask[:, :, None, None]).sum(1))


class PairBias(torch.nn.Module):
    """`B[u, v] = w · p(u, v)` with a `w` for each layer and head; a constant would be lost in the softmax."""

    def __init__(self, channels: int, heads: int, layers: int):
        super().__init__()
        self.shape = layers, heads
        self.linear = torch.nn.Linear(channels, layers * heads, bias=False)

    def forward(self, pairs: Float[Tensor, "b n n c"]) -> tuple[Float[Tensor, "b h n n"], ...]:
        """One bias a layer."""
        biases = self.linear(pairs).permute(0, 3, 1, 2).contiguous()  # the kernels of attention want rows of keys
        return biases.unflatten(1, self.shape).unbind(1)
