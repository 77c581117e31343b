"""What every task gives: examples in splits, cut into shards drawn in any order, or as an endless stream."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int, Int16
from torch import Tensor

from magnetite.asked import AskedPairs
from magnetite.batching import Batch
from magnetite.graphs import Digraphs
from magnetite.packed import Axis, Packed, starts
from magnetite.tasks.metrics import Metric

SPLITS = ("train", "valid", "test")

PAIRS_AT_ONCE = 2**24
"""Pairs of nodes whose places are listed at a time: each takes some words of eight bytes until it is packed."""

STREAM = len(SPLITS)
"""The number of the stream of fresh data, beside those of the splits: no example of one is an example of another."""


@dataclass(frozen=True)
class Split:
    """A part of a data set: the sizes of its graphs (or lengths of its networks), and how many are drawn."""

    name: str
    sizes: range
    count: int

    @property
    def number(self) -> int:
        """Its place among the splits, which chooses its random numbers."""
        return SPLITS.index(self.name)


@dataclass(frozen=True, eq=False, kw_only=True)
class PairTargets(Packed):
    """One whole number an ordered pair of nodes: `targets[i]` is `[n, n]`, source × target; −1 where there is none.

    >>> values = torch.tensor([0, 1, -1, 0], dtype=torch.int16)
    >>> targets = PairTargets(node_ptr=torch.tensor([0, 2]), pair_ptr=torch.tensor([0, 4]), values=values)
    >>> targets[0].tolist(), targets.mask.tolist()
    ([[0, 1], [-1, 0]], [False, True, False, False])
    """

    pair_ptr: Int[Tensor, " starts"]
    values: Int16[Tensor, " pairs"]

    pointers: ClassVar[tuple[str, ...]] = ("node_ptr", "pair_ptr")
    axes: ClassVar[dict[str, tuple[Axis, int]]] = {"values": ("pair", 0)}
    empty: ClassVar[float] = -1

    def __repr__(self) -> str:
        return f"PairTargets({len(self)} graphs, {self.values.numel()} pairs)"

    @property
    def mask(self) -> Bool[Tensor, " pairs"]:
        """The pairs that count: not the diagonal, and not those without a target."""
        mask = self.values >= 0
        # The n entries of a graph's diagonal stand n + 1 apart.
        inside = torch.arange(self.node_graph.numel(), device=self.device) - self.node_ptr[self.node_graph]
        mask[self.pair_ptr[self.node_graph] + inside * (self.sizes[self.node_graph] + 1)] = False
        return mask

    @cached_property
    def counts(self) -> Int[Tensor, " graphs"]:
        """How many pairs of each graph count: found once, as shapes and weights of the loss both need it."""
        return torch.cat([starts(part.mask.long())[part.pair_ptr].diff() for part in self._parts()])

    def asked(self) -> AskedPairs:
        """The pairs that count, listed.

        >>> values = torch.tensor([0, 1, 2, -1, 0, 1, -1, -1, 0], dtype=torch.int16)
        >>> targets = PairTargets(node_ptr=torch.tensor([0, 3]), pair_ptr=torch.tensor([0, 9]), values=values)
        >>> targets.asked().ends.tolist(), targets.asked().wanted.tolist()
        ([[0, 0, 1], [1, 2, 2]], [1, 2, 1])
        """
        # The same pointers, so that pad need not compare them.
        return replace(AskedPairs.concat(part._listed() for part in self._parts()), node_ptr=self.node_ptr)

    def _parts(self) -> Iterator["PairTargets"]:
        """All graphs, as many at a time as have `PAIRS_AT_ONCE`."""
        pointer, begin = self.pair_ptr.tolist(), 0
        while begin < len(self):
            end = max(begin + 1, bisect_right(pointer, pointer[begin] + PAIRS_AT_ONCE) - 1)
            yield self.select(slice(begin, end))
            begin = end

    def _listed(self) -> AskedPairs:
        place = self.mask.nonzero().squeeze(1)
        asked_ptr = torch.searchsorted(place, self.pair_ptr)
        graph = torch.repeat_interleave(asked_ptr.diff())
        inside, size = place - self.pair_ptr[graph], self.sizes[graph]
        number = torch.int16 if int(self.sizes.max()) <= torch.iinfo(torch.int16).max else torch.int32
        ends = torch.stack([(inside // size).to(number), (inside % size).to(number)])
        return AskedPairs(node_ptr=self.node_ptr, asked_ptr=asked_ptr, ends=ends, wanted=self.values[place])

    @classmethod
    def of(cls, graphs: Digraphs, values: Int16[Tensor, " pairs"]) -> "PairTargets":
        """Targets of the pairs of `graphs`, row by row, graph by graph."""
        return cls(node_ptr=graphs.node_ptr, pair_ptr=starts(graphs.sizes**2), values=values)

    def one(self, position: int) -> Int16[Tensor, "n n"]:
        """One graph's targets."""
        part = self._slice(position, position + 1)
        size = int(part.node_ptr[-1])
        return part.values.view(size, size)


