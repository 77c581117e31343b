"""Calls, and what may happen in them."""

import ast
from typing import Any

from magnetite.code.draft import Draft, Path
from magnetite.code.effects import (
    APPLY,
    HEAP_READ,
    MUTATE,
    MUTATORS,
    SEQUENCE_MAKERS,
    SEQUENCE_METHODS,
    WRITERS,
)
from magnetite.code.walk.visiting import (
    EXPRESSIONS,
    LAST,
    POSITION,
    base,
    generic,
    visit,
    visit_unordered,
)


def call(draft: Draft, node: ast.Call, parent: int, field: str) -> Path:
    """A call: of a method, which may write its receiver, or of a function, which is assumed not to write."""
    index = draft.add("Call", None, parent, field, node.lineno)
    function = node.func
    if type(function) is ast.Name:
        return _call_function(draft, node, index, function.id)
    if type(function) is ast.Attribute:
        return _call_method(draft, node, index, function)
    visit(draft, function, index, "func")
    _arguments(draft, node, index)
    return None


def _call_function(draft: Draft, node: ast.Call, index: int, name: str) -> Path:
    draft.callees[len(draft.rows)] = index
    base(draft, node.func, index, "func")
    first = _arguments(draft, node, index)
    draft.effects += 1  # unless it turns out that no function of this name has any
    draft.log.append((APPLY, draft.scope.variable(name), None, index))
    if name in WRITERS and first:
        draft.log.append((MUTATE, first[0], first[1], index))
    if name == "super":
        return _receiver(draft)
    return () if name in SEQUENCE_MAKERS else None


def _call_method(draft: Draft, node: ast.Call, index: int, function: ast.Attribute) -> Path:
    discarded = draft.discarded is node
    path = method(draft, function, index)
    _arguments(draft, node, index)
    if path == ():
        return () if function.attr in SEQUENCE_METHODS else None
    if path:
        mutates = discarded or function.attr in MUTATORS
        draft.effects += mutates
        draft.log.append((MUTATE if mutates else HEAP_READ, path[0], path[1], index))
    return None


def method(draft: Draft, node: ast.Attribute, parent: int) -> Path:
    """The `x.method` of a call: which receiver it has."""
    index = draft.add("Attribute", node.attr, parent, "func", node.lineno)
    path = base(draft, node.value, index, "value")
    draft.add("Load", None, index, "ctx")
    if node.attr == draft.name and path and path[1] is None:
        draft.mentions.append((index, path[0], node))
    return path


def _arguments(draft: Draft, node: ast.Call, index: int) -> Path:
    """All arguments; what the first is part of."""
    first = None
    names = POSITION["args"]
    for k, argument in enumerate(node.args):
        path = EXPRESSIONS.get(type(argument), generic)(draft, argument, index, names[k if k < LAST else LAST])
        if k == 0:
            first = path
    if node.keywords:
        visit_unordered(draft, node.keywords, index, "keywords")
    return first


def _receiver(draft: Draft) -> Path:
    """What `super()` stands for: the first parameter."""
    scope = draft.scope.function()
    if scope is None or scope.first_parameter is None:
        return None
    return (scope.variable(scope.first_parameter), None)


def keyword(draft: Draft, node: ast.keyword, parent: int, field: str) -> Path:
    """`name=value` of a call."""
    index = draft.add("keyword", node.arg, parent, field, node.lineno)
    return visit(draft, node.value, index, "value")


def suspension(draft: Draft, node: Any, parent: int, field: str) -> Path:
    """`yield`, `yield from`, `await`: others run before it comes back."""
    index = draft.add(type(node).__name__, None, parent, field, node.lineno)
    if draft.discarded is node:
        draft.discarded = node.value
    if node.value is not None:
        visit(draft, node.value, index, "value")
    draft.suspend(index)
    return None
