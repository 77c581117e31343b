"""The order of statements: which must stay before which.

For `reorderings`: `blocks(function)` gives one `Block` for every statement list below the function (its own body, the
bodies and else-branches of compound statements, handlers, cases, nested functions and classes), outermost first.
`block.before[j]` is a bit set: bit `i` is set where statement `i` must stay before statement `j`. It holds direct
constraints only (flow, anti- and output dependencies, barriers), all with `i < j`; the legal orders of the list are the
linear extensions of its transitive closure. A docstring is not part of its block.
"""

import ast
from dataclasses import dataclass

from magnetite.code.draft import Draft
from magnetite.code.locations import Locations
from magnetite.code.walk import draft_of


@dataclass(frozen=True)
class Block:
    """A statement list and the order that it must keep."""

    owner: ast.AST
    """The node that holds the list: a function, `If`, `ExceptHandler`, `match_case`, …"""
    field: str
    """Where it holds it: `body`, `orelse`, `finalbody`."""
    statements: tuple[ast.stmt, ...]
    """The very objects of the list, docstring left out."""
    before: tuple[int, ...]


def blocks(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[Block]:
    """Every statement list below the function.

    >>> [block] = blocks(ast.parse("def f(a, b):\\n    x = a\\n    y = b\\n    return x + y").body[0])
    >>> [f"{before:03b}" for before in block.before]
    ['000', '000', '011']
    """
    draft = draft_of(function, function.name)
    locations = Locations(draft)
    accessed, written = _accesses(draft, locations)
    found = []
    for entry in draft.lists:
        # a declaration must stand before what it declares; nothing else about its place matters
        fixed = {s for s in entry.statements if draft.rows[s][0] in ("Global", "Nonlocal")} | draft.barriers
        before = _order(entry.statements, accessed, written, fixed)
        found.append(Block(entry.holder, entry.field, tuple(entry.trees), tuple(before)))
    return found


def _accesses(draft: Draft, locations: Locations) -> tuple[dict[int, set[int]], dict[int, set[int]]]:
    """For every statement, the locations accessed and written in it and below it; a location is one of its bits."""
    accessed: dict[int, set[int]] = {statement: set() for statement in draft.place}
    written: dict[int, set[int]] = {statement: set() for statement in draft.place}
    numbers: dict[object, int] = {}
    for block, (begin, end) in enumerate(draft.stretches()):
        unit = draft.unit_of[block]
        for effect in draft.log[begin:end]:
            for node, batch, read, _, gen in locations.steps(effect, unit):
                places = locations.batches[batch].places
                touched = {numbers.setdefault(places[bit], len(numbers)) for bit in members(read | gen)}
                changed = {numbers[places[bit]] for bit in members(gen)}
                for statement in _around(draft, node, unit):
                    accessed[statement] |= touched
                    written[statement] |= changed
    return accessed, written


def _around(draft: Draft, node: int, unit: int) -> list[int]:
    """The statements around a node that run in the same unit as it."""
    statement, found = draft.rows[node][6], []
    while statement in draft.place:
        entry = draft.lists[draft.place[statement][0]]
        if entry.unit != unit:
            break
        found.append(statement)
        statement = entry.parent
    return found


def _order(
    statements: list[int], accessed: dict[int, set[int]], written: dict[int, set[int]], barriers: set[int]
) -> list[int]:
    """For every statement of a list, which must come before it: the last writer of what it accesses, and all that
    accessed what it writes since then."""
    writer: dict[int, int] = {}
    readers: dict[int, int] = {}
    last_barrier, since = -1, 0
    order = []
    for position, statement in enumerate(statements):
        before = 0
        for location in accessed[statement]:
            if location in writer:
                before |= 1 << writer[location]
        for location in written[statement]:
            before |= readers.get(location, 0)
        if statement in barriers:
            before |= since
        if last_barrier >= 0:
            before |= 1 << last_barrier
        for location in accessed[statement]:
            readers[location] = readers.get(location, 0) | 1 << position
        for location in written[statement]:
            writer[location], readers[location] = position, 0
        if statement in barriers:
            last_barrier, since = position, 0
        else:
            since |= 1 << position
        order.append(before)
    return order


def members(bits: int) -> list[int]:
    """The numbers of the bits that are set."""
    found = []
    while bits:
        number = bits.bit_length() - 1
        bits ^= 1 << number
        found.append(number)
    return found
