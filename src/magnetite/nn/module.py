"""Module: a torch module that keeps the arguments of its constructor, so that it can be saved as JSON and rebuilt."""

import dataclasses
import functools
import importlib
import inspect
import typing
from typing import Any

import torch

from magnetite.encodings.checks import domain_of, fitted

HOMES = ("magnetite.nn", "magnetite.encodings", "magnetite.linalg.potential")
"""Packages whose classes may occur in a description."""

BEFORE: dict[str, dict[str, Any]] = {"SPE": {"scaling": "none"}}
"""Arguments that older descriptions do not have, by class, with the values that these models were trained with."""

_CLASSES: dict[str, type] = {}
"""All subclasses of `Module`, by the name under which they are saved."""


class Module(torch.nn.Module):
    """A torch module that keeps the arguments of its constructor in `arguments`.

    Arguments may be numbers, strings, other modules, encodings, and lists of these, so that `describe` can write them;
    those whose types have a domain, such as `width: Annotated[int, SIZE]`, are checked. Subclasses of your own are
    saved and loaded like those of magnetite; import them before loading.
    """

    arguments: dict[str, Any]

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        _CLASSES[_saved_name(cls)] = cls
        make: Any = cls.__init__
        signature = inspect.signature(make)
        domains = functools.cache(lambda: _domains(make))

        @functools.wraps(make)
        def remembering(self: Any, *args: Any, **kwargs: Any) -> None:
            if domains():
                bound = signature.bind(self, *args, **kwargs)
                for name in domains().keys() & bound.arguments.keys():
                    bound.arguments[name] = fitted(name, bound.arguments[name], domains()[name])
                args, kwargs = bound.args[1:], bound.kwargs
            make(self, *args, **kwargs)
            if type(self) is cls:  # not the constructor of a base class that a subclass calls
                self.arguments = _arguments(signature, self, *args, **kwargs)

        cls.__init__ = remembering


def _domains(make: Any) -> dict[str, Any]:
    """The types of the arguments that have a domain, such as `width: Annotated[int, SIZE]`."""
    hints = typing.get_type_hints(make, include_extras=True)
    return {name: hint for name, hint in hints.items() if domain_of(hint) is not None}


def describe(item: Any) -> Any:
    """A description in JSON types, from which `rebuild` makes an equal object with new parameters.

    Args:
        item: A module, encoding, number, string, or a list or dict of these.

    >>> from magnetite.nn import GraphHead
    >>> describe(GraphHead(2))
    {'class': 'GraphHead', 'outputs': 2, 'readout': 'cls'}
    """
    if isinstance(item, Module):
        name = _saved_name(type(item))
        if _found(name) is not type(item):
            raise TypeError(f"two classes are named {name}: rename one of them to save both")
        if any(argument.startswith("*") for argument in item.arguments):
            raise TypeError(
                f"{type(item).__name__} cannot be saved, because its constructor takes *args: give it a list"
            )
        return {"class": name, **{argument: describe(value) for argument, value in item.arguments.items()}}
    if dataclasses.is_dataclass(item) and not isinstance(item, type):
        values = {field.name: describe(getattr(item, field.name)) for field in dataclasses.fields(item)}
        return {"class": type(item).__name__, **values}
    if isinstance(item, torch.dtype):
        return {"dtype": str(item).removeprefix("torch.")}
    if isinstance(item, list | tuple):
        return [describe(value) for value in item]
    if isinstance(item, dict):
        return {"dict": [[describe(key), describe(value)] for key, value in item.items()]}
    if item is None or isinstance(item, bool | int | float | str):
        return item
    raise TypeError(f"{item!r} cannot be saved: use magnetite.nn.Module as base class, and plain values as arguments")


