"""From source text and files to graphs: finding functions, building one or all of them, on one core or several."""

import ast
import gc
import os
import tokenize
import warnings
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass, replace
from multiprocessing import get_context
from os import PathLike
from typing import Literal, get_args

from magnetite.code.graph import CodeGraph

Kind = Literal["dataflow", "ast"]
Mask = Literal["strict", "paper"] | None
Definition = ast.FunctionDef | ast.AsyncFunctionDef
Job = tuple[str, Kind, Mask, bool]
FILES_AHEAD = 4
"""Files that each worker may be ahead of the reader."""


@dataclass(frozen=True)
class Function:
    """A function found in a source: its tree, its qualified name, whether a class or another function holds it."""

    node: Definition
    name: str
    is_method: bool
    is_nested: bool


def build(
    source: str,
    kind: Kind = "dataflow",
    mask: Mask = "strict",
    name: str | None = None,
    keep_docstrings: bool = False,
) -> CodeGraph:
    """The graph of one function of the source: the only one, or the one of this (qualified) name.

    >>> build("class A:\\n    def f(self):\\n        return self.g()\\n    def g(self):\\n        pass", name="A.g")
    CodeGraph(A.g, dataflow, 4 nodes, 4 edges)
    """
    found = find(functions(parse(source)), name)
    return graph_of(found, kind, mask, keep_docstrings)


def build_all(
    path: str | PathLike[str], kind: Kind = "dataflow", mask: Mask = "strict", keep_docstrings: bool = False
) -> Iterator[CodeGraph]:
    """The graph of every function and method of a file, nested ones too, with qualified names, in text order."""
    for function in functions(parse(read_source(path), os.fspath(path))):
        yield graph_of(function, kind, mask, keep_docstrings)


def build_files(
    paths: Iterable[str | PathLike[str]],
    kind: Kind = "dataflow",
    mask: Mask = "strict",
    keep_docstrings: bool = False,
    workers: int = 1,
) -> Iterator[tuple[str, list[CodeGraph] | ValueError]]:
    """Every file's graphs, in the order of the paths; a file that fails gives its error.

    Several `workers` are processes that import the calling script: keep its work under `if __name__ == "__main__":`.
    """
    if isinstance(paths, str | PathLike):
        raise ValueError(f"{os.fspath(paths)!r} is one path: give a list of them, or use build_all")
    jobs: Iterator[Job] = ((os.fspath(path), kind, mask, keep_docstrings) for path in paths)
    if workers <= 1:
        yield from map(_build_file, jobs)
        return
    # Spawned, not forked: other threads (of PyTorch, say) may hold locks. What was imported is no garbage: freeze it.
    pool = ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=gc.freeze)
    pending: deque[Future[tuple[str, list[CodeGraph] | ValueError]]] = deque()
    try:
        for job in jobs:
            pending.append(pool.submit(_build_file, job))
            if len(pending) > FILES_AHEAD * workers:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)


def _build_file(job: Job) -> tuple[str, list[CodeGraph] | ValueError]:
    path, kind, mask, keep_docstrings = job
    try:
        return path, list(build_all(path, kind, mask, keep_docstrings))
    except (ValueError, OSError) as error:
        return path, ValueError(str(error))


def graph_of(function: Function, kind: Kind, mask: Mask, keep_docstrings: bool) -> CodeGraph:
    """The graph of a function that was found."""
    if mask not in ("strict", "paper", None):
        raise ValueError(f"mask={mask!r} is unknown: try 'strict', 'paper' or None")
    if kind == "dataflow":
        from magnetite.code.dataflow import dataflow_graph

        return dataflow_graph(function.node, function.name, mask, function.is_method, keep_docstrings)
    if kind == "ast":
        from magnetite.code.masking import masked_nodes
        from magnetite.code.sequential import sequential

        hidden = masked_nodes(function.node, mask, function.is_method)
        return replace(sequential(function.node, hidden, keep_docstrings), name=function.name)
    raise ValueError(f"kind={kind!r} is unknown: try one of {', '.join(map(repr, get_args(Kind)))}")


def parse(source: str, origin: str = "<source>") -> ast.Module:
    """The syntax tree of a source, which may be indented as a whole (a method cut out of its class)."""
    if not isinstance(source, str):
        raise TypeError(
            f"source is {type(source).__name__}, not text: give inspect.getsource(function) or a file's text"
        )
    indented = source.lstrip("\r\n\f")[:1] in (" ", "\t")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the source's own, as of invalid escapes
            tree = ast.parse(f"if True:\n{source}" if indented else source)
    except SyntaxError as error:
        line = (error.lineno or 1) - indented
        raise ValueError(f"{origin}, line {line}: {error.msg}: give source that this Python can parse") from error
    except ValueError as error:
        raise ValueError(f"{origin}: {error}: give text without null bytes and lone surrogates") from error
    except (RecursionError, MemoryError) as error:
        raise ValueError(
            f"{origin}: nested too deeply for Python's parser: split the expression or the branches"
        ) from error
    if indented:
        ast.increment_lineno(tree, -1)
    return tree


def parse_function(source: str, name: str | None = None) -> tuple[ast.Module, Definition]:
    """A source's tree, and one function in it: the only one, or the one of this (qualified) name."""
    tree = parse(source)
    return tree, find(functions(tree), name).node


def read_source(path: str | PathLike[str]) -> str:
    """The text of a file in the encoding that it declares (PEP 263), UTF-8 by default."""
    try:
        with tokenize.open(path) as file:
            return file.read()
    except (UnicodeDecodeError, SyntaxError, LookupError) as error:
        raise ValueError(
            f"{os.fspath(path)} is not text in its declared encoding ({error}): save it as UTF-8 or declare another"
        ) from error


def functions(tree: ast.Module) -> Iterator[Function]:
    """Every function below a tree, with its qualified name, in text order."""
    pending: list[tuple[ast.AST, str, bool, bool]] = [(tree, "", False, False)]
    while pending:
        node, prefix, in_class, in_function = pending.pop()
        if isinstance(node, Definition):
            yield Function(node, prefix + node.name, in_class, in_function)
            prefix, in_class, in_function = f"{prefix}{node.name}.", False, True
        elif isinstance(node, ast.ClassDef):
            prefix, in_class = f"{prefix}{node.name}.", True
        inner = [child for child in ast.iter_child_nodes(node) if isinstance(child, HOLDERS)]
        pending += [(child, prefix, in_class, in_function) for child in reversed(inner)]


HOLDERS = (ast.stmt, ast.ExceptHandler, ast.match_case)
"""Nodes below which a definition can stand."""


def find(found: Iterable[Function], name: str | None) -> Function:
    """The only function that no other one holds, or the one of this name: qualified, or its last part."""
    candidates = list(found)
    if not candidates:
        raise ValueError("the source defines no function: give source with a 'def'")
    if name is None:
        matches = [function for function in candidates if not function.is_nested]
    else:
        matches = [function for function in candidates if function.name == name]
        matches = matches or [function for function in candidates if function.node.name == name]
    names = list(dict.fromkeys(function.name for function in matches or candidates))
    shown = ", ".join(names[:5]) + (", …" if len(names) > 5 else "")
    if not matches:
        raise ValueError(f"the source has no function {name!r}: choose one of {shown}")
    if len(names) > 1:
        asked = "the source defines several functions" if name is None else f"name={name!r} fits several functions"
        raise ValueError(f"{asked} ({shown}): give the qualified name of one")
    return matches[-1]  # as Python does, where one is defined again
