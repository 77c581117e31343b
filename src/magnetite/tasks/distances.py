"""The distances task: which node pairs of random graphs are adjacent, reachable, and how far apart?"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Annotated, ClassVar

import numpy as np
import torch
from jaxtyping import Bool, Float, Int, Int16
from torch import Tensor

from magnetite.batching import Batch
from magnetite.encodings.checks import COUNT, SEED, SIZE_OR_NONE, Domain, later
from magnetite.graphs import Digraphs
from magnetite.linalg.counter import derive, mix, shift_right, signed
from magnetite.linalg.distances import dense_spans, hop_distances
from magnetite.linalg.potential import Relative
from magnetite.linalg.threads import spread
from magnetite.nn.embeddings import SameNodes
from magnetite.nn.heads import PairHead
from magnetite.packed import starts
from magnetite.tasks.base import STREAM, Examples, PairTargets, Presets, Split, Task, check_split
from magnetite.tasks.metrics import PairClassification, PairError, query_of

SMALL = {"train": range(16, 18), "valid": range(18, 20), "test": range(20, 28)}
LARGE = {"train": range(16, 64), "valid": range(64, 72), "test": range(72, 84)}
SIZES: dict[str, dict[str, range]] = {
    "adjacency": SMALL,
    "reachability": SMALL,
    "directed-distance": LARGE,
    "undirected-distance": LARGE,
}
"""Nodes of the graphs by target and split, before the largest component is taken."""

DEGREES = {False: (1.0, 1.5, 2.0), True: (1.0, 1.5, 2.0, 2.5, 3.0)}
"""Mean degrees, all equally likely, of general digraphs and of acyclic ones."""

MULTI_Q = {"train": range(16, 64), "valid": range(16, 64), "test": range(64, 72)}
MULTI_Q_COUNTS = {"valid": 20_000, "test": 5_000}
"""Sizes and counts of the data of "What Are Good Positional Encodings for Directed Graphs?" (ICLR 2025): the same
random graphs, but validation has graphs like those of training (5 % of 400,000), and test graphs random sizes."""

SOURCES = 19
"""Number of the stream of random sources."""

PROTOCOLS = Domain(choices=("paper", "multi-q"))

PRESETS: Presets = {
    "paper": {
        "encoding": {"k": 16, "rank": 16, "scaling": "none"},
        "optim": {
            "lr": 4e-4, "weight_decay": 6e-5, "betas": (0.7, 0.9), "clip": 0.075,
            "batch": 384, "epochs": 30, "warmup": 2,
        },
        "run": {"precision": "bf16-mixed", "evaluate_every": 3.0},
    },
    # In addition to any encoding, the head reads the probabilities of walks between the two nodes.
    "best": {
        "base": "paper",
        "encoding": {"pair-walks": {"steps": 16}},
        "optim": {"epochs": 10, "warmup": 1},
    },
    # A recurrent network that is asked about one source at a time, for acyclic graphs.
    "marked": {
        "base": "paper",
        "positions": "none",
        "task": {"acyclic": True, "sources": 1},
        "model": {"name": "gnn", "network": "recurrent", "steps": 1, "width": 64, "marked": True},
        "optim": {"lr": 3e-3, "betas": (0.9, 0.98), "clip": 0.1, "batch": 256, "epochs": 1, "warmup": 0.02},
        "data": {"mode": "fresh", "pool": 8192, "tokens": 32_768},
        "run": {"precision": "32-true", "evaluate_every": 0.25},
    },
    "quick": {
        "base": "paper",
        "task": {"target": "reachability", "acyclic": True, "train": 10_000, "per_size": 100},
        "encoding": {"k": 8, "rank": 8},
        "model": {"width": 64, "layers": 2},
        "optim": {"lr": 2e-3, "batch": 64, "epochs": 4, "warmup": 0.5},
        "data": {"tokens": 8192},
        "run": {"precision": "32-true", "evaluate_every": 1.0},
    },
    # As the authors' code trains, where it differs from the text of the paper.
    "authors": {
        "base": "paper",
        "task": {"self_loops": True},
        "encoding": {
            "attention_dropout": 0.15, "attention_biases": False, "parallel": "once", "signs": "independent",
        },
        "model": {"dropout": 0.1, "inner_dropout": True, "init": "fan-in"},
        "optim": {"clipped": "update"},
        "encodings": {
            "magnetic": {"encoding": {"q": "Relative(0.1)"}},
            "walks": {"encoding": {"hidden": 8, "node_layers": 1}},
            "laplacian": {"encoding": {"absolute_first": True}},
        },
        "models": {"magnet": {"order": 1, "real_start": True}},
    },
}  # fmt: skip


@dataclass(frozen=True)
class Distances(Task):
    """Adjacency, reachability or distance of all node pairs in the largest weak components of Erdős–Rényi graphs.

    Edges have probability `p = degree / (n − 1)`. For one seed, both classification targets have the same graphs, and
    so do both distances.

    Args:
        target: adjacency, reachability, directed-distance or undirected-distance.
        acyclic: Whether the graphs are DAGs instead of general digraphs.
        train: Number of training graphs.
        per_size: Number of validation and test graphs of each size.
        pair_layer: Whether features of node pairs have their own first layer in the head.
        seed: Seed of the data.
        shard_size: Number of graphs per file.
        protocol: Sizes of the graphs: `paper`, or `multi-q` for those of the paper on multi-q encodings, which tests
            distances on 5,000 graphs of 64 to 71 nodes; `per_size` then has no effect.
        self_loops: Whether edges of general digraphs may lead from a node to itself, with the same probability; acyclic
            graphs have none.
        sources: Number of random nodes of each training and validation graph whose pairs with other nodes are asked; 0
            for all nodes. Test graphs are asked about all nodes.

    >>> examples = Distances(target="reachability").shard("test", 0)
    >>> examples.graphs, examples.targets
    (Digraphs(10000 graphs, ...), PairTargets(10000 graphs, ... pairs))
    """

    presets: ClassVar[Presets] = PRESETS
    potential = Relative  # as in the paper
    model_options: ClassVar[tuple[str, ...]] = ("pair_layer",)

    target: str = "directed-distance"
    acyclic: bool = False
    train: Annotated[int, COUNT] = 400_000
    per_size: Annotated[int, COUNT] = 2_500
    pair_layer: bool = True
    seed: Annotated[int, SEED] = 0
    shard_size: Annotated[int, COUNT] = 10_000
    protocol: Annotated[str, PROTOCOLS] = later("paper")
    self_loops: bool = later(False)
    sources: Annotated[int, SIZE_OR_NONE] = later(0)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_target(self.target)
        if self.protocol == "multi-q" and self.classifies:
            raise ValueError(f"protocol multi-q is about distances, not {self.target}: choose directed-distance")

    @property
    def classifies(self) -> bool:
        """Whether the target is a class; otherwise it is a distance."""
        return self.target in ("adjacency", "reachability")

    @property
    def selects(self) -> str:
        """Validation chooses by the F1 score, or by the RMSE of distances."""
        return "f1" if self.classifies else "rmse"

    @property
    def larger_is_better(self) -> bool:
        """An error should be small."""
        return self.classifies

    @property
    def variant(self) -> tuple[str, ...]:
        """Target and kind of graphs."""
        return self.target, "dag" if self.acyclic else "general"

    def split(self, name: str) -> Split:
        """Sizes and number of graphs of a split.

        >>> Distances().split("test")
        Split(name='test', sizes=range(72, 84), count=30000)
        """
        check_split(name)
        if self.protocol == "multi-q":
            return Split(name, MULTI_Q[name], MULTI_Q_COUNTS.get(name, self.train))
        sizes = SIZES[self.target][name]
        return Split(name, sizes, self.train if name == "train" else self.per_size * len(sizes))

    def shard(self, split: str, number: int, device: torch.device | str = "cpu") -> Examples:
        """Some graphs of a split: their sizes are random in training, and ordered in the other splits."""
        part = self.split(split)
        first, size = self.shard_span(split, number)
        numbers = torch.arange(first, first + size, device=device)
        sizes = torch.tensor(part.sizes, device=device)
        ordered = split != "train" and self.protocol == "paper"
        choices = sizes[numbers // self.per_size, None] if ordered else sizes.expand(size, -1)
        found = self._generate(derive(self.seed, part.number), numbers, choices)
        return (
            found if split == "test" else self._asked(found, derive(derive(self.seed, SOURCES), part.number), numbers)
        )

    def stream(self, seed: int, batch: int, device: torch.device | str = "cpu", start: int = 0) -> Iterator[Examples]:
        """An endless stream of fresh training examples, generated on `device`.

        >>> next(Distances().stream(seed=0, batch=8)).graphs
        Digraphs(8 graphs, ...)
        """
        key = derive(seed, STREAM)
        sizes = torch.tensor(self.split("train").sizes, device=device).expand(batch, -1)
        for first in count(start * batch, batch):
            numbers = torch.arange(first, first + batch, device=device)
            yield self._asked(self._generate(key, numbers, sizes), derive(seed, SOURCES), numbers)

    def embedding(self) -> SameNodes:
        """One vector for all nodes: only their positions distinguish them."""
        return SameNodes()

    def head(self, readout: str, pair_channels: int) -> PairHead:  # noqa: ARG002
        """One logit per node pair, or one positive distance."""
        return PairHead(positive=not self.classifies, pair_channels=pair_channels, pair_layer=self.pair_layer)

    def weights(self, examples: Examples) -> Float[Tensor, " graphs"]:
        """All query pairs weigh the same, so the weight of a graph is their number."""
        if examples.targets is None:
            raise ValueError("the examples have no targets of node pairs: generate them with this task")
        return examples.targets.counts.float()

    def loss(self, outputs: Float[Tensor, "p 1"], batch: Batch) -> Float[Tensor, ""]:
        """Sum over the query pairs of the binary cross-entropy, or of the squared error of distances."""
        query = query_of(batch)
        answers, labels = outputs[:, 0].float(), query.labels.float()
        if self.classifies:
            each = torch.nn.functional.binary_cross_entropy_with_logits(answers, labels, reduction="none")
        else:
            each = (answers - labels).square()
        return query.sum(each)

    def metric(self, device: torch.device | str = "cpu") -> PairClassification | PairError:
        """F1 score of the pooled counts, or RMSE of distances."""
        return PairClassification(device) if self.classifies else PairError(device)

    def _generate(self, key: int, numbers: Int[Tensor, " graphs"], sizes: Int[Tensor, "graphs choices"]) -> Examples:
        given = random_sizes(key, numbers, sizes, DEGREES[self.acyclic])
        graphs = random_edges(given, self.acyclic, self.self_loops)
        return Examples(graphs, pair_targets(graphs, self.target))

    def _asked(self, examples: Examples, key: int, numbers: Int[Tensor, " graphs"]) -> Examples:
        """The same examples, with targets of `sources` random nodes of each graph alone."""
        graphs, targets = examples.graphs, examples.targets
        if not self.sources or targets is None:
            return examples
        keys = mix(torch.tensor(signed(key), device=graphs.device), numbers)[graphs.node_graph]
        inside = torch.arange(len(keys), device=graphs.device) - graphs.node_ptr[graphs.node_graph]
        # The draws of a graph in increasing order, graph by graph.
        order = shift_right(mix(keys, inside), 1).argsort()
        order = order[graphs.node_graph[order].argsort(stable=True)]
        asked = torch.zeros_like(keys, dtype=torch.bool)
        asked[order] = inside < self.sources
        rows = asked.repeat_interleave(graphs.sizes[graphs.node_graph])
        return Examples(graphs, PairTargets.of(graphs, torch.where(rows, targets.values, -1)))


def adjacency(graphs: Digraphs) -> Int16[Tensor, " pairs"]:
    """1 if an edge points from the first node to the second, else 0."""
    pair_ptr = starts(graphs.sizes**2)
    source, target = graphs.edges.long()
    values = torch.zeros(int(pair_ptr[-1]), dtype=torch.int16, device=graphs.device)
    values[pair_ptr[graphs.edge_graph] + source * graphs.sizes[graphs.edge_graph] + target] = 1
    return values


def reachability(graphs: Digraphs) -> Int16[Tensor, " pairs"]:
    """1 if a directed path leads from the first node to the second, else 0."""
    return (directed_distance(graphs) >= 0).to(torch.int16)


def directed_distance(graphs: Digraphs) -> Int16[Tensor, " pairs"]:
    """Number of hops of the shortest directed path, −1 if there is none."""
    return hop_distances(graphs.edges, graphs.node_ptr, graphs.edge_ptr)


def undirected_distance(graphs: Digraphs) -> Int16[Tensor, " pairs"]:
    """Number of hops of the shortest path that may use edges in either direction, −1 if there is none."""
    return hop_distances(graphs.edges, graphs.node_ptr, graphs.edge_ptr, undirected=True)


TARGETS: dict[str, Callable[[Digraphs], Int16[Tensor, " pairs"]]] = {
    "adjacency": adjacency,
    "reachability": reachability,
    "directed-distance": directed_distance,
    "undirected-distance": undirected_distance,
}


def check_target(name: str) -> None:
    """Raise an error if there is no such target."""
    if name not in TARGETS:
        raise ValueError(f"unknown target {name!r}: choose one of {', '.join(TARGETS)}")


def pair_targets(graphs: Digraphs, target: str) -> PairTargets:
    """Targets of the node pairs of any graphs, on their device.

    Args:
        graphs: The graphs.
        target: adjacency, reachability, directed-distance or undirected-distance.

    >>> pair_targets(Digraphs.from_edges([[0, 1], [1, 2]]), "directed-distance")[0].tolist()
    [[0, 1, 2], [-1, 0, 1], [-1, -1, 0]]
    """
    check_target(target)
    return PairTargets.of(graphs, TARGETS[target](graphs))


# Random graphs by counter-based random numbers: the same on the CPU and on an accelerator.

SPAN = 1024
"""Graphs that a thread generates at once."""

DENSE_ENTRIES = 2**23
"""Node pairs whose random numbers are held at once on an accelerator, about 50 bytes each."""

# Use of the random numbers of a graph: counter `c` of its key.
SIZE, DEGREE, PAIRS, RANKS = range(4)


@dataclass(frozen=True)
class RandomSizes:
    """Random graphs before their edges are generated: key, number of nodes and edge probability · 2^53 of each."""

    keys: Int[Tensor, " graphs"]
    sizes: Int[Tensor, " graphs"]
    thresholds: Int[Tensor, " graphs"]


def random_sizes(key: int, numbers: Int[Tensor, " graphs"], sizes: Tensor, degrees: Sequence[float]) -> RandomSizes:
    """Generate size and mean degree of graphs `numbers` of a stream; `p = degree / (n − 1)`.

    Args:
        key: Key of the stream.
        numbers: Numbers of the graphs in the stream.
        sizes: `[graphs, choices]`, sizes to choose from for each graph.
        degrees: Mean degrees to choose from.

    >>> random_sizes(0, torch.arange(3), sizes=torch.tensor([[16], [17], [18]]), degrees=[1.5]).sizes.tolist()
    [16, 17, 18]
    """
    device = numbers.device
    keys = mix(torch.tensor(signed(key), device=device), numbers)
    chosen = sizes.gather(1, _below(keys, SIZE, sizes.shape[1])[:, None]).squeeze(1)
    degree = torch.tensor(degrees, dtype=torch.float64, device=device)[_below(keys, DEGREE, len(degrees))]
    return RandomSizes(keys, chosen, (degree / (chosen - 1) * 2**53).long())


def random_edges(given: RandomSizes, acyclic: bool, self_loops: bool = False) -> Digraphs:
    """Generate the edges, and keep the largest weak component.

    An edge `u → v` exists with probability `p`; in an acyclic graph only if `u` comes before `v` in a random order,
    which is a permuted upper triangle. Among components of equal size the one with the lowest node is kept.

    >>> given = random_sizes(0, torch.arange(3), sizes=torch.tensor([[16, 17]]).expand(3, -1), degrees=[1.5])
    >>> random_edges(given, acyclic=True)
    Digraphs(3 graphs, ...)
    """
    if given.keys.device.type == "cpu":
        return _edges_on_cpu(given, acyclic, self_loops)
    return Digraphs.concat(
        _edges_dense(given, acyclic, slice(*span), self_loops) for span in dense_spans(given.sizes, DENSE_ENTRIES)
    )


def _below(keys: Int[Tensor, " graphs"], use: int, bound: int) -> Int[Tensor, " graphs"]:
    return (shift_right(mix(keys, torch.tensor(use, device=keys.device)), 32) * bound) >> 32


def _edges_on_cpu(given: RandomSizes, acyclic: bool, self_loops: bool) -> Digraphs:
    from magnetite.kernels.cpu.random_graphs import sample  # here, so that numba is loaded only when it is used

    keys, thresholds = (tensor.numpy().view(np.uint64) for tensor in (given.keys, given.thresholds))
    sizes = given.sizes.numpy()

    def work(start: int, stop: int) -> tuple[np.ndarray, ...]:
        return sample(keys[start:stop], sizes[start:stop], thresholds[start:stop], acyclic, self_loops)

    nodes, edge_counts, edges = zip(*spread(work, sizes.size, SPAN), strict=True)
    return Digraphs.from_tensors(
        validate=False,
        named={
            "node_ptr": starts(torch.from_numpy(np.concatenate(nodes))),
            "edge_ptr": starts(torch.from_numpy(np.concatenate(edge_counts))),
            "edges": torch.from_numpy(np.concatenate(edges, axis=1)),
        },
    )


def _edges_dense(given: RandomSizes, acyclic: bool, span: slice, self_loops: bool = False) -> Digraphs:
    """The same graphs by tensor operations, for accelerators."""
    keys, sizes, thresholds = given.keys[span], given.sizes[span], given.thresholds[span]
    adjacency = _dense_edges(keys, sizes, thresholds, acyclic, self_loops)
    kept = _largest_component(adjacency, sizes)
    adjacency = adjacency & kept[:, :, None] & kept[:, None, :]
    number = kept.cumsum(1, dtype=torch.int32) - 1
    graph, source, target = adjacency.nonzero(as_tuple=True)
    return Digraphs.from_tensors(
        validate=False,
        named={
            "node_ptr": starts(kept.sum(1)),
            "edge_ptr": starts(adjacency.sum((1, 2))),
            "edges": torch.stack([number[graph, source], number[graph, target]]),
        },
    )


def _dense_edges(
    keys: Tensor, sizes: Tensor, thresholds: Tensor, acyclic: bool, self_loops: bool = False
) -> Bool[Tensor, "g n n"]:
    nodes = torch.arange(int(sizes.max()), device=keys.device)
    source, target = nodes[:, None], nodes[None, :]
    pair = source * sizes[:, None, None] + target
    use = torch.tensor([PAIRS, RANKS], device=keys.device)
    pair_key, rank_key = mix(keys[:, None], use).unbind(1)
    present = shift_right(mix(pair_key[:, None, None], pair), 11) < thresholds[:, None, None]
    inside = nodes < sizes[:, None]
    present &= inside[:, :, None] & inside[:, None, :]
    if not self_loops:
        present &= source != target
    if acyclic:
        rank = shift_right(mix(rank_key[:, None], nodes), 1)
        present &= rank[:, :, None] < rank[:, None, :]
    return present


def _largest_component(adjacency: Bool[Tensor, "g n n"], sizes: Int[Tensor, " g"]) -> Bool[Tensor, "g n"]:
    """Members of the largest weak component: the closure of `I + A + Aᵀ` by squaring, then its fullest row."""
    count = adjacency.shape[-1]
    precision = torch.float16 if adjacency.is_cuda else torch.float32
    joined = adjacency | adjacency.mT | torch.eye(count, dtype=torch.bool, device=adjacency.device)
    for _ in range((count - 1).bit_length()):
        reached = joined.to(precision)
        joined = reached @ reached > 0
    nodes = torch.arange(count, device=adjacency.device)
    # Ties go to the lowest node; argmax alone does not guarantee which one it returns.
    score = torch.where(nodes < sizes[:, None], joined.sum(2) * count + (count - 1 - nodes), -1)
    return joined[torch.arange(len(sizes), device=sizes.device), score.argmax(1)]
