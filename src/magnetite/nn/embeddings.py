"""Embeddings of node and edge features, without positions."""

import functools
from collections.abc import Iterator, Mapping, Sequence

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor

from magnetite.batching import Batch
from magnetite.kernels._compat import assert_async
from magnetite.nn.layers import mean_and_std
from magnetite.nn.module import Module, of_kind, unused


class Embedding(Module):
    """Base class of node embeddings: `setup` creates the parameters once the model's width is known."""

    def setup(self, width: int) -> None:
        """Make the parameters."""
        raise NotImplementedError

    def forward(self, batch: Batch) -> Float[Tensor, "nodes d"]:
        """One vector per node."""
        raise NotImplementedError

    def projected(self, batch: Batch, matrix: torch.nn.Linear) -> Float[Tensor, "rows inner"]:
        """The product of a matrix without bias and the vectors, in the order that takes less time.

        Args:
            batch: The graphs.
            matrix: The matrix.
        """
        return matrix(self(batch))


Embeddings = Embedding | Sequence[Embedding] | None
"""One or several embeddings, whose sum is taken, or none."""


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

    def projected(self, batch: Batch, matrix: torch.nn.Linear) -> Float[Tensor, "rows inner"]:
        """The sum of the products of all parts."""
        return torch.stack([part.projected(batch, matrix) for part in self.parts]).sum(0)  # type: ignore[operator]


class SameNodes(Embedding):
    """The same learned vector for every node, so that only positions distinguish nodes."""

    def setup(self, width: int) -> None:
        """Make the vector."""
        self.vector = torch.nn.Parameter(torch.randn(width) * 0.02)

    def forward(self, batch: Batch) -> Float[Tensor, "nodes d"]:
        """The vector for every node."""
        return self.vector.expand(batch.num_nodes, -1)


class _Linear(Embedding):
    """`W (x − μ) / σ + b` of a continuous feature."""

    mean: Tensor
    std: Tensor

    def __init__(self, feature: str, channels: int):
        super().__init__()
        self.feature, self.channels = feature, channels
        self.register_buffer("mean", torch.zeros(channels))
        self.register_buffer("std", torch.ones(channels))

    def setup(self, width: int) -> None:
        """Make the matrix."""
        self.linear = torch.nn.Linear(self.channels, width)

    def fit(self, values: Shaped[Tensor, "rows ..."]) -> None:
        """Standardise by the mean and the standard deviation of these values, which are saved with the model."""
        columns = _columns(values, self.channels, self.feature, torch.float64)
        mean, std = mean_and_std(columns)
        self.mean.copy_(mean)
        self.std.copy_(std)

    def embed(self, values: Tensor) -> Float[Tensor, "rows d"]:
        """The feature, standardised and transformed."""
        return self.linear((_columns(values, self.channels, self.feature) - self.mean) / self.std)


class LinearNodes(_Linear):
    """`W (x_v − μ) / σ + b` of a continuous node feature, where `μ = 0` and `σ = 1` unless `fit` is called.

    Args:
        feature: Name of the node feature, `[nodes]` or `[nodes, channels]`.
        channels: Number of columns of the feature.
    """

    def __init__(self, feature: str, channels: int):
        super().__init__(feature, channels)

    def forward(self, batch: Batch) -> Float[Tensor, "nodes d"]:
        """The feature, transformed."""
        return self.embed(node_feature(batch, self.feature))


class LinearEdges(_Linear):
    """`W (x_e − μ) / σ + b` of a continuous edge feature, where `μ = 0` and `σ = 1` unless `fit` is called.

    Args:
        feature: Name of the edge feature; `"weight"` stands for the edge weights.
        channels: Number of columns of the feature.
    """

    def __init__(self, feature: str = "weight", channels: int = 1):
        super().__init__(feature, channels)

    def forward(self, batch: Batch) -> Float[Tensor, "edges d"]:
        """The feature, transformed."""
        return self.embed(batch.edge_weight if self.feature == "weight" else edge_feature(batch, self.feature))


def embedding_table(size: int, width: int, std: float) -> torch.nn.Embedding:
    """A table of normally distributed vectors."""
    table = torch.nn.Embedding(size, width)
    with torch.no_grad():
        if std != 1:
            table.weight.mul_(std)
    return table


