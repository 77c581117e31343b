"""What must be known of an expression before its neighbour may be evaluated first."""

import ast
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from magnetite.code.effects import MUTATORS, SEQUENCE_MAKERS, SEQUENCE_METHODS, WRITERS

BINDS, WRITES, LOOKS, SEQUENCE, HIDDEN = 1, 2, 4, 8, 16
"""Traits: it binds a name or hands control over; it changes an object; it looks at objects (all but constants and
operators on them); it evidently is a string, list or tuple; it may change what its text does not name."""

HARMLESS = frozenset(
    {"abs", "bool", "callable", "chr", "divmod", "float", "getattr", "hasattr", "hash", "id", "int", "isinstance"}
    | {"issubclass", "len", "ord", "range", "repr", "round", "slice", "str", "super", "type"}
)
"""Functions that change nothing, not even an iterator, whatever else is assumed of calls."""

STRINGS = frozenset({"__doc__", "__file__", "__module__", "__name__", "__qualname__"})
"""Attributes that hold strings."""


@dataclass(frozen=True)
class Knowledge:
    """What a function's text says about names that it uses."""

    pure_calls: bool
    """Whether calls may be assumed to have no side effects."""
    functions: Collection[str] = ()
    """Nested functions, which may write variables."""
    methods: Collection[str] = ()
    """Variables that hold an attribute, and so perhaps a method: `write = file.write`."""
    sequences: Collection[str] = ()
    """Variables that hold strings, lists or tuples."""


def traits(nodes: Sequence[ast.AST], pure_calls: bool) -> dict[int, int]:
    """The traits of every node by its id; `nodes` lists parents before their children."""
    known = Knowledge(pure_calls, *_callables(nodes))
    found = _traits(nodes, known)
    sequences = {name for name, value in _assignments(nodes) if found[id(value)] & SEQUENCE}
    return _traits(nodes, replace(known, sequences=sequences)) if sequences else found


def exchangeable(one: int, two: int) -> bool:
    """Whether expressions with these traits may be evaluated in any order."""
    if (one | two) & BINDS:
        return False
    return not (one & WRITES and two & (WRITES | LOOKS)) and not (two & WRITES and one & LOOKS)


def _assignments(nodes: Sequence[ast.AST]) -> list[tuple[str, ast.expr]]:
    """Variables and what they are given, in `x = …`, `x += …` and `x, y = …, …`."""
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


def _callables(nodes: Sequence[ast.AST]) -> tuple[set[str], set[str]]:
    functions = {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
    given = _assignments(nodes)
    functions |= {name for name, value in given if isinstance(value, ast.Lambda)}
    return functions, {name for name, value in given if isinstance(value, ast.Attribute)}


def _traits(nodes: Sequence[ast.AST], known: Knowledge) -> dict[int, int]:
    found: dict[int, int] = {}
    for node in reversed(nodes):
        inherited = 0
        for child in ast.iter_child_nodes(node):
            inherited |= found[id(child)]
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            inherited &= ~HIDDEN  # its body does not run here
        joins = SEQUENCE if _is_sequence(node, found, known) else 0
        found[id(node)] = inherited & ~SEQUENCE | _own(node, known) | joins
    return found


def _own(node: ast.AST, known: Knowledge) -> int:
    match node:
        case ast.NamedExpr() | ast.Yield() | ast.YieldFrom() | ast.Await() | ast.comprehension(is_async=1):
            return BINDS
        case ast.Call():
            return LOOKS | _of_call(node, known)
        case ast.Constant() | ast.BinOp() | ast.UnaryOp() | ast.keyword() | ast.expr_context():
            return 0
        case ast.operator() | ast.unaryop():
            return 0
        case ast.FunctionDef(decorator_list=[]) | ast.AsyncFunctionDef(decorator_list=[]):
            return LOOKS
        case _ if not known.pure_calls and isinstance(node, RUNNING):
            return LOOKS | WRITES | HIDDEN
    return LOOKS


RUNNING = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom, ast.For, ast.With)
RUNNING += (ast.comprehension, ast.Starred)
"""What runs code without a call: decorators, class bodies, modules, iterators, context managers."""


def _of_call(call: ast.Call, known: Knowledge) -> int:
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
    """Whether `+` would put the node's value before or after another one."""
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