@dataclass(frozen=True)
class Examples:
    """Graphs and, where the task asks for pairs of nodes, their targets; labels of graphs are graph features."""

    graphs: Digraphs
    targets: PairTargets | None = None

    def __len__(self) -> int:
        return len(self.graphs)

    def select(self, index: slice | Int[Tensor, " chosen"]) -> "Examples":
        """Some of the examples, as `Digraphs.select`."""
        graphs = self.graphs.select(index)
        return Examples(graphs, None if self.targets is None else PairTargets.of(graphs, self.targets[index].values))

    def to(self, device: torch.device | str) -> "Examples":
        """The same examples on `device`."""
        graphs = self.graphs.to(device)
        # Made anew, so that graphs and targets share their pointers and pad need not compare them.
        return Examples(
            graphs, None if self.targets is None else PairTargets.of(graphs, self.targets.values.to(device))
        )

    @classmethod
    def concat(cls, parts: Iterable["Examples"]) -> "Examples":
        """Join examples end to end."""
        parts = list(parts)
        graphs = Digraphs.concat(part.graphs for part in parts)
        values = [part.targets.values for part in parts if part.targets is not None]
        return cls(graphs, PairTargets.of(graphs, torch.cat(values)) if values else None)

    def tensors(self) -> dict[str, Tensor]:
        """Every tensor by name: the graphs' as `graphs/…`, and `targets`, whose pointers follow from the graphs."""
        named = {f"graphs/{name}": tensor for name, tensor in self.graphs.tensors().items()}
        return named if self.targets is None else {**named, "targets": self.targets.values}

    @classmethod
    def from_tensors(cls, named: Mapping[str, Tensor]) -> "Examples":
        """The examples whose `tensors()` these are."""
        held = {name.removeprefix("graphs/"): tensor for name, tensor in named.items() if name != "targets"}
        graphs = Digraphs.from_tensors(held)
        return cls(graphs, PairTargets.of(graphs, named["targets"]) if "targets" in named else None)


@runtime_checkable
class Task(Protocol):
    """A frozen dataclass that draws its data from a seed."""

    @property
    def seed(self) -> int:
        """What the data are a function of."""
        ...

    @property
    def shard_size(self) -> int:
        """Graphs, or networks, that are drawn for a shard."""
        ...

    def split(self, name: str) -> Split:
        """The sizes and the number of graphs or networks of a split."""
        ...

    @property
    def selects(self) -> str:
        """The figure of the metric by which validation chooses a model."""
        ...

    @property
    def larger_is_better(self) -> bool:
        """Whether it should be large."""
        ...

    def shard(self, split: str, number: int, device: torch.device | str = "cpu") -> Examples:
        """Shard `number` of a split, the same whenever and wherever it is drawn."""
        ...

    def stream(self, seed: int, batch: int, device: torch.device | str = "cpu", start: int = 0) -> Iterator[Examples]:
        """Fresh training examples without end, from batch `start` on."""
        ...

    def weights(self, examples: Examples) -> Float[Tensor, " graphs"]:
        """What each graph counts in the loss: the mean loss of a batch is `loss` over the sum of its weights."""
        ...

    def loss(self, outputs: Tensor, batch: Batch) -> Float[Tensor, ""]:
        """The sum of the losses of a batch, in single precision; empty slots and graphs add nothing."""
        ...

    def metric(self, device: torch.device | str = "cpu") -> Metric:
        """An empty accumulator of what the task measures."""
        ...


def draw(task: Task, split: str, device: torch.device | str = "cpu") -> Examples:
    """A whole split, on `device`."""
    return Examples.concat(task.shard(split, number, device) for number in range(shard_count(task, split)))


def shard_count(task: Task, split: str) -> int:
    """Number of shards of a split."""
    return -(-task.split(split).count // task.shard_size)


def shard_span(task: Task, split: str, number: int) -> tuple[int, int]:
    """First of the graphs or networks of a shard, and how many."""
    count = task.split(split).count
    if not 0 <= number < shard_count(task, split):
        raise ValueError(f"shard {number} of {split} does not exist: there are {shard_count(task, split)}, from 0")
    first = number * task.shard_size
    return first, min(task.shard_size, count - first)


def check_split(name: str) -> None:
    """Refuse a split that does not exist."""
    if name not in SPLITS:
        raise ValueError(f"there is no split {name!r}: choose one of {', '.join(SPLITS)}")


def check_counts(task: Task, *names: str) -> None:
    """Refuse sizes below one."""
    for name in names:
        if getattr(task, name) < 1:
            raise ValueError(f"{name}={getattr(task, name)} leaves no data: give a number of at least 1")
