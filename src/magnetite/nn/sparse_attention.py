"""Attention of each node to some nodes of its graph: the likeliest ends of its walks, or its relatives."""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from magnetite.batching import Batch
from magnetite.nn.attention import GraphAttention, States
from magnetite.nn.encoders.base import PositionEncoder, Positions


class SparseAttention(GraphAttention):
    """`softmax_v(q_u·k_v / √c + B[u, v]) v_v` over the nodes `v` that a `SparseBiasEncoder` lists for each node `u`.

    With the encoding `Relatives`, this is attention in acyclic graphs, where each node sees its ancestors and
    descendants within reach; with `SparseRandomWalk`, each node sees the likeliest ends of its walks. A node always
    sees itself. Time and memory grow with the number of listed pairs.

    Args:
        width: Size of a state.
        heads: Number of attention heads.
    """

    def check(self, position: PositionEncoder | None, graph_tokens: bool) -> None:
        """Raise an error unless there is a position encoder that lists node pairs, and no graph token."""
        if graph_tokens:
            raise ValueError("SparseAttention has no graph token: give the head readout='mean', 'sum' or 'max'")
        if position is None or not position.lists_pairs:
            raise ValueError(
                "SparseAttention needs a position encoder that lists node pairs, SparseBiasEncoder(heads, layers) "
                "(--encoding relatives or sparse-walks)"
            )

    def contexts(
        self,
        batch: Batch,  # noqa: ARG002
        positions: Positions,
        layers: int,
        dtype: torch.dtype,  # noqa: ARG002
        graph_tokens: bool,  # noqa: ARG002
    ) -> list[tuple[Tensor, Tensor, Tensor]]:
        """Landing nodes, which of them exist, and the biases of each layer."""
        sparse = positions.sparse
        if sparse is None or positions.biases:
            raise ValueError("SparseAttention reads biases of listed node pairs, not of all: leave out the encoder")
        heads = sparse.biases[0].shape[-1]
        if (len(sparse.biases), heads) != (layers, self.heads):
            raise ValueError(
                f"the position encoder has biases for {len(sparse.biases)} layers of {heads} heads, the model has "
                f"{layers} of {self.heads}: give both the same layers and heads"
            )
        return [(sparse.landing, sparse.mask, bias) for bias in sparse.biases]

    def forward(
        self,
        states: States,
        structure: States,
        batch: Batch,  # noqa: ARG002
        context: tuple[Tensor, Tensor, Tensor],
    ) -> States:
        """Attention whose queries and keys come from `structure`."""
        landing, mask, bias = context
        query, key = self.query_key(structure).unflatten(-1, (2, self.heads, -1)).unbind(1)
        value = self.value(states).unflatten(-1, (self.heads, -1))
        scores = torch.einsum("nhc,nthc->nth", query, key[landing]) / math.sqrt(query.shape[-1])
        scores = (scores.float() + bias).masked_fill(~mask[..., None], -torch.inf)
        mixed: Float[Tensor, "n h c"] = torch.einsum("nth,nthc->nhc", scores.softmax(1).to(value), value[landing])
        return self.out(mixed.flatten(1))
