"""Attention between the tokens of a graph, and the layer of a transformer."""

import math
from collections.abc import Sequence
from typing import Annotated, Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from magnetite.batching import Batch
from magnetite.batching.buckets import MULTIPLE
from magnetite.encodings.checks import DEPTH, DROPOUT, SIZE
from magnetite.linalg.memory import check_memory
from magnetite.nn.encoders.base import Biases, PositionEncoder, Positions
from magnetite.nn.layers import Norm, activation_named
from magnetite.nn.module import Module

TYPICAL_SIZE = 64
"""Number of tokens, `n + 1`, at which length scaling leaves the attention logits unchanged."""

CUDNN_TILE = 128
"""Number of keys that cuDNN's attention reads at a time."""

States = Float[Tensor, "tokens d"]


class GraphAttention(Module):
    """Base class of attention within each graph, whose queries and keys may come from other states than the values.

    Args:
        width: Size of a state.
        heads: Number of attention heads.
    """

    def __init__(self, width: Annotated[int, SIZE], heads: Annotated[int, SIZE] = 4):
        super().__init__()
        if width % heads:
            raise ValueError(f"width must be a multiple of heads, got width={width} and heads={heads}")
        self.heads = heads
        self.query_key = torch.nn.Linear(width, 2 * width)
        self.value = torch.nn.Linear(width, width)
        self.out = torch.nn.Linear(width, width)

    def check(self, position: PositionEncoder | None, graph_tokens: bool) -> None:
        """Raise an error if this attention cannot use the biases of a position encoder, or graph tokens.

        Args:
            position: The position encoder of the model.
            graph_tokens: Whether the tokens end with one graph token per graph.
        """

    def contexts(
        self, batch: Batch, positions: Positions, layers: int, dtype: torch.dtype, graph_tokens: bool
    ) -> list[Any]:
        """For each of several layers, what `forward` needs beside the states, such as biases.

        Args:
            batch: The graphs.
            positions: What the position encoder computed.
            layers: Number of layers.
            dtype: Type of the attention logits.
            graph_tokens: Whether the tokens end with one graph token per graph.
        """
        raise NotImplementedError

    def forward(self, states: States, structure: States, batch: Batch, context: Any) -> States:
        """The output for all tokens; values come from `states`, queries and keys from `structure`."""
        raise NotImplementedError


class Attention(GraphAttention):
    """`softmax(s Q Kᵀ / √c + B) V` within each graph; `Q` and `K` may come from other states than `V` (SAT).

    `s = 1`, or `log(n + 1) / log 64` with `length_scaled`, so that the largest attention weights do not shrink in
    graphs with more nodes than in training. Tokens are the nodes, followed by the graph tokens if there are any.

    Args:
        width: Size of a state.
        heads: Number of attention heads.
        length_scaled: Whether logits grow with the logarithm of the number of nodes.
        reach: Which nodes a node attends to, see `REACHES`.
    """

    def __init__(
        self,
        width: Annotated[int, SIZE],
        heads: Annotated[int, SIZE] = 4,
        length_scaled: bool = False,
        reach: str = "all",
    ):
        super().__init__(width, heads)
        if reach not in REACHES:
            raise ValueError(f"unknown reach {reach!r}: choose one of {', '.join(REACHES)}")
        if reach == "directions" and heads < 2:
            raise ValueError(f"reach='directions' needs at least two heads, got heads={heads}")
        self.length_scaled, self.reach = length_scaled, reach

    def check(self, position: PositionEncoder | None, graph_tokens: bool) -> None:  # noqa: ARG002
        """Raise an error if the position encoder lists node pairs."""
        if position is not None and position.lists_pairs:
            raise ValueError(
                "the position encoder lists node pairs: use attention=SparseAttention(width) (model.attention=sparse)"
            )

    def contexts(
        self, batch: Batch, positions: Positions, layers: int, dtype: torch.dtype, graph_tokens: bool
    ) -> list[Biases]:
        """The biases of each layer."""
        self._check_biases(positions, layers)
        seen = None if self.reach == "all" else seen_nodes(batch, self.reach, self.heads)
        return attention_biases(batch, positions, layers, dtype, graph_tokens, seen)

    def _check_biases(self, positions: Positions, layers: int) -> None:
        if not positions.biases:
            return
        given, heads = len(positions.biases), positions.biases[0][0].shape[1]
        if given not in (1, layers) or heads != self.heads:
            raise ValueError(
                f"the position encoder has biases for {given} layers of {heads} heads, the model has "
                f"{layers} of {self.heads}: give both the same layers and heads"
            )

    def forward(self, states: States, structure: States, batch: Batch, context: Biases) -> States:
        """Attention whose queries and keys come from `structure`; the biases are added to the logits."""
        query_key = self.query_key(structure)
        if self.length_scaled:
            query, key = query_key.chunk(2, dim=-1)
            query_key = torch.cat([query * _length_scale(batch, len(states)).to(query), key], dim=-1)
        each = zip(batch.pad(query_key), batch.pad(self.value(states)), context, strict=True)
        mixed = [self._attend(*bucket) for bucket in each]
        return self.out(batch.unpad(mixed, graph_tokens=len(states) > batch.num_nodes))

    def _attend(
        self, query_key: Float[Tensor, "b n qk"], value: Float[Tensor, "b n d"], bias: Tensor
    ) -> Float[Tensor, "b n d"]:
        query, key = query_key.unflatten(-1, (2, self.heads, -1)).transpose(1, 3).unbind(2)
        value = value.unflatten(-1, (self.heads, -1)).transpose(1, 2)
        heads = attend(query, key, value, bias)
        return heads.transpose(1, 2).flatten(2)


