"""Transforms for PyTorch Geometric that add encodings to `Data`, to each graph of a `Batch`, or to whole data sets."""

import copy
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields
from typing import Any

import numpy as np
import torch
from jaxtyping import Complex, Float
from torch import Tensor
from torch_geometric.data import Batch, Data, HeteroData, InMemoryDataset
from torch_geometric.data.datapipes import functional_transform
from torch_geometric.transforms import BaseTransform

from magnetite.encodings import SVD, Eigenpairs, MagneticLaplacian, NodeEncoding, PairEncoding, RandomWalk, WalkSums
from magnetite.encodings.cache import shards
from magnetite.encodings.carried import NODES, SCALINGS, key_of
from magnetite.graphs import Digraphs
from magnetite.io import pyg
from magnetite.io.interop import CARRIED, check_pyg_name
from magnetite.linalg.potential import Adaptive, Potential
from magnetite.packed import on_device, starts

SHOWN_FROM = 20_000
"""Number of graphs from which a progress bar is shown."""

Columns = dict[str, tuple[Tensor, Tensor]]
"""Attributes of many graphs by name, packed, each with pointers to where the entries of each graph begin."""


class _AddEncoding(BaseTransform):
    """A transform that applies one encoding; its `repr` lists every parameter, which PyG needs to cache results."""

    def __init__(self, encoding: Any, attr_name: str | None):
        if attr_name is not None:
            check_pyg_name(attr_name)
        self.encoding = encoding
        self.attr_name = attr_name

    def __repr__(self) -> str:
        parameters = {field.name: getattr(self.encoding, field.name) for field in fields(self.encoding)}
        shown = ", ".join(f"{name}={value!r}" for name, value in {**parameters, "attr_name": self.attr_name}.items())
        return f"{type(self).__name__}({shown})"

    def forward(self, data: Any) -> Any:
        """Add the encoding to a graph, or to each graph of a batch."""
        self._check(data)
        if not isinstance(data, Batch):
            self._encode([data])
            return data
        try:
            items: list[Any] = data.to_data_list()
        except RuntimeError:
            raise ValueError("the Batch has no slices of its graphs: make it with Batch.from_data_list") from None
        self._encode(items)
        batch: Any = Batch.from_data_list(items)
        whole: Any = data
        for name in whole.keys():  # noqa: SIM118 (iterating over a Data gives pairs)
            if name not in batch:  # attributes of the batch that do not belong to one of its graphs
                batch[name] = whole[name]
        return batch

    def encode(self, dataset: "InMemoryDataset | Iterable[Data]") -> Any:
        """Encode all graphs of a data set together, with the same results as one by one, but many times faster.

        Args:
            dataset: An `InMemoryDataset`, which is encoded as it is stored, before its `transform`; or any other data
                set or iterable of `Data`.

        Returns:
            A copy of the `InMemoryDataset` with the encodings, or a list of new `Data`.
        """
        if isinstance(dataset, InMemoryDataset):
            return self._encode_stored(dataset)
        if isinstance(dataset, Data | HeteroData) or not isinstance(dataset, Iterable):
            raise TypeError(f"encode needs a data set or a list of Data, got {type(dataset).__name__}")
        items = [copy.copy(item) for item in dataset]
        for item in items:
            self._check(item)
        if items:
            self._encode(items)
        return items

    def _encode_stored(self, dataset: InMemoryDataset) -> InMemoryDataset:
        """Encode the packed graphs of a data set and add the packed result to a copy of it."""
        found = pyg.stored(dataset)
        graphs = None if found is None else pyg.stored_graphs(found)
        result = copy.copy(dataset)
        if not len(dataset):
            return result
        result._indices = result._data_list = None
        if found is None or graphs is None:  # a subset, a single graph, or something unusual: graph by graph
            listed: list[Any] = [dataset.get(number) for number in dataset.indices()]
            items = self.encode(listed)
            result._data, result.slices = dataset.collate(items)
            return result
        self._check(dataset._data)
        slices: dict[str, Tensor] = dict(dataset.slices or {})
        result._data = copy.copy(dataset._data)
        for name, (values, pointers) in self._columns(Digraphs(**graphs)).items():
            self._put(result._data, name, values)
            slices[name or "x"] = pointers.cpu()
        result.slices = slices
        return result

    def _check(self, data: Any) -> None:
        if isinstance(data, HeteroData):
            raise TypeError(
                f"{type(self).__name__} needs graphs of one type, got HeteroData: use data.to_homogeneous()"
            )
        if not isinstance(data, Data):
            raise TypeError(f"{type(self).__name__} needs PyG's Data or Batch, got {type(data).__name__}")

    def _encode(self, items: Sequence[Data]) -> None:
        """Encode all graphs together, on their device, and set the attributes of each."""
        columns = self._columns(Digraphs(**pyg.listed_graphs(items)))
        for name, (values, pointers) in columns.items():
            if len(items) == 1:
                self._put(items[0], name, values)
                continue
            for item, part in zip(items, values.split(pointers.diff().tolist()), strict=True):
                self._put(item, name, part.clone())

    def _columns(self, graphs: Digraphs) -> Columns:
        """The attributes of all graphs."""
        if len(graphs) == 1:
            return self._attributes(graphs, self.encoding(graphs))
        parts = []
        with _progress_bar(len(graphs)) as advance:
            for shard in shards(graphs):
                parts.append(self._attributes(shard, self.encoding(shard)))
                advance(len(shard))
        counts = {name: torch.cat([part[name][1].diff() for part in parts]) for name in parts[0]}
        return {name: (torch.cat([part[name][0] for part in parts]), starts(counts[name])) for name in parts[0]}

    def _attributes(self, graphs: Digraphs, encoded: Any) -> Columns:
        """The attributes to set, of the graphs and their encoding; the one with name "" may be appended to `x`."""
        raise NotImplementedError

    def _carried(self, graphs: Digraphs, each: Tensor, variant: str = "") -> Columns:
        """The attribute by which a model recognises the encoding and the edges that it belongs to."""
        if self.attr_name is None:
            return {}
        return {f"{self.attr_name}{CARRIED}": (key_of(self.encoding, graphs, variant), each)}

    def _put(self, data: Any, name: str, values: Tensor) -> None:
        """Set an attribute; append those without a name to `x`, whose integers become floats."""
        if name:
            data[name] = values
        elif data.x is None:
            data.x = values
        else:
            old = data.x[:, None] if data.x.ndim == 1 else data.x
            data.x = torch.cat([old, values.to(old.device)], dim=1)


