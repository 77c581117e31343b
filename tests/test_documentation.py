"""The docstring of every public class and function lists its arguments under `Args:`, in the order of the signature."""

import importlib
import inspect
import re
from collections.abc import Callable
from typing import Any

import pytest

MODULES = (
    "magnetite",
    "magnetite.batching",
    "magnetite.batching.buckets",
    "magnetite.code",
    "magnetite.datasets",
    "magnetite.encodings",
    "magnetite.nn",
    "magnetite.plots",
    "magnetite.sorting",
    "magnetite.tasks",
    "magnetite.testing",
    "magnetite.training.config",
    "magnetite.transforms",
)


def names_of(module: Any) -> list[str]:
    """The names in `__all__`, or the public names that the module defines itself."""
    own = [name for name, item in vars(module).items() if getattr(item, "__module__", None) == module.__name__]
    return getattr(module, "__all__", [name for name in own if not name.startswith("_")])


def public_items() -> dict[str, Any]:
    """Every public class and function, by its full name; those that several modules export only once."""
    modules = [importlib.import_module(name) for name in MODULES]
    items = [getattr(module, name) for module in modules for name in names_of(module)]
    return {
        f"{item.__module__}.{item.__qualname__}": item
        for item in items
        if inspect.isroutine(item) or inspect.isclass(item)
    }


def parameters(item: Callable[..., Any]) -> list[str]:
    """The parameters of a function or a constructor; none for a class that cannot or need not be configured."""
    if inspect.isclass(item) and (inspect.isabstract(item) or issubclass(item, Exception)):
        return []
    names = list(inspect.signature(item).parameters)
    return [] if names == ["args", "kwargs"] else names  # those of torch.nn.Module


def documented(item: Any) -> list[str]:
    """The names under `Args:` in the docstring, in order; continuation lines are indented further."""
    docstring = inspect.cleandoc(item.__doc__ or "")
    section = re.search(r"^Args:\n((?: {4}.*\n?)+)", docstring, re.MULTILINE)
    return re.findall(r"^ {4}\*{0,2}(\w+): \S", section[1], re.MULTILINE) if section else []


PUBLIC = public_items()
METHODS = {
    f"{owner}.{name}": method
    for owner, item in PUBLIC.items()
    if inspect.isclass(item)
    for name, method in inspect.getmembers(item, inspect.isroutine)
    if not name.startswith("_") and name in vars(item) and "Args:" in (method.__doc__ or "")
}


@pytest.mark.parametrize("name", PUBLIC)
def test_every_argument_is_documented(name):
    assert PUBLIC[name].__doc__, "there is no docstring"
    assert documented(PUBLIC[name]) == parameters(PUBLIC[name])


@pytest.mark.parametrize("name", METHODS)
def test_a_list_of_arguments_is_complete(name):
    assert documented(METHODS[name]) == [argument for argument in parameters(METHODS[name]) if argument != "self"]


def test_a_missing_argument_is_found():
    def function(first, *second):
        """Do nothing.

        Args:
            first: An argument,
                in two lines.
        """

    assert parameters(function) == ["first", "second"]
    assert documented(function) == ["first"]
