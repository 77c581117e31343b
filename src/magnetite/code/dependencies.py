"""What must keep its order when a function is rewritten: statements, and the parts of expressions.

Statements: `blocks(function)` gives one `Block` per statement list below the function (its own body, the bodies and
else-branches of compound statements, handlers, cases, nested functions and classes), outermost first. `Block.before`
records only direct constraints (flow, anti- and output dependences, barriers); the legal orders of the list are the
linear extensions of their transitive closure.

Expressions: `movable_parts` gives the operands, keywords, set elements and imported names that may be exchanged, as far
as their `traits` allow it; `constraints(function).fixed` names those that the data-flow graph orders.
"""

import ast
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import ne
from typing import TypeVar

from magnetite.code.dataflow.definitions import walk_function
from magnetite.code.dataflow.effects import MUTATORS, SEQUENCE_MAKERS, SEQUENCE_METHODS, WRITERS
from magnetite.code.dataflow.graph import ordered_groups
from magnetite.code.dataflow.locations import Locations
from magnetite.code.dataflow.walk import STATEMENT, TYPE, Draft
from magnetite.sorting.topological_sorts import members

SYMBOLS: dict[type[ast.AST], str] = {
    ast.Add: "+",
    ast.Mult: "*",
    ast.BitOr: "|",
    ast.BitXor: "^",
    ast.BitAnd: "&",
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Is: "is",
    ast.IsNot: "is not",
    ast.And: "and",
    ast.Or: "or",
}
"""The operators whose operands the data-flow graph does not order."""

COMMUTATIVE = frozenset(SYMBOLS.values()) - {"and", "or"}
"""The operators whose operands `reorderings` swaps by default; `and` and `or` guard what follows them."""

BINDS, WRITES, READS, SEQUENCE, HIDDEN = 1, 2, 4, 8, 16
"""Traits of an expression: it binds a name or suspends the function; it writes an object; it reads objects (all but
constants and operators on them); it is evidently a string, list or tuple; it may write what its text does not name."""

HARMLESS = frozenset(
    {"abs", "bool", "callable", "chr", "divmod", "float", "getattr", "hasattr", "hash", "id", "int", "isinstance"}
    | {"issubclass", "len", "ord", "range", "repr", "round", "slice", "str", "super", "type"}
)
"""Functions that change nothing, not even an iterator, even if calls are not assumed to be pure."""

STRINGS = frozenset({"__doc__", "__file__", "__module__", "__name__", "__qualname__"})
"""Attributes that hold strings."""

RUNNING = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom, ast.For, ast.With)
RUNNING += (ast.comprehension, ast.Starred)
"""Nodes that run code without a call: decorators, class bodies, modules, iterators, context managers."""

T = TypeVar("T")


@dataclass(frozen=True)
class Block:
    """A statement list and the order that it must keep.

    Args:
        owner: The syntax node that holds the list: a function, `If`, `ExceptHandler`, `match_case`, …
        field: The field that holds it: `body`, `orelse`, `finalbody`.
        statements: The objects in the list, without the docstring.
        before: Bit `i` of `before[j]` is set where statement `i` must stay before statement `j`.
    """

    owner: ast.AST
    field: str
    statements: tuple[ast.stmt, ...]
    before: tuple[int, ...]


@dataclass(frozen=True)
class Constraints:
    """What the data flow of a function orders.

    Args:
        blocks: Every statement list below the function.
        fixed: First parts (by their id) of operands, keywords, set elements and imports whose order matters.
    """

    blocks: list[Block]
    fixed: frozenset[int]


