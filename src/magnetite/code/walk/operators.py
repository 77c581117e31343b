"""Operators: those that commute, and those that may skip an operand."""

import ast
from collections.abc import Sequence

from magnetite.code.draft import Draft, Group, Path
from magnetite.code.walk.visiting import (
    EXPRESSIONS,
    LAST,
    POSITION,
    generic,
    visit,
    visit_list,
    visit_unordered,
)

COMMUTATIVE = frozenset({ast.Add, ast.Mult, ast.BitOr, ast.BitXor, ast.BitAnd})
SYMMETRIC = frozenset({ast.Eq, ast.NotEq, ast.Is, ast.IsNot})


def binary(draft: Draft, node: ast.BinOp, parent: int, field: str) -> Path:
    """`a + b`: operands of a commutative operator have the same name, unless sequences are concatenated."""
    index, kind, effects = draft.add("BinOp", None, parent, field, node.lineno), type(node.op), draft.effects
    group = Group([len(draft.rows)], [len(draft.log)], draft.unit)
    left = EXPRESSIONS.get(type(node.left), generic)(draft, node.left, index, "input")
    draft.add(kind.__name__, None, index, "op")
    group.ends.append(len(draft.log))
    second = len(draft.rows)
    right = EXPRESSIONS.get(type(node.right), generic)(draft, node.right, index, "input:2")
    sequence = left == () or right == ()
    if kind in COMMUTATIVE and not (kind is ast.Add and sequence):
        draft.rows[second] = (*draft.rows[second][:3], "input", *draft.rows[second][4:])
        if draft.effects != effects:
            group.nodes.append(second)
            group.ends.append(len(draft.log))
            draft.groups.append(group)
    repeated = kind in (ast.Add, ast.Mult) and sequence
    return () if repeated or (kind is ast.Mod and left == ()) else None


def comparison(draft: Draft, node: ast.Compare, parent: int, field: str) -> Path:
    """`a == b`: a single symmetric comparison has operands of the same name."""
    index = draft.add("Compare", None, parent, field, node.lineno)
    for k, operator in enumerate(node.ops):
        draft.add(type(operator).__name__, None, index, POSITION["ops"][min(k, LAST)])
    operands = [node.left, *node.comparators]
    if len(node.ops) == 1 and type(node.ops[0]) in SYMMETRIC:
        visit_unordered(draft, operands, index, "input")
    else:
        visit_list(draft, operands[:2], index, "input")
        _each_may_end(draft, operands[2:], index, POSITION["input"][2:])
    return None


def boolean(draft: Draft, node: ast.BoolOp, parent: int, field: str) -> Path:
    """`a and b`: every operand after the first may not be reached."""
    index = draft.add("BoolOp", None, parent, field, node.lineno)
    draft.add(type(node.op).__name__, None, index, "op")
    group, effects = Group([len(draft.rows)], [len(draft.log)], draft.unit), draft.effects
    visit(draft, node.values[0], index, "input")
    group.ends.append(len(draft.log))
    _each_may_end(draft, node.values[1:], index, ("input",), group)
    if draft.effects != effects:
        draft.groups.append(group)
    return None


def _each_may_end(
    draft: Draft, nodes: Sequence[ast.expr], parent: int, names: tuple[str, ...], group: Group | None = None
) -> None:
    """Operands before each of which the evaluation may already end."""
    ends = []
    for k, node in enumerate(nodes):
        ends.append(draft.block)
        draft.start([draft.block])
        if group:
            group.nodes.append(len(draft.rows))
        visit(draft, node, parent, names[min(k, len(names) - 1)])
        if group:
            group.ends.append(len(draft.log))
    if ends:
        draft.start([*ends, draft.block])


def conditional(draft: Draft, node: ast.IfExp, parent: int, field: str) -> Path:
    """`a if c else b`."""
    index = draft.add("IfExp", None, parent, field, node.lineno)
    visit(draft, node.test, index, "test")
    tested = draft.block
    draft.start([tested])
    visit(draft, node.body, index, "body")
    taken = draft.block
    draft.start([tested])
    visit(draft, node.orelse, index, "orelse")
    draft.start([taken, draft.block])
    return None
