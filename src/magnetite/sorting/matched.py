"""Pairs of a correct and an incorrect network that agree in length, number of comparators and depth."""

from collections.abc import Callable, Iterable, Mapping

import torch
from jaxtyping import Int
from torch import Tensor

from magnetite.linalg.counter import derive, mix, signed
from magnetite.sorting.compact import compact, depths, merging, spoil
from magnetite.sorting.generator import check_request, generate
from magnetite.sorting.networks import SortingNetworks

KINDS: dict[str, Callable[[int, Iterable[int], int], SortingNetworks]] = {
    "random": generate,
    "compact": compact,
    "merging": merging,
}
"""Generators of correct networks by kind."""

WIDTHS = {"random": 4, "compact": 1, "merging": 1}
"""Numbers of comparators that count as equal: those of random networks have a wide distribution."""

CHUNK = 8192
"""Number of pairs that are matched at a time."""

MORE = 1.6
"""Number of candidates per pair: those without a counterpart are discarded."""


def matched_pairs(
    count: int,
    lengths: Iterable[int],
    shares: Mapping[str, float],
    seed: int,
    start: int = 0,
    chunk: int = CHUNK,
) -> tuple[SortingNetworks, SortingNetworks, Int[Tensor, " pairs"]]:
    """Correct networks, and for each an incorrect one of the same length, number of comparators and depth.

    Incorrect networks are made of others of the same kind by one change: a comparator is removed, gets other wires, or
    changes places with the next one (see `spoil`). Correct and incorrect candidates are then paired within each
    combination of length, number of comparators and number of parallel steps; those left over are discarded. Hence
    size, depth and density say nothing about the label. Of random networks, whose sizes vary widely, numbers of
    comparators count as equal within groups of four. All lengths are equally frequent.

    Args:
        count: Number of pairs.
        lengths: Numbers of wires, from 2 to 20.
        shares: Fraction of the pairs of each kind: random, compact, merging; they are scaled to a sum of 1.
        seed: Seed of the random numbers.
        start: Number of pairs of the sequence to skip.
        chunk: Number of pairs that are matched at a time; another number gives other pairs.

    Returns:
        Correct networks, incorrect networks, and the number of the kind of each pair.

    >>> correct, wrong, kinds = matched_pairs(100, [7], {"compact": 1.0}, seed=0, chunk=100)
    >>> torch.equal(correct.sizes, wrong.sizes), bool(correct.is_correct().all()), bool(wrong.is_correct().any())
    (True, True, False)
    """
    choices = check_request(count, lengths, start).tolist()
    unknown = [kind for kind in shares if kind not in KINDS]
    if unknown or not sum(shares.values()) > 0 or min(shares.values()) < 0:
        raise ValueError(f"shares must be non-negative fractions of {', '.join(KINDS)}, got {dict(shares)}")
    parts = []
    for number in range(start // chunk, -(-(start + count) // chunk)):
        correct, wrong, kinds = _chunk(chunk, choices, shares, derive(seed, number))
        begin = max(start - number * chunk, 0)
        inside = slice(begin, min(start + count - number * chunk, chunk))
        parts.append((correct[inside], wrong[inside], kinds[inside]))
    if not parts:
        return generate(0, choices, 0), generate(0, choices, 0), torch.empty(0, dtype=torch.long)
    correct, wrong, kinds = zip(*parts, strict=True)
    return SortingNetworks.concat(correct), SortingNetworks.concat(wrong), torch.cat(kinds)


def _chunk(
    size: int, lengths: list[int], shares: Mapping[str, float], key: int
) -> tuple[SortingNetworks, SortingNetworks, Tensor]:
    total, names = sum(shares.values()), [name for name in KINDS if shares.get(name)]
    sums = torch.tensor([shares[name] for name in names], dtype=torch.float64).cumsum(0) / total
    counts = (sums * size).round().long().diff(prepend=torch.zeros(1, dtype=torch.long)).tolist()
    found = [
        _kind(name, number, lengths, derive(key, list(KINDS).index(name)))
        for name, number in zip(names, counts, strict=True)
        if number
    ]
    kinds = torch.repeat_interleave(
        torch.tensor([list(KINDS).index(name) for name, number in zip(names, counts, strict=True) if number]),
        torch.tensor([number for number in counts if number]),
    )
    order = _shuffled(size, derive(key, len(KINDS)))
    correct, wrong = (SortingNetworks.concat(side) for side in zip(*found, strict=True))
    return correct.select(order), wrong.select(order), kinds[order]


def _kind(name: str, count: int, lengths: list[int], key: int) -> tuple[SortingNetworks, SortingNetworks]:
    """Pairs of one kind, equally many of each length up to one."""
    ends = torch.arange(len(lengths) + 1) * count // len(lengths)
    quotas = dict(zip(lengths, ends.diff().tolist(), strict=True))
    changes = ("remove", "rewire", "swap", "last") if name == "random" else ("remove", "rewire", "swap")
    candidates = int(MORE * count) + 32 * len(lengths)
    while True:
        correct = KINDS[name](candidates, lengths, derive(key, 0))
        wrong, _ = spoil(KINDS[name](candidates, lengths, derive(key, 1)), derive(key, 2), changes)
        first, second = _matched(correct, wrong, WIDTHS[name], derive(key, 3))
        length = correct.lengths[first]
        kept = torch.cat([(length == each).nonzero().squeeze(1)[:quota] for each, quota in quotas.items()])
        if len(kept) == count:
            return correct.select(first[kept]), wrong.select(second[kept])
        candidates *= 2


def _matched(
    correct: SortingNetworks, wrong: SortingNetworks, width: int, key: int
) -> tuple[Int[Tensor, " pairs"], Int[Tensor, " pairs"]]:
    """Numbers of correct and incorrect networks that agree, each used once, in random order."""
    cells = [(nets.lengths * 1024 + depths(nets)) * 1024 + nets.sizes // width for nets in (correct, wrong)]
    orders = [_shuffled(len(cell), derive(key, side)) for side, cell in enumerate(cells)]
    places = []
    for cell, order in zip(cells, orders, strict=True):
        by_cell = order[cell[order].sort(stable=True).indices]  # random within each cell
        ordered = cell[by_cell]
        # Number within the cell: the place less that of the first entry of the cell.
        rank = torch.arange(len(ordered)) - torch.searchsorted(ordered, ordered)
        places.append((ordered * 2**20 + rank, by_cell))
    (one, first), (two, second) = places
    if not len(one) or not len(two):
        return first[:0], second[:0]
    place = torch.searchsorted(two, one).clamp(max=len(two) - 1)
    both = two[place] == one
    order = _shuffled(int(both.sum()), derive(key, 2))
    return first[both][order], second[place[both]][order]


def _shuffled(count: int, key: int) -> Int[Tensor, " count"]:
    return mix(torch.tensor(signed(key)), torch.arange(count)).argsort()
