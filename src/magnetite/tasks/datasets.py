"""Data sets of your own: graphs with features and targets, and their splits, from memory or from files.

A data set on disk is a file that `magnetite.read` reads, or a folder in one of these layouts:

- files written by `Digraphs.save`, with features and targets inside, and optionally `splits.json` or
  `splits/NAME/{train,valid,test}.csv`, with ids;
- OGB's CSV layout: `raw/edge.csv.gz`, `raw/num-node-list.csv.gz`, …, and `split/NAME/` (see `magnetite.io.ogb`);
- graph files of any format with a table `labels.csv`, which has a column `graph` with the name of the file, one column
  per target and optionally `split`; and optionally `nodes.csv`, with columns `graph`, `node`, features and targets,
  `pairs.csv`, with columns `graph`, `source`, `target`, one with the target of the pair and optionally `split`, and
  `links.csv`, with columns `graph`, `source`, `target` and `split`, for tasks about links;
- what `magnetite data` writes, or `magnetite encode` to a folder.

`package.module:name` stands for a PyG data set, or a function that returns one. It imports the module, which runs its
code: give it only names of code that you trust.
"""

import hashlib
import importlib
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from magnetite.batching import QueryPairs
from magnetite.encodings.carried import carried_attributes
from magnetite.encodings.encoded import MANIFEST, EncodedCorpus, is_corpus
from magnetite.graphs import Digraphs, read_graphs
from magnetite.io.ogb import is_ogb, read_ogb
from magnetite.io.storage import as_bytes
from magnetite.io.tables import read_splits
from magnetite.packed import starts
from magnetite.tasks import shards
from magnetite.tasks.base import SPLITS, Examples
from magnetite.tasks.labelled import graph_files, is_labelled, joined, read_labelled

Ids = Mapping[str, Tensor]
"""The ids of the graphs, nodes or node pairs of each split; or masks."""

MEMORY = "memory"
"""What a configuration stores in place of data that were in memory."""


@dataclass(frozen=True, eq=False)
class DataSet:
    """Graphs with features and targets, and splits by name.

    Args:
        graphs: The graphs; features are node, edge and graph features, and so are targets.
        pairs: Node pairs with targets, for tasks about pairs.
        splits: Ids or masks of the training, validation and test targets, by the name of the split.
        source: Folder, file or name from which the data can be read again; None for data in memory.
        classes: The texts that the numbers 0, 1, … of a feature stand for, by its name; −1 stands for none.
        labels: Node features that are targets: a model reads them only if they are named in `features`.
        names: The name of each graph, such as its file.
        pair_target: Name of the target of the node pairs, if it has one.
    """

    graphs: Digraphs
    pairs: QueryPairs | None = None
    splits: Mapping[str, Ids] = field(default_factory=dict)
    source: str | None = None
    classes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    labels: tuple[str, ...] = ()
    names: tuple[str, ...] | None = None
    pair_target: str | None = None

    @cached_property
    def fingerprint(self) -> str:
        """Sixteen characters that identify graphs, features, targets and splits."""
        digest = hashlib.sha256()
        tensors = {f"{name}/{part}": ids for name, split in self.splits.items() for part, ids in split.items()}
        for group in (self.graphs.tensors(), {} if self.pairs is None else self.pairs.tensors(), tensors):
            for name, tensor in sorted(group.items()):
                digest.update(f" {name} {tensor.dtype} {tuple(tensor.shape)} ".encode())
                if tensor.numel():
                    digest.update(as_bytes(tensor.cpu().contiguous()))
        digest.update(repr(sorted(self.classes.items())).encode() if self.classes else b"")
        return digest.hexdigest()[:16]

    def described(self, level: str, row: int, graph: int) -> str:
        """A graph, node or pair by number and, where there are any, by names, for messages."""
        named = "" if self.names is None else f" ({self.names[graph]})"
        if level == "node" and self.graphs.name_ptr is not None:
            inside = row - int(self.graphs.node_ptr[graph])
            return f"node {self.graphs[graph].names[inside]!r} of graph {graph}{named}"
        return f"{level} {row}{named}"


