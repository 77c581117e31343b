"""Source text and files: parse them, find functions, build the graphs of one or all of them, write trees as text."""

import ast
import gc
import os
import tokenize
import warnings
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike
from typing import Literal, get_args

from magnetite.code.graph import CodeGraph
from magnetite.workers.processes import process_pool

Kind = Literal["dataflow", "ast", "ast-directed", "tokens", "dataflow-sequential"]
Mask = Literal["strict", "paper"] | None
Definition = ast.FunctionDef | ast.AsyncFunctionDef
Job = tuple[str, Kind, Mask, bool]

HOLDERS = (ast.stmt, ast.ExceptHandler, ast.match_case)
"""Syntax nodes that can contain a definition."""

FILES_AHEAD = 4
"""Number of files per worker that are submitted ahead of the reader."""


@dataclass(frozen=True)
class Function:
    """A function found in a source.

    Args:
        node: Its definition.
        name: Qualified name.
        is_method: Whether it is defined directly in a class.
        is_nested: Whether it is defined in another function.
    """

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
    """The graph of one function.

    Args:
        source: Python source that defines the function.
        kind: "dataflow", "ast" for the graph of OGB Code2, "ast-directed" for that graph without inverse edges, or
            "tokens" for a path of the tokens of the text, or "dataflow-sequential" for the data-flow graph in which
            statements follow each other as in the text.
        mask: Where to hide the function's name: "strict" everywhere, "paper" in the definition and in plain recursive
            calls, None nowhere.
        name: Name or qualified name; needed where the source defines several functions.
        keep_docstrings: Whether docstrings become nodes.

    >>> build("class A:\\n    def f(self):\\n        return self.g()\\n    def g(self):\\n        pass", name="A.g")
    CodeGraph(A.g, dataflow, 4 nodes, 4 edges)
    """
    return graph_of(find(functions(parse(source)), name), kind, mask, keep_docstrings)


def build_all(
    path: str | PathLike[str], kind: Kind = "dataflow", mask: Mask = "strict", keep_docstrings: bool = False
) -> Iterator[CodeGraph]:
    """The graphs of all functions and methods of a file, including nested ones, in text order.

    Args:
        path: A Python file.
        kind: "dataflow", "ast", "ast-directed", "tokens" or "dataflow-sequential".
        mask: "strict", "paper" or None, see `build`.
        keep_docstrings: Whether docstrings become nodes.
    """
    for function in functions(parse(read_source(path), os.fspath(path))):
        yield graph_of(function, kind, mask, keep_docstrings)


def build_files(
    paths: Iterable[str | PathLike[str]],
    kind: Kind = "dataflow",
    mask: Mask = "strict",
    keep_docstrings: bool = False,
    workers: int = 1,
) -> Iterator[tuple[str, list[CodeGraph] | ValueError]]:
    """Yield a tuple for each file, in the order of the paths: the path, and its graphs or the error that it raised.

    Args:
        paths: Python files.
        kind: "dataflow", "ast", "ast-directed", "tokens" or "dataflow-sequential".
        mask: "strict", "paper" or None, see `build`.
        keep_docstrings: Whether docstrings become nodes.
        workers: Number of processes.
    """
    if isinstance(paths, str | PathLike):
        raise ValueError(f"{os.fspath(paths)!r} is a single path: give a list of paths, or use build_all")
    jobs: Iterator[Job] = ((os.fspath(path), kind, mask, keep_docstrings) for path in paths)
    if workers <= 1:
        yield from map(_build_file, jobs)
        return
    pool = process_pool(workers, gc.freeze)  # gc need not scan imported modules
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
    """The graph of a function found by `functions`.

    Args:
        function: The function.
        kind: "dataflow", "ast", "ast-directed", "tokens" or "dataflow-sequential".
        mask: "strict", "paper" or None, see `build`.
        keep_docstrings: Whether docstrings become nodes.
    """
    if mask not in ("strict", "paper", None):
        raise ValueError(f"mask must be 'strict', 'paper' or None, got {mask!r}")
    if kind in ("dataflow", "dataflow-sequential"):
        from magnetite.code.dataflow.graph import dataflow_graph

        sequential = kind == "dataflow-sequential"
        return dataflow_graph(function.node, function.name, mask, function.is_method, keep_docstrings, sequential)
    if kind in get_args(Kind):
        from magnetite.code.ast_graph import ast_graph
        from magnetite.code.dataflow.masking import masked_syntax
        from magnetite.code.tokens import token_graph

        masked = masked_syntax(function.node, mask, function.is_method)
        if kind == "tokens":
            return token_graph(function.node, function.name, masked, keep_docstrings)
        return ast_graph(function.node, function.name, masked, keep_docstrings, inverses=kind == "ast")
    raise ValueError(f"kind must be one of {', '.join(map(repr, get_args(Kind)))}, got {kind!r}")