def _each(graphs: Digraphs) -> Tensor:
    """Pointers of an attribute with one row per graph."""
    return on_device(np.arange(len(graphs) + 1), graphs.device)


def _rows(values: Tensor) -> Tensor:
    """One row per graph: the columns of several potentials one after the other."""
    return values if values.ndim == 2 else values.flatten(1)


def _real_columns(vectors: Complex[Tensor, "n *q k"]) -> Float[Tensor, "n columns"]:
    """The real parts of all vectors, then the imaginary ones."""
    if vectors.device.type != "cpu":
        return torch.view_as_real(vectors).movedim(-1, 1).flatten(1)
    values: Any = vectors.numpy()
    parts = np.empty((len(values), 2, *values.shape[1:]), values.real.dtype)
    parts[:, 0], parts[:, 1] = values.real, values.imag
    return torch.from_numpy(parts.reshape(len(values), -1))


@contextmanager
def _progress_bar(count: int) -> Iterator[Any]:
    """A bar of encoded graphs, if there are many and stderr is a terminal."""
    if count < SHOWN_FROM or not sys.stderr.isatty():
        yield lambda _number: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(f"encoding {count:,} graphs", total=count)
        yield lambda number: bar.advance(task, number)


@functional_transform("add_magnetic_laplacian_pe")
class AddMagneticLaplacianPE(_AddEncoding):
    """Add the real and imaginary parts of the k lowest eigenvectors of the magnetic Laplacian, `[n, 2k]`.

    Also sets `{attr_name}_values` and `{attr_name}_mask` of shape `[1, k]`, which a batch stacks to `[b, k]`, and
    `{attr_name}_carried`, by which models of `magnetite.nn` recognise the encoding. The columns of several potentials
    are concatenated, `[n, 2Qk]`.

    Args:
        k: Number of eigenvectors.
        q: Potential: `Adaptive()`, a float in `[0, 0.5]`, a `Relative`, or a tuple of several.
        normalised: Whether to normalise the Laplacian by the degrees.
        convention: Definition of the Laplacian, see `magnetite.linalg.laplacian.CONVENTIONS`.
        attr_name: The attribute to set; None appends the vectors to `x` and sets nothing else; an `x` of integers
            becomes one of floats.
        scaling: "nodes" for vectors `√n γ`, whose entries are of size 1 in graphs of every size; "none" for unit
            vectors.

    >>> AddMagneticLaplacianPE(k=2)(Data(edge_index=torch.tensor([[0, 1], [1, 2]]), num_nodes=3)).magnetic_pe.shape
    torch.Size([3, 4])
    """

    encoding: MagneticLaplacian

    def __init__(
        self,
        k: int,
        q: Potential | tuple[Potential, ...] = Adaptive(),  # noqa: B008 (frozen)
        normalised: bool = True,
        convention: str = "paper",
        attr_name: str | None = "magnetic_pe",
        scaling: str = NODES,
    ):
        if scaling not in SCALINGS:
            raise ValueError(f"scaling must be one of {', '.join(SCALINGS)}, got {scaling!r}")
        super().__init__(MagneticLaplacian(k, q, normalised, convention), attr_name)
        self.scaling = scaling

    def __repr__(self) -> str:
        return f"{super().__repr__()[:-1]}, scaling={self.scaling!r})"

    def _attributes(self, graphs: Digraphs, encoded: Eigenpairs) -> Columns:
        vectors = _real_columns(encoded.vectors)
        if self.scaling == NODES:
            vectors = vectors.mul_(SCALINGS[NODES](graphs))
        if self.attr_name is None:
            return {"": (vectors, graphs.node_ptr)}
        each = _each(graphs)
        return {
            self.attr_name: (vectors, graphs.node_ptr),
            f"{self.attr_name}_values": (_rows(encoded.values), each),
            f"{self.attr_name}_mask": (_rows(encoded.mask), each),
            **self._carried(graphs, each, self.scaling),
        }


