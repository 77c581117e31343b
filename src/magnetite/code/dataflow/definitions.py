"""Rules for functions, lambdas and classes: what runs where they are defined, and what runs when they are called."""

import ast
import sys
from collections.abc import Callable
from typing import Any

from magnetite.code.dataflow import control_flow, expressions  # noqa: F401 - they register their rules
from magnetite.code.dataflow.assignments import store
from magnetite.code.dataflow.closures import bind_closures
from magnetite.code.dataflow.effects import APPLY, WRITE
from magnetite.code.dataflow.scopes import Scope, Variable, resolve
from magnetite.code.dataflow.values import PLAIN_TYPES, aliases, hold, literal
from magnetite.code.dataflow.walk import (
    Draft,
    FollowCalls,
    Path,
    evaluate,
    numbered,
    rule,
    visit,
    visit_body,
    visit_list,
    visit_unordered,
)

Definition = ast.FunctionDef | ast.AsyncFunctionDef

DEEPEST = 100_000
"""Recursion limit for deeply nested trees; the frames are Python's, which do not use the C stack."""


def walk_function(node: Definition, is_method: bool = False, keep_docstrings: bool = False) -> Draft:
    """Walk over a function; again with a higher recursion limit if it is nested very deeply.

    Args:
        node: The definition.
        is_method: Whether it is defined in a class, so that its body does not see its name.
        keep_docstrings: Whether docstrings become nodes.
    """
    limit = sys.getrecursionlimit()
    try:
        return _walk_again(node, is_method, keep_docstrings)
    except RecursionError:
        sys.setrecursionlimit(max(limit, DEEPEST))
        try:
            return _walk_again(node, is_method, keep_docstrings)
        except RecursionError as error:
            raise ValueError(
                f"the function {node.name!r} is nested too deeply: expressions and branches together may be nested "
                f"about {DEEPEST // 4:,} deep; split it"
            ) from error
        finally:
            sys.setrecursionlimit(limit)


def _walk_again(node: Definition, is_method: bool, keep_docstrings: bool) -> Draft:
    try:
        return _walk(node, is_method, keep_docstrings, False)
    except FollowCalls:
        return _walk(node, is_method, keep_docstrings, True)


def _walk(node: Definition, is_method: bool, keep_docstrings: bool, follows_calls: bool) -> Draft:
    draft = Draft(node.name, keep_docstrings, follows_calls)
    draft.nodes.append((type(node).__name__, node.name, 0, "", node.lineno, 0, 0))
    if not is_method:
        draft.itself = draft.scope.variable(node.name)
        draft.itself.functions.append(0)
    parameters = _header(draft, node, 0)
    draft.scope = Scope("function", draft.scope, 0)
    _bind_parameters(draft, parameters)
    for entry in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs):
        if isinstance(entry.annotation, ast.Name) and entry.annotation.id in PLAIN_TYPES:
            draft.scope.variable(entry.arg).plain += 1
    if parameters and (is_method or parameters[0][0] in ("self", "cls")):
        draft.receiver = draft.scope.variable(parameters[0][0])
    _body(draft, node, 0)
    if draft.follows_calls:
        bind_closures(draft)
    return draft


@rule("FunctionDef", "AsyncFunctionDef")
def nested_function(draft: Draft, node: Definition, parent: int, field: str) -> None:
    """A nested function: decorators and defaults are evaluated here, the body where it is called."""
    index = draft.add(type(node).__name__, node.name, parent, field, node.lineno)
    outer = draft.scope
    parameters = _header(draft, node, index)
    inner, draft.scope = draft.scope, outer
    variable = outer.binding(node.name)
    draft.log.append((WRITE, variable, None, index))
    unit = _unit(draft, parameters, inner, lambda: _body(draft, node, index))
    variable.functions.append(unit)
    _sign(draft, node.args, unit)


def _header(draft: Draft, node: Definition, index: int) -> list[tuple[str, int]]:
    """Decorators, type parameters, parameters and annotations; leaves the draft in the scope around the body."""
    visit_list(draft, node.decorator_list, index, "decorator_list")
    _type_parameters(draft, node, index)
    parameters = _parameters(draft, node.args, index)
    if node.returns is not None:
        visit(draft, node.returns, index, "returns")
    return parameters


def _body(draft: Draft, node: Definition | ast.ClassDef, index: int) -> None:
    draft.sublists[index] = {"body": [visit_body(draft, node.body, node, index)]}


def _unit(draft: Draft, parameters: list[tuple[str, int]], parent: Scope, walk_body: Callable[[], object]) -> int:
    """Walk over a body that runs when it is called: a unit with its own control flow and scope. Return its number."""
    if not draft.follows_calls:
        raise FollowCalls
    outer = draft.scope, draft.unit, draft.block, draft.open, draft.frames, draft.open_finally
    draft.unit = unit = draft.units
    draft.units += 1
    draft.scope = Scope("function", parent, unit)
    draft.open, draft.frames, draft.open_finally = [], [], 0
    draft.unit_parents.append(outer[1])
    entry = draft.start([])
    draft.live[entry] = True
    draft.entries.add(entry)
    _bind_parameters(draft, parameters)
    draft.parameters[unit] = [draft.scope.variable(name) for name, _ in parameters]
    walk_body()
    draft.scope, draft.unit, before, draft.open, draft.frames, draft.open_finally = outer
    draft.start([before])
    return unit


