"""Layers that turn features of node pairs into inputs of a transformer: one vector per node, or attention biases."""

import torch
from jaxtyping import Float
from torch import Tensor

from magnetite.batching import Batch
from magnetite.kernels.cuda import pair_sum as cuda
from magnetite.nn.layers import activation_named

Pairs = list[Float[Tensor, "_ _ _ c"]]
"""Features of node pairs: one tensor per bucket."""


class PairSum(torch.nn.Module):
    """`ζ(v) = f₁(Σ_u f₂(p(u, v)))`.

    `f₂` is one linear layer with an activation; a second linear layer could be merged into the first one of `f₁`. So
    the `n²` node pairs never have more than `hidden` channels, and on a GPU a kernel sums them without storing them.

    Args:
        channels: Features per pair.
        hidden: Output channels of `f₂`.
        width: Size of a node's vector.
        activation: gelu or relu.
        node_layers: Number of linear layers of `f₁`, 1 or 2.
    """

    def __init__(self, channels: int, hidden: int, width: int, activation: str, node_layers: int = 2):
        super().__init__()
        self.pair = torch.nn.Linear(channels, hidden)
        self.activation = activation_named(activation)
        second = [activation_named(activation), torch.nn.Linear(width, width)] if node_layers > 1 else []
        self.node = torch.nn.Sequential(torch.nn.Linear(hidden, width), *second)

    def forward(self, pairs: Pairs, batch: Batch) -> Float[Tensor, "nodes d"]:
        """One vector per node, from its pairs with all nodes of its graph."""
        masks = batch.filled()
        sums = [self.sum_starts(part, mask) for part, mask in zip(pairs, masks, strict=True)]
        return self.node(batch.unpad(sums))

    def sum_starts(self, pairs: Float[Tensor, "b n n c"], mask: Tensor) -> Float[Tensor, "b n hidden"]:
        """`Σ_u f₂(p(u, v))` of one bucket in single precision, zero where there is no node."""
        if isinstance(self.activation, torch.nn.GELU) and cuda.suits(pairs, self.pair.weight):
            return cuda.fused(pairs, mask.sum(1), self.pair.weight, self.pair.bias)
        return self.plain_sum_starts(pairs, mask)

    def plain_sum_starts(self, pairs: Float[Tensor, "b n n c"], mask: Tensor) -> Float[Tensor, "b n hidden"]:
        """The same in plain tensor operations."""
        hidden = self.activation(_linear(self.pair, pairs)).float()
        real = mask.to(hidden)
        # A product of matrices, which reads the pairs once and stores no masked copy of them.
        sums = torch.bmm(real[:, None], hidden.flatten(2)).view(hidden.shape[0], *hidden.shape[2:])
        return sums * real[..., None]


class PairBias(torch.nn.Module):
    """`B[u, v] = w · p(u, v)` with one `w` per layer and head; a constant would not change the softmax.

    Args:
        channels: Features per pair.
        heads: Number of attention heads.
        layers: Number of attention layers.
    """

    def __init__(self, channels: int, heads: int, layers: int):
        super().__init__()
        self.shape = layers, heads
        self.linear = torch.nn.Linear(channels, layers * heads, bias=False)

    def forward(self, pairs: Pairs) -> tuple[list[Float[Tensor, "_ h _ _"]], ...]:
        """The biases of each layer, one tensor per bucket."""
        # Contiguous, since attention kernels read rows of keys.
        each = [_linear(self.linear, part).permute(0, 3, 1, 2).contiguous() for part in pairs]
        layers = [biases.unflatten(1, self.shape).unbind(1) for biases in each]
        return tuple(list(buckets) for buckets in zip(*layers, strict=True))


def _linear(layer: torch.nn.Linear, pairs: Float[Tensor, "b n n c"]) -> Float[Tensor, "b n n d"]:
    """Apply a layer to features that may be stored in half precision; autocast would convert them itself."""
    return layer(pairs if torch.is_autocast_enabled(pairs.device.type) else pairs.to(layer.weight.dtype))
