"""The sorting task: does a network of comparators sort every input?"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count

import torch

from magnetite.linalg.counter import derive
from magnetite.sorting import SortingNetworks, generate
from magnetite.tasks.examples import STREAM, Examples, Split, check_counts, check_split, shard_span

LENGTHS = {"train": range(7, 12), "valid": range(12, 13), "test": range(13, 17)}
"""Lengths of the networks by split, all equally likely."""


@dataclass(frozen=True)
class Sorting:
    """Correct networks, each with its incorrect twin; in validation and test also reversed, with its true label.

    The twin lacks the last comparator. Counts are those of the drawn networks: a split holds two or three times as many
    graphs. Graph feature `label` is 1 where the network sorts; node feature `wires` has the comparator's two wires.

    >>> examples = Sorting(test=100).shard("test", 0)
    >>> len(examples), int(examples.graphs.graph_features["label"].sum()) >= 100
    (300, True)
    """

    train: int = 400_000
    valid: int = 20_000
    test: int = 20_000
    seed: int = 0
    shard_size: int = 10_000

    def __post_init__(self) -> None:
        check_counts(self, "train", "valid", "test", "shard_size")

    def split(self, name: str) -> Split:
        """Lengths and number of drawn networks of a split.

        >>> Sorting().split("train")
        Split(name='train', sizes=range(7, 12), count=400000)
        """
        check_split(name)
        return Split(name, LENGTHS[name], getattr(self, name))

    def shard(self, split: str, number: int) -> Examples:
        """Some of a split's networks: first the correct ones, then their twins, then the reversed ones."""
        part = self.split(split)
        first, size = shard_span(self, split, number)
        networks = generate(size, part.sizes, derive(self.seed, part.number), first)
        return examples(networks, reverse=split != "train")

    def stream(self, seed: int, batch: int, device: torch.device | str = "cpu") -> Iterator[Examples]:
        """Fresh training examples without end; half of each batch are twins of the other half."""
        if batch < 2 or batch % 2:
            raise ValueError(f"batch={batch} cannot hold networks and their twins: give an even number")
        key = derive(seed, STREAM)
        for first in count(0, batch // 2):
            drawn = examples(generate(batch // 2, LENGTHS["train"], key, first), reverse=False)
            yield Examples(drawn.graphs.to(device))


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