def _parameters(draft: Draft, node: ast.arguments, parent: int) -> list[tuple[str, int]]:
    """The `arguments` node with annotations and defaults, evaluated outside; return names and nodes."""
    index = draft.add("arguments", None, parent, "args")
    found: list[tuple[str, int]] = []
    for field in ("posonlyargs", "args", "vararg", "kwonlyargs", "kwarg"):
        entries = getattr(node, field)
        for k, entry in enumerate(entries if isinstance(entries, list) else [entries] if entries else []):
            number = draft.add("arg", entry.arg, index, numbered(field, k), entry.lineno)
            if entry.annotation is not None:
                visit(draft, entry.annotation, number, "annotation")
            found.append((entry.arg, number))
    visit_list(draft, node.defaults, index, "defaults")
    visit_list(draft, node.kw_defaults, index, "kw_defaults")
    return found


def _bind_parameters(draft: Draft, parameters: list[tuple[str, int]]) -> None:
    for name, index in parameters:
        draft.log.append((WRITE, draft.scope.binding(name), None, index))
    if parameters:
        draft.scope.first_parameter = parameters[0][0]


@rule("Lambda")
def anonymous_function(draft: Draft, node: ast.Lambda, parent: int, field: str) -> Path:
    """A lambda: where it is passed on, it is assumed to be called at once."""
    index = draft.add("Lambda", None, parent, field, node.lineno)
    parameters = _parameters(draft, node.args, index)
    unit = _unit(draft, parameters, draft.scope, lambda: _lambda_body(draft, node, index))
    _sign(draft, node.args, unit)
    here = Variable("<lambda>", draft.scope).bind()
    here.functions.append(unit)
    draft.log.append((APPLY, here, None, index))
    draft.values[id(node)] = [(here, ())]
    return None


def _lambda_body(draft: Draft, node: ast.Lambda, index: int) -> None:
    visit(draft, node.body, index, "body")
    draft.returned[draft.unit] = aliases(draft, node.body)


def _sign(draft: Draft, node: ast.arguments, unit: int) -> None:
    """Record the parameters of a nested function, and let them refer to their defaults."""
    draft.signatures[unit] = node
    positional = [*node.posonlyargs, *node.args]
    pairs = zip(positional[len(positional) - len(node.defaults) :], node.defaults, strict=True)
    named = {parameter.name: parameter for parameter in draft.parameters[unit]}
    for entry, default in [*pairs, *zip(node.kwonlyargs, node.kw_defaults, strict=True)]:
        if default is not None and not literal(draft, default):
            # a default that is new here lives on between the calls
            sources = aliases(draft, default) or [(Variable("<value>", draft.scope).bind(), ())]
            hold(draft, [(named[entry.arg], ())], sources)


@rule("ClassDef")
def nested_class(draft: Draft, node: ast.ClassDef, parent: int, field: str) -> None:
    """A nested class: its body runs here, in its own scope; using the class may call any of its methods."""
    index = draft.add("ClassDef", node.name, parent, field, node.lineno)
    outer, first = draft.scope, draft.units
    visit_list(draft, node.decorator_list, index, "decorator_list")
    _type_parameters(draft, node, index)
    visit_list(draft, node.bases, index, "bases")
    visit_unordered(draft, node.keywords, index, "keywords")
    draft.scope = Scope("class", draft.scope, draft.unit)
    _body(draft, node, index)
    inner, draft.scope = draft.scope, outer
    variable = outer.binding(node.name)
    _share(draft, node, variable, inner)
    variable.functions += range(first, draft.units)
    draft.log.append((WRITE, variable, None, index))


def _share(draft: Draft, node: ast.ClassDef, variable: Variable, inner: Scope) -> None:
    """Record the attributes that a class shares with its instances, its own and those of nested classes below it."""
    shared: list[str] = []
    for tree in node.body:
        match tree:
            case ast.Assign(targets, value) if not literal(draft, value):
                shared += [target.id for target in targets if isinstance(target, ast.Name)]
            case ast.AnnAssign(ast.Name(name), _, ast.expr() as value) if not literal(draft, value):
                shared.append(name)
    draft.copies += [((variable, (name,)), (inner.variable(name), ())) for name in shared]
    for base in node.bases:
        parent = resolve(draft.scope.variable(base.id)) if isinstance(base, ast.Name) else None
        inherited = draft.classes.get(parent, []) if parent else []
        draft.copies += [((variable, (name,)), (parent, (name,))) for name in inherited if parent]
        shared += inherited
    if shared:
        draft.classes[variable] = shared


@rule("TypeAlias")
def type_alias(draft: Draft, node: Any, parent: int, field: str) -> None:
    """`type Name[T] = value` (Python 3.12)."""
    index = draft.add("TypeAlias", None, parent, field, node.lineno)
    outer = draft.scope
    _type_parameters(draft, node, index)
    used, _ = evaluate(draft, node.value, index, "value")
    draft.scope = outer
    store(draft, node.name, index, "name", used, ())


def _type_parameters(draft: Draft, node: Any, index: int) -> None:
    """`[T: bound = default]` (Python 3.12), bound in a scope around the definition."""
    if not getattr(node, "type_params", None):
        return
    draft.scope = Scope("types", draft.scope, draft.unit)
    for k, entry in enumerate(node.type_params):
        number = draft.add(type(entry).__name__, entry.name, index, numbered("type_params", k), entry.lineno)
        draft.log.append((WRITE, draft.scope.binding(entry.name), None, number))
        for name in ("bound", "default_value"):
            if getattr(entry, name, None) is not None:
                visit(draft, getattr(entry, name), number, name)
