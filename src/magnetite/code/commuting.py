"""Which parts of an expression or statement may change places: operands, keywords, set elements, imported names."""

import ast
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import ne
from typing import TypeVar

from magnetite.code.traits import SEQUENCE, exchangeable

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

T = TypeVar("T")


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


def places(nodes: Sequence[ast.AST], operators: Collection[str], known: Mapping[int, int]) -> Iterator[Places]:
    """Everything inside expressions, calls and imports that may change places, of nodes with these traits."""
    for node in nodes:
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [alias.asname or alias.name.split(".")[0] for alias in node.names]
            yield Places(node, "names", tuple(node.names), _before(names, ne))
        elif parts := _parts(node, operators, known):
            yield Places(node, *parts, _before([known[id(part)] for part in parts[1]], exchangeable))


def _parts(
    node: ast.AST, operators: Collection[str], known: Mapping[int, int]
) -> tuple[str, tuple[ast.AST, ...]] | None:
    """The field and the parts of a node whose order means nothing."""
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
