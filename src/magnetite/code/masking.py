"""Where a function's own name stands in it: what is masked so that a model cannot read the answer off."""

import ast
from typing import Any, NamedTuple

from magnetite.code.draft import Draft
from magnetite.code.scopes import resolve
from magnetite.code.walk import Definition, draft_of


class References(NamedTuple):
    """Nodes that mean the function itself."""

    names: list[int]
    """By its name."""
    methods: list[int]
    """As an attribute of `self`, `cls` or `super()`."""
    decorators: list[int]
    """The `f` of `@f.setter` on a method `f`, which is what its class held before."""


def references(draft: Draft) -> References:
    """Every node that means the function itself."""
    found = References([], [], [])
    for number, variable, node in draft.mentions:
        root = resolve(variable)
        if isinstance(node, ast.Attribute):
            if root is draft.receiver:
                found.methods.append(number)
        elif root is draft.itself:
            found.names.append(number)
        elif _is_decorator(draft, number):
            found.decorators.append(number)
    return found


def _is_decorator(draft: Draft, number: int) -> bool:
    while draft.rows[number][2] != 0:
        number = draft.rows[number][2]
    return draft.rows[number][3].startswith("decorator_list")


def masked(draft: Draft, itself: References, mask: str | None) -> list[int]:
    """The nodes that a mask hides: `paper` the definition and calls by name, `strict` every reference."""
    if mask is None:
        return []
    if mask == "paper":
        return [0, *(number for number in itself.names if number in draft.callees)]
    return [0, *itself.names, *itself.methods, *itself.decorators]


def masked_nodes(function: Definition, mask: str | None, is_method: bool = False) -> list[ast.AST]:
    """The same as syntax nodes.

    >>> tree = ast.parse("def f(n):\\n    return f(n - 1)").body[0]
    >>> [type(node).__name__ for node in masked_nodes(tree, "strict")]
    ['FunctionDef', 'Name']
    """
    if mask is None:
        return []
    if not any(_mentions(node, function.name) for node in ast.walk(function)):
        return [function]
    draft = draft_of(function, function.name, is_method)
    nodes = {number: node for number, _, node in draft.mentions}
    return [function, *(nodes[number] for number in masked(draft, references(draft), mask)[1:])]


def _mentions(node: Any, name: str) -> bool:
    kind = type(node)
    return (kind is ast.Name and node.id == name) or (kind is ast.Attribute and node.attr == name)
