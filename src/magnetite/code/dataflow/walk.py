"""The walk over a function's syntax tree: what it records, and the table of rules that it follows.

The walk visits every syntax node once, in evaluation order, and fills in a `Draft`: the nodes of the graph, a log of
effects, the basic blocks into which the log is cut, and the statement lists. Bindings, aliases and reaching
definitions, which depend on the whole function, are computed from the draft afterwards.
"""

import ast
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from dataclasses import field as default
from itertools import pairwise
from typing import Any

from magnetite.code.dataflow.effects import BARRIER, READ, Effect
from magnetite.code.dataflow.scopes import Scope, Variable
from magnetite.code.graph import PLAIN_FIELDS, POSITIONS

TYPE, ATTRIBUTE, PARENT, FIELD, LINE, DEPTH, STATEMENT = range(7)
"""The entries of `Draft.nodes`; STATEMENT is the innermost statement that the node belongs to."""

Source = tuple[Variable, tuple[str, ...]]
"""A variable and a path of selectors: the object that it refers to, or a part of one."""

Path = tuple[Variable, str | None] | tuple[()] | None
"""What the value of an expression is part of: a variable's heap; `()` for a new sequence; None for anything else."""

POSITION = {name: tuple(name if k == 1 else f"{name}:{k}" for k in range(1, POSITIONS + 1)) for name in PLAIN_FIELDS}
"""The edge names of the elements of a list: `POSITION["args"][1]` is `args:2`."""

LAST = POSITIONS - 1


@dataclass(slots=True)
class StatementList:
    """A statement list: its position in the tree, and its statements as graph nodes and as syntax nodes."""

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
    """A statement that `break`, `continue`, `return` or `raise` may meet on its way out."""

    kind: str
    """`loop`, `final` (a `try` with `finally`) or `catch` (a `try` that catches everything)."""
    statement: int
    height: int
    """Number of statements that were open when the frame began."""
    breaks: list[int] = default(default_factory=list)
    continues: list[int] = default(default_factory=list)
    leaving: list[str] = default(default_factory=list)


@dataclass(slots=True)
class Group:
    """Children whose order is irrelevant unless one writes what another accesses: their nodes and log positions."""

    first: ast.AST
    """The first of them in the syntax tree."""
    nodes: list[int]
    ends: list[int]
    unit: int


class FollowCalls(Exception):
    """Raised at the first nested function or method bound to a name: only then must calls be followed, but all."""