def rebuild(description: Any) -> Any:
    """The object that `describe` described, with new parameters.

    Args:
        description: The result of `describe`.

    >>> from magnetite.nn import GraphHead
    >>> rebuild(describe(GraphHead(2))).outputs
    2
    """
    if isinstance(description, list):
        return tuple(rebuild(value) for value in description)
    if not isinstance(description, dict):
        return description
    if list(description) == ["dtype"]:
        return getattr(torch, description["dtype"])
    if list(description) == ["dict"]:
        return {rebuild(key): rebuild(value) for key, value in description["dict"]}
    values = {name: rebuild(value) for name, value in description.items() if name != "class"}
    values = {**BEFORE.get(description["class"], {}), **values}
    return _class(description["class"])(**values)


def of_kind(part: Any, kind: type, argument: str) -> Any:
    """The part, refused unless it is of this class, which says how it is set up, called and saved.

    >>> from magnetite.nn import Head
    >>> of_kind(torch.nn.Linear(4, 2), Head, "head")
    Traceback (most recent call last):
    TypeError: head must be a subclass of magnetite.nn.Head, got Linear: make the Linear in its setup, see ...
    """
    if not isinstance(part, kind):
        given = type(part).__name__
        own = "docs/howto/own-layers.md"
        how = f": make the {given} in its setup, see {own}" if isinstance(part, torch.nn.Module) else ""
        raise TypeError(f"{argument} must be a subclass of magnetite.nn.{kind.__name__}, got {given}{how}")
    return part


def unused(part: Any) -> Any:
    """The part, refused if it has parameters: then it belongs to another model, or made them in its constructor.

    >>> from magnetite.nn import GraphHead
    >>> unused(GraphHead(2)).outputs
    2
    """
    if any(True for _ in part.parameters()):
        raise ValueError(
            f"this {type(part).__name__} has parameters already: make a new one for each model; "
            "a class of your own should make its parameters in setup, not in __init__"
        )
    return part


def remade(item: Any) -> Any:
    """A module with the same arguments, new parameters, and copies of its buffers.

    >>> from magnetite.nn import GNN
    >>> remade(GNN(32)).arguments["width"]
    32
    """
    if isinstance(item, Module):
        made = type(item)(**{name: remade(value) for name, value in item.arguments.items()})
        made.load_state_dict(dict(item.named_buffers()), strict=False)  # such as means that a feature is shifted by
        return made
    return type(item)(remade(value) for value in item) if isinstance(item, list | tuple) else item


def _arguments(signature: inspect.Signature, *args: Any, **kwargs: Any) -> dict[str, Any]:
    """All arguments by name, defaults included, without `self`; those of `**options` are spread out."""
    bound = signature.bind(*args, **kwargs)
    bound.apply_defaults()
    found: dict[str, Any] = {}
    for name, value in list(bound.arguments.items())[1:]:
        kind = signature.parameters[name].kind
        if kind is inspect.Parameter.VAR_KEYWORD:
            found.update(value)
        elif kind is not inspect.Parameter.VAR_POSITIONAL:
            found[name] = value
        elif value:
            found[f"*{name}"] = value
    return found


def _class(name: str) -> Any:
    found = _found(name)
    if found is None:
        raise ValueError(
            f"there is no class {name!r}: import the module that defines it, or install the version that wrote the file"
        )
    return found


def _saved_name(kind: type) -> str:
    """The name of a class in a description: its own for magnetite's classes, `module:name` for others."""
    own = kind.__module__.partition(".")[0] == "magnetite"
    return kind.__name__ if own else f"{kind.__module__}:{kind.__qualname__}"


def _found(name: str) -> type | None:
    """The class of this name, if it has been imported; a module is never imported because a file names it."""
    for home in HOMES:
        found = getattr(importlib.import_module(home), name, None)
        if isinstance(found, type):
            return found
    if name not in _CLASSES and ":" not in name:
        importlib.import_module("magnetite.tasks")  # defines further modules
    from magnetite.encodings import ENCODINGS  # which a user may have added to

    return _CLASSES.get(name) or next((each for each in ENCODINGS.values() if each.__name__ == name), None)
