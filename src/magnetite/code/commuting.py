"""Which parts of an expression or statement may change places: operands, keywords, set elements, imported names."""

import ast
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import ne
from typing import TypeVar

from magnetite.code.effects import MUTATORS, SEQUENCE_MAKERS, SEQUENCE_METHODS, WRITERS

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
"""Operators whose operands are swapped unless asked otherwise: `and` and `or` guard what stands to their right."""

NAMES_OF_OBJECTS = frozenset({"__doc__", "__file__", "__module__", "__name__", "__qualname__"})
"""Attributes that hold strings."""

T = TypeVar("T")

BINDS, WRITES, LOOKS, SEQUENCE = 1, 2, 4, 8
"""What must be known of an expression before its neighbour may go first: it binds a name or hands control over; it
changes an object; it looks into objects (all but constants, names, operators); it evidently is a string or a list."""


@dataclass(frozen=True)
class Places:
    """Parts of a node that may change places; bit `i` of `before[j]` is set where part `i` must stay before `j`."""

    node: ast.AST
    field: str
    parts: tuple[ast.AST, ...]
    before: tuple[int, ...]

    def put(self, order: Sequence[int]) -> None:
        """Write the parts back into the node in this order."""
        parts: list = [self.parts[place] for place in order]
        if isinstance(self.node, ast.BinOp):
            self.node.left, self.node.right = parts
        elif isinstance(self.node, ast.Compare):
            self.node.left, self.node.comparators = parts[0], parts[1:]
        else:
            all_parts = getattr(self.node, self.field)
            all_parts[len(all_parts) - len(parts) :] = parts  # a docstring stays in front


def places(
    nodes: Sequence[ast.AST], operators: Collection[str] = COMMUTATIVE, functions: Collection[str] = ()
) -> Iterator[Places]:
    """Everything inside expressions, calls and imports that may change places, of nodes listed parents first.

    `functions` are the names of nested functions, whose calls may write.
    """
    traits = _traits(nodes, functions, frozenset())
    joined = _assigned_sequences(nodes, traits)
    if joined:
        traits = _traits(nodes, functions, joined)
    for node in nodes:
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [alias.asname or alias.name.split(".")[0] for alias in node.names]
            yield Places(node, "names", tuple(node.names), _before(names, ne))
        elif parts := _parts(node, operators, traits):
            yield Places(node, *parts, _before([traits[id(part)] for part in parts[1]], _exchangeable))


def _parts(
    node: ast.AST, operators: Collection[str], traits: Mapping[int, int]
) -> tuple[str, tuple[ast.AST, ...]] | None:
    """The field and the parts of a node whose order means nothing."""
    match node:
        case ast.BinOp(left, op, right) if SYMBOLS.get(type(op)) in operators:
            joined = isinstance(op, ast.Add) and (traits[id(left)] | traits[id(right)]) & SEQUENCE
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


def _exchangeable(one: int, two: int) -> bool:
    """Whether expressions with these traits may be evaluated in any order."""
    if (one | two) & BINDS:
        return False
    return not (one & WRITES and two & (WRITES | LOOKS)) and not (two & WRITES and one & LOOKS)


def _assigned_sequences(nodes: Sequence[ast.AST], traits: Mapping[int, int]) -> frozenset[str]:
    """Names that are evidently given a string, list or tuple somewhere."""
    found = set()
    for node in nodes:
        match node:
            case ast.Assign(targets, value) if traits[id(value)] & SEQUENCE:
                found.update(target.id for target in targets if isinstance(target, ast.Name))
            case ast.AugAssign(ast.Name(name), ast.Add(), value) if traits[id(value)] & SEQUENCE:
                found.add(name)
    return frozenset(found)


def _traits(nodes: Sequence[ast.AST], functions: Collection[str], sequences: Collection[str]) -> dict[int, int]:
    """The traits of every node; children come after their parents in `nodes`, so it is read from its end.

    `sequences` are names that may stand for a string, list or tuple.
    """
    traits: dict[int, int] = {}
    for node in reversed(nodes):
        inherited = 0
        for child in ast.iter_child_nodes(node):
            inherited |= traits[id(child)]
        traits[id(node)] = (
            inherited & ~SEQUENCE | _own(node, functions) | (SEQUENCE if _joins(node, traits, sequences) else 0)
        )
    return traits


def _own(node: ast.AST, functions: Collection[str]) -> int:
    match node:
        case ast.NamedExpr() | ast.Yield() | ast.YieldFrom() | ast.Await() | ast.comprehension(is_async=1):
            return BINDS
        case ast.Call(ast.Name(name)):
            return LOOKS | (WRITES if name in WRITERS or name in functions else 0)
        case ast.Call(ast.Attribute(attr=name)):
            return LOOKS | (WRITES if name in MUTATORS else 0)
        case ast.Constant() | ast.Name() | ast.BinOp() | ast.UnaryOp() | ast.keyword() | ast.expr_context():
            return 0
        case ast.operator() | ast.unaryop():
            return 0
    return LOOKS


def _joins(node: ast.AST, traits: Mapping[int, int], sequences: Collection[str]) -> bool:
    """Whether `+` would put the node's value before or after another one."""
    match node:
        case ast.Name(name):
            return name in sequences
        case ast.Attribute(attr=name):
            return name in NAMES_OF_OBJECTS
        case ast.BoolOp(_, values):
            return any(traits[id(value)] & SEQUENCE for value in values)
        case ast.Constant(value):
            return isinstance(value, str | bytes)
        case ast.List() | ast.Tuple() | ast.ListComp() | ast.JoinedStr():
            return True
        case ast.Call(ast.Name(name)):
            return name in SEQUENCE_MAKERS
        case ast.Call(ast.Attribute(attr=name)):
            return name in SEQUENCE_METHODS
        case ast.BinOp(left, ast.Add() | ast.Mult(), right) | ast.IfExp(_, left, right):
            return bool((traits[id(left)] | traits[id(right)]) & SEQUENCE)
        case ast.BinOp(left, ast.Mod()):
            return bool(traits[id(left)] & SEQUENCE)
    return False
