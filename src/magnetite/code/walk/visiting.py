"""What all walks share: visiting children and lists of them, by the tables of `expressions` and `statements`."""

import ast
from collections.abc import Callable, Sequence
from typing import Any

from magnetite.code.draft import Draft, Group, Path, StatementList
from magnetite.code.effects import (
    READ,
)
from magnetite.code.vocabulary import PLAIN_FIELDS, POSITIONS

EXPRESSIONS: dict[type, Callable[..., Path]] = {}
"""Which function walks over which expression; `walk.expressions` fills it in.

Every function takes the draft, a syntax node, the number of its parent in the graph and the name of the edge to it; it
adds the node with everything below it, logs its effects, and returns what the value is part of (`draft.Path`).
"""

STATEMENTS: dict[type, Callable[..., Any]] = {}
"""The same for statements; `walk.statements` fills it in."""

POSITION = {name: tuple(name if k == 1 else f"{name}:{k}" for k in range(1, POSITIONS + 1)) for name in PLAIN_FIELDS}
"""The names of edges to the elements of a list: `POSITION["args"][1]` is `args:2`."""

LAST = POSITIONS - 1


def visit(draft: Draft, node: ast.AST, parent: int, field: str) -> Path:
    """Any expression, read."""
    return EXPRESSIONS.get(type(node), generic)(draft, node, parent, field)


def visit_list(draft: Draft, nodes: Sequence[ast.AST | None], parent: int, field: str) -> None:
    """Elements whose position matters; gaps (`None`) keep their place."""
    names = POSITION[field]
    for k, node in enumerate(nodes):
        if node is not None:
            EXPRESSIONS.get(type(node), generic)(draft, node, parent, names[k if k < LAST else LAST])


def visit_unordered(draft: Draft, nodes: Sequence[ast.AST], parent: int, field: str) -> None:
    """Elements whose position does not matter, unless one has effects on another: told when all effects are known."""
    group, effects = Group([], [len(draft.log)], draft.unit), draft.effects
    for node in nodes:
        group.nodes.append(len(draft.rows))
        EXPRESSIONS.get(type(node), generic)(draft, node, parent, field)
        group.ends.append(len(draft.log))
    if draft.effects != effects and len(nodes) > 1:
        draft.groups.append(group)


def walk_list(draft: Draft, trees: Sequence[ast.stmt], holder: ast.AST, owner: int, field: str) -> int:
    """A statement list; its number."""
    parent = draft.statement
    number = len(draft.lists)
    depth = draft.lists[draft.place[parent][0]].depth + 1 if parent in draft.place else 0
    entry = StatementList(owner, field, parent, depth, draft.unit, holder)
    draft.lists.append(entry)
    if not draft.keep_docstrings and field == "body" and _has_docstring(holder, trees):
        trees = trees[1:]
    for position, tree in enumerate(trees):
        draft.statement = index = len(draft.rows)
        draft.place[index] = (number, position)
        entry.statements.append(index)
        entry.trees.append(tree)
        draft.open.append(index)
        STATEMENTS.get(type(tree), generic)(draft, tree, owner, field)
        draft.open.pop()
    draft.statement = parent
    return number


def _has_docstring(holder: ast.AST, trees: Sequence[ast.stmt]) -> bool:
    if not trees or not isinstance(holder, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return False
    first = trees[0]
    return isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str)


def generic(draft: Draft, node: Any, parent: int, field: str) -> Path:
    """A node without rules of its own: fields in their order, text as attribute."""
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


def base(draft: Draft, node: ast.expr, parent: int, field: str) -> Path:
    """What `.attr`, `[…]` or a call is applied to: a variable alone is read without what lies behind it."""
    return load(draft, node, parent, field, READ) if type(node) is ast.Name else visit(draft, node, parent, field)


def load(draft: Draft, node: ast.Name, parent: int, field: str, effect: int) -> Path:
    """A variable that is looked up, with what the look-up reads."""
    index = draft.add("Name", node.id, parent, field, node.lineno)
    draft.add("Load", None, index, "ctx")
    variable = draft.scope.variable(node.id)
    if node.id == draft.name:
        draft.mentions.append((index, variable, node))
    draft.loads.append(index)
    draft.log.append((effect, variable, None, index))
    return (variable, None)
