"""Known networks: Batcher's odd-even merge sort and bitonic sorter, and the smallest ones of up to 16 wires."""

import random
from collections.abc import Iterable

from magnetite.sorting.networks import Comparator, SortingNetwork, SortingNetworks

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
    11: (
        "0-9 1-6 2-4 3-7 5-8 0-1 3-5 4-10 6-9 7-8 1-3 2-5 4-7 8-10 0-4 1-2 3-7 5-9 6-8 "
        "0-1 2-6 4-5 7-8 9-10 2-4 3-6 5-7 8-9 1-2 3-4 5-6 7-8 2-3 4-5 6-7"
    ),
    12: (
        "0-8 1-7 2-6 3-11 4-10 5-9 0-1 2-5 3-4 6-9 7-8 10-11 0-2 1-6 5-10 9-11 "
        "0-3 1-2 4-6 5-7 8-11 9-10 1-4 3-5 6-8 7-10 1-3 2-5 6-9 8-10 2-3 4-5 6-7 8-9 4-6 5-7 3-4 5-6 7-8"
    ),
    13: (
        "0-12 1-10 2-9 3-7 5-11 6-8 1-6 2-3 4-11 7-9 8-10 0-4 1-2 3-6 7-8 9-10 11-12 4-6 5-9 8-11 10-12 "
        "0-5 3-8 4-7 6-11 9-10 0-1 2-5 6-9 7-8 10-11 1-3 2-4 5-6 9-10 1-2 3-4 5-7 6-8 2-3 4-5 6-7 8-9 3-4 5-6"
    ),
    14: (
        "0-1 2-3 4-5 6-7 8-9 10-11 12-13 0-2 1-3 4-8 5-9 10-12 11-13 0-4 1-2 3-7 5-8 6-10 9-13 11-12 "
        "0-6 1-5 3-9 4-10 7-13 8-12 2-10 3-11 4-6 7-9 1-3 2-8 5-11 6-7 10-12 1-4 2-6 3-5 7-11 8-10 9-12 "
        "2-4 3-6 5-8 7-10 9-11 3-4 5-6 7-8 9-10 6-7"
    ),
    15: (
        "1-2 3-10 4-14 5-8 6-13 7-12 9-11 0-14 1-5 2-8 3-7 6-9 10-12 11-13 0-7 1-6 2-9 4-10 5-11 8-13 12-14 "
        "0-6 2-4 3-5 7-11 8-10 9-12 13-14 0-3 1-2 4-7 5-9 6-8 10-11 12-13 0-1 2-3 4-6 7-9 10-12 11-13 "
        "1-2 3-5 8-10 11-12 3-4 5-6 7-8 9-10 2-3 4-5 6-7 8-9 10-11 5-6 7-8"
    ),
    16: (
        "0-13 1-12 2-15 3-14 4-8 5-6 7-11 9-10 0-5 1-7 2-9 3-4 6-13 8-14 10-15 11-12 "
        "0-1 2-3 4-5 6-8 7-9 10-11 12-13 14-15 0-2 1-3 4-10 5-11 6-7 8-9 12-14 13-15 "
        "1-2 3-12 4-6 5-7 8-10 9-11 13-14 1-4 2-6 5-8 7-10 9-13 11-14 2-4 3-6 9-12 11-13 3-5 6-8 7-9 10-12 "
        "3-4 5-6 7-8 9-10 11-12 6-7 8-9"
    ),
}
"""Networks with the fewest comparators known. Up to 12 wires no smaller ones exist (Knuth, TAOCP 3, 5.3.4; Codish et
al. 2014 for 9 and 10, Harder 2020 for 11 and 12); the others are from the list of B. Dobbelaere."""


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
    """A network with the fewest comparators known, which up to 12 wires are the fewest possible.

    Args:
        length: Number of wires, from 2 to 16.

    >>> [len(optimal(length).comparators) for length in range(2, 17)]
    [1, 3, 5, 9, 12, 16, 19, 25, 29, 35, 39, 45, 51, 56, 60]
    """
    if length not in OPTIMAL:
        raise ValueError(f"length must be from 2 to {max(OPTIMAL)}, got {length}: try batcher(length)")
    pairs = (pair.split("-") for pair in OPTIMAL[length].split())
    return SortingNetwork(length, [(int(low), int(high)) for low, high in pairs])


def known_networks(lengths: Iterable[int] = range(3, 17), variants: int = 8, seed: int = 0) -> SortingNetworks:
    """The smallest networks known, each also with randomly permuted wires, which are as small.

    Args:
        lengths: Numbers of wires, from 3 to 16.
        variants: Number of networks of each length; the first one is as published.
        seed: Seed of the permutations.

    >>> nets = known_networks(variants=2)
    >>> len(nets), bool(nets.is_correct().all())
    (28, True)
    """
    from magnetite.sorting.compact import relabel  # which uses this file

    published = [optimal(length) for length in lengths]
    others = SortingNetworks.from_networks(
        published[number] for _ in range(variants - 1) for number in range(len(published))
    )
    return SortingNetworks.concat([SortingNetworks.from_networks(published), relabel(others, seed)])


def damaged(networks: SortingNetworks, seed: int = 0) -> SortingNetworks:
    """All incorrect networks that lack one comparator of a given one, and for each comparator one with other wires.

    The checker decides which are incorrect.

    Args:
        networks: The networks.
        seed: Seed of the new wires.

    >>> bool(damaged(known_networks([5], variants=1)).is_correct().any())
    False
    """
    draws = random.Random(seed)
    made = []
    for network in networks:
        pairs = list(network.comparators)
        for place, pair in enumerate(pairs):
            made.append(SortingNetwork(network.length, pairs[:place] + pairs[place + 1 :]))
            low, high = sorted(draws.sample(range(network.length), 2))
            if (low, high) != pair:
                made.append(SortingNetwork(network.length, [*pairs[:place], (low, high), *pairs[place + 1 :]]))
    packed = SortingNetworks.from_networks(made)
    return packed.select((~packed.is_correct()).nonzero().squeeze(1))
