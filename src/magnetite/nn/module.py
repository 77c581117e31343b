"""Module: a torch module that remembers how it was made, so that it can be described as JSON and made again."""

import dataclasses
import functools
import importlib
import inspect
from typing import Any

import torch

HOMES = ("magnetite.nn", "magnetite.encodings", "magnetite.linalg.potential")
"""Where the classes that stand in a description are found, by name."""


class Module(torch.nn.Module):
    """A torch module whose constructor's arguments are kept in `arguments`.

    Arguments are numbers, strings, other modules, encodings, and lists of these, so that `describe` can write them.
    """

    arguments: dict[str, Any]

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        make: Any = cls.__init__
        signature = inspect.signature(make)

        @functools.wraps(make)
        def remembering(self: Any, *args: Any, **kwargs: Any) -> None:
            make(self, *args, **kwargs)
            if type(self) is cls:  # not a parent's constructor that a child calls
                self.arguments = _arguments(signature, self, *args, **kwargs)

        cls.__init__ = remembering


def describe(item: Any) -> Any:
    """What `rebuild` makes the same thing from, in JSON's types; parameters are not part of it.

    >>> from magnetite.nn import GraphHead
    >>> describe(GraphHead(2))
    {'class': 'GraphHead', 'outputs': 2, 'readout': 'cls'}
    """
    if isinstance(item, Module):
        if _found(type(item).__name__) is not type(item):
            raise TypeError(
                f"{type(item).__name__} is not one of magnetite's own modules: keep its state_dict() instead"
            )
        return {"class": type(item).__name__, **{name: describe(value) for name, value in item.arguments.items()}}
    if dataclasses.is_dataclass(item) and not isinstance(item, type):
        values = {field.name: describe(getattr(item, field.name)) for field in dataclasses.fields(item)}
        return {"class": type(item).__name__, **values}
    if isinstance(item, torch.dtype):
        return {"dtype": str(item).removeprefix("torch.")}
    if isinstance(item, list | tuple):
        return [describe(value) for value in item]
    if isinstance(item, dict):
        return {name: describe(value) for name, value in item.items()}
    if item is None or isinstance(item, bool | int | float | str):
        return item
    raise TypeError(f"{item!r} cannot be written into a description: use magnetite's own modules and plain values")


def rebuild(description: Any) -> Any:
    """The thing that was described, with fresh parameters.

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
    values = {name: rebuild(value) for name, value in description.items() if name != "class"}
    return _class(description["class"])(**values) if "class" in description else values


def _arguments(signature: inspect.Signature, *args: Any, **kwargs: Any) -> dict[str, Any]:
    """All arguments by name, defaults filled in, without `self`; a `**options` is spread out."""
    bound = signature.bind(*args, **kwargs)
    bound.apply_defaults()
    spread = [name for name, kind in signature.parameters.items() if kind.kind is kind.VAR_KEYWORD]
    plain = {name: value for name, value in list(bound.arguments.items())[1:] if name not in spread}
    return {**plain, **{name: value for options in spread for name, value in bound.arguments[options].items()}}


def unused(part: Any) -> Any:
    """The part, refused if it has parameters: then another model has set it up, and would lose them.

    >>> from magnetite.nn import GraphHead
    >>> unused(GraphHead(2)).outputs
    2
    """
    if any(True for _ in part.parameters()):
        raise ValueError(f"this {type(part).__name__} is part of another model already: make a new one")
    return part


def remade(item: Any) -> Any:
    """A module like this one, with fresh parameters; it need not be one of magnetite's own.

    >>> from magnetite.nn import GNN
    >>> remade(GNN(32)).arguments["width"]
    32
    """
    if isinstance(item, Module):
        return type(item)(**{name: remade(value) for name, value in item.arguments.items()})
    return type(item)(remade(value) for value in item) if isinstance(item, list | tuple) else item


def _class(name: str) -> Any:
    found = _found(name)
    if found is None:
        raise ValueError(f"this version of magnetite has no {name!r}: install the version that wrote the file")
    return found


def _found(name: str) -> type | None:
    for home in HOMES:
        found = getattr(importlib.import_module(home), name, None)
        if isinstance(found, type):
            return found
    return None
