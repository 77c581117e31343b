"""The base class of tasks, and their data: examples in splits, targets of node pairs."""

from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import torch
from jaxtyping import Bool, Float, Int, Int16
from torch import Tensor

from magnetite.batching import Batch, QueryPairs
from magnetite.code.blocks import SPLITS
from magnetite.encodings.checks import check_fields, unchanged_later
from magnetite.graphs import Digraphs
from magnetite.linalg.potential import Adaptive, Potential
from magnetite.nn.embeddings import Embeddings
from magnetite.nn.heads import Head
from magnetite.packed import Axis, Dtypes, Packed, check_pairs, starts
from magnetite.tasks.metrics import Metric

STREAM = len(SPLITS)
"""Number of the stream of fresh data; the splits have the numbers before it, so no two have examples in common."""

PAIRS_AT_ONCE = 2**24
"""Number of node pairs that are listed at a time, which limits the memory needed."""

Presets = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class Split:
    """A part of a data set.

    Args:
        name: `train`, `valid` or `test`.
        sizes: Sizes of its graphs, in the task's own unit (nodes, or the length of a sorting network).
        count: Number of graphs (or networks) that are generated for it.
    """

    name: str
    sizes: range
    count: int

    @property
    def number(self) -> int:
        """Its index among the splits, from which its random numbers are derived."""
        return SPLITS.index(self.name)