class Draft:
    """What the walk records. A unit is a body that runs on its own: the function, a nested function, a lambda."""

    def __init__(self, name: str, keep_docstrings: bool, follows_calls: bool):
        self.name, self.keep_docstrings, self.follows_calls = name, keep_docstrings, follows_calls
        self.nodes: list[tuple[Any, ...]] = []
        """TYPE, ATTRIBUTE, … of each node."""
        self.log: list[Effect] = []
        self.loads: list[int] = []
        self.calculated: list[tuple[int, int]] = []
        self.callees: dict[int, int] = {}
        self.mentions: list[tuple[int, Variable, ast.Name | ast.Attribute]] = []
        """Occurrences of the function's name, as a variable or as an attribute of one."""
        self.copies: list[tuple[Source, Source]] = []
        """Pairs of sources that may be one object."""
        self.held: list[tuple[Source, Source]] = []
        """`(whole, member)`: the whole, a part of a container, may be the member."""
        self.alike: list[tuple[Source, Source]] = []
        """Pairs of sources that may have the same parts: an object and its copy."""
        self.classes: dict[Variable, list[str]] = {}
        """Nested classes, and those of their attributes that all instances share."""
        self.lazy: dict[Variable, list[Source]] = {}
        """What iterators and views, by the variables that stand for them, read where they are used."""
        self.deferred: dict[int, list[Effect]] = {}
        """Effects of generators that have a name: units without a body, which run where the name is used."""
        self.values: dict[int, list[Source]] = {}
        """What expressions may be aliases of, by the id of their syntax nodes, see `values`."""
        self.calls: list[tuple[ast.Call, Scope]] = []
        self.extended: list[tuple[Source, Source]] = []
        """Like `held`, for `xs += ys`: elements that the left side may have taken from the right one."""
        self.results: dict[int, Source] = {}
        """The objects that stand for the results of calls of unknown functions, by the id of the call."""
        self.parameters: dict[int, list[Variable]] = {}
        self.signatures: dict[int, ast.arguments] = {}
        self.returned: dict[int, list[Source]] = {}
        self.bound: set[tuple[int, int]] = set()
        """For every unit, its parameters, and what it may return; calls (by their id) that are bound to units."""
        self.groups: list[Group] = []
        self.side_effects = 0
        self.discarded: ast.AST | None = None
        # Basic blocks: block b is log[starts[b]:starts[b + 1]].
        self.starts: list[int] = [0]
        self.predecessors: list[list[int]] = [[]]
        self.live: list[bool] = [True]
        self.unit_of: list[int] = [0]
        self.exception_edges: list[tuple[int, int, int]] = []
        """`(handler, first, last)`: any point of the blocks `first…last` may jump to the block `handler`."""
        self.block = 0
        self.unit, self.units = 0, 1
        self.entries: set[int] = set()
        self.unit_parents: list[int] = [-1]
        self.open_finally = 0
        self.has_loops = False
        # Statements.
        self.statement = 0
        self.open: list[int] = []
        self.frames: list[Frame] = []
        self.barriers: set[int] = set()
        self.lists: list[StatementList] = []
        self.position: dict[int, tuple[int, int]] = {}
        self.sublists: dict[int, dict[str, list[int]]] = {}
        self.exhaustive: set[int] = set()
        """Compound statements that cannot be skipped: `while True`, `match` with a wildcard, catch-all `try`."""
        self.jumps: dict[int, list[tuple[str, int]]] = {}
        self.resumed: dict[int, list[tuple[str, int]]] = {}
        """Jumps that continue after the `finally` of a statement: their kind and the statement they meet next."""
        self.scope = Scope("module", None, -1)
        self.itself: Variable | None = None
        """The function as seen from its own body; a method does not see itself."""
        self.receiver: Variable | None = None
        """The `self` or `cls` of a method."""

    def add(self, kind: str, attribute: str | None, parent: int, field: str, line: int = 0) -> int:
        """Add a node below its parent; return its number."""
        nodes = self.nodes
        nodes.append((kind, attribute, parent, field, line, nodes[parent][5] + 1, self.statement))
        return len(nodes) - 1

    def start(self, predecessors: list[int]) -> int:
        """Start a new block; dead predecessors count only where no live one exists."""
        live = [block for block in predecessors if self.live[block]]
        self.block = len(self.starts)
        self.starts.append(len(self.log))
        self.predecessors.append(live or predecessors)
        self.live.append(bool(live))
        self.unit_of.append(self.unit)
        return self.block

    def start_handler(self, first: int, last: int) -> None:
        """Start a block that any point of the blocks `first…last` may jump to."""
        block = self.start([])
        self.live[block] = self.live[first]
        self.exception_edges.append((block, first, last))

    def link_back(self, head: int, blocks: list[int]) -> None:
        """Add the back edges of a loop."""
        self.has_loops = True
        self.predecessors[head] = self.predecessors[head] + [b for b in blocks if self.live[b] or not self.live[head]]

    def spans(self) -> Iterator[tuple[int, int]]:
        """Where each block begins and ends in the log."""
        return pairwise([*self.starts, len(self.log)])

    def barrier(self, height: int = 0) -> None:
        """Fix the position of the current statement and of the open ones around it, down to `height`."""
        self.barriers.update(self.open[height:])

    def height_of(self, kind: str) -> int:
        """Number of statements that were open when the innermost frame of this kind began; 0 is the function."""
        return next((frame.height for frame in reversed(self.frames) if frame.kind == kind), 0)

    def jump(self, kind: str, block: int, statement: int | None) -> int:
        """Let `break`, `continue` or `return` go to the next statement that it meets; return that one, -1 for none."""
        for frame in reversed(self.frames):
            if frame.kind == "final" or (frame.kind == "loop" and kind != "return"):
                if frame.kind == "final":
                    frame.leaving.append(kind)
                else:
                    (frame.breaks if kind == "break" else frame.continues).append(block)
                if statement is not None:
                    self.jumps.setdefault(frame.statement, []).append((kind, statement))
                return frame.statement
        return -1

    def suspend(self, node: int) -> None:
        """Record a `yield` or `await`: a barrier up to the function."""
        self.log.append((BARRIER, None, None, node))
        self.side_effects += 1
        self.barrier()


RULES: dict[type, Callable[..., Any]] = {}
"""The function that walks over each type of syntax node.

A rule takes the draft, a syntax node, the number of its parent in the graph and the name of the edge from there. It
adds the node and everything below it, logs the effects, and returns the `Path` of an expression's value.
"""


