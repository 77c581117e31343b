"""The sorting task: does a network of comparators sort every input?"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count

import torch
from jaxtyping import Float
from torch import Tensor

from magnetite.batching import Batch
from magnetite.linalg.counter import derive
from magnetite.sorting import SortingNetworks, generate
from magnetite.tasks.examples import SPLITS, STREAM, Examples, Split, check_counts, check_split, shard_span
from magnetite.tasks.metrics import ClassificationByGroup

SHORTEST, LONGEST = 7, 16
"""Lengths of the networks of all splits together."""


@dataclass(frozen=True)
class Sorting:
    """Correct networks, each with its incorrect twin; in validation and test also reversed, with its true label.

    The twin lacks the last comparator. Counts are those of the drawn networks: a split holds two or three times as many
    graphs. Graph feature `label` is 1 where the network sorts; node feature `wires` has the comparator's two wires.
    Lengths up to `train_longest` are for training, further ones up to `valid_longest` for validation, the rest for the
    test; within a split all are equally likely. With `train_reversed`, training has reversed networks as well.

    >>> examples = Sorting(test=100).shard("test", 0)
    >>> len(examples), int(examples.graphs.graph_features["label"].sum()) >= 100
    (300, True)
    """

    train: int = 400_000
    valid: int = 20_000
    test: int = 20_000
    train_longest: int = 11
    valid_longest: int = 12
    train_reversed: bool = False
    seed: int = 0
    shard_size: int = 10_000

    def __post_init__(self) -> None:
        check_counts(self, "train", "valid", "test", "shard_size")
        if not SHORTEST <= self.train_longest < self.valid_longest < LONGEST:
            raise ValueError(
                f"train_longest={self.train_longest}, valid_longest={self.valid_longest} leave a split empty: "
                f"give {SHORTEST} ≤ train_longest < valid_longest < {LONGEST}"
            )

    @property
    def selects(self) -> str:
        """Validation chooses by accuracy."""
        return "accuracy"

    @property
    def larger_is_better(self) -> bool:
        """It should be large."""
        return True

    def split(self, name: str) -> Split:
        """Lengths and number of drawn networks of a split.

        >>> Sorting().split("train")
        Split(name='train', sizes=range(7, 12), count=400000)
        """
        check_split(name)
        ends = [SHORTEST, self.train_longest + 1, self.valid_longest + 1, LONGEST + 1]
        place = SPLITS.index(name)
        return Split(name, range(ends[place], ends[place + 1]), getattr(self, name))

    def shard(self, split: str, number: int, device: torch.device | str = "cpu") -> Examples:
        """Some of a split's networks: first the correct ones, then their twins, then the reversed ones."""
        part = self.split(split)
        first, size = shard_span(self, split, number)
        networks = generate(size, part.sizes, derive(self.seed, part.number), first)
        return examples(networks, reverse=split != "train" or self.train_reversed).to(device)

    def stream(self, seed: int, batch: int, device: torch.device | str = "cpu", start: int = 0) -> Iterator[Examples]:
        """Fresh training examples without end, from batch `start` on; equally many networks, twins, and so on."""
        kinds = 3 if self.train_reversed else 2
        if batch < kinds or batch % kinds:
            raise ValueError(f"batch={batch} cannot hold {kinds} graphs of each network: give a multiple of {kinds}")
        key = derive(seed, STREAM)
        each, lengths = batch // kinds, self.split("train").sizes
        for first in count(start * each, each):
            yield examples(generate(each, lengths, key, first), reverse=self.train_reversed).to(device)

    def weights(self, examples: Examples) -> Float[Tensor, " graphs"]:
        """Every network counts the same."""
        return torch.ones(len(examples), device=examples.graphs.device)

    def loss(self, outputs: Float[Tensor, "b 2"], batch: Batch) -> Float[Tensor, ""]:
        """The sum over networks of the cross-entropy `−log p(label)`."""
        each = torch.nn.functional.cross_entropy(
            outputs.float(), batch.graph_features["label"].long(), reduction="none"
        )
        return torch.where(batch.graph_mask, each, 0.0).sum()

    def metric(self, device: torch.device | str = "cpu") -> ClassificationByGroup:
        """Accuracy, F1 and AUC, in total and by length."""
        return ClassificationByGroup("label", "length", LONGEST + 1, device)


def examples(networks: SortingNetworks, reverse: bool) -> Examples:
    """The graphs of correct networks, of their twins, and, if asked for, of the reversed networks.

    >>> drawn = examples(generate(4, lengths=[7], seed=0), reverse=False)
    >>> drawn.graphs.graph_features["label"].tolist()
    [1, 1, 1, 1, 0, 0, 0, 0]
    """
    parts = [networks, networks.without_last()] + ([networks.reverse()] if reverse else [])
    graphs = SortingNetworks.concat(parts).to_digraphs()
    labels = graphs.graph_features["label"][: 2 * len(networks)].view(2, -1)
    if not bool(labels[0].all()) or bool(labels[1].any()):
        raise RuntimeError("a drawn network does not sort, or sorts without its last comparator: this is a bug")
    return Examples(graphs)