@dataclass(frozen=True, eq=False, kw_only=True)
class PairTargets(Packed):
    """One integer per ordered node pair: `targets[i]` is `[n, n]`, source × target; −1 where there is no target.

    Args:
        node_ptr: Where the nodes of each graph begin.
        pair_ptr: Where the node pairs of each graph begin.
        values: The targets, row by row, graph by graph.

    >>> values = torch.tensor([0, 1, -1, 0], dtype=torch.int16)
    >>> targets = PairTargets(node_ptr=torch.tensor([0, 2]), pair_ptr=torch.tensor([0, 4]), values=values)
    >>> targets[0].tolist(), targets.mask.tolist()
    ([[0, 1], [-1, 0]], [False, True, False, False])
    """

    pair_ptr: Int[Tensor, " starts"]
    values: Int16[Tensor, " pairs"]

    pointers: ClassVar[tuple[str, ...]] = ("node_ptr", "pair_ptr")
    axes: ClassVar[dict[str, tuple[Axis, int]]] = {"values": ("pair", 0)}
    dtypes: ClassVar[dict[str, Dtypes]] = {"values": (torch.int16,)}

    def check(self) -> None:
        """Raise a `ValueError` unless there is one target per ordered node pair."""
        super().check()
        check_pairs(self, self.pair_ptr)
        if self.values.ndim != 1:
            raise ValueError(f"targets must have shape [pairs], got {list(self.values.shape)}")

    def __repr__(self) -> str:
        return f"PairTargets({len(self)} graphs, {self.values.numel()} pairs)"

    @property
    def mask(self) -> Bool[Tensor, " pairs"]:
        """Which node pairs have a target; a node paired with itself never has one."""
        mask = self.values >= 0
        # The n diagonal entries of a graph are n + 1 apart.
        inside = torch.arange(self.node_graph.numel(), device=self.device) - self.node_ptr[self.node_graph]
        mask[self.pair_ptr[self.node_graph] + inside * (self.sizes[self.node_graph] + 1)] = False
        return mask

    @cached_property
    def counts(self) -> Int[Tensor, " graphs"]:
        """Number of node pairs with a target, per graph; cached because both shapes and loss weights need it."""
        return torch.cat([starts(piece.mask.long())[piece.pair_ptr].diff() for piece in self._pieces()])

    def query(self) -> QueryPairs:
        """The query pairs: all node pairs that have a target, with the target as label.

        >>> values = torch.tensor([0, 1, 2, -1, 0, 1, -1, -1, 0], dtype=torch.int16)
        >>> targets = PairTargets(node_ptr=torch.tensor([0, 3]), pair_ptr=torch.tensor([0, 9]), values=values)
        >>> targets.query().nodes.tolist(), targets.query().labels.tolist()
        ([[0, 0, 1], [1, 2, 2]], [1, 2, 1])
        """
        # The same pointer tensor as the graphs', so that batching need not compare them.
        return replace(QueryPairs.concat(piece._listed() for piece in self._pieces()), node_ptr=self.node_ptr)

    def _pieces(self) -> Iterator["PairTargets"]:
        """All graphs, up to `PAIRS_AT_ONCE` pairs at a time."""
        pointer, begin = self.pair_ptr.tolist(), 0
        while begin < len(self):
            end = max(begin + 1, bisect_right(pointer, pointer[begin] + PAIRS_AT_ONCE) - 1)
            yield self.select(slice(begin, end))
            begin = end

    def _listed(self) -> QueryPairs:
        chosen = self.mask.nonzero().squeeze(1)
        query_ptr = torch.searchsorted(chosen, self.pair_ptr)
        graph = torch.repeat_interleave(query_ptr.diff())
        inside, size = chosen - self.pair_ptr[graph], self.sizes[graph]
        dtype = torch.int16 if int(self.sizes.max()) <= torch.iinfo(torch.int16).max else torch.int32
        nodes = torch.stack([(inside // size).to(dtype), (inside % size).to(dtype)])
        return QueryPairs(node_ptr=self.node_ptr, query_ptr=query_ptr, nodes=nodes, labels=self.values[chosen])

    @classmethod
    def of(cls, graphs: Digraphs, values: Int16[Tensor, " pairs"]) -> "PairTargets":
        """Targets of the node pairs of `graphs`, row by row, graph by graph."""
        return cls(node_ptr=graphs.node_ptr, pair_ptr=starts(graphs.sizes**2), values=values)

    def one(self, position: int) -> Int16[Tensor, "n n"]:
        """Targets of one graph."""
        piece = self._slice(position, position + 1)
        size = int(piece.node_ptr[-1])
        return piece.values.view(size, size)


@dataclass(frozen=True)
class Examples:
    """Graphs with their targets.

    Args:
        graphs: The graphs; targets per graph, node or edge are features of them.
        targets: Targets of all node pairs, for tasks that have them.
        pairs: Some node pairs with their targets, for tasks that have those.
    """

    graphs: Digraphs
    targets: PairTargets | None = None
    pairs: QueryPairs | None = None

    def __len__(self) -> int:
        return len(self.graphs)

    def query(self) -> QueryPairs | None:
        """The node pairs with a target, if the task is about node pairs."""
        return self.pairs if self.targets is None else self.targets.query()

    @property
    def query_counts(self) -> Int[Tensor, " graphs"]:
        """Number of node pairs with a target, per graph."""
        held = self.pairs if self.targets is None else self.targets
        return torch.zeros_like(self.graphs.sizes) if held is None else held.counts

    def select(self, index: slice | Int[Tensor, " chosen"]) -> "Examples":
        """Some of the examples, as in `Digraphs.select`."""
        graphs = self.graphs.select(index)
        return Examples(
            graphs,
            None if self.targets is None else PairTargets.of(graphs, self.targets[index].values),
            None if self.pairs is None else replace(self.pairs.select(index), node_ptr=graphs.node_ptr),
        )

    def to(self, device: torch.device | str) -> "Examples":
        """The same examples on `device`."""
        graphs = self.graphs.to(device)
        # Built again, so that graphs and targets share their pointers and batching need not compare them.
        return Examples(
            graphs,
            None if self.targets is None else PairTargets.of(graphs, self.targets.values.to(device)),
            None if self.pairs is None else replace(self.pairs.to(device), node_ptr=graphs.node_ptr),
        )

    @classmethod
    def concat(cls, examples: Iterable["Examples"]) -> "Examples":
        """Join examples end to end."""
        examples = list(examples)
        graphs = Digraphs.concat(each.graphs for each in examples)
        values = [each.targets.values for each in examples if each.targets is not None]
        pairs = [each.pairs for each in examples if each.pairs is not None]
        return cls(
            graphs,
            PairTargets.of(graphs, torch.cat(values)) if values else None,
            replace(QueryPairs.concat(pairs), node_ptr=graphs.node_ptr) if pairs else None,
        )

    def tensors(self) -> dict[str, Tensor]:
        """Every tensor by name: those of the graphs as `graphs/…`, and `targets`, whose pointers follow from them."""
        named = {f"graphs/{name}": tensor for name, tensor in self.graphs.tensors().items()}
        return named if self.targets is None else {**named, "targets": self.targets.values}

    @classmethod
    def from_tensors(cls, named: Mapping[str, Tensor]) -> "Examples":
        """The examples that `tensors()` was called on, validated."""
        held = {name.removeprefix("graphs/"): tensor for name, tensor in named.items() if name != "targets"}
        graphs = Digraphs.from_tensors(held)
        if "targets" not in named:
            return cls(graphs)
        targets = PairTargets.of(graphs, named["targets"])
        targets.check()
        return cls(graphs, targets)


class Task(ABC):
    """Base class of tasks: each is a frozen dataclass, and its fields are its options.

    The options are checked when the task is made, and appear in `--help` with the text of the docstring's `Args:`.
    To add a task, derive from this class and put it into `magnetite.tasks.TASKS` under a name.
    """

    presets: ClassVar[Presets] = {}
    """Tables of settings by name. `base` names another preset that a preset starts from, `positions` the encodings that
    it has unless others are chosen; `encodings` has tables for some encodings, `models` options of some models."""

    potential: ClassVar[Callable[[float], Potential]] = Adaptive
    """Makes the default potential of magnetic encodings from `q'`."""

    model_options: ClassVar[tuple[str, ...]] = ()
    """Fields that choose embedding or head and do not change the data."""

    evaluations: ClassVar[tuple[str, ...]] = ()
    """Further sets of examples on which a model can be evaluated, beside the splits."""

    @property
    def reported(self) -> tuple[str, ...]:
        """Those of the `evaluations` that are part of the result of every run."""
        return ()

    generates: ClassVar[bool] = True
    """Whether the task generates its data, so that `magnetite data` can write them."""

    seed: int
    shard_size: int

    def __post_init__(self) -> None:
        """Check the fields against their types and domains; a task that checks more calls this first."""
        check_fields(self)

    @abstractmethod
    def split(self, name: str) -> Split:
        """Sizes and number of graphs of a split."""

    @abstractmethod
    def shard(self, split: str, number: int, device: torch.device | str = "cpu") -> Examples:
        """Shard `number` of a split, which is the same on every machine."""

    def stream(
        self,
        seed: int,  # noqa: ARG002
        batch: int,  # noqa: ARG002
        device: torch.device | str = "cpu",  # noqa: ARG002
        start: int = 0,  # noqa: ARG002
    ) -> Iterator[Examples]:
        """An endless stream of fresh training examples, for tasks that can generate them.

        Args:
            seed: Seed of the stream.
            batch: Number of graphs at a time.
            device: Where to generate them.
            start: Number of the first batch.
        """
        raise ValueError(f"{type(self).__name__} has no fresh data: choose data.mode resident or pooled")

    @abstractmethod
    def embedding(self) -> Embeddings:
        """The embedding of the node features; None gives all nodes the same vector."""

    def edge_embedding(self) -> Embeddings:
        """The embedding of the edge features, for models that read them."""
        return None

    @abstractmethod
    def head(self, readout: str, pair_channels: int) -> Head:
        """The output head.

        Args:
            readout: How the model reads out a whole graph: cls, mean, sum or max.
            pair_channels: Number of features per node pair that the position encoder provides.
        """

    def weights(self, examples: Examples) -> Float[Tensor, " graphs"]:
        """Weight of each graph: the mean loss of a batch is `loss` divided by the sum of its weights."""
        return torch.ones(len(examples), device=examples.graphs.device)

    def node_weights(self, examples: Examples) -> Float[Tensor, " nodes"] | None:  # noqa: ARG002
        """Weight of each node's target, 0 where it has none in this split; None if targets are not those of nodes."""
        return None

    def only(self, nodes: Bool[Tensor, " nodes"]) -> dict[str, Tensor]:
        """Node features to set in a sampled subgraph so that only these nodes have targets, all of which have one."""
        raise NotImplementedError

    @abstractmethod
    def loss(self, outputs: Tensor, batch: Batch) -> Float[Tensor, ""]:
        """Sum of the losses of a batch in single precision; padding adds nothing."""

    @abstractmethod
    def metric(self, device: torch.device | str = "cpu") -> Metric:
        """An empty accumulator of the task's metrics."""

    @property
    @abstractmethod
    def selects(self) -> str:
        """The validation metric that chooses the best model."""

    @property
    def larger_is_better(self) -> bool:
        """Whether a larger value of that metric is better."""
        return True

    @property
    def variant(self) -> tuple[str, ...]:
        """Words that distinguish runs of this task, for names of folders and titles."""
        return ()

    def shard_count(self, split: str) -> int:
        """Number of shards of a split."""
        return -(-self.split(split).count // self.shard_size)

    def shard_span(self, split: str, number: int) -> tuple[int, int]:
        """Index of the first graph (or network) of a shard, and their number."""
        count, shards = self.split(split).count, self.shard_count(split)
        if not 0 <= number < shards:
            raise ValueError(f"{split} has shards 0 to {shards - 1}, got {number}")
        first = number * self.shard_size
        return first, min(self.shard_size, count - first)

    def examples(self, split: str, device: torch.device | str = "cpu") -> Examples:
        """A whole split on `device`."""
        return Examples.concat(self.shard(split, number, device) for number in range(self.shard_count(split)))

    def options(self) -> dict[str, Any]:
        """The options as a configuration stores them."""
        return asdict(self)  # pyright: ignore[reportArgumentType] (every task is a dataclass)

    def data_options(self) -> dict[str, Any]:
        """The options that determine the data; those that are newer than stored data are left out if unchanged."""
        left_out = {*self.model_options, *unchanged_later(self)}
        return {name: value for name, value in self.options().items() if name not in left_out}

    def schema(self) -> Any:
        """What a model of this task reads and predicts, for predictions without the data; None if there are none."""
        return None

    def tune(self, model: Any, metric: Any, fit: bool) -> None:  # noqa: B027 (tasks need not have it)
        """Fit what turns outputs into answers, such as thresholds, to the counts of the validation split.

        Args:
            model: The model, which keeps what is fitted.
            metric: The counts of a split; what is fitted decides what it computes from them.
            fit: Whether this is the validation split during training; otherwise what was fitted is used.
        """

    def answers(self, outputs: Tensor, model: Any) -> Tensor | None:  # noqa: ARG002
        """What is kept of the outputs of a batch for the file of predictions; None if the task has no such file."""
        return None

    def answer_table(self, split: str, answers: Tensor) -> Mapping[str, Any]:
        """Columns of the file of predictions, from the answers for all examples of a split."""
        raise NotImplementedError

    def files(self) -> Mapping[str, Mapping[str, Any]]:
        """Further JSON files of a run by name, such as vocabularies."""
        return {}

    def derived(self, preset: str, epochs: float | None = None) -> Mapping[str, Mapping[str, Any]]:  # noqa: ARG002
        """Settings of a preset that depend on the data, such as the batch size, or on a given number of epochs."""
        return {}


class HeldTask(Task):
    """Base class of tasks whose data exist already: the examples of each split are made once and kept in memory."""

    generates: ClassVar[bool] = False

    @abstractmethod
    def make(self, split: str) -> Examples:
        """The examples of a split on the CPU."""

    @cached_property
    def _held(self) -> dict[str, Examples]:
        return {}

    def held(self, split: str) -> Examples:
        """The examples of a split on the CPU, made at the first call."""
        check_split(split)
        if split not in self._held:
            self._held[split] = self.make(split)
        return self._held[split]

    def split(self, name: str) -> Split:
        """Sizes and number of graphs of a split."""
        sizes = self.held(name).graphs.sizes
        return Split(name, range(int(sizes.min()), int(sizes.max()) + 1), len(sizes))

    def shard(self, split: str, number: int, device: torch.device | str = "cpu") -> Examples:
        """Some graphs of a split."""
        first, count = self.shard_span(split, number)
        return self.held(split).select(slice(first, first + count)).to(device)

    def examples(self, split: str, device: torch.device | str = "cpu") -> Examples:
        """A whole split on `device`."""
        return self.held(split).to(device)


def check_split(name: str) -> None:
    """Raise an error if there is no such split."""
    if name not in SPLITS:
        raise ValueError(f"unknown split {name!r}: choose one of {', '.join(SPLITS)}")
