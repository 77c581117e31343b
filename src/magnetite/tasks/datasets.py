"""Data sets of your own: graphs with features and targets, and their splits, from memory or from files."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torch import Tensor

from magnetite.batching import QueryPairs
from magnetite.graphs import Digraphs
from magnetite.io.storage import as_bytes

Ids = Mapping[str, Tensor]
"""The ids of the graphs, nodes or node pairs of each split; or masks."""


@dataclass(frozen=True, eq=False)
class DataSet:
    """Graphs with features and targets, and splits by name.

    Args:
        graphs: The graphs; features are node, edge and graph features, and so are targets.
        pairs: Node pairs with targets, for tasks about pairs.
        splits: Ids or masks of the training, validation and test targets, by the name of the split.
        source: Folder, file or name from which the data can be read again; None for data in memory.
    """

    graphs: Digraphs
    pairs: QueryPairs | None = None
    splits: Mapping[str, Ids] = field(default_factory=dict)
    source: str | None = None

    @property
    def fingerprint(self) -> str:
        """Sixteen characters that identify graphs, features and targets."""
        digest = hashlib.sha256()
        for item in (self.graphs, *([] if self.pairs is None else [self.pairs])):
            for name, tensor in sorted(item.tensors().items()):
                digest.update(f" {name} {tensor.dtype} {tuple(tensor.shape)} ".encode())
                digest.update(as_bytes(tensor.cpu().contiguous()))
        return digest.hexdigest()[:16]


def data_set(data: Any) -> DataSet:
    """The data set in memory or at a path.

    Args:
        data: A `DataSet`, `Digraphs`, PyG's `Data`, `Batch` or a list of `Data`; or a path.
    """
    if isinstance(data, DataSet):
        return data
    if isinstance(data, Digraphs):
        return DataSet(data)
    if isinstance(data, str | Path):
        return DataSet(Digraphs.load(data), source=str(Path(data).resolve()))
    return DataSet(Digraphs.from_pyg(data))
