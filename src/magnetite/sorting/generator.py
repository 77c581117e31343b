"""The random generator of correct sorting networks, by the algorithm of the paper.

The compiled loop is `generate` in `magnetite.kernels.cpu.sorting`.
"""

from collections.abc import Iterable

import numpy as np
import torch

from magnetite.linalg.counter import derive
from magnetite.linalg.threads import spread
from magnetite.packed import starts
from magnetite.sorting.networks import SPAN, SortingNetworks, kernels

MOST_COMPARATORS = 512
"""A network that needs more comparators is discarded and generated again."""

LONGEST = 20
"""Hardly any longer network is complete within 512 comparators."""


def generate(count: int, lengths: Iterable[int], seed: int, start: int = 0) -> SortingNetworks:
    """Generate correct networks: numbers `start … start + count − 1` of the infinite sequence of the seed.

    The length is chosen at random; then comparators are added until all inputs are sorted, each on a random pair of
    wires that are out of order for some input, but not on the pair just used. A network of more than 512 comparators is
    generated again. The result does not depend on the number of threads, and `generate(n, …)` starts with
    `generate(m, …)` for `m < n`.

    Args:
        count: Number of networks.
        lengths: Numbers of wires to choose from, each from 2 to 20.
        seed: Seed of the random numbers.
        start: Number of networks of the sequence to skip.

    >>> generate(3, lengths=[3], seed=0)[1].comparators
    ((1, 2), (0, 2), (0, 1))
    """
    choices = check_request(count, lengths, start)
    key = np.uint64(derive(seed, 0))
    tables = kernels().tables(choices)

    def work(begin: int, end: int) -> tuple[np.ndarray, ...]:
        return kernels().generate(key, start + begin, end - begin, choices, tables, MOST_COMPARATORS)

    parts = spread(work, count, SPAN) or [kernels().generate(key, 0, 0, choices, tables, MOST_COMPARATORS)]
    wires, counts, chosen = (torch.from_numpy(np.concatenate(column)) for column in zip(*parts, strict=True))
    return SortingNetworks._trusted(node_ptr=starts(counts), lengths=chosen, wires=wires)


def check_request(count: int, lengths: Iterable[int], start: int) -> np.ndarray:
    """The lengths, sorted; an error says which number cannot be."""
    choices = np.array(sorted(set(lengths)), dtype=np.int64)
    if count < 0 or start < 0:
        raise ValueError(f"count and start must be non-negative integers, got count={count}, start={start}")
    if not choices.size or choices[0] < 2 or choices[-1] > LONGEST:
        raise ValueError(f"lengths must be from 2 to {LONGEST}, got {choices.tolist()}")
    return choices
