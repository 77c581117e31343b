"""Nested functions: which variables may refer to them, what they are called with, and what their calls return."""

import ast

from magnetite.code.dataflow.scopes import Variable, resolve
from magnetite.code.dataflow.values import aliases
from magnetite.code.dataflow.walk import Draft, Source


def bind_closures(draft: Draft) -> None:
    """Connect the calls of nested functions with their parameters and results, and pass functions on.

    Functions are passed on by copies (`h = g`), through containers (`fs = [g]`), as arguments and as results, so this
    is repeated until nothing changes.

    Args:
        draft: The walked function.
    """
    while True:
        _pass_on(draft)
        if not any([_bind_call(draft, node, scope) for node, scope in draft.calls]):
            return


def _pass_on(draft: Draft) -> None:
    """Let variables refer to the functions of what they are copies of, or keep those of what they hold."""
    pairs = [
        (resolve(to), bool(into), resolve(of), bool(out))
        for (to, into), (of, out) in [*draft.copies, *draft.held, *draft.extended, *draft.alike]
    ]
    changed = True
    while changed:
        changed = False
        for to, into, of, out in pairs:
            given = of.kept if out else of.functions
            changed |= _add(to.kept if into else to.functions, given)
            changed |= _add(to.kept, of.kept) | _add(of.kept, to.kept)


def _add(units: list[int], more: list[int]) -> bool:
    new = [unit for unit in more if unit not in units]
    units += new
    return bool(new)


def _bind_call(draft: Draft, node: ast.Call, scope: object) -> bool:
    """Let parameters refer to arguments, and the result to what is returned; whether there is anything new."""
    draft.scope = scope  # pyright: ignore
    units: list[int] = []
    for variable, path in aliases(draft, node.func):
        root = resolve(variable)
        _add(units, root.kept if path else root.functions)
    before = len(draft.held)
    for unit in units:
        if unit and (id(node), unit) not in draft.bound:
            draft.bound.add((id(node), unit))
            _bind_arguments(draft, node, draft.parameters[unit])
            result = draft.results.get(id(node))
            if result is not None:
                draft.held += [(result, source) for source in draft.returned.get(unit, ())]
    return len(draft.held) > before


def _bind_arguments(draft: Draft, node: ast.Call, parameters: list[Variable]) -> None:
    """Bind arguments by position and name; all to all where a star or a receiver makes positions uncertain."""
    named = {parameter.name: parameter for parameter in parameters}
    simple = isinstance(node.func, ast.Name) and not any(isinstance(argument, ast.Starred) for argument in node.args)
    for k, argument in enumerate(node.args):
        _bind(draft, parameters[k : k + 1] if simple and k < len(parameters) else parameters, aliases(draft, argument))
    for keyword in node.keywords:
        one = named.get(keyword.arg or "")
        _bind(draft, [one] if one else parameters, aliases(draft, keyword.value))


def _bind(draft: Draft, parameters: list[Variable], sources: list[Source]) -> None:
    """Let parameters refer to arguments, or hold them: `*args` does."""
    for parameter in parameters:
        for path in ((), ("[]",)):
            draft.held += [((parameter, path), source) for source in sources]
