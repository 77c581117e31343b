"""Embeddings of edges, and the sums of messages along them."""

from collections.abc import Mapping

import torch
from jaxtyping import Float, Int
from torch import Tensor

from magnetite.batching import Batch
from magnetite.nn.module import Module


class EdgeEmbedding(Module):
    """Base: `setup` makes the parameters once the network's width is known."""

    def setup(self, width: int) -> None:
        """Make the parameters."""
        raise NotImplementedError

    def forward(self, batch: Batch) -> Float[Tensor, "m d"]:
        """One vector a slot of an edge."""
        raise NotImplementedError


class LinearEdges(EdgeEmbedding):
    """`W x_e + b` of an edge feature of the graphs; `feature="weight"` are their weights."""

    def __init__(self, feature: str = "weight", channels: int = 1):
        super().__init__()
        self.feature, self.channels = feature, channels

    def setup(self, width: int) -> None:
        """Make the matrix."""
        self.linear = torch.nn.Linear(self.channels, width)

    def forward(self, batch: Batch) -> Float[Tensor, "m d"]:
        """The feature, transformed."""
        rows = batch.edge_weight if self.feature == "weight" else edge_feature(batch, self.feature)
        return self.linear(rows.float().view(-1, self.channels))


class CategoryEdges(EdgeEmbedding):
    """`Σ_f E_f[x_{e,f}]`: the sum of one learned vector for each of several categories of an edge.

    Numbers beyond a table's size share its last row.
    """

    def __init__(self, sizes: Mapping[str, int]):
        super().__init__()
        self.sizes = dict(sizes)

    def setup(self, width: int) -> None:
        """Make the tables."""
        self.tables = torch.nn.ModuleDict({name: torch.nn.Embedding(size, width) for name, size in self.sizes.items()})

    def forward(self, batch: Batch) -> Float[Tensor, "m d"]:
        """The sum of the looked-up vectors."""
        ids = {name: edge_feature(batch, name).long().clamp(0, size - 1) for name, size in self.sizes.items()}
        return torch.stack([table(ids[name]) for name, table in self.tables.items()]).sum(0)


def edge_feature(batch: Batch, name: str) -> Tensor:
    """An edge feature of the batch by name."""
    if name not in batch.edge_features:
        known = ", ".join(batch.edge_features) or "none"
        raise ValueError(
            f"the graphs have no edge feature {name!r} (they have {known}): add it to edge_features; from PyG, give it "
            "a name with 'edge' in it"
        )
    return batch.edge_features[name]


def gathered(
    messages: Float[Tensor, "m *middle d"], at: Int[Tensor, " m"], batch: Batch
) -> Float[Tensor, "r *middle d"]:
    """`Σ_{e: at(e) = v} message_e` for every row `v` of the flattened slots, in single precision.

    >>> import magnetite as mt
    >>> batch = mt.pad(mt.Digraphs.from_edges([[0, 1], [2, 2]]))
    >>> gathered(torch.ones(8, 1), batch.edges[1], batch)[:3].flatten().tolist()
    [0.0, 0.0, 2.0]
    """
    filled = batch.edge_mask.view(-1, *[1] * (messages.ndim - 1))
    sums = messages.new_zeros((batch.mask.numel(), *messages.shape[1:]), dtype=torch.float32)
    return sums.index_add(0, at, messages.float() * filled)
