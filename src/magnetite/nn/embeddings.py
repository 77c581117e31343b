"""Embeddings of node and edge features, without positions."""

from collections.abc import Mapping, Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from magnetite.batching import Batch
from magnetite.nn.module import Module, unused


class Embedding(Module):
    """Base class of node embeddings: `setup` creates the parameters once the model's width is known."""

    def setup(self, width: int) -> None:
        """Make the parameters."""
        raise NotImplementedError

    def forward(self, batch: Batch) -> Float[Tensor, "nodes d"]:
        """One vector per node."""
        raise NotImplementedError


class Summed(Embedding):
    """The sum of several embeddings, such as one of continuous and one of categorical features.

    Models and networks create it from a list: `embedding=[LinearNodes("x", 3), CategoryNodes({"kind": 5})]`.

    Args:
        parts: The embeddings.
    """

    def __init__(self, parts: Sequence[Embedding]):
        super().__init__()
        if not parts:
            raise ValueError("the list of embeddings is empty: give at least one")
        self.parts = torch.nn.ModuleList(parts)

    def setup(self, width: int) -> None:
        """Make the parameters of all parts."""
        for part in self.parts:
            unused(part).setup(width)

    def forward(self, batch: Batch) -> Float[Tensor, "rows d"]:
        """The sum of all parts."""
        return torch.stack([part(batch) for part in self.parts]).sum(0)


class SameNodes(Embedding):
    """The same learned vector for every node, so that only positions distinguish nodes."""

    def setup(self, width: int) -> None:
        """Make the vector."""
        self.vector = torch.nn.Parameter(torch.randn(width) * 0.02)

    def forward(self, batch: Batch) -> Float[Tensor, "nodes d"]:
        """The vector for every node."""
        return self.vector.expand(batch.num_nodes, -1)


class LinearNodes(Embedding):
    """`W x_v + b` of a continuous node feature.

    Args:
        feature: Name of the node feature, `[nodes]` or `[nodes, channels]`.
        channels: Number of columns of the feature.
    """

    def __init__(self, feature: str, channels: int):
        super().__init__()
        self.feature, self.channels = feature, channels

    def setup(self, width: int) -> None:
        """Make the matrix."""
        self.linear = torch.nn.Linear(self.channels, width)

    def forward(self, batch: Batch) -> Float[Tensor, "nodes d"]:
        """The feature, transformed."""
        return self.linear(_columns(node_feature(batch, self.feature), self.channels, self.feature))


class CategoryNodes(Embedding):
    """`Σ_f E_f[x_{v,f}]`: the sum of one learned vector for each of several categorical node features.

    Categories beyond the size of a table share its last row, such as depths beyond a cap.

    Args:
        sizes: Number of categories of each feature, by name.
        dropout: Probability in training that a category is replaced by category 0 ("unknown"), by name.
    """

    def __init__(self, sizes: Mapping[str, int], dropout: Mapping[str, float] | None = None):
        super().__init__()
        self.sizes, self.dropout = dict(sizes), dict(dropout or {})

    def setup(self, width: int) -> None:
        """Make the tables."""
        self.tables = _tables(self.sizes, width)

    def forward(self, batch: Batch) -> Float[Tensor, "nodes d"]:
        """The sum of the vectors."""
        each = zip(self.tables, self.sizes, strict=True)
        return torch.stack([table(self._ids(batch, name)) for table, name in each]).sum(0)

    def _ids(self, batch: Batch, name: str) -> Int[Tensor, " nodes"]:
        ids = node_feature(batch, name).long().clamp(0, self.sizes[name] - 1)
        rate = self.dropout.get(name, 0.0)
        return torch.where(torch.rand(ids.shape, device=ids.device) < rate, 0, ids) if self.training and rate else ids


class LinearEdges(Embedding):
    """`W x_e + b` of a continuous edge feature.

    Args:
        feature: Name of the edge feature; `"weight"` stands for the edge weights.
        channels: Number of columns of the feature.
    """

    def __init__(self, feature: str = "weight", channels: int = 1):
        super().__init__()
        self.feature, self.channels = feature, channels

    def setup(self, width: int) -> None:
        """Make the matrix."""
        self.linear = torch.nn.Linear(self.channels, width)

    def forward(self, batch: Batch) -> Float[Tensor, "edges d"]:
        """The feature, transformed."""
        values = batch.edge_weight if self.feature == "weight" else edge_feature(batch, self.feature)
        return self.linear(_columns(values, self.channels, self.feature))


class CategoryEdges(Embedding):
    """`Σ_f E_f[x_{e,f}]`: the sum of one learned vector for each of several categorical edge features.

    Categories beyond the size of a table share its last row.

    Args:
        sizes: Number of categories of each feature, by name.
    """

    def __init__(self, sizes: Mapping[str, int]):
        super().__init__()
        self.sizes = dict(sizes)

    def setup(self, width: int) -> None:
        """Make the tables."""
        self.tables = _tables(self.sizes, width)

    def forward(self, batch: Batch) -> Float[Tensor, "edges d"]:
        """The sum of the vectors."""
        ids = [edge_feature(batch, name).long().clamp(0, size - 1) for name, size in self.sizes.items()]
        return torch.stack([table(each) for table, each in zip(self.tables, ids, strict=True)]).sum(0)


def embedding_of(given: "Embedding | Sequence[Embedding]", width: int) -> Embedding:
    """An embedding, or the sum of a list of them, with its parameters made."""
    embedding = Summed(given) if isinstance(given, Sequence) else given
    if not isinstance(embedding, Summed):
        unused(embedding)
    embedding.setup(width)
    return embedding


def node_feature(batch: Batch, name: str) -> Tensor:
    """A node feature of the batch by name."""
    if name not in batch.node_features:
        known = ", ".join(batch.node_features) or "none"
        raise ValueError(f"the graphs have no node feature {name!r} (they have {known}): add it to node_features")
    return batch.node_features[name]


def edge_feature(batch: Batch, name: str) -> Tensor:
    """An edge feature of the batch by name."""
    if name not in batch.edge_features:
        known = ", ".join(batch.edge_features) or "none"
        raise ValueError(
            f"the graphs have no edge feature {name!r} (they have {known}): add it to edge_features; from PyG, give it "
            "a name that contains 'edge'"
        )
    return batch.edge_features[name]


def _tables(sizes: Mapping[str, int], width: int) -> torch.nn.ModuleList:
    """One table per feature, in their order: a `ModuleDict` would not take every name of a feature."""
    return torch.nn.ModuleList(torch.nn.Embedding(size, width) for size in sizes.values())


def _columns(values: Tensor, channels: int, name: str) -> Float[Tensor, "rows channels"]:
    values = values.float()
    values = values[:, None] if values.ndim == 1 else values
    if values.shape[1:] != (channels,):
        raise ValueError(
            f"feature {name!r} has shape {tuple(values.shape)}, expected {channels} columns: change channels"
        )
    return values
