"""The transformer over the nodes of directed graphs."""

import math
from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from magnetite.batching import Batch
from magnetite.nn.embeddings import Embedding
from magnetite.nn.heads import Head
from magnetite.nn.layers import Norm, activation_named
from magnetite.nn.model import GraphModel, Part
from magnetite.nn.module import Module, remade
from magnetite.nn.positions import PositionEncoder, Positions
from magnetite.nn.rows import as_rows, joined, slots, united
from magnetite.nn.tokens import Tokens

TYPICAL_SIZE = 64
"""Nodes of a graph whose attention is not scaled by its length."""

Heads = Float[Tensor, "_ h c"]


class Attention(Module):
    """`softmax(s Q Kᵀ / √c + B) V` in `heads` heads; query and key may come from other states than the value (SAT).

    `s = 1`, or with `length_scaled` the graph's `log(n + 1) / log 64`, so that the largest weights do not fade among
    more nodes than were trained on. States are rows of the tokens of all batches.
    """

    def __init__(self, width: int, heads: int = 4, length_scaled: bool = False):
        super().__init__()
        if width % heads:
            raise ValueError(f"width={width} cannot be cut into {heads} heads: give a multiple of heads")
        self.heads, self.length_scaled = heads, length_scaled
        self.query_key = torch.nn.Linear(width, 2 * width)
        self.value = torch.nn.Linear(width, width)
        self.out = torch.nn.Linear(width, width)

    def forward(
        self,
        states: Float[Tensor, "rows d"],
        structure: Float[Tensor, "rows d"],
        tokens: Tokens,
        biases: Sequence[Tensor],
    ) -> Float[Tensor, "rows d"]:
        """Attend within each graph; each batch's `bias` is a mask of keys, or what is added to the logits."""
        query, key = tokens.spread(self.query_key(structure)).unflatten(-1, (2, self.heads, -1)).unbind(1)
        if self.length_scaled:
            query = query * joined([_length_scale(batch) for batch in tokens.batches])[:, None, None].to(query)
        value = tokens.spread(self.value(states)).unflatten(-1, (self.heads, -1))
        counts = [batch.mask.numel() for batch in tokens.batches]
        each = zip(query.split(counts), key.split(counts), value.split(counts), biases, strict=True)
        return self.out(tokens.pack(joined([mixed(*parts) for parts in each]).flatten(1)))


def mixed(query: Heads, key: Heads, value: Heads, bias: Tensor) -> Heads:
    """Attention within the graphs of one batch, whose slots are the rows."""
    parts = [part.unflatten(0, (bias.shape[0], -1)).transpose(1, 2) for part in (query, key, value)]
    heads = torch.nn.functional.scaled_dot_product_attention(*parts, attn_mask=bias)
    return heads.transpose(1, 2).flatten(0, 1)


class Block(Module):
    """One layer: `h ← N(h + s·A(h))`, `h ← N(h + F(h))`; with pre-norm `h ← h + s·A(N h)`, `h ← h + F(N h)`.

    `local` gives query and key the states of a neighbourhood, as in SAT; with `degree_scaled`, `s = 1/√(deg + 1)`.
    """

    def __init__(
        self,
        width: int,
        heads: int = 4,
        expansion: int = 4,
        dropout: float = 0.185,
        activation: str = "gelu",
        norm: str = "post",
        local: Module | None = None,
        degree_scaled: bool = False,
        length_scaled: bool = False,
    ):
        super().__init__()
        if norm not in ("post", "pre"):
            raise ValueError(f"norm={norm!r} is not known: give 'post' or 'pre'")
        self.post, self.local, self.degree_scaled = norm == "post", local, degree_scaled
        self.attention = Attention(width, heads, length_scaled)
        self.feed_forward = torch.nn.Sequential(
            torch.nn.Linear(width, expansion * width),
            activation_named(activation),
            torch.nn.Linear(expansion * width, width),
        )
        self.norms = torch.nn.ModuleList([Norm(width), Norm(width)])
        self.dropout = torch.nn.Dropout(dropout)

    def forward(
        self, states: Float[Tensor, "rows d"], tokens: Tokens, biases: Sequence[Tensor]
    ) -> Float[Tensor, "rows d"]:
        """Mix the states of all nodes of each graph; rows are the tokens of all batches, which have a bias each."""
        first, second = self.norms
        if self.post:
            states = first(states + self._attend(states, tokens, biases))
            return second(states + self.dropout(self.feed_forward(states)))
        states = states + self._attend(first(states), tokens, biases)
        return states + self.dropout(self.feed_forward(second(states)))

    def _attend(
        self, states: Float[Tensor, "rows d"], tokens: Tokens, biases: Sequence[Tensor]
    ) -> Float[Tensor, "rows d"]:
        structure = states
        if self.local is not None:
            structure = tokens.pack(self.local(tokens.spread(states)[None], united(tokens.batches))[0])
        mixed = self.dropout(self.attention(states, structure, tokens, biases))
        if not self.degree_scaled:
            return mixed
        degrees = tokens.pack(joined([batch.degrees().flatten() for batch in tokens.batches])[:, None])
        return mixed * (degrees + 1).rsqrt().to(mixed)


