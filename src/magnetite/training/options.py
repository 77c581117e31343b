"""Options by name: fields of dataclasses and arguments of constructors, checked, from plain values and back."""

import dataclasses
import inspect
import re
import tomllib
import types
import typing
from collections.abc import Mapping
from dataclasses import MISSING, dataclass
from typing import Any

import torch

from magnetite.encodings.checks import domain_of, is_later, later, quoted, unchanged_later

__all__ = [
    "Option",
    "argument_help",
    "check_choice",
    "is_names",
    "is_plain",
    "known_option",
    "later",
    "make",
    "options_of",
    "parse",
    "plain",
    "unchanged_later",
]

CALL = re.compile(r"(\w+)\((.*)\)")
"""How a small dataclass such as `Relative(0.25)` is written in a configuration."""


@dataclass(frozen=True)
class Option:
    """One option of a class that is selected by name.

    Args:
        name: Its name.
        hint: Its type, as annotated.
        default: Its default; `dataclasses.MISSING` if it must be given.
        help: What it means, in one line.
        later: Whether older configurations lack it, so that a hash leaves it out while it has its default.
    """

    name: str
    hint: Any
    default: Any
    help: str = ""
    later: bool = False

    def typed(self, value: Any, where: str) -> Any:
        """The value as the type of the option; an error says what was given and what it must be.

        >>> Option("lr", float, 1e-3).typed(1, "optim.lr"), Option("k", int | None, 8).typed("none", "k")
        (1.0, None)
        >>> Option("features", tuple[str, ...], ()).typed("age,", "task.features")
        ('age',)
        >>> Option("lr", float, 1e-3).typed("fast", "optim.lr")
        Traceback (most recent call last):
        ValueError: optim.lr must be a number such as 0.001, got 'fast'
        """
        found = _typed(value, self.hint)
        if found is MISSING:
            example = "" if self.default is MISSING else f" such as {_shown(plain(self.default))}"
            raise ValueError(f"{where} must be {_described(self.hint)}{example}, got {quoted(value)}")
        return found


def options_of(kind: Any) -> dict[str, Option]:
    """The fields of a dataclass, or the arguments of the constructor of another class, by name.

    >>> from magnetite.encodings import RandomWalk
    >>> list(options_of(RandomWalk))
    ['steps', 'restart', 'reverse', 'dtype']
    """
    described = argument_help(kind)
    if dataclasses.is_dataclass(kind):
        hints, domains = typing.get_type_hints(kind), typing.get_type_hints(kind, include_extras=True)
        made = [field for field in dataclasses.fields(kind) if field.init]
        each = [(field.name, hints[field.name], _default(field)) for field in made]
        new = {field.name for field in made if field.metadata.get("later")}
    else:
        hints = typing.get_type_hints(kind.__init__)
        domains = typing.get_type_hints(kind.__init__, include_extras=True)
        each = [
            (name, hints.get(name, Any), MISSING if parameter.default is parameter.empty else parameter.default)
            for name, parameter in list(inspect.signature(kind.__init__).parameters.items())[1:]
            if parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
        ]
        new = {name for name, hint in domains.items() if is_later(hint)}
    return {
        name: Option(name, hint, default, _with_domain(described.get(name, ""), domains.get(name)), name in new)
        for name, hint, default in each
    }


def make(kind: type, table: Mapping[str, Any], where: str) -> Any:
    """A dataclass from a table.

    Args:
        kind: The dataclass.
        table: Values by name.
        where: Name of the table, for errors.

    >>> from magnetite.training.config import Optim
    >>> make(Optim, {"rate": 1.0}, "optim")
    Traceback (most recent call last):
    ValueError: unknown option optim.rate: choose one of lr, ...
    """
    known = options_of(kind)
    values = {name: known_option(known, name, where).typed(value, f"{where}.{name}") for name, value in table.items()}
    missing = [name for name, option in known.items() if option.default is MISSING and name not in values]
    if missing:
        raise ValueError(f"{where}.{missing[0]} is missing: give it {_described(known[missing[0]].hint)}")
    try:
        return kind(**values)
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from None


def known_option(known: Mapping[str, Option], name: str, where: str) -> Option:
    """The option of this name; an error lists the choices."""
    if name not in known:
        raise ValueError(f"unknown option {where}.{name}: choose one of {', '.join(known) or '(it has no options)'}")
    return known[name]


def plain(value: Any) -> Any:
    """The value in JSON types, the inverse of `Option.typed`.

    >>> from magnetite import Relative
    >>> plain({"q": (0.1, Relative(0.25)), "dtype": torch.float32})
    {'q': [0.1, 'Relative(0.25)'], 'dtype': 'float32'}
    """
    if isinstance(value, Mapping):
        return {name: plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, torch.dtype):
        return str(value).removeprefix("torch.")
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        arguments = ", ".join(_shown(plain(item)) for item in dataclasses.astuple(value))
        return f"{type(value).__name__}({arguments})"
    return value


