"""The order of statements: which must stay before which, and the edges `CFG_NEXT` that say so.

For `reorderings`: `blocks(function)` gives one `Block` for every statement list below the function (its own body, the
bodies and else-branches of compound statements, handlers, cases, nested functions and classes), outermost first.
`block.before[j]` is a bit set: bit `i` is set where statement `i` must stay before statement `j`. It holds direct
constraints only (flow, anti- and output dependencies, barriers), all with `i < j`; the legal orders of the list are the
linear extensions of its transitive closure. A docstring is not part of its block.
"""

import ast
from dataclasses import dataclass

from magnetite.code.draft import Draft
from magnetite.code.flow import MAX_EDGES
from magnetite.code.locations import Locations
from magnetite.code.walk import draft_of

Pairs = dict[tuple[int, int], None]


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


class Order:
    """`CFG_NEXT`: a dependency DAG inside each block; sources hang on its entry, sinks lead to what follows."""

    def __init__(self, draft: Draft, writes: dict[tuple[int, int], bool]):
        self.draft = draft
        self.edges: Pairs = {}
        self.follows: dict[int, dict[int, set[int]]] = {}
        """For every list, the statements that depend on each of its statements."""
        self.exits: dict[int, list[int]] = {}
        self.list_exits: dict[int, list[int]] = {}
        self.list_sources: dict[int, list[int]] = {}
        self.breaks: dict[int, list[int]] = {}
        self.detained: dict[int, list[int]] = {}
        rows = draft.rows
        pairs = {(rows[write][6], rows[access][6]) for (write, access), same_call in writes.items() if same_call}
        for one, other in pairs:
            if one != other:
                self._depend(one, other)
        for number in range(len(draft.lists) - 1, -1, -1):
            self._finish_list(number)
        self._connect([0], self._sources(draft.shapes[0]["body"]))

    def _depend(self, one: int, other: int) -> None:
        """Let a statement that accesses depend on one that writes, in the list in which they (or those around them)
        stand together; not if the write comes later in it."""
        draft, place = self.draft, self.draft.place
        while one != other:
            first, second = place.get(one), place.get(other)
            if first is None and second is None:
                return
            if first is not None and second is not None and first[0] == second[0]:
                if first[1] < second[1]:
                    self.follows.setdefault(first[0], {}).setdefault(one, set()).add(other)
                return
            depth = -1 if first is None else draft.lists[first[0]].depth
            if second is None or (first is not None and depth >= draft.lists[second[0]].depth):
                one = draft.lists[first[0]].parent  # pyright: ignore
            else:
                other = draft.lists[second[0]].parent

    def _finish_list(self, number: int) -> None:
        """The edges inside a list whose inner lists are finished."""
        draft, statements = self.draft, self.draft.lists[number].statements
        for statement in statements:
            self.exits[statement] = self._finish_statement(statement)
        if len(statements) == 1:
            self.list_sources[number], self.list_exits[number] = statements, self.exits[statements[0]]
            return
        follows = self.follows.get(number, {})
        for statement, dependants in follows.items():
            self._connect(self.exits[statement], dependants)
        stretch: list[int] = []
        barrier: int | None = None
        for statement in [*statements, None]:
            if statement is not None and statement not in draft.barriers:
                stretch.append(statement)
                continue
            inside = set(stretch)
            targets = {target for one in stretch for target in follows.get(one, ()) if target in inside}
            sources = [one for one in stretch if one not in targets]
            sinks = [one for one in stretch if not follows.get(one, set()) & inside]
            if barrier is None:
                self.list_sources[number] = sources or ([] if statement is None else [statement])
            else:
                self._connect(self.exits[barrier], sources or ([] if statement is None else [statement]))
            ends = [way for one in sinks for way in self.exits[one]]
            if statement is None:
                self.list_exits[number] = ends if stretch or barrier is None else self.exits[barrier]
            elif stretch:
                self._connect(ends, [statement])
            stretch, barrier = [], statement

    def _finish_statement(self, index: int) -> list[int]:
        """The edges between a statement and its lists; the nodes from which control leaves it."""
        kind, shape = self.draft.rows[index][0], self.draft.shapes.get(index)
        if shape is None:
            return [] if kind in ("Return", "Raise", "Break", "Continue") else [index]
        if kind in ("FunctionDef", "AsyncFunctionDef", "ClassDef"):
            self._connect([index], self._sources(shape["body"]))
            return [index]
        if kind in ("Try", "TryStar"):
            return self._finish_try(index, shape)
        if kind == "Match":
            return self._finish_match(index, shape["cases"])
        self._connect([index], self._sources(shape["body"]))
        ends = self._ends(shape["body"])
        if kind in ("With", "AsyncWith"):
            return ends
        otherwise = shape["orelse"]
        self._connect([index], self._sources(otherwise))
        skipped = self._ends(otherwise) if otherwise else [] if index in self.draft.complete else [index]
        if kind == "If":
            return ends + skipped
        self._connect(ends, [index])
        ways = self.draft.ways.get(index, [])
        self._connect([way for name, way in ways if name == "continue"], [index])
        return skipped + [way for name, way in ways if name == "break"] + self.breaks.get(index, [])

    def _finish_match(self, index: int, cases: list[int]) -> list[int]:
        draft, ends, before = self.draft, [], index
        for number in cases:
            case = draft.lists[number].owner
            self._connect([before], [case])
            self._connect([case], self.list_sources[number])
            ends += self.list_exits[number]
            before = case
        return ends if index in draft.complete else [*ends, before]

    def _finish_try(self, index: int, shape: dict[str, list[int]]) -> list[int]:
        draft = self.draft
        self._connect([index], self._sources(shape["body"]))
        ends = self._ends(shape["body"])
        if shape["orelse"]:
            self._connect(ends, self._sources(shape["orelse"]))
            ends = self._ends(shape["orelse"])
        thrown = [index, *draft.lists[shape["body"][0]].statements]
        for number in shape["handlers"]:
            handler = draft.lists[number].owner
            self._connect(thrown, [handler])
            self._connect([handler], self.list_sources[number])
            ends = ends + self.list_exits[number]
            thrown = [handler]
        if not shape["finalbody"]:
            return ends
        unmatched = [] if index in draft.complete else thrown[:1]
        detained = [way for _, way in draft.ways.get(index, [])] + self.detained.get(index, [])
        self._connect([*ends, *unmatched, *detained], self._sources(shape["finalbody"]))
        leaving = self._ends(shape["finalbody"])
        for kind, meets in draft.onward.get(index, []):
            self._lead_on(kind, meets, leaving)
        return leaving

    def _lead_on(self, kind: str, meets: int, leaving: list[int]) -> None:
        """Let `break`, `continue` or `return` go on after a `finally`."""
        if meets < 0:
            return
        if self.draft.rows[meets][0] in ("Try", "TryStar"):
            self.detained.setdefault(meets, []).extend(leaving)
        elif kind == "break":
            self.breaks.setdefault(meets, []).extend(leaving)
        else:
            self._connect(leaving, [meets])

    def _sources(self, lists: list[int]) -> list[int]:
        return [source for number in lists for source in self.list_sources[number]]

    def _ends(self, lists: list[int]) -> list[int]:
        return [end for number in lists for end in self.list_exits[number]]

    def _connect(self, sources, targets) -> None:
        for source in sources:
            for target in targets:
                self.edges[(source, target)] = None
        if len(self.edges) > MAX_EDGES:
            raise ValueError(
                f"the function {self.draft.name!r} has more than {MAX_EDGES:,} CFG_NEXT edges: "
                "it is too large for a data-flow graph; split it, or use kind='ast'"
            )
