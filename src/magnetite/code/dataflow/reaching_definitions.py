"""Reaching definitions: which writes reach which accesses, over the cyclic control flow (the edges LAST_WRITE).

A block maps the writes that reach its start to `in & ~kill | gen`; the blocks are iterated to a fixed point. Batches of
locations are independent of each other.
"""

from collections import defaultdict

from magnetite.code.dataflow.locations import Batch, Locations, Step
from magnetite.code.dataflow.walk import Draft

MAX_EDGES = 5_000_000
"""The number of reaching writes may be quadratic in the length of a function; this many take about 1 GB."""

MAX_BITS = 4_000_000_000
"""Blocks times writes to one variable (or alias class); as masks they take about 1 GB."""


class Transfer:
    """The transfer function of a block on one batch; `all` are the writes made at any point of the block."""

    __slots__ = ("all", "gen", "kill", "steps")

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.gen = self.kill = self.all = 0

    def append(self, step: Step) -> None:
        """Add a step after all others."""
        self.steps.append(step)
        _, _, _, kill, gen = step
        if gen:
            self.gen = self.gen & ~kill | gen
            self.kill |= kill
            self.all |= gen


def reaching_definitions(draft: Draft, locations: Locations) -> dict[tuple[int, int], bool]:
    """Pairs of nodes `(write, access)`; True where both run in the same call of the same unit.

    Args:
        draft: The walked function.
        locations: Its locations.
    """
    blocks, writes = len(draft.starts), max(len(batch.nodes) for batch in locations.batches)
    if blocks * writes > MAX_BITS:
        raise ValueError(
            f"the function {draft.name!r} has {blocks:,} blocks and {writes:,} writes to one variable, too many for a "
            "data-flow graph: split it, or use kind='ast'"
        )
    transfers: list[dict[int, Transfer]] = [{} for _ in locations.batches]
    for block, (begin, end) in enumerate(draft.spans()):
        unit = draft.unit_of[block]
        for effect in draft.log[begin:end]:
            for step in locations.steps(effect, unit):
                if step[2] or step[4]:
                    changes = transfers[step[1]]
                    if block not in changes:
                        changes[block] = Transfer()
                    changes[block].append(step)
    pairs: dict[tuple[int, int], bool] = {}
    for batch, changes in zip(locations.batches, transfers, strict=True):
        if changes:
            _collect(draft, batch, changes, pairs)
    return pairs


def _collect(draft: Draft, batch: Batch, changes: dict[int, Transfer], pairs: dict[tuple[int, int], bool]) -> None:
    """Add the writes and accesses of one batch."""
    entering = _fixed_point(draft, batch, changes)
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
                f"the function {draft.name!r} has more than {MAX_EDGES:,} pairs of writes and accesses, too many for a "
                "data-flow graph: split it, or use kind='ast'"
            )


def _fixed_point(draft: Draft, batch: Batch, changes: dict[int, Transfer]) -> list[int]:
    """The writes that reach the start of every block: the least fixed point."""
    entering, leaving = [0] * len(draft.starts), [0] * len(draft.starts)
    handlers: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for handler, first, last in draft.exception_edges:
        handlers[handler].append((first, last))
    everything = (1 << len(batch.nodes)) - 1
    for entry in draft.entries:  # nested functions may be called at any time: all writes around them reach them
        entering[entry] = everything & ~batch.owned.get(draft.unit_of[entry], 0)
    changed = True
    while changed:
        changed = False
        for block, predecessors in enumerate(draft.predecessors):
            reach = entering[block]
            for one in predecessors:
                reach |= leaving[one]
            if block in handlers:
                reach |= _raised(draft, changes, entering, handlers[block], block)
            change = changes.get(block)
            after = reach if change is None else reach & ~change.kill | change.gen
            if reach != entering[block] or after != leaving[block]:
                entering[block], leaving[block] = reach, after
                changed = draft.has_loops
    return entering


def _raised(
    draft: Draft, changes: dict[int, Transfer], entering: list[int], ranges: list[tuple[int, int]], handler: int
) -> int:
    """The writes at any point of the blocks from which an exception may reach this one."""
    reach, unit = 0, draft.unit_of[handler]
    for first, last in ranges:
        for source in range(first, last + 1):
            if draft.live[source] and draft.unit_of[source] == unit:
                reach |= entering[source]
                if source in changes:
                    reach |= changes[source].all
    return reach
