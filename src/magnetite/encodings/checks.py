"""Checks of arguments: domains of options, stated beside their types, and the other arguments of encodings."""

import dataclasses
import functools
import math
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from magnetite.graphs import Digraphs
from magnetite.linalg.potential import plain_number


@dataclass(frozen=True)
class Domain:
    """The values that an option may have: `lr: Annotated[float, Domain(0, 1, above=True)]` in a dataclass.

    Args:
        low: Smallest number.
        high: Largest number.
        above: Whether numbers must be above `low`, not equal to it.
        below: Whether numbers must be below `high`, not equal to it.
        choices: All values of a string.
    """

    low: float | int = -math.inf
    high: float | int = math.inf
    above: bool = False
    below: bool = False
    choices: tuple[str, ...] = ()

    def __contains__(self, value: Any) -> bool:
        if self.choices:
            return value in self.choices
        return (value > self.low if self.above else value >= self.low) and not self.exceeded(value)

    def exceeded(self, value: Any) -> bool:
        """Whether a number is too large."""
        return not (value < self.high if self.below else value <= self.high)

    def described(self, kind: Any) -> str:
        """The domain in words, for a number of this type.

        >>> SIZE.described(int), DROPOUT.described(float), Domain(choices=("post", "pre")).described(str)
        ('a positive integer', 'a number in [0, 1)', 'post or pre')
        """
        if self.choices:
            return " or ".join([", ".join(self.choices[:-1]), self.choices[-1]])
        noun = "integer" if kind is int else "number"
        sign = ("positive " if self.above else "non-negative ") if self.low == 0 else ""
        sign = "positive " if kind is int and self.low == 1 else sign
        if sign and self.high > 1:
            return f"a {sign}{noun}"
        brackets = "(["[not self.above], ")]"[not self.below]
        a = "an" if kind is int else "a"
        if self.low == -math.inf and self.high == math.inf:
            return f"{a} {noun}"
        if self.high >= LARGE and self.low != -math.inf:
            return f"{a} {noun} {'above' if self.above else 'of at least'} {self.low:,g}"
        return f"{a} {noun} in {brackets[0]}{self.low:g}, {self.high:g}{brackets[1]}"


LARGE = 1_000_000
"""The largest number of options that have no natural limit, such as the number of epochs."""

SIZE, SIZE_OR_NONE = Domain(1, 2**20), Domain(0, 2**20)
"""Sizes of vectors; a matrix of two larger ones would not fit into memory."""

DEPTH, DEPTH_OR_NONE = Domain(1, 1000), Domain(0, 1000)
"""Numbers of layers or steps that are made one after the other."""

COUNT, COUNT_OR_NONE = Domain(1, 2**31 - 1), Domain(0, 2**31 - 1)
"""Numbers of graphs, steps or tokens."""

SEED = Domain(0, 2**63 - 1)
POSITIVE, NON_NEGATIVE = Domain(0, LARGE, above=True), Domain(0, LARGE)
FRACTION = Domain(0, 1, above=True)
DROPOUT = Domain(0, 1, below=True)


def later(default: Any) -> Any:
    """The default of a field that older configurations lack; a hash leaves the field out while it has this value."""
    return dataclasses.field(default=default, metadata={"later": True})


@dataclass(frozen=True)
class Later:
    """Marks an argument of a constructor that older configurations lack, as `later` marks a field of a dataclass.

    `biases: Annotated[bool, LATER] = True`: a hash leaves the argument out while it has its default.
    """


LATER = Later()


def is_later(hint: Any) -> bool:
    """Whether a type is marked as that of an argument which older configurations lack.

    >>> is_later(typing.Annotated[bool, LATER]), is_later(bool)
    (True, False)
    """
    return typing.get_origin(hint) is typing.Annotated and LATER in typing.get_args(hint)[1:]


def unchanged_later(value: Any) -> list[str]:
    """Names of the fields of a dataclass that were added with `later` and have their default."""
    return [
        field.name
        for field in dataclasses.fields(value)
        if field.metadata.get("later") and getattr(value, field.name) == field.default
    ]


def check_fields(made: Any) -> None:
    """Check all fields of a frozen dataclass against their types and domains; to be called when it is made.

    Numbers of NumPy become those of Python, integers floats where the field is one, and lists tuples. Fields whose type
    is a class or a union of several are left to the class itself.

    >>> @dataclass(frozen=True)
    ... class Options:
    ...     k: typing.Annotated[int, SIZE]
    ...     __post_init__ = check_fields
    >>> Options(np.int64(3))
    Options(k=3)
    >>> Options(0)
    Traceback (most recent call last):
    ValueError: k must be a positive integer, got 0
    """
    for name, hint in field_hints(type(made)).items():
        value = getattr(made, name)
        found = fitted(name, value, hint)
        if found is not value:
            object.__setattr__(made, name, found)