def parse(text: str) -> Any:
    """A value as it is written in TOML; strings need no quotes.

    >>> parse("[0.9, 0.99]"), parse("true"), parse("Relative(0.1)")
    ([0.9, 0.99], True, 'Relative(0.1)')
    """
    try:
        tables = tomllib.loads(f"value = {text}")
    except (tomllib.TOMLDecodeError, RecursionError):
        return text.strip()
    return tables["value"] if len(tables) == 1 else text.strip()  # several lines are several values


def argument_help(kind: Any) -> dict[str, str]:
    """The lines under `Args:` in a docstring, by argument.

    >>> from magnetite.training.config import Optim
    >>> argument_help(Optim)["lr"]
    'Peak learning rate.'
    """
    lines = inspect.getdoc(kind) or ""
    _, _, block = lines.partition("Args:\n")
    found: dict[str, str] = {}
    name = ""
    for line in block.splitlines():
        if not line.startswith("    "):
            break
        if match := re.fullmatch(r" {4}(\w+): (.*)", line):
            name, found[match[1]] = match[1], match[2]
        elif name:
            found[name] += f" {line.strip()}"
    return found


def is_plain(hint: Any) -> bool:
    """Whether a configuration can hold a value of this type: a number, a string, true or false, or a list of them."""
    return any(
        is_plain(typing.get_args(member)[0])
        if typing.get_origin(member) is tuple
        else member in (bool, int, float, str)
        for member in _members(hint)
    )


def is_names(hint: Any) -> bool:
    """Whether a value of this type is a list of text, which may be written as names with commas between them."""
    return any(typing.get_origin(each) is tuple and typing.get_args(each)[0] is str for each in _members(hint))


def check_choice(what: str, name: object, known: Mapping[str, Any] | tuple[str, ...]) -> None:
    """Raise an error that lists the choices if `name` is not one of them."""
    if not isinstance(name, str) or name not in known:
        raise ValueError(f"unknown {what} {quoted(name)}: choose one of {', '.join(known)}")


def _default(field: dataclasses.Field[Any]) -> Any:
    return field.default if field.default_factory is MISSING else field.default_factory()


def _members(hint: Any) -> tuple[Any, ...]:
    """The types of a union, flattened; `None` stands for its own type."""
    if isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union:
        return tuple(member for each in typing.get_args(hint) for member in _members(each))
    return (hint,)


def _typed(value: Any, hint: Any) -> Any:
    """The value as one of the types of a hint; MISSING if it is none.

    Integers count as floats, lists as tuples, and names with commas between them as a tuple of text.
    """
    members = _members(hint)
    if Any in members:
        return value
    if types.NoneType in members and (value is None or value == "none"):
        return None
    exact = [member for member in members if isinstance(member, type) and type(value) is member]
    if exact:
        return value
    for member in members:
        found = _converted(value, member)
        if found is not MISSING:
            return found
    return MISSING


def _converted(value: Any, kind: Any) -> Any:
    if is_names(kind) and isinstance(value, str):
        value = [name.strip() for name in value.strip().removesuffix(",").split(",")]
    if typing.get_origin(kind) is tuple and isinstance(value, list | tuple):
        items = [_typed(item, typing.get_args(kind)[0]) for item in value]
        return MISSING if any(item is MISSING for item in items) else tuple(items)
    if kind is float and isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**1023:
        return float(value)
    if kind is torch.dtype and isinstance(value, str):
        found = getattr(torch, value, None)
        return found if isinstance(found, torch.dtype) else MISSING
    if isinstance(kind, type) and dataclasses.is_dataclass(kind) and isinstance(value, str):
        match = CALL.fullmatch(value.strip())
        if match and match[1] == kind.__name__ and isinstance(arguments := parse(f"[{match[2]}]"), list):
            named = [field for field in dataclasses.fields(kind) if field.init]
            needed = [field for field in named if _default(field) is MISSING]
            return kind(*arguments) if len(needed) <= len(arguments) <= len(named) else MISSING
    return MISSING


def _described(hint: Any) -> str:
    words = {int: "an integer", float: "a number", bool: "true or false", str: "a string", types.NoneType: "none"}
    members = list(dict.fromkeys(_members(hint)))
    if float in members and int in members:
        members.remove(int)
    described = []
    for member in members:
        if typing.get_origin(member) is tuple:
            described.append("a list")
        elif isinstance(member, type) and dataclasses.is_dataclass(member):
            described.append(f"{member.__name__}(…)")
        else:
            described.append(words.get(member, getattr(member, "__name__", str(member))))
    return " or ".join(described)


def _with_domain(help: str, hint: Any) -> str:
    """A line of help that ends in the domain of the option, unless that is a list of choices that it contains."""
    found = domain_of(hint)
    if found is None or found[0].choices:
        return help
    return f"{help.removesuffix('.')} ({found[0].described(found[1])})."


def _shown(value: Any) -> str:
    return {True: "true", False: "false"}[value] if isinstance(value, bool) else f"{value}"