@functional_transform("add_directed_walk_pe")
class AddDirectedWalkPE(_AddEncoding):
    """Add sums over the start nodes of directional walks: `Σ_u p(u→v)` and `Σ_u p(u→v)²` of every feature.

    The shape is `[n, 4(steps+1)]`.

    Args:
        steps: Number of steps.
        restart: Restart probability of PageRank; None leaves PageRank out.
        reverse: Whether to include walks against the edges.
        pairs: Whether to also set `{attr_name}_pairs`, the features of all node pairs, `[n², 2(steps+1)]`, with row
            `u·n + v` for start `u` and landing node `v`; a batch concatenates them. Walk encoders of `magnetite.nn`
            use them.
        attr_name: The attribute to set; None appends the features to `x`; an `x` of integers becomes one of floats.
        top: For graphs of any size, keep only this many of the likeliest landing nodes of each start node, as
            `WalkSums` does; None computes all node pairs.

    >>> AddDirectedWalkPE(steps=1)(Data(edge_index=torch.tensor([[0, 1], [1, 2]]), num_nodes=3)).walk_pe.shape
    torch.Size([3, 8])
    """

    encoding: RandomWalk | WalkSums

    def __init__(
        self,
        steps: int = 3,
        restart: float | None = 0.05,
        reverse: bool = True,
        pairs: bool = False,
        attr_name: str | None = "walk_pe",
        top: int | None = None,
    ):
        if pairs and attr_name is None:
            raise ValueError("pairs=True needs an attr_name, got None")
        if pairs and top is not None:
            raise ValueError(f"pairs=True stores all node pairs, not the top={top} of each node: leave one of them out")
        every = RandomWalk(steps, restart, reverse)
        super().__init__(every if top is None else WalkSums(steps, restart, reverse, top), attr_name)
        self.pairs = pairs

    def __repr__(self) -> str:
        return f"{super().__repr__()[:-1]}, pairs={self.pairs!r})"

    def _attributes(self, graphs: Digraphs, encoded: PairEncoding | NodeEncoding) -> Columns:
        if isinstance(encoded, NodeEncoding):
            return {self.attr_name or "": (encoded.values, graphs.node_ptr), **self._carried(graphs, _each(graphs))}
        sums = torch.cat([_landing_sums(encoded[number]) for number in range(len(graphs))])
        columns = {self.attr_name or "": (sums, graphs.node_ptr)}
        if self.pairs:
            columns[f"{self.attr_name}_pairs"] = encoded.values, encoded.pair_ptr
            columns |= self._carried(graphs, _each(graphs))
        return columns


def _landing_sums(walks: Float[Tensor, "n n c"]) -> Float[Tensor, "n 2c"]:
    """`Σ_u p(u→v)` and `Σ_u p(u→v)²`."""
    return torch.cat([walks.sum(0), walks.square().sum(0)], dim=1)


@functional_transform("add_svd_pe")
class AddSVDPE(_AddEncoding):
    """Add the scaled singular vectors `[U√S ‖ V√S]` of the adjacency matrix, `[n, 2 rank]`.

    Args:
        rank: Number of singular values.
        attr_name: The attribute to set; None appends the vectors to `x`; an `x` of integers becomes one of floats.

    >>> AddSVDPE(rank=4)(Data(edge_index=torch.tensor([[0, 1], [1, 2]]), num_nodes=3)).svd_pe.shape
    torch.Size([3, 8])
    """

    encoding: SVD

    def __init__(self, rank: int, attr_name: str | None = "svd_pe"):
        super().__init__(SVD(rank), attr_name)

    def _attributes(self, graphs: Digraphs, encoded: NodeEncoding) -> Columns:
        return {self.attr_name or "": (encoded.values, graphs.node_ptr), **self._carried(graphs, _each(graphs))}
