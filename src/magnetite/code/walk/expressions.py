"""Names, literals and displays; the table of all expressions."""

import ast
import sys
from typing import Any

from magnetite.code.draft import Draft, Path
from magnetite.code.effects import (
    HEAP_READ,
    SUBSCRIPT,
    USE,
)
from magnetite.code.walk.calls import call, keyword, suspension
from magnetite.code.walk.definitions import anonymous
from magnetite.code.walk.operators import binary, boolean, comparison, conditional
from magnetite.code.walk.targets import comprehension, walrus
from magnetite.code.walk.visiting import (
    EXPRESSIONS,
    LAST,
    POSITION,
    base,
    load,
    visit,
    visit_list,
    visit_unordered,
)

LONGEST_DECIMAL = 10**1000
"""Above this, numbers are shown in hexadecimal: Python refuses to print very long ones in decimal."""


def name(draft: Draft, node: ast.Name, parent: int, field: str) -> Path:
    """A variable handed on: it is read, and with it everything that can be reached through it."""
    return load(draft, node, parent, field, USE)


def attribute(draft: Draft, node: ast.Attribute, parent: int, field: str) -> Path:
    """`x.attr`, read."""
    index = draft.add("Attribute", node.attr, parent, field, node.lineno)
    path = base(draft, node.value, index, "value")
    draft.add("Load", None, index, "ctx")
    if node.attr == draft.name and path and path[1] is None:
        draft.mentions.append((index, path[0], node))
    return select(draft, path, node.attr, index)


def subscript(draft: Draft, node: ast.Subscript, parent: int, field: str) -> Path:
    """`x[…]`, read."""
    index = draft.add("Subscript", None, parent, field, node.lineno)
    path = base(draft, node.value, index, "value")
    visit(draft, node.slice, index, "slice")
    draft.add("Load", None, index, "ctx")
    if path == ():
        return () if type(node.slice) is ast.Slice else None
    return select(draft, path, SUBSCRIPT, index)


def select(draft: Draft, path: Path, selector: str, index: int) -> Path:
    """Read the part of a variable's heap; parts of parts were read already."""
    if path and path[1] is None:
        draft.log.append((HEAP_READ, path[0], selector, index))
        return (path[0], selector)
    return path or None


def constant(draft: Draft, node: ast.Constant, parent: int, field: str) -> Path:
    """A literal; `+` with text concatenates."""
    value: Any = node.value
    long = type(value) is int and not -LONGEST_DECIMAL < value < LONGEST_DECIMAL
    draft.add("Constant", hex(value) if long else repr(value), parent, field, node.lineno)
    return () if type(value) in (str, bytes) else None


def display(draft: Draft, node: ast.List | ast.Tuple, parent: int, field: str) -> Path:
    """`[a, b]`."""
    index = draft.add(type(node).__name__, None, parent, field, node.lineno)
    visit_list(draft, node.elts, index, "elts")
    draft.add("Load", None, index, "ctx")
    return ()


def set_display(draft: Draft, node: ast.Set, parent: int, field: str) -> Path:
    """`{a, b}`: no order."""
    index = draft.add("Set", None, parent, field, node.lineno)
    visit_unordered(draft, node.elts, index, "elts")
    return None


def dictionary(draft: Draft, node: ast.Dict, parent: int, field: str) -> Path:
    """`{k: v}`: keys and values in turns; a `**mapping` has no key."""
    index = draft.add("Dict", None, parent, field, node.lineno)
    for k, (key, value) in enumerate(zip(node.keys, node.values, strict=True)):
        if key is not None:
            visit(draft, key, index, POSITION["keys"][min(k, LAST)])
        visit(draft, value, index, POSITION["values"][min(k, LAST)])
    return None


def starred(draft: Draft, node: ast.Starred, parent: int, field: str) -> Path:
    """`*xs`."""
    index = draft.add("Starred", None, parent, field, node.lineno)
    path = visit(draft, node.value, index, "value")
    draft.add("Load", None, index, "ctx")
    return path


def formatted(draft: Draft, node: Any, parent: int, field: str) -> Path:
    """A `{value!r:spec}` of an f-string or t-string."""
    source = getattr(node, "str", None)
    conversion = f"!{chr(node.conversion)}" if node.conversion > 0 else ""
    attribute = (conversion if source is None else f"{source}{conversion}") or None
    index = draft.add(type(node).__name__, attribute, parent, field, node.lineno)
    visit(draft, node.value, index, "value")
    if node.format_spec is not None:
        visit(draft, node.format_spec, index, "format_spec")
    return None


def joined(draft: Draft, node: Any, parent: int, field: str) -> Path:
    """An f-string or t-string."""
    index = draft.add(type(node).__name__, None, parent, field, node.lineno)
    visit_list(draft, node.values, index, "values")
    return ()


EXPRESSIONS |= {
    ast.Name: name,
    ast.Attribute: attribute,
    ast.Subscript: subscript,
    ast.Constant: constant,
    ast.Call: call,
    ast.keyword: keyword,
    ast.BinOp: binary,
    ast.Compare: comparison,
    ast.BoolOp: boolean,
    ast.IfExp: conditional,
    ast.List: display,
    ast.Tuple: display,
    ast.Set: set_display,
    ast.Dict: dictionary,
    ast.Starred: starred,
    ast.FormattedValue: formatted,
    ast.JoinedStr: joined,
    ast.Await: suspension,
    ast.Yield: suspension,
    ast.YieldFrom: suspension,
    ast.NamedExpr: walrus,
    ast.ListComp: comprehension,
    ast.SetComp: comprehension,
    ast.DictComp: comprehension,
    ast.GeneratorExp: comprehension,
    ast.Lambda: anonymous,
}
if sys.version_info >= (3, 14):
    EXPRESSIONS |= {ast.TemplateStr: joined, ast.Interpolation: formatted}
