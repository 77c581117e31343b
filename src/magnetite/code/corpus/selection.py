"""Which functions stay: duplicates and frequent names are removed before projects are assigned to splits."""

from collections import Counter
from collections.abc import Sequence
from hashlib import blake2b
from typing import NamedTuple

import numpy as np

from magnetite.code.blocks import SPLITS
from magnetite.code.corpus.settings import Settings

DUPLICATE = "duplicate: same data-flow graph, names hidden"


class Candidates(NamedTuple):
    """Functions of all projects, in a fixed order; one entry per function."""

    project: Sequence[str]
    name: Sequence[str]
    dataflow: Sequence[str]


def select(candidates: Candidates, settings: Settings) -> tuple[np.ndarray, Counter[str]]:
    """Which functions stay in the corpus, and how many do not, by reason.

    Of functions with the same data-flow graph, the first stays, whatever its project: vendored code crosses projects.
    Of those with the same name, then of those of a project, a random choice stays, which depends on seed and graphs.

    Args:
        candidates: The functions.
        settings: The limits and the seed.
    """
    hashes = list(candidates.dataflow)
    kept = np.zeros(len(hashes), dtype=bool)
    seen: set[str] = set()
    for number, value in enumerate(hashes):
        if value not in seen:
            seen.add(value)
            kept[number] = True
    left_out = Counter({DUPLICATE: int((~kept).sum())})
    order = sorted(np.flatnonzero(kept).tolist(), key=lambda number: random_order(settings.seed, hashes[number]))
    for groups, most, reason in (
        (candidates.name, settings.per_name, f"more than {settings.per_name} functions of this name"),
        (candidates.project, settings.per_project, f"more than {settings.per_project} functions of the project"),
    ):
        counts: Counter[str] = Counter()
        for number in order:
            counts[groups[number]] += 1
            if counts[groups[number]] > most:
                kept[number] = False
                left_out[reason] += 1
        order = [number for number in order if kept[number]]
    return kept, +left_out


def limit_per_group(sizes: Sequence[int], total: int) -> int:
    """The largest limit `c` with `Σ min(size, c) ≤ total`, so that large groups are cut first.

    Args:
        sizes: Number of members of each group.
        total: How many may stay.

    >>> limit_per_group([2, 5, 100], 12)
    5
    >>> limit_per_group([2, 5], 12)
    5
    """
    most = max(sizes, default=0)
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if sum(min(size, middle) for size in sizes) <= total else (low, middle - 1)
    return low


def split_of(project: str, settings: Settings) -> str:
    """The split of a project; it depends on its name and the seed, not on the other projects.

    Args:
        project: Name of the project.
        settings: The shares and the seed.

    >>> [split_of(name, Settings()) for name in ("numpy", "flask", "click")]
    ['test', 'train', 'train']
    """
    place = int.from_bytes(random_order(settings.seed, project), "big") / 2**64
    bounds = np.cumsum(settings.shares[:-1])
    return SPLITS[int(np.searchsorted(bounds, place, side="right"))]


def random_order(seed: int, text: str) -> bytes:
    """A key that puts texts into a random order, which depends on the seed only."""
    return blake2b(f"{seed} {text}".encode(), digest_size=8).digest()
