"""The tasks as PyG datasets.

from magnetite.datasets import SortingDataset
from torch_geometric.loader import DataLoader
loader = DataLoader(SortingDataset("data/sorting", split="train"), batch_size=48, shuffle=True)
"""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data, InMemoryDataset

from magnetite.encodings.cache import UNCLEAR, code_of
from magnetite.graphs import Digraphs
from magnetite.io.storage import DamagedFile, read_tensors, write_tensors
from magnetite.packed import starts
from magnetite.tasks import Distances, Examples, Sorting, Task
from magnetite.tasks.base import check_split
from magnetite.tasks.shards import MANIFEST, claim, read, shard_name, write

Columns = dict[str, tuple[Tensor, Tensor]]
"""Packed attributes by name, each with pointers to where the entries of each graph begin."""


class TaskDataset(InMemoryDataset):
    """One split of a task: generated once, stored under `root`, identical on every machine.

    PyG stores a dataset as packed attributes with pointers, just like `Digraphs`, so the graphs are never converted one
    by one: 800,000 of them load in seconds.

    Args:
        root: Folder of the dataset.
        task: The task.
        split: train, valid or test.
        transform: Transform that is applied at every access.
        pre_transform: Transform that is applied once and stored.
    """

    def __init__(
        self,
        root: str | Path,
        task: Task,
        split: str = "train",
        transform: Callable[[Any], Any] | None = None,
        pre_transform: Callable[[Any], Any] | None = None,
    ) -> None:
        check_split(split)
        self.task, self.split = task, split
        super().__init__(str(root), transform)
        # PyG checks only the names of the files, not which task they belong to, nor whether they are complete.
        listed = claim(task, Path(self.processed_dir))["files"]
        if not set(self.processed_file_names) <= {*listed, MANIFEST}:
            self.process()
        columns = [self.columns(examples) for examples in read(self.processed_dir, split)]
        self._data, self.slices = _joined(columns)
        if pre_transform is not None:
            self._load_transformed(pre_transform)

    def _load_transformed(self, pre_transform: Callable[[Any], Any]) -> None:
        """Transform every graph once and store the result by the `repr` of the transform, which lists its options."""
        files = claim(self.task, Path(self.processed_dir))["files"]
        shards = {name: files[name] for name in self.processed_file_names if name != MANIFEST}
        key = {
            "transform": repr(pre_transform),
            "code": code_of(type(pre_transform)),
            "shards": json.dumps(shards, sort_keys=True),
        }
        name = hashlib.sha256(repr(pre_transform).encode()).hexdigest()[:16]
        path = Path(self.processed_dir) / f"transformed-{self.split}-{name}.safetensors"
        named = UNCLEAR.search(repr(pre_transform)) is None  # otherwise every process has another name for it
        tensors = _stored(path, key) if named else None
        if tensors is None:
            joined = self.collate([pre_transform(self.get(number)) for number in range(len(self))])
            tensors = _named(*joined)
            if named:
                write_tensors(path, tensors, key)
        self._data = Data.from_dict({key[5:]: tensor for key, tensor in tensors.items() if key.startswith("data/")})
        self.slices = {key[7:]: tensor for key, tensor in tensors.items() if key.startswith("slices/")}
        self._data_list = None  # PyG's copies of the untransformed graphs

    @property
    def processed_file_names(self) -> list[str]:
        """The shards of the split and the manifest."""
        shards = range(self.task.shard_count(self.split))
        return [*(shard_name(self.split, number) for number in shards), MANIFEST]

    def process(self) -> None:
        """Generate the missing shards."""
        write(self.task, self.processed_dir, [self.split], wait=True)  # processes of one training share the folder

    def columns(self, examples: Examples) -> Columns:
        """The attributes of the dataset, packed."""
        raise NotImplementedError


