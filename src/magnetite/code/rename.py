"""Other names for the variables of a function: the same program, to anyone but a reader."""

import ast
import keyword
import random
from collections.abc import Iterator, Mapping

from magnetite.code.functions import parse_function
from magnetite.code.names import FunctionNode, Names, parameters
from magnetite.code.rewriting import not_too_deep, text_of
from magnetite.code.scopes import Variable, resolve

LOOKING_AT_NAMES = frozenset({"locals", "vars", "dir", "eval", "exec"})
"""Functions that see what a variable is called."""
KEPT = frozenset({"self", "cls"})
"""Names that everyone expects: random names do not replace them."""


def rename(source: str, names: Mapping[str, str], name: str | None = None) -> str:
    """Rename variables of one function: of the only one in the source, or of the one with this (qualified) name.

    Every variable that the function, or a function inside it, calls by an old name gets the new one: parameters,
    locals, variables of loops and comprehensions, imports. Globals, attributes and members of classes keep theirs.
    Keyword arguments follow the parameters of the function and those inside it. Comments and layout are not kept.

    >>> print(rename("def f(xs):\\n    return [x.n for x in xs]", {"x": "item", "xs": "items"}))
    def f(items):
        return [item.n for item in items]
    """
    tree, function = parse_function(source, name)
    with not_too_deep():
        found = Names.of(function)
    _check(found, names)
    for definition, call in _calls(function, found):
        _rename_keywords(call, definition, names)
    for occurrence in found.occurrences:
        if occurrence.is_local and occurrence.variable.name in names:
            occurrence.write(names[occurrence.variable.name])
    return text_of(tree)


def random_names(source: str, seed: int, name: str | None = None) -> dict[str, str]:
    """New names for all variables of a function, drawn at random, for `rename`; `self` and `cls` stay.

    >>> random_names("def f(self, a, b): return a + b", seed=0)
    {'a': 'v6', 'b': 'v8'}
    """
    with not_too_deep():
        found = Names.of(parse_function(source, name)[1])
    taken = {occurrence.variable.name for occurrence in found.occurrences}
    old = [variable for variable in _variables(found) if variable not in KEPT]
    fresh = [word for word in (f"v{number}" for number in range(2 * len(taken) + 1)) if word not in taken]
    return dict(zip(old, random.Random(seed).sample(fresh, len(old)), strict=True))


def _variables(found: Names) -> list[str]:
    """The names that can be replaced: those of local variables, save modules imported by a dotted name."""
    dotted = {use.variable.name for use in found.occurrences if isinstance(use.node, ast.alias) and use.field == "name"}
    return sorted({use.variable.name for use in found.occurrences if use.is_local} - dotted)


def _check(found: Names, names: Mapping[str, str]) -> None:
    variables = _variables(found)
    for old, new in names.items():
        if old not in variables:
            raise ValueError(f"{old!r} is no variable of the function: choose from {', '.join(variables) or 'none'}")
        if not new.isidentifier() or keyword.iskeyword(new) or new == "_":
            raise ValueError(f"{new!r} cannot be the name of a variable: choose a plain identifier for {old!r}")
    if len(set(names.values())) < len(names):
        raise ValueError(f"{', '.join(sorted(names.values()))}: two variables would get one name; give each its own")
    kept = {use.variable.name for use in found.occurrences if not (use.is_local and use.variable.name in names)}
    for new in kept & set(names.values()):
        raise ValueError(f"{new!r} has a meaning in the function already: choose a name that is not used there")
    for looking in kept & LOOKING_AT_NAMES:
        raise ValueError(f"the function calls {looking}, which sees the names of variables: they cannot be changed")


def _calls(function: FunctionNode, found: Names) -> Iterator[tuple[FunctionNode, ast.Call]]:
    """Calls of the function, by its name or as a member of its first parameter, and of functions inside it."""
    defined: dict[Variable, list[FunctionNode]] = {}
    for variable, definition in found.definitions:
        defined.setdefault(resolve(variable), []).append(definition)
    for variable, call in found.calls:
        yield from ((definition, call) for definition in defined.get(resolve(variable), ()))
    first = next((argument.arg for argument in parameters(function.args)), None)
    for node in ast.walk(function):
        match node:
            case ast.Call(ast.Attribute(ast.Name(receiver), attr)) if receiver == first and attr == function.name:
                yield function, node


def _rename_keywords(call: ast.Call, definition: FunctionNode, names: Mapping[str, str]) -> None:
    """Keywords that name parameters of the called function go with them."""
    known = {argument.arg for argument in parameters(definition.args)}
    for argument in call.keywords:
        if argument.arg in known:
            argument.arg = names.get(argument.arg, argument.arg)