def data_set(data: Any) -> DataSet:
    """The data set in memory or at a path.

    Args:
        data: A `DataSet`, `Digraphs`, PyG's `Data`, `Batch`, `Dataset` or a list of `Data`; or a path, or
            `module:name`.
    """
    found = _found(data)
    groups = {name: getattr(found.graphs, name) for name in ("node_features", "edge_features", "graph_features")}
    if all(values.dtype not in UNSIGNED for group in groups.values() for values in group.values()):
        return found
    signed = {name: {key: _signed(key, values) for key, values in group.items()} for name, group in groups.items()}
    return replace(found, graphs=found.graphs.replace(**signed))


UNSIGNED = (torch.uint16, torch.uint32, torch.uint64)
"""Types for which PyTorch has hardly any operations."""


def _signed(name: str, values: Tensor) -> Tensor:
    """The same numbers in a type that PyTorch can compute with."""
    if values.dtype not in UNSIGNED:
        return values
    signed = values.to(torch.int64)
    if bool((signed < 0).any()):
        raise ValueError(f"the feature {name!r} has numbers of 2^63 and above: give it as float64 or renumber it")
    return signed


def _found(data: Any) -> DataSet:
    """The data set as it is given."""
    if isinstance(data, DataSet):
        return data
    if isinstance(data, Digraphs):
        return DataSet(data)
    if not isinstance(data, str | Path):
        return _of_pyg(data)
    path = Path(data)
    if path.is_dir():
        return _of_folder(path)
    if path.is_file():
        graphs = read_graphs(path)
        return DataSet(graphs, source=str(path.resolve()), names=(path.name,) if len(graphs) == 1 else None)
    if re.fullmatch(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*", str(data)):
        return _of_name(str(data))
    if str(data) == MEMORY:
        raise ValueError(
            "the data of this run were in memory: resume it in Python, by mt.train(task, out=…, resume=True) with the "
            "same task; its metrics are in result.json"
        )
    raise FileNotFoundError(f"{path} does not exist: give a folder, a file, or module:name of a PyG data set")


def _of_folder(folder: Path) -> DataSet:
    """The data set in a folder, in the first of `LAYOUTS` that fits."""
    for layout in LAYOUTS.values():
        if layout.fits(folder):
            found = layout.read(folder)
            given = {name: _tensors(ids) for name, ids in read_splits(folder).items()}
            return DataSet(**{**vars(found), "splits": {**found.splits, **given}, "source": str(folder.resolve())})
    names = sorted(path.name + "/" * path.is_dir() for path in folder.iterdir() if not path.name.startswith("."))
    listed = ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
    expected = "; or ".join(layout.expected for layout in LAYOUTS.values())
    raise ValueError(f"{folder} is not a data set: it has {listed or 'no files'}, expected {expected}")


def _of_saved(folder: Path) -> DataSet:
    """Files written by `Digraphs.save`, in the order of their names."""
    paths = saved_files(folder)
    return DataSet(joined([(path, Digraphs.load(path)) for path in paths]))


def _of_ogb(folder: Path) -> DataSet:
    """OGB's CSV layout."""
    held = read_ogb(folder)
    node_features, labels = _tensors(held.node_features), _tensors(held.node_labels)
    for name in labels:
        if name in node_features:
            raise ValueError(f"{folder} has both a node feature and a node label {name!r}: rename one of them")
    graphs = Digraphs(
        node_ptr=starts(torch.from_numpy(held.nodes)),
        edge_ptr=starts(torch.from_numpy(held.counts)),
        edges=torch.from_numpy(held.edges),
        node_features={**node_features, **labels},
        edge_features=_tensors(held.edge_features),
        graph_features=_tensors(held.graph_labels),
    )
    return DataSet(graphs, labels=tuple(labels))


def _of_labelled(folder: Path) -> DataSet:
    """Graph files with a table of labels."""
    return DataSet(**vars(read_labelled(folder)))


def _of_shards(folder: Path) -> DataSet:
    """What `magnetite data` writes; the split of a graph is that of its shard."""
    complete = shards.splits(folder)
    parts = {split: Examples.concat(shards.read(folder, split)) for split in complete}
    examples = Examples.concat(parts.values())
    ids = torch.arange(len(examples)).split([len(part) for part in parts.values()])
    splits = {"shards": dict(zip(parts, ids, strict=True))} if set(parts) == set(SPLITS) else {}
    return DataSet(examples.graphs, examples.query(), splits)


class Layout(NamedTuple):
    """A layout of folders.

    Args:
        fits: Whether a folder has this layout.
        read: The data set in a folder.
        expected: The files of this layout, for messages.
    """

    fits: Callable[[Path], bool]
    read: Callable[[Path], DataSet]
    expected: str


def saved_files(folder: Path) -> list[Path]:
    """The safetensors files of a folder, sorted."""
    return sorted(path for path in folder.glob("*.safetensors") if not path.name.startswith("."))


def _of_encoded(folder: Path) -> DataSet:
    """What `magnetite encode` writes to a folder: the graphs, with features and targets, without the encodings."""
    return DataSet(EncodedCorpus(folder).graphs)


LAYOUTS: dict[str, Layout] = {
    "encoded": Layout(is_corpus, _of_encoded, f"{MANIFEST.name} of `magnetite encode`"),
    "shards": Layout(
        lambda folder: (folder / shards.MANIFEST).is_file(), _of_shards, f"{shards.MANIFEST} of `magnetite data`"
    ),
    "ogb": Layout(is_ogb, _of_ogb, "raw/edge.csv.gz and raw/num-node-list.csv.gz as in OGB"),
    "labelled": Layout(
        is_labelled, _of_labelled, "graph files with a table labels.csv, nodes.csv, pairs.csv or links.csv"
    ),
    "saved": Layout(lambda folder: bool(saved_files(folder)), _of_saved, ".safetensors files written by Digraphs.save"),
    "files": Layout(lambda folder: bool(graph_files(folder)), _of_labelled, "graph files, for links"),
}
"""The layouts of folders by name, in the order in which they are tried."""


def _of_name(name: str) -> DataSet:
    """The PyG data set `module:name`, or what it returns if it is a function; its code is run."""
    module, _, attribute = name.partition(":")
    before = list(sys.path)
    sys.path.insert(0, str(Path.cwd()))  # as `python -m` does, so that a file beside the user is found
    try:
        found = importlib.import_module(module)
        for part in attribute.split("."):
            found = getattr(found, part)
        if isinstance(found, type) or (callable(found) and not hasattr(found, "__getitem__")):
            found = found()
        return DataSet(**{**vars(_of_pyg(found)), "source": name})
    except Exception as error:  # the user's own code raises anything
        reason = " ".join(str(error).split()) or "no message"
        raise ValueError(
            f"{name} gives no data set ({type(error).__name__}: {reason}): name a PyG Dataset, a list of Data, or a "
            "function without arguments that returns one"
        ) from error
    finally:
        sys.path[:] = before


def _of_pyg(data: Any) -> DataSet:
    """PyG's `Data`, `Batch` or `Dataset`, or a list of `Data`; the split of an OGB data set is kept.

    Encodings that a transform stored are not features: a model computes its own, of the edges that it may see.
    """
    if isinstance(data, DataSet | Digraphs):
        return data_set(data)
    splits = {}
    if hasattr(data, "indices") and hasattr(data, "get"):  # a Dataset, which also answers for the attributes of a Data
        if hasattr(data, "get_idx_split"):
            splits = {"get_idx_split": {part: torch.as_tensor(ids) for part, ids in data.get_idx_split().items()}}
        data = [data[number] for number in range(len(data))]
    graphs = Digraphs.from_pyg(data)
    encodings = carried_attributes(data[0] if isinstance(data, list | tuple) else data)
    groups = {
        group: {name: values for name, values in getattr(graphs, group).items() if name not in encodings}
        for group in ("node_features", "edge_features", "graph_features")
    }
    return DataSet(graphs.replace(**groups) if encodings else graphs, splits=splits)


def _tensors(arrays: Mapping[str, Any]) -> dict[str, Tensor]:
    return {name: torch.from_numpy(values) for name, values in arrays.items()}
