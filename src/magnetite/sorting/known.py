"""Known networks: Batcher's odd-even merge sort and bitonic sorter, and the smallest networks of up to ten wires."""

from collections.abc import Iterable
from dataclasses import dataclass

from magnetite.sorting.networks import Comparator, SortingNetwork
from magnetite.sorting.topological_sorts import Estimate, TooManyStates, estimate_topological_sorts

OPTIMAL: dict[int, str] = {
    2: "0-1",
    3: "0-2 0-1 1-2",
    4: "0-2 1-3 0-1 2-3 1-2",
    5: "0-3 1-4 0-2 1-3 0-1 2-4 1-2 3-4 2-3",
    6: "0-5 1-3 2-4 1-2 3-4 0-3 2-5 0-1 2-3 4-5 1-2 3-4",
    7: "0-6 2-3 4-5 0-2 1-4 3-6 0-1 2-5 3-4 1-2 4-6 2-3 4-5 1-2 3-4 5-6",
    8: "0-2 1-3 4-6 5-7 0-4 1-5 2-6 3-7 0-1 2-3 4-5 6-7 2-4 3-5 1-4 3-6 1-2 3-4 5-6",
    9: ("0-3 1-7 2-5 4-8 0-7 2-4 3-8 5-6 0-2 1-3 4-5 7-8 1-4 3-6 5-7 0-1 2-4 3-5 6-8 2-3 4-5 6-7 1-2 3-4 5-6"),
    10: (
        "0-8 1-9 2-7 3-5 4-6 0-2 1-4 5-8 7-9 0-3 2-4 5-7 6-9 0-1 3-6 8-9 "
        "1-5 2-3 4-8 6-7 1-2 3-5 4-6 7-8 2-3 4-5 6-7 3-4 5-6"
    ),
}
"""Networks with the fewest comparators, proven optimal (Knuth, TAOCP 3, 5.3.4; Codish et al. 2014 for 9 and 10)."""


def batcher(length: int) -> SortingNetwork:
    """Batcher's odd-even merge sort (Batcher 1968).

    Blocks of `p` sorted wires are merged by comparators at the distances `p, p/2, …, 1`. For a length that is not a
    power of two, comparators beyond the last wire are omitted.

    Args:
        length: Number of wires.

    >>> [len(batcher(length).comparators) for length in (2, 4, 8, 16)]
    [1, 5, 19, 63]
    """
    comparators: list[Comparator] = []
    block = 1
    while block < length:
        distance = block
        while distance >= 1:
            comparators += [
                (low, low + distance)
                for start in range(distance % block, length - distance, 2 * distance)
                for low in range(start, min(start + distance, length - distance))
                if low // (2 * block) == (low + distance) // (2 * block)
            ]
            distance //= 2
        block *= 2
    return SortingNetwork(length, comparators)


def bitonic(length: int) -> SortingNetwork:
    """Batcher's bitonic sorter, in the form in which all comparators have the same direction.

    A block of `p` wires is folded (`i` with `i ^ (p − 1)`), then compared at the distances `p/4, …, 1`.

    Args:
        length: Number of wires.

    >>> [len(bitonic(length).comparators) for length in (2, 4, 8, 16)]
    [1, 6, 24, 80]
    """
    comparators: list[Comparator] = []
    block = 2
    while block < 2 * length:
        flip = block - 1
        while flip >= 1:
            comparators += [(wire, wire ^ flip) for wire in range(length) if wire < wire ^ flip < length]
            flip = block // 4 if flip == block - 1 else flip // 2
        block *= 2
    return SortingNetwork(length, comparators)


def optimal(length: int) -> SortingNetwork:
    """A network with the fewest possible comparators.

    Args:
        length: Number of wires, from 2 to 10.

    >>> [len(optimal(length).comparators) for length in range(2, 11)]
    [1, 3, 5, 9, 12, 16, 19, 25, 29]
    """
    if length not in OPTIMAL:
        raise ValueError(f"length must be from 2 to 10, got {length}: try batcher(length)")
    pairs = (pair.split("-") for pair in OPTIMAL[length].split())
    return SortingNetwork(length, [(int(low), int(high)) for low, high in pairs])


@dataclass(frozen=True)
class SortCount:
    """The number of topological sorts of one network, a point of the paper's figure.

    Args:
        length: Number of wires.
        comparators: Number of comparators.
        topological_sorts: Number of topological sorts, exact or estimated.
    """

    length: int
    comparators: int
    topological_sorts: int | Estimate


def batcher_figure(lengths: Iterable[int] = range(2, 17), seed: int = 0) -> list[SortCount]:
    """The number of topological sorts of Batcher's network of each length, as in a figure of the paper.

    Args:
        lengths: Numbers of wires.
        seed: Seed of the estimates.

    >>> [point.topological_sorts for point in batcher_figure(range(2, 9))]
    [1, 1, 4, 20, 584, 58496, 7055168]
    """
    points = []
    for length in lengths:
        network = batcher(length)
        try:
            count: int | Estimate = network.topological_sorts()
        except TooManyStates:
            count = estimate_topological_sorts(network.to_digraphs(), seed=seed)
        points.append(SortCount(length, len(network), count))
    return points
