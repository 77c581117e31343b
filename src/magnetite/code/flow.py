"""Which writes reach which accesses, over the cyclic control flow.

A block turns the writes that reach its begin into `in & ~kill | gen`; the blocks are gone through until nothing changes.
"""

from dataclasses import dataclass

from magnetite.code.draft import Draft
from magnetite.code.locations import Locations, Step

MAX_EDGES = 5_000_000
"""Reaching writes may be quadratic in the length of a function; this many take about a gigabyte."""


@dataclass(slots=True)
class Transfer:
    """What a block does to the set of writes: `all` are those at any point of it."""

    steps: list[Step]
    gen: int = 0
    kill: int = 0
    all: int = 0


def reaching_writes(draft: Draft, locations: Locations) -> dict[tuple[int, int], bool]:
    """Pairs (write, access) of nodes; True where both run in the same call of the same function."""
    transfers = [
        _transfer(draft, locations, begin, end, draft.unit_of[block])
        for block, (begin, end) in enumerate(draft.stretches())
    ]
    entering = _solve(draft, locations, transfers)
    pairs: dict[tuple[int, int], bool] = {}
    writers, units = locations.writers, locations.units
    for block, transfer in enumerate(transfers):
        reach, unit = entering[block], draft.unit_of[block]
        for node, read, kill, gen in transfer.steps:
            found = reach & read
            while found:
                number = found.bit_length() - 1
                found ^= 1 << number
                pairs[(writers[number], node)] = units[number] == unit
            if gen:
                reach = reach & ~kill | gen
        if len(pairs) > MAX_EDGES:
            raise ValueError(
                f"the function {draft.name!r} has more than {MAX_EDGES:,} pairs of writes and accesses: "
                "it is too large for a data-flow graph; split it, or use kind='ast'"
            )
    return pairs


def _transfer(draft: Draft, locations: Locations, begin: int, end: int, unit: int) -> Transfer:
    """The steps of a block that may be reached by some write, and their sum."""
    transfer = Transfer([])
    for effect in draft.log[begin:end]:
        for step in locations.steps(effect, unit):
            _, read, kill, gen = step
            if read or gen:
                transfer.steps.append(step)
            if gen:
                transfer.gen = transfer.gen & ~kill | gen
                transfer.kill |= kill
                transfer.all |= gen
    return transfer


def _solve(draft: Draft, locations: Locations, transfers: list[Transfer]) -> list[int]:
    """The writes that reach the begin of every block: the least solution."""
    count = len(transfers)
    entering, leaving = [0] * count, [0] * count
    thrown: dict[int, list[tuple[int, int]]] = {}
    for target, first, last in draft.thrown:
        thrown.setdefault(target, []).append((first, last))
    everything = (1 << len(locations.writers)) - 1
    changed = True
    while changed:
        changed = False
        for block in range(count):
            unit = draft.unit_of[block]
            # a nested function may be called at any time: all writes to variables around it reach it
            reach = everything & ~locations.owned.get(unit, 0) if block in draft.entries else 0
            for before in draft.before[block]:
                reach |= leaving[before]
            for first, last in thrown.get(block, ()):
                for source in range(first, last + 1):
                    if draft.live[source] and draft.unit_of[source] == unit:
                        reach |= entering[source] | transfers[source].all
            after = reach & ~transfers[block].kill | transfers[block].gen
            if reach != entering[block] or after != leaving[block]:
                entering[block], leaving[block] = reach, after
                changed = True
    return entering