def parse(source: str, origin: str = "<source>") -> ast.Module:
    """The syntax tree of a source.

    Args:
        source: Python source; it may be indented as a whole, as a method cut out of its class is.
        origin: Where it comes from, for error messages.
    """
    if not isinstance(source, str):
        raise TypeError(f"source must be text, got {type(source).__name__}: give inspect.getsource(function)")
    indented = source.lstrip("\r\n\f")[:1] in (" ", "\t")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about the source, such as invalid escapes
            tree = ast.parse(f"if True:\n{source}" if indented else source)
    except SyntaxError as error:
        line = (error.lineno or 1) - indented
        raise ValueError(f"{origin}, line {line}: {error.msg}: this version of Python cannot parse it") from error
    except ValueError as error:
        raise ValueError(f"{origin}: {error}: remove null bytes and lone surrogates") from error
    except (RecursionError, MemoryError) as error:
        raise ValueError(f"{origin}: nested too deeply for Python's parser: split the expression or branch") from error
    if indented:
        ast.increment_lineno(tree, -1)
    return tree


def parse_function(source: str, name: str | None = None) -> tuple[ast.Module, Definition]:
    """The tree of a source, and one function in it; the arguments are those of `build`."""
    tree = parse(source)
    return tree, find(functions(tree), name).node


def read_source(path: str | PathLike[str]) -> str:
    """The text of a Python file in the encoding that it declares (PEP 263), UTF-8 by default."""
    try:
        with tokenize.open(path) as file:
            return file.read()
    except FileNotFoundError:
        raise FileNotFoundError(f"{os.fspath(path)} does not exist: give the path of a Python file") from None
    except (UnicodeDecodeError, SyntaxError, LookupError) as error:
        raise ValueError(
            f"{os.fspath(path)} cannot be decoded ({error}): save it as UTF-8, or declare its encoding"
        ) from error


def functions(tree: ast.Module) -> Iterator[Function]:
    """All functions of a tree, with their qualified names, in text order."""
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


def find(found: Iterable[Function], name: str | None) -> Function:
    """Choose one function.

    Args:
        found: The functions of a source.
        name: Qualified name, or its last component; None for the only function that is not nested.
    """
    candidates = list(found)
    if not candidates:
        raise ValueError("the source defines no function: give source that contains a 'def'")
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
        problem = "the source defines several functions" if name is None else f"name={name!r} matches several functions"
        raise ValueError(f"{problem} ({shown}): give the qualified name of one")
    return matches[-1]  # a later definition replaces an earlier one


@contextmanager
def recursion_guard() -> Iterator[None]:
    """Turn a RecursionError of `ast` into a ValueError that says what to do."""
    try:
        yield
    except RecursionError as error:
        raise ValueError("the source is nested too deeply to be rewritten: split its longest expressions") from error


def text_of(tree: ast.Module) -> str:
    """The text of a tree from `parse`, without the `if` that `parse` puts around indented source."""
    first = tree.body[0]
    if isinstance(first, ast.If) and first.lineno == 0:
        tree = ast.Module(first.body, [])
    with recursion_guard():
        return ast.unparse(tree)
