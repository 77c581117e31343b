"""Attention over the eigenvectors of each node: thousands of tiny problems, in one fused kernel on a GPU.

A node has k tokens of a few channels. Written out, the scores of all nodes are the largest tensor of the whole model,
and are moved through memory a dozen times a step. The kernel keeps those of one node in registers, both ways.
"""

import importlib.util
import math

import torch
from jaxtyping import Bool, Float
from torch import Tensor

MOST_TOKENS, MOST_CHANNELS = 64, 16
"""What the kernel takes: the scores of one head have to fit into the registers of a thread block."""


def eigen_attention(inner: Float[Tensor, "b n t 3 h c"], mask: Bool[Tensor, "b t"]) -> Float[Tensor, "b n t h c"]:
    """`softmax(q kᵀ/√c) v` over the tokens `t` of each node, of which the mask leaves some out.

    >>> eigen_attention(torch.ones(1, 2, 4, 3, 1, 2), torch.ones(1, 4, dtype=torch.bool)).shape
    torch.Size([1, 2, 4, 1, 2])
    """
    tokens, channels = inner.shape[2], inner.shape[-1]
    if inner.is_cuda and _has_triton() and tokens <= MOST_TOKENS and channels <= MOST_CHANNELS:
        from magnetite.nn.eigen_attention_triton import fused

        return fused(inner.contiguous(), mask)
    return written_out(inner, mask)


def written_out(inner: Float[Tensor, "b n t 3 h c"], mask: Bool[Tensor, "b t"]) -> Float[Tensor, "b n t h c"]:
    """The same in plain tensor operations. A fused attention of torch would overflow its grid above 65,535 nodes."""
    query, key, value = inner.unbind(3)
    scores = torch.einsum("bnihc,bnjhc->bnhij", query, key) / math.sqrt(inner.shape[-1])
    scores = scores.masked_fill(~mask[:, None, None, None, :], torch.finfo(scores.dtype).min)
    return torch.einsum("bnhij,bnjhc->bnihc", scores.softmax(-1), value)


def _has_triton() -> bool:
    return importlib.util.find_spec("triton") is not None
