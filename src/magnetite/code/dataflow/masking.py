"""Masking: where a function's own name occurs in it, so that a model cannot read off the answer."""

import ast
from typing import Any, NamedTuple

from magnetite.code.dataflow.definitions import Definition, walk_function
from magnetite.code.dataflow.scopes import resolve
from magnetite.code.dataflow.walk import FIELD, PARENT, Draft


class References(NamedTuple):
    """Nodes that refer to the function itself."""

    names: list[int]
    """By its name."""
    methods: list[int]
    """As an attribute of `self`, `cls` or `super()`."""
    decorators: list[int]
    """The `f` of `@f.setter` on a method `f`, which refers to the previous definition in the class."""


def references(draft: Draft) -> References:
    """Every node that refers to the function itself."""
    found = References([], [], [])
    for number, variable, node in draft.mentions:
        root = resolve(variable)
        if isinstance(node, ast.Attribute):
            if root is draft.receiver:
                found.methods.append(number)
        elif root is draft.itself:
            found.names.append(number)
        else:
            top = number
            while draft.nodes[top][PARENT] != 0:
                top = draft.nodes[top][PARENT]
            if draft.nodes[top][FIELD].startswith("decorator_list"):
                found.decorators.append(number)
    return found


def masked(draft: Draft, itself: References, mask: str | None) -> list[int]:
    """The nodes that a mask hides: `paper` the definition and calls by name, `strict` every reference.

    Args:
        draft: The walked function.
        itself: Its references to itself.
        mask: "strict", "paper" or None.
    """
    if mask is None:
        return []
    if mask == "paper":
        return [0, *(number for number in itself.names if number in draft.callees)]
    return [0, *itself.names, *itself.methods, *itself.decorators]


def masked_syntax(function: Definition, mask: str | None, is_method: bool = False) -> list[ast.AST]:
    """The syntax nodes that a mask hides.

    Args:
        function: The definition.
        mask: "strict", "paper" or None.
        is_method: Whether it is defined in a class.

    >>> tree = ast.parse("def f(n):\\n    return f(n - 1)").body[0]
    >>> [type(node).__name__ for node in masked_syntax(tree, "strict")]
    ['FunctionDef', 'Name']
    """
    if mask is None:
        return []
    if not any(_name(node) == function.name for node in ast.walk(function)):
        return [function]
    draft = walk_function(function, is_method)
    nodes = {number: node for number, _, node in draft.mentions}
    return [function, *(nodes[number] for number in masked(draft, references(draft), mask)[1:])]


def _name(node: Any) -> str | None:
    kind = type(node)
    return node.id if kind is ast.Name else node.attr if kind is ast.Attribute else None