def rule(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register the rule for these classes of `ast`; names that this version of Python lacks are skipped."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        RULES.update({getattr(ast, name): function for name in names if hasattr(ast, name)})
        return function

    return register


def numbered(field: str, k: int) -> str:
    """The edge name of element `k` of a list, the last positions sharing one name."""
    return POSITION[field][k if k < LAST else LAST]


def visit(draft: Draft, node: ast.AST, parent: int, field: str) -> Path:
    """Walk over a syntax node."""
    return RULES.get(type(node), generic)(draft, node, parent, field)


def evaluate(draft: Draft, node: ast.expr, parent: int, field: str) -> tuple[list[int], Path]:
    """Walk over an expression; return the names that it loads, and its path."""
    begin = len(draft.loads)
    path = RULES.get(type(node), generic)(draft, node, parent, field)
    return draft.loads[begin:], path


def visit_list(draft: Draft, nodes: Sequence[ast.AST | None], parent: int, field: str) -> None:
    """Walk over elements whose position matters; `None` leaves a gap."""
    names = POSITION[field]
    for k, node in enumerate(nodes):
        if node is not None:
            RULES.get(type(node), generic)(draft, node, parent, names[k if k < LAST else LAST])


def visit_unordered(draft: Draft, nodes: Sequence[ast.AST], parent: int, field: str) -> None:
    """Walk over elements whose position is irrelevant, unless `graph.ordered_operands` finds a conflict later."""
    if not nodes:
        return
    group, side_effects = Group(nodes[0], [], [len(draft.log)], draft.unit), draft.side_effects
    for node in nodes:
        group.nodes.append(len(draft.nodes))
        RULES.get(type(node), generic)(draft, node, parent, field)
        group.ends.append(len(draft.log))
    if draft.side_effects != side_effects and len(nodes) > 1:
        draft.groups.append(group)


def visit_body(draft: Draft, trees: Sequence[ast.stmt], holder: ast.AST, owner: int, field: str = "body") -> int:
    """Walk over a statement list; return its number."""
    parent = draft.statement
    number = len(draft.lists)
    depth = draft.lists[draft.position[parent][0]].depth + 1 if parent in draft.position else 0
    entry = StatementList(owner, field, parent, depth, draft.unit, holder)
    draft.lists.append(entry)
    if not draft.keep_docstrings and field == "body" and _has_docstring(holder, trees):
        trees = trees[1:]
    for position, tree in enumerate(trees):
        draft.statement = index = len(draft.nodes)
        draft.position[index] = (number, position)
        entry.statements.append(index)
        entry.trees.append(tree)
        draft.open.append(index)
        RULES.get(type(tree), generic)(draft, tree, owner, field)
        draft.open.pop()
    draft.statement = parent
    return number


def _has_docstring(holder: ast.AST, trees: Sequence[ast.stmt]) -> bool:
    match trees:
        case [ast.Expr(ast.Constant(str())), *_]:
            return isinstance(holder, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
    return False


def generic(draft: Draft, node: Any, parent: int, field: str) -> Path:
    """Walk over a node without a rule of its own: its fields in order, its strings as the attribute."""
    texts = [text for name in node._fields if isinstance(text := getattr(node, name, None), str)]
    attribute = " ".join(texts) or None
    index = draft.add(type(node).__name__, attribute, parent, field, getattr(node, "lineno", 0))
    for name in node._fields:
        child = getattr(node, name, None)
        if isinstance(child, ast.AST):
            visit(draft, child, index, name)
        elif isinstance(child, list) and name in POSITION:
            visit_list(draft, [item if isinstance(item, ast.AST) else None for item in child], index, name)
    return None


def load(draft: Draft, node: ast.Name, parent: int, field: str, effect: int) -> Path:
    """Load a variable, with the given effect."""
    index = draft.add("Name", node.id, parent, field, node.lineno)
    draft.add("Load", None, index, "ctx")
    variable = draft.scope.variable(node.id)
    if node.id == draft.name:
        draft.mentions.append((index, variable, node))
    draft.loads.append(index)
    draft.log.append((effect, variable, None, index))
    return (variable, None)


def visit_base(draft: Draft, node: ast.expr, parent: int, field: str) -> Path:
    """Walk over the operand of `.attr`, `[…]` or a call: a variable is read, but not the heap behind it."""
    return load(draft, node, parent, field, READ) if type(node) is ast.Name else visit(draft, node, parent, field)
