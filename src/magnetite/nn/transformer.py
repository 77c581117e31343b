"""The transformer over the nodes of directed graphs."""

from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from magnetite.batching import Batch
from magnetite.nn.embeddings import Embedding
from magnetite.nn.heads import Head
from magnetite.nn.layers import activation_named
from magnetite.nn.model import GraphModel
from magnetite.nn.module import Module, remade
from magnetite.nn.positions import PositionEncoder, Positions


class Attention(Module):
    """`softmax(Q Kᵀ / √c + B) V` in `heads` heads; query and key may come from other states than the value (SAT)."""

    def __init__(self, width: int, heads: int = 4):
        super().__init__()
        if width % heads:
            raise ValueError(f"width={width} cannot be cut into {heads} heads: give a multiple of heads")
        self.heads = heads
        self.query_key = torch.nn.Linear(width, 2 * width)
        self.value = torch.nn.Linear(width, width)
        self.out = torch.nn.Linear(width, width)

    def forward(
        self, states: Float[Tensor, "b n d"], structure: Float[Tensor, "b n d"], bias: Tensor
    ) -> Float[Tensor, "b n d"]:
        """Attend; `bias` is a mask of keys, or what is added to the logits."""
        query, key = self.query_key(structure).unflatten(-1, (2, self.heads, -1)).unbind(2)
        value = self.value(states).unflatten(-1, (self.heads, -1))
        mixed = torch.nn.functional.scaled_dot_product_attention(
            query.transpose(1, 2), key.transpose(1, 2), value.transpose(1, 2), attn_mask=bias
        )
        return self.out(mixed.transpose(1, 2).flatten(2))


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
    ):
        super().__init__()
        if norm not in ("post", "pre"):
            raise ValueError(f"norm={norm!r} is not known: give 'post' or 'pre'")
        self.post, self.local, self.degree_scaled = norm == "post", local, degree_scaled
        self.attention = Attention(width, heads)
        self.feed_forward = torch.nn.Sequential(
            torch.nn.Linear(width, expansion * width),
            activation_named(activation),
            torch.nn.Dropout(dropout),
            torch.nn.Linear(expansion * width, width),
        )
        self.norms = torch.nn.ModuleList([torch.nn.LayerNorm(width), torch.nn.LayerNorm(width)])
        self.dropout = torch.nn.Dropout(dropout)

    def forward(self, states: Float[Tensor, "b n d"], batch: Batch, bias: Tensor) -> Float[Tensor, "b n d"]:
        """Mix the states of all nodes of each graph."""
        first, second = self.norms
        if self.post:
            states = first(states + self._attend(states, batch, bias))
            return second(states + self.dropout(self.feed_forward(states)))
        states = states + self._attend(first(states), batch, bias)
        return states + self.dropout(self.feed_forward(second(states)))

    def _attend(self, states: Float[Tensor, "b n d"], batch: Batch, bias: Tensor) -> Float[Tensor, "b n d"]:
        structure = states if self.local is None else self.local(states, batch)
        mixed = self.dropout(self.attention(states, structure, bias))
        return mixed * (batch.degrees() + 1).rsqrt()[..., None].to(mixed) if self.degree_scaled else mixed


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
    ):
        super().__init__(width, head, position, embedding)
        options = {"dropout": dropout, "activation": activation, "norm": norm, "degree_scaled": degree_scaled}
        self.blocks = torch.nn.ModuleList(
            Block(width, heads, expansion, local=remade(local), **options) for _ in range(layers)
        )
        self.cls = torch.nn.Parameter(torch.randn(width) * 0.02) if head.needs_cls else None
        self.final = torch.nn.LayerNorm(width) if norm == "pre" else torch.nn.Identity()

    def body(self, states: Float[Tensor, "b n d"], batch: Batch, positions: Positions) -> Float[Tensor, "b n d"]:
        """All blocks; the last slot of each graph, which is never a node's, holds the token of the whole graph."""
        last = torch.arange(states.shape[1], device=states.device) == states.shape[1] - 1
        keys = batch.mask
        if self.cls is not None:
            states = torch.where(last[:, None], self.cls.to(states), states)
            keys = keys | last
        self._check_biases(positions)
        for layer, block in enumerate(self.blocks):
            states = block(states, batch, attention_bias(keys, positions.bias(layer), states.dtype))
        return self.final(states)

    def _check_biases(self, positions: Positions) -> None:
        wanted, heads = (1, len(self.blocks)), self.arguments["heads"]
        if positions.biases and (len(positions.biases) not in wanted or positions.biases[0].shape[1] != heads):
            raise ValueError(
                f"positions bias {len(positions.biases)} layers of {positions.biases[0].shape[1]} heads, the model has "
                f"{len(self.blocks)} of {heads}: give the encoder the same layers and heads"
            )


def attention_bias(keys: Bool[Tensor, "b n"], bias: Float[Tensor, "b h n n"] | None, dtype: torch.dtype) -> Tensor:
    """What is added to the logits: −∞ for empty slots, in the type of the states where there is a bias."""
    first = torch.arange(keys.shape[1], device=keys.device) == 0
    open_keys = (keys | (first & ~keys.any(1, keepdim=True)))[
        :, None, None, :
    ]  # softmax of an empty graph stays finite
    if bias is None:
        return open_keys.expand(-1, -1, keys.shape[1], -1)
    return bias.masked_fill(~open_keys, -torch.inf).to(dtype)