class DistancesDataset(TaskDataset):
    """Random graphs; `y` is the target of all `n²` ordered node pairs, row by row, and `mask` selects the valid ones.

    Args:
        root: Folder of the dataset.
        task: The task, with its target and sizes; the default task if omitted.
        split: train, valid or test.
        transform: Transform that is applied at every access.
        pre_transform: Transform that is applied once and stored.

    >>> import tempfile
    >>> graphs = DistancesDataset(tempfile.mkdtemp(), Distances(target="adjacency", per_size=5), split="valid")
    >>> len(graphs), graphs[0].y.numel() == graphs[0].num_nodes ** 2
    (10, True)
    """

    def __init__(
        self,
        root: str | Path,
        task: Distances | None = None,
        split: str = "train",
        transform: Callable[[Any], Any] | None = None,
        pre_transform: Callable[[Any], Any] | None = None,
    ) -> None:
        super().__init__(root, task or Distances(), split, transform, pre_transform)

    def columns(self, examples: Examples) -> Columns:
        """Edges, a constant node feature, targets and their mask."""
        graphs, targets = examples.graphs, examples.targets
        if targets is None:
            raise ValueError("the examples have no targets for node pairs: they belong to another task")
        return {
            **_edges(graphs),
            "x": (torch.ones(graphs.num_nodes, 1), graphs.node_ptr),
            "y": (targets.values, targets.pair_ptr),
            "mask": (targets.mask, targets.pair_ptr),
        }


class SortingDataset(TaskDataset):
    """Sorting networks; `x` holds the two wires of each comparator, `y` is 1 if the network sorts.

    Args:
        root: Folder of the dataset.
        task: The task, with its sizes; the default task if omitted.
        split: train, valid or test.
        transform: Transform that is applied at every access.
        pre_transform: Transform that is applied once and stored.

    >>> import tempfile
    >>> networks = SortingDataset(tempfile.mkdtemp(), Sorting(valid=10), split="valid")
    >>> len(networks), networks[0].y.item(), networks[10].y.item(), networks[0].length.item()
    (30, 1, 0, 12)
    """

    def __init__(
        self,
        root: str | Path,
        task: Sorting | None = None,
        split: str = "train",
        transform: Callable[[Any], Any] | None = None,
        pre_transform: Callable[[Any], Any] | None = None,
    ) -> None:
        super().__init__(root, task or Sorting(), split, transform, pre_transform)

    def columns(self, examples: Examples) -> Columns:
        """Edges, wires, label and length."""
        graphs = examples.graphs
        each = torch.arange(len(graphs) + 1)
        return {
            **_edges(graphs),
            "x": (graphs.node_features["wires"], graphs.node_ptr),
            "y": (graphs.graph_features["label"], each),
            "length": (graphs.graph_features["length"], each),
        }


def _stored(path: Path, key: dict[str, str]) -> dict[str, Tensor] | None:
    """The tensors of a file with this key; None if it is missing, damaged, or of other data or another transform."""
    try:
        tensors, metadata = read_tensors(path)
    except (FileNotFoundError, DamagedFile):
        return None
    return tensors if key.items() <= metadata.items() else None


def _named(data: Any, slices: Any) -> dict[str, Tensor]:
    """All tensors of a dataset by name."""
    named = {f"data/{name}": value for name, value in data.to_dict().items()}
    for name, value in named.items():
        if not isinstance(value, Tensor):
            kind = type(value).__name__
            raise ValueError(f"a pre_transform may set tensors only, got {name[5:]!r} of type {kind}: use transform=")
    return named | {f"slices/{name}": pointers for name, pointers in slices.items()}


def _edges(graphs: Digraphs) -> Columns:
    return {"edge_index": (graphs.edges.long(), graphs.edge_ptr)}


def _joined(parts: list[Columns]) -> tuple[Data, dict[str, Tensor]]:
    data, slices = Data(), {}
    for name in parts[0]:
        values, pointers = zip(*(part[name] for part in parts), strict=True)
        data[name] = torch.cat(values, dim=-1 if name == "edge_index" else 0)
        counts = torch.cat([pointer.diff() for pointer in pointers])
        slices[name] = starts(counts)
    return data, slices