def constraints(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Constraints:
    """What must keep its order in a function, by the analysis of the data-flow graph.

    Args:
        function: The definition.
    """
    draft = walk_function(function)
    locations = Locations(draft)
    fixed = frozenset(id(group.first) for group in ordered_groups(draft, locations))
    return Constraints(_blocks(draft, locations), fixed)


def blocks(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[Block]:
    """Every statement list below a function.

    Args:
        function: The definition.

    >>> [block] = blocks(ast.parse("def f(a, b):\\n    x = a\\n    y = b\\n    return x + y").body[0])
    >>> [f"{before:03b}" for before in block.before]
    ['000', '000', '011']
    """
    return constraints(function).blocks


def _blocks(draft: Draft, locations: Locations) -> list[Block]:
    accessed, written = _accesses(draft, locations)
    found = []
    for entry in draft.lists:
        # a declaration must stay before what it declares
        fixed = {s for s in entry.statements if draft.nodes[s][TYPE] in ("Global", "Nonlocal")} | draft.barriers
        before = _order(entry.statements, accessed, written, fixed)
        found.append(Block(entry.holder, entry.field, tuple(entry.trees), tuple(before)))
    return found


def _accesses(draft: Draft, locations: Locations) -> tuple[dict[int, set[int]], dict[int, set[int]]]:
    """For every statement, the locations accessed and written in it and below it."""
    accessed: dict[int, set[int]] = {statement: set() for statement in draft.position}
    written: dict[int, set[int]] = {statement: set() for statement in draft.position}
    numbers: dict[object, int] = {}
    for block, (begin, end) in enumerate(draft.spans()):
        unit = draft.unit_of[block]
        for effect in draft.log[begin:end]:
            for node, batch, read, _, gen in locations.steps(effect, unit):
                targets = locations.batches[batch].targets
                touched = {numbers.setdefault(targets[bit], len(numbers)) for bit in members(read | gen)}
                changed = {numbers[targets[bit]] for bit in members(gen)}
                for statement in _around(draft, node, unit):
                    accessed[statement] |= touched
                    written[statement] |= changed
    return accessed, written


def _around(draft: Draft, node: int, unit: int) -> list[int]:
    """The statements around a node that run in the same unit."""
    statement, found = draft.nodes[node][STATEMENT], []
    while statement in draft.position:
        entry = draft.lists[draft.position[statement][0]]
        if entry.unit != unit:
            break
        found.append(statement)
        statement = entry.parent
    return found


def _order(
    statements: list[int], accessed: dict[int, set[int]], written: dict[int, set[int]], barriers: set[int]
) -> list[int]:
    """For every statement of a list, those that must directly precede it: the last writer of each location that it
    accesses, the readers of each location that it writes, and barriers."""
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


@dataclass(frozen=True)
class MovableParts:
    """Parts of a syntax node that may be exchanged.

    Args:
        node: The node that holds the parts.
        field: The field that holds them, "operands" for those of an operator.
        parts: The parts, in the order of the source.
        before: Bit `i` of `before[j]` is set where part `i` must stay before part `j`.
    """

    node: ast.AST
    field: str
    parts: tuple[ast.AST, ...]
    before: tuple[int, ...]

    def put(self, order: Sequence[int]) -> None:
        """Write the parts back into the node in this order."""
        parts: list = [self.parts[position] for position in order]
        if isinstance(self.node, ast.BinOp):
            self.node.left, self.node.right = parts
        elif isinstance(self.node, ast.Compare):
            self.node.left, self.node.comparators = parts[0], parts[1:]
        else:
            all_parts = getattr(self.node, self.field)
            all_parts[len(all_parts) - len(parts) :] = parts  # a docstring stays first


def movable_parts(
    nodes: Sequence[ast.AST], operators: Collection[str], known: Mapping[int, int]
) -> Iterator[MovableParts]:
    """All operands, keywords, set elements and imported names that may be exchanged.

    Args:
        nodes: Syntax nodes.
        operators: Symbols of the operators whose operands may be swapped.
        known: The `traits` of the nodes.
    """
    for node in nodes:
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [alias.asname or alias.name.split(".")[0] for alias in node.names]
            yield MovableParts(node, "names", tuple(node.names), _before(names, ne))
        elif parts := _parts(node, operators, known):
            yield MovableParts(node, *parts, _before([known[id(part)] for part in parts[1]], exchangeable))


def _parts(
    node: ast.AST, operators: Collection[str], known: Mapping[int, int]
) -> tuple[str, tuple[ast.AST, ...]] | None:
    """The field and the parts of a node whose order is irrelevant."""
    match node:
        case ast.BinOp(left, op, right) if SYMBOLS.get(type(op)) in operators:
            joined = isinstance(op, ast.Add) and (known[id(left)] | known[id(right)]) & SEQUENCE
            return None if joined else ("operands", (left, right))
        case ast.Compare(left, [op], [right]) if SYMBOLS.get(type(op)) in operators:
            return "operands", (left, right)
        case ast.BoolOp(op, values) if SYMBOLS.get(type(op)) in operators:
            return "values", tuple(values)
        case ast.Call(keywords=keywords) | ast.ClassDef(keywords=keywords):
            return "keywords", tuple(keywords)
        case ast.Set(elts):
            return "elts", tuple(elts)
    return None


def _before(parts: Sequence[T], free: Callable[[T, T], bool]) -> tuple[int, ...]:
    return tuple(sum(1 << i for i in range(j) if not free(parts[i], part)) for j, part in enumerate(parts))


@dataclass(frozen=True)
class Knowledge:
    """What the text of a function says about the names that it uses."""

    pure_calls: bool
    """Whether calls are assumed to have no side effects."""
    functions: Collection[str] = ()
    """Nested functions, which may write variables."""
    methods: Collection[str] = ()
    """Variables that hold an attribute, possibly a method: `write = file.write`."""
    sequences: Collection[str] = ()
    """Variables that hold strings, lists or tuples."""


def traits(nodes: Sequence[ast.AST], pure_calls: bool) -> dict[int, int]:
    """The traits of every node, by its id.

    Args:
        nodes: Syntax nodes, parents before their children.
        pure_calls: Whether calls are assumed to have no side effects.
    """
    assigned = _assignments(nodes)
    functions = {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
    functions |= {name for name, value in assigned if isinstance(value, ast.Lambda)}
    methods = {name for name, value in assigned if isinstance(value, ast.Attribute)}
    known = Knowledge(pure_calls, functions, methods)
    found = _traits(nodes, known)
    sequences = {name for name, value in assigned if found[id(value)] & SEQUENCE}
    return _traits(nodes, replace(known, sequences=sequences)) if sequences else found


def exchangeable(one: int, two: int) -> bool:
    """Whether expressions with these traits may be evaluated in any order."""
    if (one | two) & BINDS:
        return False
    return not (one & WRITES and two & (WRITES | READS)) and not (two & WRITES and one & READS)


def _assignments(nodes: Sequence[ast.AST]) -> list[tuple[str, ast.expr]]:
    """Variables and their values in `x = …`, `x += …` and `x, y = …, …`."""
    found: list[tuple[ast.expr, ast.expr]] = []
    for node in nodes:
        match node:
            case ast.Assign(targets, value):
                found += [(target, value) for target in targets]
            case ast.AugAssign(target, ast.Add(), value) | ast.AnnAssign(target, value=ast.expr() as value):
                found.append((target, value))
    for target, value in list(found):
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
            found += zip(target.elts, value.elts, strict=True)
    return [(target.id, value) for target, value in found if isinstance(target, ast.Name)]


def _traits(nodes: Sequence[ast.AST], known: Knowledge) -> dict[int, int]:
    found: dict[int, int] = {}
    for node in reversed(nodes):
        inherited = 0
        for child in ast.iter_child_nodes(node):
            inherited |= found[id(child)]
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            inherited &= ~HIDDEN  # the body does not run here
        sequence = SEQUENCE if _is_sequence(node, found, known) else 0
        found[id(node)] = inherited & ~SEQUENCE | _own_traits(node, known) | sequence
    return found


def _own_traits(node: ast.AST, known: Knowledge) -> int:
    match node:
        case ast.NamedExpr() | ast.Yield() | ast.YieldFrom() | ast.Await() | ast.comprehension(is_async=1):
            return BINDS
        case ast.Call():
            return READS | _call_traits(node, known)
        case ast.Constant() | ast.BinOp() | ast.UnaryOp() | ast.keyword() | ast.expr_context():
            return 0
        case ast.operator() | ast.unaryop():
            return 0
        case ast.FunctionDef(decorator_list=[]) | ast.AsyncFunctionDef(decorator_list=[]):
            return READS
        case _ if not known.pure_calls and isinstance(node, RUNNING):
            return READS | WRITES | HIDDEN
    return READS


def _call_traits(call: ast.Call, known: Knowledge) -> int:
    match call.func:
        case ast.Name(name) if name in HARMLESS:
            return 0
        case ast.Name(name) if name in known.methods:
            return WRITES | HIDDEN
        case ast.Name(name) if name in WRITERS or name in known.functions:
            return WRITES if known.pure_calls else WRITES | HIDDEN
        case ast.Attribute(attr=name) if name in MUTATORS:
            return WRITES if known.pure_calls else WRITES | HIDDEN
    return 0 if known.pure_calls else WRITES | HIDDEN


def _is_sequence(node: ast.AST, found: Mapping[int, int], known: Knowledge) -> bool:
    """Whether the value is evidently a sequence, which `+` concatenates."""
    match node:
        case ast.Constant(value):
            return isinstance(value, str | bytes)
        case ast.List() | ast.Tuple() | ast.ListComp() | ast.JoinedStr():
            return True
        case ast.Name(name):
            return name in known.sequences
        case ast.Attribute(attr=name):
            return name in STRINGS
        case ast.Call(ast.Name(name)):
            return name in SEQUENCE_MAKERS
        case ast.Call(ast.Attribute(attr=name)):
            return name in SEQUENCE_METHODS
        case ast.BoolOp(_, values):
            return any(found[id(value)] & SEQUENCE for value in values)
        case ast.BinOp(left, ast.Add() | ast.Mult(), right) | ast.IfExp(_, left, right):
            return bool((found[id(left)] | found[id(right)]) & SEQUENCE)
        case ast.BinOp(left, ast.Mod()):
            return bool(found[id(left)] & SEQUENCE)
    return False
