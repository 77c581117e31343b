"""Which writes reach which accesses, over the cyclic control flow.

A block turns the writes that reach its begin into `in & ~kill | gen`; the blocks are gone through until nothing
changes. Batches of locations are independent of each other.
"""

from magnetite.code.draft import Draft
from magnetite.code.locations import Batch, Locations, Step

MAX_EDGES = 5_000_000
"""Reaching writes may be quadratic in the length of a function; this many take about a gigabyte."""

MAX_BITS = 4_000_000_000
"""Blocks times writes to one variable (or to aliases of each other); as masks they take about a gigabyte."""


class Transfer:
    """What a block does to the writes of a batch: `all` are those made at any point of it."""

    __slots__ = ("all", "gen", "kill", "steps")

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.gen = self.kill = self.all = 0

    def add(self, step: Step) -> None:
        """After all others."""
        self.steps.append(step)
        _, _, _, kill, gen = step
        if gen:
            self.gen = self.gen & ~kill | gen
            self.kill |= kill
            self.all |= gen


def reaching_writes(draft: Draft, locations: Locations) -> dict[tuple[int, int], bool]:
    """Pairs (write, access) of nodes; True where both run in the same call of the same function."""
    _check_size(draft, locations)
    transfers: list[dict[int, Transfer]] = [{} for _ in locations.batches]
    for block, (begin, end) in enumerate(draft.stretches()):
        unit = draft.unit_of[block]
        for effect in draft.log[begin:end]:
            for step in locations.steps(effect, unit):
                if step[2] or step[4]:
                    changes = transfers[step[1]]
                    if block not in changes:
                        changes[block] = Transfer()
                    changes[block].add(step)
    pairs: dict[tuple[int, int], bool] = {}
    for batch, changes in zip(locations.batches, transfers, strict=True):
        if changes:
            _collect(draft, batch, changes, pairs)
    return pairs


def _check_size(draft: Draft, locations: Locations) -> None:
    blocks, writes = len(draft.starts), max(len(batch.nodes) for batch in locations.batches)
    if blocks * writes > MAX_BITS:
        raise ValueError(
            f"the function {draft.name!r} has {blocks:,} blocks and {writes:,} writes to one variable: "
            "it is too large for a data-flow graph; split it, or use kind='ast'"
        )


def _collect(draft: Draft, batch: Batch, changes: dict[int, Transfer], pairs: dict[tuple[int, int], bool]) -> None:
    """Add the pairs of one batch."""
    entering = _solve(draft, batch, changes)
    nodes, units = batch.nodes, batch.units
    for block, transfer in changes.items():
        reach, unit = entering[block], draft.unit_of[block]
        for node, _, read, kill, gen in transfer.steps:
            found = reach & read
            while found:
                number = found.bit_length() - 1
                found ^= 1 << number
                pairs[(nodes[number], node)] = units[number] == unit
            if gen:
                reach = reach & ~kill | gen
        if len(pairs) > MAX_EDGES:
            raise ValueError(
                f"the function {draft.name!r} has more than {MAX_EDGES:,} pairs of writes and accesses: "
                "it is too large for a data-flow graph; split it, or use kind='ast'"
            )


def _solve(draft: Draft, batch: Batch, changes: dict[int, Transfer]) -> list[int]:
    """The writes that reach the begin of every block: the least solution."""
    entering, leaving = [0] * len(draft.starts), [0] * len(draft.starts)
    thrown: dict[int, list[tuple[int, int]]] = {}
    for target, first, last in draft.thrown:
        thrown.setdefault(target, []).append((first, last))
    everything = (1 << len(batch.nodes)) - 1
    for entry in draft.entries:  # nested functions may be called at any time: all writes around them reach them
        entering[entry] = everything & ~batch.owned.get(draft.unit_of[entry], 0)
    changed = True
    while changed:
        changed = False
        for block, before in enumerate(draft.before):
            reach = entering[block]
            for one in before:
                reach |= leaving[one]
            if block in thrown:
                reach |= _thrown(draft, changes, entering, thrown[block], block)
            change = changes.get(block)
            after = reach if change is None else reach & ~change.kill | change.gen
            if reach != entering[block] or after != leaving[block]:
                entering[block], leaving[block] = reach, after
                changed = draft.has_loops
    return entering


def _thrown(
    draft: Draft, changes: dict[int, Transfer], entering: list[int], ranges: list[tuple[int, int]], block: int
) -> int:
    """The writes at any point of the blocks that may throw to this one."""
    reach, unit = 0, draft.unit_of[block]
    for first, last in ranges:
        for source in range(first, last + 1):
            if draft.live[source] and draft.unit_of[source] == unit:
                reach |= entering[source]
                if source in changes:
                    reach |= changes[source].all
    return reach
