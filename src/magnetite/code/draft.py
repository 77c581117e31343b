"""Draft: what one walk over a function's syntax tree writes down.

Rows of nodes, a log of effects in the order of evaluation, the control flow between stretches of that log ("blocks"),
and the statement lists. What needs the whole function (names, aliases, reaching writes) comes after the walk.
"""

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from dataclasses import field as default
from itertools import pairwise

from magnetite.code.effects import BARRIER, Copy, Effect
from magnetite.code.scopes import Scope, Variable

Path = tuple[Variable, str | None] | tuple[()] | None
"""What an expression's value is part of: a variable's heap (and by which selector); `()` a new sequence; else None."""

Source = tuple[Variable, str | None]
"""A variable, or a part of what lies behind it."""


@dataclass(slots=True)
class StatementList:
    """A statement list: where it hangs, and its statements as nodes of the graph and of the tree."""

    owner: int
    field: str
    parent: int
    depth: int
    unit: int
    holder: ast.AST
    statements: list[int] = default(default_factory=list)
    trees: list[ast.stmt] = default(default_factory=list)


@dataclass(slots=True)
class Frame:
    """Something that `break`, `continue`, `return` or `raise` has to do with on its way out."""

    kind: str
    """`loop`, `final` (a try with a finally) or `catch` (a try that catches everything)."""
    statement: int
    height: int
    """How many statements were open when it began."""
    breaks: list[int] = default(default_factory=list)
    continues: list[int] = default(default_factory=list)
    leaving: list[str] = default(default_factory=list)


@dataclass(slots=True)
class Group:
    """Children whose order does not matter unless one writes what another accesses: nodes and ends in the log."""

    nodes: list[int]
    ends: list[int]
    unit: int


class Draft:
    """The columns and the log under construction."""

    def __init__(self, name: str, keep_docstrings: bool):
        self.name, self.keep_docstrings = name, keep_docstrings
        # (type, attribute, parent, field, line, depth, statement) for every node
        self.rows: list[tuple[str, str | None, int, str, int, int, int]] = []
        self.log: list[Effect] = []
        self.loads: list[int] = []
        self.calculated: list[tuple[int, int]] = []
        self.callees: dict[int, int] = {}
        self.mentions: list[tuple[int, Variable, ast.Name | ast.Attribute]] = []
        """The function's name, as that of a variable, or as an attribute of one."""
        self.copies: list[tuple[Source, Source]] = []
        self.groups: list[Group] = []
        self.effects = 0
        self.discarded: ast.AST | None = None
        # control flow: block b is log[starts[b]:starts[b + 1]]
        self.starts: list[int] = [0]
        self.before: list[list[int]] = [[]]
        self.live: list[bool] = [True]
        self.unit_of: list[int] = [0]
        self.thrown: list[tuple[int, int, int]] = []
        self.block = 0
        self.unit, self.units = 0, 1
        self.entries: set[int] = set()
        self.unit_parents: list[int] = [-1]
        self.finals = 0
        self.has_loops = False
        # statements
        self.statement = 0
        self.open: list[int] = []
        self.frames: list[Frame] = []
        self.barriers: set[int] = set()
        self.lists: list[StatementList] = []
        self.place: dict[int, tuple[int, int]] = {}
        self.shapes: dict[int, dict[str, list[int]]] = {}
        self.complete: set[int] = set()
        self.ways: dict[int, list[tuple[str, int]]] = {}
        self.onward: dict[int, list[tuple[str, int]]] = {}
        self.scope = Scope("module", None, -1)
        self.itself: Variable | None = None
        """The function as its own body sees it; a method does not see itself."""
        self.receiver: Variable | None = None
        """The `self` or `cls` of a method."""

    def add(self, kind: str, attribute: str | None, parent: int, field: str, line: int = 0) -> int:
        """A new node below its parent; its number."""
        rows = self.rows
        rows.append((kind, attribute, parent, field, line, rows[parent][5] + 1, self.statement))
        return len(rows) - 1

    def start(self, before: list[int]) -> int:
        """Begin a new block after these; live ones count, dead ones only among themselves."""
        live = [block for block in before if self.live[block]]
        self.block = len(self.starts)
        self.starts.append(len(self.log))
        self.before.append(live or before)
        self.live.append(bool(live))
        self.unit_of.append(self.unit)
        return self.block

    def stretches(self) -> Iterator[tuple[int, int]]:
        """Where each block begins and ends in the log."""
        return pairwise([*self.starts, len(self.log)])

    def units_around(self, unit: int) -> set[int]:
        """The unit, those that it lies in, and the module."""
        around = {unit}
        while unit >= 0:
            unit = self.unit_parents[unit]
            around.add(unit)
        return around

    def start_thrown(self, first: int, last: int) -> int:
        """Begin a block that any point of blocks `first…last` may jump to."""
        block = self.start([])
        self.live[block] = self.live[first]
        self.thrown.append((block, first, last))
        return block

    def link(self, block: int, before: list[int]) -> None:
        """Let control come back to a block."""
        self.has_loops = True
        self.before[block] = self.before[block] + [b for b in before if self.live[b] or not self.live[block]]

    def barrier(self, height: int = 0) -> None:
        """Fix the place of the current statement, and of those around it that were opened above the height."""
        self.barriers.update(self.open[height:])

    def sources(self, copies: Iterable[Copy]) -> list[Source]:
        """Names as seen from here."""
        return [(self.scope.variable(name), selector) for name, selector in copies]

    def suspend(self, node: int) -> None:
        """A `yield` or `await`: a barrier up to the function."""
        self.log.append((BARRIER, None, None, node))
        self.effects += 1
        self.barrier()

    def leave(self, kind: str, block: int, way: int | None) -> int:
        """Let `break`, `continue` or `return` (statement `way`) go to the statement that it meets next, -1 for none."""
        for frame in reversed(self.frames):
            if frame.kind == "final" or (frame.kind == "loop" and kind != "return"):
                if frame.kind == "final":
                    frame.leaving.append(kind)
                else:
                    (frame.breaks if kind == "break" else frame.continues).append(block)
                if way is not None:
                    self.ways.setdefault(frame.statement, []).append((kind, way))
                return frame.statement
        return -1

    def height_of(self, kind: str) -> int:
        """How many statements were open when the innermost frame of this kind began; 0 is the function."""
        for frame in reversed(self.frames):
            if frame.kind == kind:
                return frame.height
        return 0
