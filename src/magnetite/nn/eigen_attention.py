"""Attention over the eigenvectors of each node: thousands of tiny problems, in one fused kernel on a GPU.

A node has k tokens of a few channels. Written out, queries, keys, values and scores of all nodes are the largest
tensors of the whole model, and are moved through memory a dozen times a step. The kernel reads the tokens of a node,
does all of it in registers, and writes them back; backwards it computes everything again instead of keeping it.
"""

import math
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from magnetite.kernels.cuda.eigen_attention import fused, suits
from magnetite.nn.layers import filled


class Weights(NamedTuple):
    """The two linear layers of the attention: queries, keys and values of all heads from the tokens, and back."""

    inner: Float[Tensor, "3*hc w"]
    inner_bias: Float[Tensor, " 3*hc"]
    out: Float[Tensor, "w hc"]
    out_bias: Float[Tensor, " w"]


def eigen_attention(
    tokens: Float[Tensor, "b n t w"], mask: Bool[Tensor, "b t"], sizes: Int[Tensor, " b"], weights: Weights, heads: int
) -> Float[Tensor, "b n t w"]:
    """`x + W_o softmax(q kᵀ/√c) v` over the tokens `t` of each node; keys that the mask leaves out are not looked at.

    Only the first `sizes[g]` slots of graph `g` hold nodes; the others give zeros.

    >>> layers = torch.nn.Linear(3, 6), torch.nn.Linear(2, 3)
    >>> weights = Weights(*layers[0].parameters(), *layers[1].parameters())
    >>> mask, sizes = torch.ones(1, 4, dtype=torch.bool), torch.tensor([2])
    >>> eigen_attention(torch.ones(1, 3, 4, 3), mask, sizes, weights, heads=1).any(-1).all(-1).tolist()
    [[True, True, False]]
    """
    if suits(tokens, channels=weights.out.shape[1]):
        mixed = fused(tokens, mask, sizes, weights.inner, weights.inner_bias, weights.out, heads)
        return mixed + weights.out_bias * filled(sizes, tokens.shape[1])[..., None, None]
    return written_out(tokens, mask, sizes, weights, heads)


def written_out(
    tokens: Float[Tensor, "b n t w"], mask: Bool[Tensor, "b t"], sizes: Int[Tensor, " b"], weights: Weights, heads: int
) -> Float[Tensor, "b n t w"]:
    """The same in plain tensor operations. A fused attention of torch would overflow its grid above 65,535 nodes."""
    inner = torch.nn.functional.linear(tokens, weights.inner, weights.inner_bias)
    query, key, value = inner.unflatten(-1, (3, heads, -1)).unbind(3)
    scores = torch.einsum("bnihc,bnjhc->bnhij", query, key) / math.sqrt(query.shape[-1])
    scores = scores.masked_fill(~mask[:, None, None, None, :], torch.finfo(scores.dtype).min)
    mixed = torch.einsum("bnhij,bnjhc->bnihc", scores.softmax(-1), value).flatten(-2)
    result = tokens + torch.nn.functional.linear(mixed, weights.out, weights.out_bias)
    return result * filled(sizes, tokens.shape[1])[..., None, None]