def attend(
    query: Float[Tensor, "b h q c"],
    key: Float[Tensor, "b h k c"],
    value: Float[Tensor, "b h k d"],
    bias: Float[Tensor, "b _ q k"],
) -> Float[Tensor, "b h q d"]:
    """`softmax(Q Kᵀ / √c + B) V` per head.

    On an H200, torch chooses cuDNN from 2.11 on, whose gradients are nan if the last tile of keys is half empty and all
    logits of a query are below −88 (pytorch issue 196678). There, keys without weight are added.

    >>> attend(torch.zeros(1, 1, 1, 2), torch.zeros(1, 1, 2, 2), torch.ones(1, 1, 2, 2), torch.zeros(1, 1, 1, 2))
    tensor([[[[1., 1.]]]])
    """
    if key.is_cuda and key.dtype != torch.float32 and key.shape[2] % CUDNN_TILE == CUDNN_TILE // 2:
        key, value = (torch.nn.functional.pad(each, (0, 0, 0, MULTIPLE)) for each in (key, value))
        bias = torch.nn.functional.pad(bias, (0, MULTIPLE), value=-torch.inf)
    return torch.nn.functional.scaled_dot_product_attention(query, key, value, attn_mask=bias)


class Block(Module):
    """One layer: `h ← N(h + s·A(h))`, `h ← N(h + F(h))`; with pre-norm `h ← h + s·A(N h)`, `h ← h + F(N h)`.

    Args:
        width: Size of a state.
        heads: Number of attention heads.
        expansion: Hidden size of the feed-forward network, as a multiple of `width`.
        dropout: Dropout on the output of attention and feed-forward network.
        activation: gelu or relu.
        norm: post or pre.
        local: A network such as `GNN(width)` that computes the states for queries and keys (SAT).
        degree_scaled: Whether `s = 1/√(degree + 1)` instead of 1.
        length_scaled: Whether attention logits grow with the logarithm of the number of nodes.
        local_added: Whether the states that `local` computes are also added to the output of attention (GPS).
        attention: The attention; by default full attention with these `heads` and `length_scaled`.
        inner_dropout: Whether dropout also acts inside the feed-forward network, after its activation.
    """

    def __init__(
        self,
        width: Annotated[int, SIZE],
        heads: Annotated[int, SIZE] = 4,
        expansion: Annotated[int, DEPTH] = 4,
        dropout: Annotated[float, DROPOUT] = 0.185,
        activation: str = "gelu",
        norm: str = "post",
        local: Module | None = None,
        degree_scaled: bool = False,
        length_scaled: bool = False,
        local_added: bool = False,
        attention: GraphAttention | None = None,
        inner_dropout: bool = False,
    ):
        super().__init__()
        if norm not in ("post", "pre"):
            raise ValueError(f"norm must be 'post' or 'pre', got {norm!r}")
        if local_added and local is None:
            raise ValueError("local_added needs a network to add: give local, such as GNN(width)")
        self.post, self.local, self.degree_scaled, self.local_added = norm == "post", local, degree_scaled, local_added
        self.attention = Attention(width, heads, length_scaled) if attention is None else attention
        hidden = activation_named(activation)
        self.feed_forward = torch.nn.Sequential(
            torch.nn.Linear(width, expansion * width),
            torch.nn.Sequential(hidden, torch.nn.Dropout(dropout)) if inner_dropout else hidden,
            torch.nn.Linear(expansion * width, width),
        )
        self.norms = torch.nn.ModuleList([Norm(width), Norm(width)])
        self.dropout = torch.nn.Dropout(dropout)

    def forward(self, states: States, batch: Batch, context: Any) -> States:
        """The states of all tokens after one layer; `context` is what its attention needs beside them."""
        first, second = self.norms
        if self.post:
            states = first(states + self._attend(states, batch, context))
            return second(states + self.dropout(self.feed_forward(states)))
        states = states + self._attend(first(states), batch, context)
        return states + self.dropout(self.feed_forward(second(states)))

    def _attend(self, states: States, batch: Batch, context: Any) -> States:
        structure = states if self.local is None else self.local(states, batch)
        mixed = self.attention(states, structure, batch, context)
        mixed = self.dropout(mixed + structure if self.local_added else mixed)
        if not self.degree_scaled:
            return mixed
        degrees = torch.nn.functional.pad(batch.degrees(), (0, len(states) - batch.num_nodes))
        return mixed * (degrees + 1).rsqrt().to(mixed)[:, None]