class _Categories(Embedding):
    """`Σ_f E_f[x_f]`: the sum of one learned vector for each column of several categorical features."""

    def __init__(
        self,
        sizes: Mapping[str, int | Sequence[int]],
        dropout: Mapping[str, float] | None = None,
        std: float = 1.0,
    ):
        super().__init__()
        self.std = std
        self.sizes = {name: (size,) if isinstance(size, int) else tuple(size) for name, size in sizes.items()}
        self.dropout = dict(dropout or {})
        self.absent: list[Bool[Tensor, " size"]] = []

    def fit(self, values: Mapping[str, Shaped[Tensor, "rows ..."]]) -> None:
        """Let categories that these values do not have begin, and without gradients remain, with the vector 0.

        Args:
            values: The features of the training data, by name. The embedding must not yet be part of a model.
        """
        columns = [column for name in self.sizes for column in self._ids(values[name], name, dropout=False)]
        sizes = [size for sizes in self.sizes.values() for size in sizes]
        self.absent = [torch.bincount(ids, minlength=size) == 0 for ids, size in zip(columns, sizes, strict=True)]

    def setup(self, width: int) -> None:
        """Make one table per column; a `ModuleDict` would not take every name of a feature."""
        sizes = [size for columns in self.sizes.values() for size in columns]
        tables = [embedding_table(size, width, self.std) for size in sizes]
        with torch.no_grad():
            for table, absent in zip(tables, self.absent, strict=False):
                table.weight[absent] = 0
        self.tables = torch.nn.ModuleList(tables)

    def embed(self, values: Mapping[str, Tensor]) -> Float[Tensor, "rows d"]:
        """The sum of the vectors, from the values of each feature."""
        columns = [column for name in self.sizes for column in self._ids(values[name], name)]
        return torch.stack([table(ids) for table, ids in zip(self.tables, columns, strict=True)]).sum(0)

    def embed_projected(self, values: Mapping[str, Tensor], matrix: torch.nn.Linear) -> Float[Tensor, "rows inner"]:
        """The product of a matrix and the sum: that of the tables, if there are fewer categories than rows."""
        columns = [column for name in self.sizes for column in self._ids(values[name], name)]
        if sum(map(len, columns)) < sum(size for sizes in self.sizes.values() for size in sizes):
            return matrix(self.embed(values))
        # In single precision, since the backward pass adds one gradient per row.
        tables = [matrix(table.weight).float() for table in self.tables]
        found = [torch.nn.functional.embedding(ids, table) for table, ids in zip(tables, columns, strict=True)]
        return functools.reduce(torch.add, found)

    def _ids(
        self, values: Shaped[Tensor, "rows ..."], name: str, dropout: bool = True
    ) -> Iterator[Int[Tensor, " rows"]]:
        sizes, rate = self.sizes[name], self.dropout.get(name, 0.0) if dropout else 0.0
        if values.is_floating_point() or values.is_complex():
            raise TypeError(
                f"feature {name!r} has dtype {values.dtype}, but categories are integers: convert it with .long(), or "
                "embed it with LinearNodes or LinearEdges"
            )
        values = (values[:, None] if values.ndim == 1 else values.flatten(1)).long()
        if values.shape[1] != len(sizes):
            raise ValueError(
                f"feature {name!r} has {values.shape[1]} columns, but {len(sizes)} numbers of categories are given"
            )
        assert_async((values >= 0).all(), lambda: f"feature {name!r} has the negative category {int(values.min())}")
        for column, size in zip(values.unbind(1), sizes, strict=True):
            ids = column.clamp(0, size - 1)
            replaced = torch.rand(ids.shape, device=ids.device) < rate if self.training and rate else None
            yield ids if replaced is None else torch.where(replaced, 0, ids)


class CategoryNodes(_Categories):
    """`Σ_f E_f[x_{v,f}]`: the sum of one learned vector for each of several categorical node features.

    Categories beyond the size of a table share its last row, such as depths beyond a cap.

    Args:
        sizes: Number of categories of each feature, by name; for a feature with several columns, one number per column.
        dropout: Probability in training that a category is replaced by category 0 ("unknown"), by name.
        std: Standard deviation of the vectors at the beginning. An optimiser such as Adam moves each entry by about
            the learning rate per step, so rare categories of large tables learn faster from small vectors.
    """

    def __init__(
        self,
        sizes: Mapping[str, int | Sequence[int]],
        dropout: Mapping[str, float] | None = None,
        std: float = 1.0,
    ):
        super().__init__(sizes, dropout, std)

    def forward(self, batch: Batch) -> Float[Tensor, "nodes d"]:
        """The sum of the vectors."""
        return self.embed({name: node_feature(batch, name) for name in self.sizes})


class CategoryEdges(_Categories):
    """`Σ_f E_f[x_{e,f}]`: the sum of one learned vector for each of several categorical edge features.

    Categories beyond the size of a table share its last row.

    Args:
        sizes: Number of categories of each feature, by name; for a feature with several columns, one number per column.
    """

    def __init__(self, sizes: Mapping[str, int | Sequence[int]]):
        super().__init__(sizes)

    def forward(self, batch: Batch) -> Float[Tensor, "edges d"]:
        """The sum of the vectors."""
        return self.embed({name: edge_feature(batch, name) for name in self.sizes})

    def projected(self, batch: Batch, matrix: torch.nn.Linear) -> Float[Tensor, "edges inner"]:
        """The product of a matrix and the sum of the vectors."""
        return self.embed_projected({name: edge_feature(batch, name) for name in self.sizes}, matrix)


def embedding_of(given: "Embedding | Sequence[Embedding]", width: int) -> Embedding:
    """An embedding, or the sum of a list of them, with its parameters made."""
    for part in given if isinstance(given, Sequence) else [given]:
        of_kind(part, Embedding, "embedding")
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


def _columns(
    values: Tensor, channels: int, name: str, dtype: torch.dtype = torch.float32
) -> Float[Tensor, "rows channels"]:
    values = values.to(dtype)
    values = values[:, None] if values.ndim == 1 else values
    if values.shape[1:] != (channels,):
        raise ValueError(
            f"feature {name!r} has shape {tuple(values.shape)}, expected {channels} columns: change channels"
        )
    return values
