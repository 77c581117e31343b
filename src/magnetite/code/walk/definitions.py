"""Functions, lambdas and classes: what is evaluated where they stand, and what when they are called."""

import ast
from collections.abc import Callable
from typing import Any

from magnetite.code.draft import Draft, Path
from magnetite.code.effects import (
    APPLY,
    WRITE,
)
from magnetite.code.scopes import Scope, Variable
from magnetite.code.walk.visiting import (
    LAST,
    POSITION,
    visit,
    visit_list,
    visit_unordered,
    walk_list,
)


def define(draft: Draft, node: Any, parent: int, field: str) -> None:
    """A nested function: decorators and defaults are evaluated here, its body where it is called."""
    index = draft.add(type(node).__name__, node.name, parent, field, node.lineno)
    outer = draft.scope
    parameters = walk_header(draft, node, index)
    inner, draft.scope = draft.scope, outer
    variable = outer.binding(node.name)
    draft.log.append((WRITE, variable, None, index))
    unit = function_unit(draft, parameters, inner, lambda: walk_body(draft, node, index))
    variable.functions.append(unit)


def walk_header(draft: Draft, node: Any, index: int) -> list[tuple[str, int]]:
    """Decorators, type parameters, arguments and the result's annotation; leaves the scope that the body lies in."""
    visit_list(draft, node.decorator_list, index, "decorator_list")
    type_parameters(draft, node, index)
    parameters = parameters_of(draft, node.args, index)
    if node.returns is not None:
        visit(draft, node.returns, index, "returns")
    return parameters


def walk_body(draft: Draft, node: Any, index: int) -> None:
    """The body of a function."""
    draft.shapes[index] = {"body": [walk_list(draft, node.body, node, index, "body")]}


def function_unit(
    draft: Draft, parameters: list[tuple[str, int]], parent: Scope, walk_body: Callable[[], object]
) -> int:
    """Walk a body that runs when it is called, not here: a unit with a control flow and a scope of its own."""
    outer = draft.scope, draft.unit, draft.block, draft.open, draft.frames, draft.finals
    draft.unit = unit = draft.units
    draft.units += 1
    draft.scope = Scope("function", parent, unit)
    draft.open, draft.frames, draft.finals = [], [], 0
    draft.unit_parents.append(outer[1])
    entry = draft.start([])
    draft.live[entry] = True
    draft.entries.add(entry)
    bind_parameters(draft, parameters)
    walk_body()
    draft.scope, draft.unit, before, draft.open, draft.frames, draft.finals = outer
    draft.start([before])
    return unit


def bind_parameters(draft: Draft, parameters: list[tuple[str, int]]) -> None:
    """Write the parameters on entry of a function."""
    for name, index in parameters:
        draft.log.append((WRITE, draft.scope.binding(name), None, index))
    if parameters:
        draft.scope.first_parameter = parameters[0][0]


def parameters_of(draft: Draft, node: ast.arguments, parent: int) -> list[tuple[str, int]]:
    """The `arguments` node with annotations and defaults, which are evaluated outside; names and nodes inside."""
    index = draft.add("arguments", None, parent, "args")
    found: list[tuple[str, int]] = []
    for field in ("posonlyargs", "args", "vararg", "kwonlyargs", "kwarg"):
        entries = getattr(node, field)
        for k, entry in enumerate(entries if isinstance(entries, list) else [entries] if entries else []):
            number = draft.add("arg", entry.arg, index, POSITION[field][min(k, LAST)], entry.lineno)
            if entry.annotation is not None:
                visit(draft, entry.annotation, number, "annotation")
            found.append((entry.arg, number))
    visit_list(draft, node.defaults, index, "defaults")
    visit_list(draft, node.kw_defaults, index, "kw_defaults")
    return found


def anonymous(draft: Draft, node: ast.Lambda, parent: int, field: str) -> Path:
    """A lambda: handed on, it is assumed to be called at once."""
    index = draft.add("Lambda", None, parent, field, node.lineno)
    parameters = parameters_of(draft, node.args, index)
    unit = function_unit(draft, parameters, draft.scope, lambda: visit(draft, node.body, index, "body"))
    here = Variable("<lambda>", draft.scope).bind()
    here.functions.append(unit)
    draft.log.append((APPLY, here, None, index))
    return None


def type_parameters(draft: Draft, node: Any, index: int) -> None:
    """`[T: bound = default]` of Python 3.12, bound in a scope around the definition."""
    if not getattr(node, "type_params", None):
        return
    draft.scope = Scope("types", draft.scope, draft.unit)
    for k, entry in enumerate(node.type_params):
        number = draft.add(type(entry).__name__, entry.name, index, POSITION["type_params"][min(k, LAST)], entry.lineno)
        draft.log.append((WRITE, draft.scope.binding(entry.name), None, number))
        for name in ("bound", "default_value"):
            if getattr(entry, name, None) is not None:
                visit(draft, getattr(entry, name), number, name)


def define_class(draft: Draft, node: ast.ClassDef, parent: int, field: str) -> None:
    """A nested class: its body runs here, in a scope of its own; using it may call any of its methods."""
    index = draft.add("ClassDef", node.name, parent, field, node.lineno)
    outer, first = draft.scope, draft.units
    visit_list(draft, node.decorator_list, index, "decorator_list")
    type_parameters(draft, node, index)
    visit_list(draft, node.bases, index, "bases")
    visit_unordered(draft, node.keywords, index, "keywords")
    draft.scope = Scope("class", draft.scope, draft.unit)
    draft.shapes[index] = {"body": [walk_list(draft, node.body, node, index, "body")]}
    draft.scope = outer
    variable = outer.binding(node.name)
    variable.functions += range(first, draft.units)
    draft.log.append((WRITE, variable, None, index))