def attention_biases(
    batch: Batch,
    positions: Positions,
    layers: int,
    dtype: torch.dtype,
    graph_tokens: bool,
    seen: Sequence[Bool[Tensor, "_ h _ _"]] | None = None,
) -> list[Biases]:
    """For each layer, the biases of the logits, −∞ in padding: `[b, h, n, n]` per bucket; `h = 1` without biases.

    `seen` has for each bucket which keys a query attends to; all by default.
    """
    masks = batch.filled(graph_tokens)
    if not torch.compiler.is_compiling():
        check_attention(masks, layers if positions.biases else 1, dtype)
    made = []
    for layer in range(max(1, len(positions.biases))):
        given = positions.bias(layer) or [None] * len(masks)
        made.append([_masked(bias, mask, dtype) for bias, mask in zip(given, masks, strict=True)])
        if seen is not None:
            made[-1] = [bias.masked_fill(~mask, -torch.inf) for bias, mask in zip(made[-1], seen, strict=True)]
    return made * (layers // len(made))  # one serves all layers


REACHES = ("all", "relatives", "directions")
"""Which nodes a node attends to: all; ancestors and descendants; ancestors in half of the heads, descendants in the
other half."""


def seen_nodes(batch: Batch, reach: str, heads: int) -> list[Bool[Tensor, "_ h _ _"]]:
    """For each bucket, which keys each query attends to, by reachability along the edges, `[b, h, n, n]`.

    `R = (I + A)^n > 0` by repeated squaring. A node attends to itself and to the graph token, which attends to all.

    Args:
        batch: The graphs.
        reach: `relatives` or `directions`, see `REACHES`.
        heads: Number of attention heads.
    """
    found = []
    for adjacency, nodes in zip(batch.adjacency(), batch.filled(), strict=True):
        size = adjacency.shape[-1]
        precision = torch.float16 if adjacency.is_cuda else torch.float32  # sums of ones stay positive in either
        reached = (adjacency > 0) | torch.eye(size, dtype=torch.bool, device=adjacency.device)
        for _ in range((size - 1).bit_length()):
            step = reached.to(precision)
            reached = step @ step > 0
        free = ~(nodes[:, :, None] & nodes[:, None, :])  # graph tokens; padding needs some key as well
        after, before = reached | free, reached.mT | free
        if reach == "relatives":
            found.append((after | before)[:, None])
        else:
            halves = [before] * (heads // 2) + [after] * (heads - heads // 2)
            found.append(torch.stack(halves, dim=1))
    return found


def check_attention(masks: Sequence[Tensor], layers: int, dtype: torch.dtype) -> None:
    """Refuse graphs whose node pairs do not fit into memory, before any of them is computed.

    Args:
        masks: One entry per token, `[b, n]` per bucket.
        layers: Number of layers with logits or biases of their own.
        dtype: Type of the logits.
    """
    check_pairs_fit(masks, 2 * layers * dtype.itemsize, "attention")


def check_pairs_fit(masks: Sequence[Tensor], bytes_per_pair: int, what: str) -> None:
    """Raise a `ValueError` if something that holds a matrix of all node pairs needs more memory than there is."""
    pairs = sum(mask.shape[0] * mask.shape[1] ** 2 for mask in masks)
    largest = max((mask.shape[1] for mask in masks), default=0)
    if masks:
        check_memory(
            pairs * bytes_per_pair, masks[0].device, f"{what} between all pairs of up to {largest} nodes",
            "use smaller batches, or for large graphs attention=LinearAttention(width) (model.attention=linear)",
        )  # fmt: skip


def _masked(bias: Float[Tensor, "b h n n"] | None, keys: Tensor, dtype: torch.dtype) -> Float[Tensor, "b h n n"]:
    if bias is None:  # stored once for all layers, since attention kernels do not broadcast it
        count, size = keys.shape
        bias = torch.zeros(count, 1, size, size, dtype=dtype, device=keys.device)
    return bias.masked_fill(~keys[:, None, None, :], -torch.inf).to(dtype)


def _length_scale(batch: Batch, tokens: int) -> Float[Tensor, "tokens 1"]:
    scale = torch.log(batch.sizes + 1.0) / math.log(TYPICAL_SIZE)
    each = batch.per_node(scale)
    return (each if tokens == batch.num_nodes else torch.cat([each, scale]))[:, None]