@functools.cache
def field_hints(kind: type) -> Mapping[str, Any]:
    """The types of the fields of a dataclass that its constructor sets, with their domains."""
    hints = typing.get_type_hints(kind, include_extras=True)
    return {field.name: hints[field.name] for field in dataclasses.fields(kind) if field.init}


def domain_of(hint: Any) -> tuple[Domain, Any] | None:
    """The domain in a type, and the type that it belongs to; None if it has none.

    >>> domain_of(typing.Annotated[int, SEED] | None)
    (Domain(low=0, high=9223372036854775807, ...), <class 'int'>)
    """
    if typing.get_origin(hint) is typing.Annotated:
        kind, *extras = typing.get_args(hint)
        return next(((extra, kind) for extra in extras if isinstance(extra, Domain)), None)
    return next((found for member in typing.get_args(hint) if (found := domain_of(member))), None)


def fitted(name: str, value: Any, hint: Any, domain: Domain | None = None) -> Any:
    """The value as its type; a `ValueError` if it is another type, or outside the domain."""
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:
        return fitted(name, value, inner[0], next((each for each in inner[1:] if isinstance(each, Domain)), domain))
    if origin in (types.UnionType, typing.Union):
        members = [member for member in inner if member is not types.NoneType]
        if value is None and len(members) < len(inner):
            return None
        return fitted(name, value, members[0], domain) if len(members) == 1 else value
    if origin is tuple:
        if not isinstance(value, list | tuple | np.ndarray):
            raise ValueError(f"{name} must be a list of numbers, got {quoted(value)}")
        return tuple(fitted(name, item, inner[0], domain) for item in value)
    if hint not in (int, float, bool, str):
        return value
    number: Any = plain_number(value) if hint in (int, float) else value
    fits = {
        int: isinstance(number, int),
        float: isinstance(number, int | float) and abs(number) < 2**1023,  # also not NaN
        bool: isinstance(value, bool | np.bool_),
        str: isinstance(value, str),
    }
    if fits[hint]:
        found: Any = hint(number)
        if domain is None or found in domain:
            return value if type(value) is hint else found
        if not domain.choices and found > domain.low and domain.high > 1:
            raise ValueError(f"{name} must be at most {_shown(domain.high)}, got {_shown(found)}")
    if domain is not None and domain.choices:
        raise ValueError(f"unknown {name} {quoted(value)}: choose one of {', '.join(domain.choices)}")
    kinds = {bool: "true or false", str: "a string"}
    words = kinds[hint] if hint in kinds else (domain or Domain()).described(hint)
    raise ValueError(f"{name} must be {words}, got {quoted(value)}")


def quoted(value: Any) -> str:
    """A value as it is written in Python, in one line of at most 80 letters.

    >>> quoted(np.zeros((2, 2)))
    'array([[0., 0.], [0., 0.]])'
    """
    text = " ".join(repr(value).split()) if not isinstance(value, str) else repr(value)
    return text if len(text) <= 80 else f"{text[:80]}…"


def _shown(number: float | int) -> str:
    """A number in a message; one of many digits is rounded.

    >>> _shown(1048576), _shown(2**63 - 1), _shown(1e300), _shown(10**400)
    ('1,048,576', '9,223,372,036,854,775,807', '1e+300', 'an integer of more than 20 digits')
    """
    if isinstance(number, int):
        return f"{number:,}" if abs(number) < 10**20 else "an integer of more than 20 digits"
    return f"{number:,g}"


def check_graphs(graphs: object) -> None:
    """Raise a `TypeError` that names the constructors unless `graphs` are `Digraphs`."""
    if not isinstance(graphs, Digraphs):
        raise TypeError(
            f"graphs must be Digraphs, got {type(graphs).__name__}: "
            "use Digraphs.from_networkx, from_pyg, from_scipy or from_edges"
        )


def check_dtype(dtype: torch.dtype, known: tuple[torch.dtype, ...] = (torch.float32, torch.float64)) -> None:
    """Raise a `ValueError` unless results may have this type.

    >>> check_dtype(torch.int32)
    Traceback (most recent call last):
    ValueError: dtype must be torch.float32 or torch.float64, got torch.int32
    """
    if dtype not in known:
        raise ValueError(f"dtype must be {' or '.join(map(str, known))}, got {quoted(dtype)}")
