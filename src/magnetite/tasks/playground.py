"""The playground: which pairs of nodes are adjacent, reachable, and how far apart, in random graphs."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count

import torch
from jaxtyping import Float, Int, Int16
from torch import Tensor

from magnetite.batching import Batch
from magnetite.graphs import Digraphs
from magnetite.linalg.counter import derive
from magnetite.linalg.distances import hop_distances
from magnetite.packed import starts
from magnetite.tasks import random_graphs
from magnetite.tasks.examples import STREAM, Examples, PairTargets, Split, check_counts, check_split, shard_span
from magnetite.tasks.metrics import PairClassification, PairError, pairs_of

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
"""Mean degrees, all equally likely, of digraphs and of acyclic ones."""


def adjacency(graphs: Digraphs) -> Int16[Tensor, " pairs"]:
    """1 where an edge points from the first node to the second, else 0."""
    pair_ptr = starts(graphs.sizes**2)
    source, target = graphs.edges.long()
    values = torch.zeros(int(pair_ptr[-1]), dtype=torch.int16, device=graphs.device)
    values[pair_ptr[graphs.edge_graph] + source * graphs.sizes[graphs.edge_graph] + target] = 1
    return values


def reachability(graphs: Digraphs) -> Int16[Tensor, " pairs"]:
    """1 where a directed path leads from the first node to the second, else 0."""
    return (directed_distance(graphs) >= 0).to(torch.int16)


def directed_distance(graphs: Digraphs) -> Int16[Tensor, " pairs"]:
    """Hops of the shortest directed path, −1 where there is none."""
    return hop_distances(graphs.edges, graphs.node_ptr, graphs.edge_ptr)


def undirected_distance(graphs: Digraphs) -> Int16[Tensor, " pairs"]:
    """Hops of the shortest path that may use edges either way, −1 where there is none."""
    return hop_distances(graphs.edges, graphs.node_ptr, graphs.edge_ptr, undirected=True)


TARGETS: dict[str, Callable[[Digraphs], Int16[Tensor, " pairs"]]] = {
    "adjacency": adjacency,
    "reachability": reachability,
    "directed-distance": directed_distance,
    "undirected-distance": undirected_distance,
}


def check_target(name: str) -> None:
    """Refuse a target that does not exist."""
    if name not in TARGETS:
        raise ValueError(f"there is no target {name!r}: choose one of {', '.join(TARGETS)}")


def pair_targets(graphs: Digraphs, target: str) -> PairTargets:
    """The playground's targets of any graphs, on their device.

    >>> pair_targets(Digraphs.from_edges([[0, 1], [1, 2]]), "directed-distance")[0].tolist()
    [[0, 1, 2], [-1, 0, 1], [-1, -1, 0]]
    """
    check_target(target)
    return PairTargets.of(graphs, TARGETS[target](graphs))


@dataclass(frozen=True)
class Playground:
    """Erdős–Rényi graphs (`p = degree / (n − 1)`), their largest weak components, and one target of their pairs.

    Graphs of the same seed are the same for the two classification targets, and for the two distances.

    >>> examples = Playground(target="reachability").shard("test", 0)
    >>> examples.graphs, examples.targets
    (Digraphs(10000 graphs, ...), PairTargets(10000 graphs, ... pairs))
    """

    target: str = "directed-distance"
    acyclic: bool = False
    train: int = 400_000
    per_size: int = 2_500
    seed: int = 0
    shard_size: int = 10_000

    def __post_init__(self) -> None:
        check_target(self.target)
        check_counts(self, "train", "per_size", "shard_size")

    @property
    def classifies(self) -> bool:
        """Whether the target is yes or no; else it is a distance."""
        return self.target in ("adjacency", "reachability")

    @property
    def selects(self) -> str:
        """Validation chooses by the F1 score, or by the RMSE of distances."""
        return "f1" if self.classifies else "rmse"

    @property
    def larger_is_better(self) -> bool:
        """An error should be small."""
        return self.classifies

    def split(self, name: str) -> Split:
        """Sizes and number of graphs of a split.

        >>> Playground().split("test")
        Split(name='test', sizes=range(72, 84), count=30000)
        """
        check_split(name)
        sizes = SIZES[self.target][name]
        return Split(name, sizes, self.train if name == "train" else self.per_size * len(sizes))

    def shard(self, split: str, number: int, device: torch.device | str = "cpu") -> Examples:
        """Some of a split's graphs: sizes are drawn for training, and stand in order in the other splits."""
        part = self.split(split)
        first, size = shard_span(self, split, number)
        numbers = torch.arange(first, first + size, device=device)
        sizes = torch.tensor(part.sizes, device=device)
        rows = sizes.expand(size, -1) if split == "train" else sizes[numbers // self.per_size, None]
        return self._draw(derive(self.seed, part.number), numbers, rows)

    def stream(self, seed: int, batch: int, device: torch.device | str = "cpu", start: int = 0) -> Iterator[Examples]:
        """Fresh training examples without end, from batch `start` on, drawn on `device`.

        >>> next(Playground().stream(seed=0, batch=8)).graphs
        Digraphs(8 graphs, ...)
        """
        key = derive(seed, STREAM)
        sizes = torch.tensor(self.split("train").sizes, device=device).expand(batch, -1)
        for first in count(start * batch, batch):
            yield self._draw(key, torch.arange(first, first + batch, device=device), sizes)

    def weights(self, examples: Examples) -> Float[Tensor, " graphs"]:
        """Every pair that counts counts the same, so a graph counts by their number."""
        if examples.targets is None:
            raise ValueError("the examples have no targets of pairs: draw them from this task")
        return examples.targets.counts.float()

    def loss(self, outputs: Float[Tensor, "p 1"], batch: Batch) -> Float[Tensor, ""]:
        """The sum over asked pairs of the binary cross-entropy, or of the squared error of distances."""
        asked = pairs_of(batch)
        answers, wanted = outputs[:, 0].float(), asked.wanted.float()
        if self.classifies:
            each = torch.nn.functional.binary_cross_entropy_with_logits(answers, wanted, reduction="none")
        else:
            each = (answers - wanted).square()
        return torch.where(asked.mask, each, 0.0).sum()

    def metric(self, device: torch.device | str = "cpu") -> PairClassification | PairError:
        """The F1 score of the pooled counts, or the RMSE of distances."""
        return PairClassification(device) if self.classifies else PairError(device)

    def _draw(self, key: int, numbers: Int[Tensor, " graphs"], sizes: Int[Tensor, "graphs choices"]) -> Examples:
        drawn = random_graphs.begin(key, numbers, sizes, DEGREES[self.acyclic])
        graphs = random_graphs.finish(drawn, self.acyclic)
        return Examples(graphs, pair_targets(graphs, self.target))
