"""Nested functions: which variables may refer to them, what they are called with, and what their calls return."""

import ast

from magnetite.code.dataflow.scopes import Scope, resolve
from magnetite.code.dataflow.values import aliases, hold, inside, members, put_by_name
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
        known = len(draft.held)
        for node, scope in draft.calls:
            _bind_call(draft, node, scope)
        if len(draft.held) == known:
            return


def _pass_on(draft: Draft) -> None:
    """Let variables refer to the functions of what they are copies of, and keep those of all they are related to."""
    pairs = [(resolve(to), resolve(of), not into and not out) for (to, into), (of, out) in draft.copies]
    pairs += [(resolve(to), resolve(of), False) for (to, _), (of, _) in [*draft.held, *draft.extended, *draft.alike]]
    changed = True
    while changed:
        changed = False
        for to, of, same in pairs:
            changed |= _add(to.functions if same else to.kept, of.functions)
            changed |= _add(to.kept, of.kept) | _add(of.kept, to.kept)
            if of.method and not to.method:
                to.method = changed = True
            if to.method and not of.method and not same:
                of.method = changed = True


def _add(units: list[int], more: list[int]) -> bool:
    new = [unit for unit in more if unit not in units]
    units += new
    return bool(new)


def _bind_call(draft: Draft, node: ast.Call, scope: Scope) -> None:
    """Let parameters refer to arguments, and the result to what is returned."""
    draft.scope = scope
    units: list[int] = []
    for k, (variable, path) in enumerate(aliases(draft, node.func)):
        root = resolve(variable)
        if root.method and (id(node), ~k) not in draft.bound:
            draft.bound.add((id(node), ~k))
            put_by_name(draft, node, (root, path))
        _add(units, root.kept if path else root.functions + root.kept)
    for unit in units:
        # the function itself is not followed: its parameters are assumed to be distinct
        if unit and (id(node), unit) not in draft.bound:
            draft.bound.add((id(node), unit))
            _bind_arguments(draft, node, unit)
            result = draft.results.get(id(node))
            if result is not None:
                draft.held += [(result, source) for source in draft.returned.get(unit, ())]


def _bind_arguments(draft: Draft, node: ast.Call, unit: int) -> None:
    """Bind arguments by position and name; to all parameters where a star or a receiver makes positions uncertain."""
    signature, named = draft.signatures[unit], {parameter.name: parameter for parameter in draft.parameters[unit]}
    positional: list[Source] = [(named[entry.arg], ()) for entry in (*signature.posonlyargs, *signature.args)]
    stars: list[Source] = [(named[entry.arg], ("[]",)) for entry in (signature.vararg, signature.kwarg) if entry]
    simple = isinstance(node.func, ast.Name) and not any(isinstance(argument, ast.Starred) for argument in node.args)
    for k, argument in enumerate(node.args):
        hold(draft, positional[k : k + 1] or stars if simple else positional + stars, members(draft, [argument]))
    for keyword in node.keywords:
        if keyword.arg in named:
            hold(draft, [(named[keyword.arg], ())], aliases(draft, keyword.value))
        elif keyword.arg:
            hold(draft, stars, aliases(draft, keyword.value))
        else:
            whole: list[Source] = [(parameter, ()) for parameter in named.values()]
            hold(draft, whole + stars, inside(aliases(draft, keyword.value)))
