"""From source text and files to graphs: finding functions, masking their names, building one or all of them."""

from collections.abc import Iterable, Iterator
from os import PathLike
from typing import Literal

from magnetite.code.graph import CodeGraph

Kind = Literal["dataflow", "ast"]
Mask = Literal["strict", "paper"] | None


def build(
    source: str, kind: Kind = "dataflow", mask: Mask = "strict", name: str | None = None, keep_docstrings: bool = False
) -> CodeGraph:
    """The graph of one function of the source: the only one, or the one with this (qualified) name."""
    raise NotImplementedError


def build_all(
    path: str | PathLike[str], kind: Kind = "dataflow", mask: Mask = "strict", keep_docstrings: bool = False
) -> Iterator[CodeGraph]:
    """The graph of every function and method of a file, nested ones too, with qualified names, in text order."""
    raise NotImplementedError


def build_files(
    paths: Iterable[str | PathLike[str]], kind: Kind = "dataflow", mask: Mask = "strict", workers: int | None = None
) -> Iterator[tuple[str, list[CodeGraph] | ValueError]]:
    """Every file's graphs, in the order of the paths, on several cores; a file that fails gives its error instead."""
    raise NotImplementedError
