"""The AST graph, `kind="ast"`: a function's syntax tree as in OGB Code2, with the edges that OGB's baselines add.

The graph of kind "ast-directed" is the same without the inverse of every edge.

The data set was built with Python 3.6, so current syntax trees are converted to that version:

- constants are `Num`, `Str`, `Bytes`, `NameConstant` or `Ellipsis`; the index of a subscript is an `Index`, a `Slice`
  or, with slices among other elements, an `ExtSlice`; an f-string (or format) without formatted values is a `Str`;
- node 0 is the `Module`, so the function has depth 1; nodes are numbered in depth-first order;
- types that Python 3.6 lacks (`NamedExpr`, `Match`, `TryStar`, …) are `__UNK__`, as in OGB's mapping.

A node's attribute is the first of its fields `name`, `arg`, `s`, `n`, `id`, `attr` that is set, as a string. OGB's
peculiarities are kept: `True`, `False`, `None` and `...` have no attribute; bytes include their quotes, `b'x'`; the
module and the new name of an import and the names after `global` are omitted; an empty string is an attribute.
"""

import ast
from collections.abc import Collection, Iterator, Sequence
from functools import cache
from itertools import pairwise

from magnetite.code.graph import MASK, CodeGraph, Edge

UNKNOWN = "__UNK__"
"""OGB's type of a node that Python 3.6 lacks."""

_NODE_TYPES = """
    Module FunctionDef AsyncFunctionDef ClassDef Return Delete Assign AugAssign AnnAssign For AsyncFor While If With
    AsyncWith Raise Try Assert Import ImportFrom Global Nonlocal Expr Pass Break Continue BoolOp BinOp UnaryOp Lambda
    IfExp Dict Set ListComp SetComp DictComp GeneratorExp Await Yield YieldFrom Compare Call Num Str FormattedValue
    JoinedStr Bytes NameConstant Ellipsis Attribute Subscript Starred Name List Tuple Load Store Del Slice ExtSlice
    Index And Or Add Sub Mult MatMult Div Mod Pow LShift RShift BitOr BitXor BitAnd FloorDiv Invert Not UAdd USub Eq
    NotEq Lt LtE Gt GtE Is IsNot In NotIn comprehension ExceptHandler arguments arg keyword alias withitem
"""
NODE_TYPES = frozenset(_NODE_TYPES.split())
"""The 97 node types of Python 3.6 that a parsed function can have."""

ATTRIBUTES = ("name", "arg", "id", "attr")
"""Fields that hold a node's attribute, in OGB's order; `s` and `n` are the values of constants."""

LONGEST_NUMBER = 4096
"""Bits of the longest integer that is written in decimal; Python refuses to print much longer ones."""


class _Index(ast.AST):
    """The index of a subscript without slices."""

    _fields = ("value",)

    def __init__(self, value: ast.AST) -> None:
        self.value = value


class _ExtSlice(ast.AST):
    """The index of a subscript with slices among other elements."""

    _fields = ("dims",)

    def __init__(self, dims: list[ast.AST]) -> None:
        self.dims = dims


def ast_graph(
    function: ast.FunctionDef | ast.AsyncFunctionDef,
    name: str | None = None,
    masked: Collection[ast.AST] = (),
    keep_docstrings: bool = False,
    inverses: bool = True,
) -> CodeGraph:
    """OGB Code2's graph of a function: the syntax tree, the next-token edges, and the inverse of every edge.

    With the inverse of every edge, the graph is undirected for a magnetic Laplacian, whose phases are 0. Without them,
    its kind is "ast-directed".

    Args:
        function: The definition.
        name: Name of the graph; the function's name by default.
        masked: Syntax nodes whose attribute is replaced by `MASK`.
        keep_docstrings: Whether docstrings become nodes; OGB's script keeps them as an `Expr` with a `Str`.
        inverses: Whether to add the inverse of every edge.
    """
    nodes, parents = _walk(function, keep_docstrings)
    hidden = set(map(id, masked))
    types, attributes, depths, lines = [], [], [], []
    for node, parent in zip(nodes, parents, strict=True):
        kind, attribute = _label(node)
        types.append(kind)
        attributes.append(MASK if id(node) in hidden else attribute)
        depths.append(depths[parent] + 1 if depths else 0)
        lines.append(getattr(node, "lineno", 0))
    return CodeGraph(
        kind="ast" if inverses else "ast-directed",
        name=name or function.name,
        types=tuple(types),
        attributes=tuple(attributes),
        depths=tuple(depths),
        lines=tuple(lines),
        edges=tuple(_edges(parents, attributes, inverses)),
    )