class DigraphTransformer(GraphModel):
    """Embedding + positions → `layers` blocks of full attention → head.

    `position` is an encoder or a list of them, `local` a structure extractor that makes it a SAT, such as `GNN(width)`;
    every layer gets one like it, with parameters of its own.

    >>> import magnetite as mt
    >>> graphs = mt.Digraphs.from_edges([[0, 1], [1, 2]])
    >>> position = mt.nn.MagLapNet(k=4, width=32)
    >>> model = mt.nn.DigraphTransformer(width=32, layers=1, position=position, head=mt.nn.GraphHead(2))
    >>> model(mt.pad(graphs, mt.MagneticLaplacian(k=4)(graphs))).shape
    torch.Size([1, 2])
    """

    def __init__(
        self,
        width: int,
        layers: int,
        head: Head,
        position: PositionEncoder | Sequence[PositionEncoder] | None = None,
        embedding: Embedding | None = None,
        heads: int = 4,
        expansion: int = 4,
        dropout: float = 0.185,
        activation: str = "gelu",
        norm: str = "post",
        local: Module | None = None,
        degree_scaled: bool = False,
        length_scaled: bool = False,
    ):
        super().__init__(width, head, position, embedding)
        options = {"dropout": dropout, "activation": activation, "norm": norm}
        options |= {"degree_scaled": degree_scaled, "length_scaled": length_scaled}
        self.blocks = torch.nn.ModuleList(
            Block(width, heads, expansion, local=remade(local), **options) for _ in range(layers)
        )
        self.cls = torch.nn.Parameter(torch.randn(width) * 0.02) if head.needs_cls else None
        self.final = Norm(width) if norm == "pre" else torch.nn.Identity()

    def embed(self, batches: Sequence[Batch]) -> list[Part]:
        """Nodes with their positions, and biases of attention that close empty slots.

        The last slot of each graph, which is never a node's, holds the token of the whole graph.
        """
        parts = super().embed(batches)
        rows = as_rows([part.states for part in parts])
        if self.cls is not None:
            ends = as_rows([_last(batch.mask) for batch in batches])
            rows = torch.where(ends[:, None], self.cls.to(rows), rows)
        positions = [part.positions for part in parts]
        biases = [self._biases(one, self._filled(batch), rows) for one, batch in zip(positions, batches, strict=True)]
        return [Part(*part) for part in zip(slots(rows, batches), batches, positions, biases, strict=True)]

    def body(self, parts: Sequence[Part]) -> list[Float[Tensor, "_ _ d"]]:
        """All blocks, on rows without those of empty slots where that is possible."""
        batches = [part.batch for part in parts]
        tokens = Tokens.of(batches, [self._filled(batch) for batch in batches], more=int(self.cls is not None))
        rows = tokens.pack(as_rows([part.states for part in parts]))
        for layer, block in enumerate(self.blocks):
            rows = block(rows, tokens, [part.biases[layer] for part in parts])
        return slots(tokens.spread(self.final(rows)), batches)

    def _filled(self, batch: Batch) -> Bool[Tensor, "b n"]:
        """Nodes, and the token of the whole graph, if there is one."""
        return batch.mask if self.cls is None else batch.mask | _last(batch.mask)

    def _biases(
        self, positions: Positions, keys: Bool[Tensor, "b n"], rows: Float[Tensor, "rows d"]
    ) -> tuple[Float[Tensor, "b h n n"], ...]:
        self._check_biases(positions)
        kind = rows.device.type
        dtype = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else rows.dtype
        made = tuple(attention_bias(keys, bias, dtype) for bias in positions.biases or (None,))
        return made * (len(self.blocks) // len(made))  # one serves all layers

    def _check_biases(self, positions: Positions) -> None:
        wanted, heads = (1, len(self.blocks)), self.arguments["heads"]
        if positions.biases and (len(positions.biases) not in wanted or positions.biases[0].shape[1] != heads):
            raise ValueError(
                f"positions bias {len(positions.biases)} layers of {positions.biases[0].shape[1]} heads, the model has "
                f"{len(self.blocks)} of {heads}: give the encoder the same layers and heads"
            )


def _length_scale(batch: Batch) -> Float[Tensor, " rows"]:
    scale = torch.log(batch.sizes + 1.0) / math.log(TYPICAL_SIZE)
    return scale[:, None].expand(batch.mask.shape).flatten()


def _last(mask: Bool[Tensor, "b n"]) -> Bool[Tensor, "b n"]:
    return (torch.arange(mask.shape[1], device=mask.device) == mask.shape[1] - 1).expand(mask.shape)


def attention_bias(keys: Bool[Tensor, "b n"], bias: Float[Tensor, "b h n n"] | None, dtype: torch.dtype) -> Tensor:
    """What is added to the logits, −∞ for empty slots: `[b, h, n, n]`, with `h = 1` where there is no bias."""
    first = torch.arange(keys.shape[1], device=keys.device) == 0
    closed = ~(keys | (first & ~keys.any(1, keepdim=True)))  # softmax of an empty graph stays finite
    if bias is None:  # written out once for all layers: the kernels of attention want it whole
        bias = torch.zeros(keys.shape[0], 1, keys.shape[1], keys.shape[1], dtype=dtype, device=keys.device)
    return bias.masked_fill(closed[:, None, None, :], -torch.inf).to(dtype)
