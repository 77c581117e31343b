"""Attention between all nodes of a graph at a cost that grows linearly with their number."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from magnetite.batching import Batch
from magnetite.nn.attention import GraphAttention, States
from magnetite.nn.encoders.base import PositionEncoder, Positions

Padded = Float[Tensor, "b n d"]


class LinearAttention(GraphAttention):
    """Attention of all nodes to all nodes of their graph, in time and memory proportional to their number.

    `o_i = (v_i + (1/2n) Σ_j (q̂_i·k̂_j) v_j) / (1 + (1/2n) Σ_j q̂_i·k̂_j)` with unit vectors `q̂` and `k̂` per head, as in
    SGFormer (Wu et al., 2023); the factor ½ keeps the denominator above ½. The sums over `j` are the same for all nodes
    of a graph: `Σ_j k̂_j` and the small matrix `Σ_j k̂_j v_jᵀ`. The output of a graph of one node is its value.

    Args:
        width: Size of a state.
        heads: Number of attention heads.

    >>> import magnetite as mt
    >>> attention = LinearAttention(width=32)
    >>> model = mt.nn.DigraphTransformer(32, 2, mt.nn.NodeHead(3), mt.nn.MagLapNet(4, 32), attention=attention)
    >>> model(mt.Digraphs.from_edges([[0, 1], [1, 2]])).shape
    torch.Size([3, 3])
    """

    def check(self, position: PositionEncoder | None, graph_tokens: bool) -> None:  # noqa: ARG002
        """Raise an error if the position encoder has biases: there are no logits to which they could be added."""
        if position is not None and position.has_biases:
            raise ValueError(
                "the position encoder has attention biases, which LinearAttention cannot add: use an encoder with node "
                "vectors, or full attention"
            )

    def contexts(
        self,
        batch: Batch,  # noqa: ARG002
        positions: Positions,  # noqa: ARG002
        layers: int,
        dtype: torch.dtype,  # noqa: ARG002
        graph_tokens: bool,  # noqa: ARG002
    ) -> list[None]:
        """Nothing."""
        return [None] * layers

    def forward(self, states: States, structure: States, batch: Batch, context: None) -> States:  # noqa: ARG002
        """Attention whose queries and keys come from `structure`."""
        graph_tokens = len(states) > batch.num_nodes
        query_key = self.query_key(structure).unflatten(-1, (2, self.heads, -1))
        query_key = torch.nn.functional.normalize(query_key, dim=-1).flatten(1)
        buckets = batch.pad(query_key), batch.pad(self.value(states)), batch.filled(graph_tokens)
        mixed = [self._attend(*bucket) for bucket in zip(*buckets, strict=True)]
        return self.out(batch.unpad(mixed, graph_tokens))

    def _attend(self, query_key: Float[Tensor, "b n qk"], value: Padded, mask: Bool[Tensor, "b n"]) -> Padded:
        """Entries of padding are zero, so they add nothing to the sums."""
        query, key = query_key.unflatten(-1, (2, self.heads, -1)).transpose(1, 3).unbind(2)
        value = value.unflatten(-1, (self.heads, -1)).transpose(1, 2)
        count = mask.sum(1).view(-1, 1, 1, 1)
        key = key / (2 * count)
        above = value + query @ (key.mT @ value)
        below = 1 + query @ key.sum(2, keepdim=True).mT
        return (above / below).transpose(1, 2).flatten(2)
