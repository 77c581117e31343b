"""Fuzzers: random cases against an oracle, each reproducible from a seed and a number.

A target is a module of this package with a docstring of one line, the number of cases of `make slow`, and a function
(a module whose name begins with `_` is not run by itself):

    CASES = 5_000

    def case(random: np.random.Generator, folder: Path) -> None:
        …

A case passes if it returns; any exception is a failure, and so are a signal, more than `SECONDS` of time and more than
`MEMORY` bytes. Code that should refuse its input is called within `refusing()`. `folder` is empty and removed after the
case. Cases depend on `random` alone, so `python -m tests.fuzz NAME --seed S --case N` repeats one of them.

    python -m tests.fuzz                            all targets in turn, with a new seed, until Ctrl-C (`make fuzz`)
    python -m tests.fuzz files --seed 0 --cases 50  some cases of one target
    python -m tests.fuzz --cases all --seed 0 --out results/reliability.json  the table of docs/concepts/reliability.md
    python -m tests.fuzz … --tree ../before         the same cases against another source tree
"""

import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import NamedTuple

import numpy as np

SECONDS = 120
"""A case that takes longer is a failure."""

MEMORY = 12 << 30
"""Address space of a process that runs cases, in bytes."""

REFUSALS = (ValueError, TypeError, OSError, ArithmeticError)
"""The exceptions with which magnetite refuses input; the command line prints them as one line."""


class Target(NamedTuple):
    """A fuzzer."""

    name: str
    about: str
    cases: int
    case: Callable[[np.random.Generator, Path], None]


def targets() -> dict[str, Target]:
    """All fuzzers by name."""
    names = [module.name for module in iter_modules([str(Path(__file__).parent)])]
    return {name: target(name) for name in names if not name.startswith(("_", "test_"))}


def target(name: str) -> Target:
    """The fuzzer in the module of this name."""
    module = import_module(f"{__name__}.{name}")
    return Target(name, (module.__doc__ or "").split("\n")[0], module.CASES, module.case)


def random_of(target: str, seed: int, number: int) -> np.random.Generator:
    """The random numbers of one case."""
    return np.random.default_rng([seed, zlib.crc32(target.encode()), number])


@contextmanager
def refusing() -> Iterator[None]:
    """Allow the block to refuse its input with one of `REFUSALS`, in one line that is not empty."""
    try:
        yield
    except REFUSALS as error:
        message = str(error)
        assert message and "\n" not in message.strip(), f"{type(error).__name__} with message {message!r}"
