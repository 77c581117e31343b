"""Where the order of operands, keywords, set elements and import aliases matters after all.

`xs.pop() + len(xs)` is not `len(xs) + xs.pop()`: one operand writes what the other accesses.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

from magnetite.code.draft import Draft, Group
from magnetite.code.effects import BARRIER
from magnetite.code.locations import Locations
from magnetite.code.walk.visiting import LAST, POSITION


def fixed_order(draft: Draft, locations: Locations) -> Iterator[tuple[int, str]]:
    """Nodes of such groups, with edge names that tell their positions."""
    if not draft.groups:
        return
    writing = _writing(draft, locations)
    for group in draft.groups:
        first = bisect_left(writing, group.ends[0])
        if first < len(writing) and writing[first] < group.ends[-1] and _in_conflict(group, draft, locations):
            for position, number in enumerate(group.nodes):
                yield number, POSITION[draft.rows[number][3]][min(position, LAST)]


def _writing(draft: Draft, locations: Locations) -> list[int]:
    """Places in the log that write something, or hand control over to others."""
    found = []
    for block, (begin, end) in enumerate(draft.stretches()):
        unit = draft.unit_of[block]
        for place in range(begin, end):
            effect = draft.log[place]
            if effect[0] == BARRIER or any(gen for _, _, _, _, gen in locations.steps(effect, unit)):
                found.append(place)
    return found


def _in_conflict(group: Group, draft: Draft, locations: Locations) -> bool:
    """Whether some member writes what another accesses, or hands control over."""
    accessed_before, written_before = Counter[int](), Counter[int]()
    for begin, end in pairwise(group.ends):
        accessed, written = Counter[int](), Counter[int]()
        for effect in draft.log[begin:end]:
            if effect[0] == BARRIER:
                return True
            for _, batch, read, _, gen in locations.steps(effect, group.unit):
                accessed[batch] |= read | gen
                written[batch] |= gen
        for batch, bits in accessed.items():
            if written[batch] & accessed_before[batch] or written_before[batch] & bits:
                return True
            accessed_before[batch] |= bits
            written_before[batch] |= written[batch]
    return False