def _walk(function: ast.stmt, keep_docstrings: bool) -> tuple[list[ast.AST], list[int]]:
    """All nodes in depth-first order, and the number of each node's parent; the root is its own parent."""
    nodes: list[ast.AST] = []
    parents: list[int] = []
    stack: list[tuple[ast.AST, int]] = [(ast.Module(body=[function], type_ignores=[]), 0)]
    while stack:
        node, parent = stack.pop()
        if node._fields:
            stack.extend((child, len(nodes)) for child in reversed(list(_children(node, keep_docstrings))))
        nodes.append(node)
        parents.append(parent)
    return nodes, parents


def _children(node: ast.AST, keep_docstrings: bool) -> Iterator[ast.AST]:
    """The children of a node in the order of its fields, as in Python 3.6."""
    for field in node._fields:
        value = getattr(node, field, None)
        if isinstance(value, list):
            start = field == "body" and not keep_docstrings and has_docstring(node)
            yield from (_as_in_36(child) for child in value[start:] if isinstance(child, ast.AST))
        elif isinstance(value, ast.AST):
            yield _slice(value) if isinstance(node, ast.Subscript) and field == "slice" else _as_in_36(value)


def has_docstring(node: ast.AST) -> bool:
    """Whether a syntax node is a definition whose body begins with a docstring."""
    documented = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
    return documented and ast.get_docstring(node, clean=False) is not None


def _as_in_36(node: ast.AST) -> ast.AST:
    """An f-string without formatted values is a string."""
    if isinstance(node, ast.JoinedStr) and all(isinstance(part, ast.Constant) for part in node.values):
        text = "".join(str(part.value) for part in node.values if isinstance(part, ast.Constant))
        return ast.copy_location(ast.Constant(text), node)
    return node


def _slice(node: ast.AST) -> ast.AST:
    """The index of a subscript, wrapped as in Python 3.6."""
    if isinstance(node, ast.Slice):
        return node
    if isinstance(node, ast.Tuple) and any(isinstance(part, ast.Slice) for part in node.elts):
        return _ExtSlice([_slice(part) for part in node.elts])
    return _Index(node)


def _label(node: ast.AST) -> tuple[str, str | None]:
    """Type and attribute of a node."""
    if isinstance(node, ast.Constant):
        return _constant(node.value)
    name, fields = _known_of(type(node))
    for field in fields:
        value = getattr(node, field, None)
        if isinstance(value, str):
            return name, value
    return name, None


@cache
def _known_of(kind: type[ast.AST]) -> tuple[str, tuple[str, ...]]:
    """The name of a type in Python 3.6, and its fields that may hold the attribute."""
    name = kind.__name__.removeprefix("_")
    return name if name in NODE_TYPES else UNKNOWN, tuple(field for field in ATTRIBUTES if field in kind._fields)


def _constant(value: object) -> tuple[str, str | None]:
    """Type and attribute of a constant; `bool` is checked first, since `True` is an `int` as well."""
    if value is None or isinstance(value, bool):
        return "NameConstant", None
    if value is Ellipsis:
        return "Ellipsis", None
    if isinstance(value, int) and value.bit_length() > LONGEST_NUMBER:
        return "Num", hex(value)
    return {str: "Str", bytes: "Bytes"}.get(type(value), "Num"), str(value)


def _edges(parents: Sequence[int], attributes: Sequence[str | None], inverses: bool) -> Iterator[Edge]:
    """In OGB's order: the tree's edges by parent, their inverses, the next-token edges, their inverses."""
    tree = sorted((parent, child) for child, parent in enumerate(parents) if child)
    tokens = list(pairwise(node for node, attribute in enumerate(attributes) if attribute is not None))
    new_edge = Edge._make  # twice as fast as calling the class
    for kind, inverse, pairs in (("FIELD", "FIELD_INVERSE", tree), ("NEXT_TOKEN", "NEXT_TOKEN_INVERSE", tokens)):
        yield from (new_edge((source, target, kind, "")) for source, target in pairs)
        if inverses:
            yield from (new_edge((target, source, inverse, "")) for source, target in pairs)
