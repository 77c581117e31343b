"""From a syntax tree back to text."""

import ast
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def not_too_deep() -> Iterator[None]:
    """Python's own walks over trees go down by recursion: say what to do where that ends."""
    try:
        yield
    except RecursionError as error:
        raise ValueError("the source is nested too deep to be written anew: split its longest expressions") from error


def text_of(tree: ast.Module) -> str:
    """The text of a tree of `functions.parse`, which puts a method cut out of its class below an `if` in line 0."""
    first = tree.body[0]
    if isinstance(first, ast.If) and first.lineno == 0:
        tree = ast.Module(first.body, [])
    with not_too_deep():
        return ast.unparse(tree)
