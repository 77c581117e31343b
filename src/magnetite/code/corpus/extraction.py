"""Functions of one source file: which are kept, with their words, graphs and hashes, and why the others are not."""

import ast
import io
import re
import signal
import sys
import threading
import tokenize
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any, NamedTuple

from magnetite.code.corpus.settings import Settings
from magnetite.code.corpus.words import words_of
from magnetite.code.source import Definition, Function, functions, graph_of, parse

LARGEST_FILE = 4 * 2**20
"""Bytes above which a source file is left out, since it is data or generated."""

TEST_FILE = "test file"
TOO_LARGE = f"file larger than {LARGEST_FILE // 2**20} MiB"
UNREADABLE = "file cannot be read"
NOT_PARSED = f"file cannot be parsed by Python {sys.version_info.major}.{sys.version_info.minor}"
DIED = "process died while reading the file"

OVERSIZE = 4
"""Functions with this many times the allowed number of syntax nodes are not built at all."""


class Row(NamedTuple):
    """A function that is kept, as far as its file tells."""

    source: str
    name: str
    words: list[str]
    path: str
    line: int
    method: bool
    nodes: int
    dataflow: str
    sequential: str


@dataclass
class FileResult:
    """What was found in one file.

    Args:
        rows: The functions that are kept.
        found: Number of all functions in the file.
        left_out: Number of functions that are left out, by reason.
        problem: Why the whole file is left out; empty if it was read.
        details: What the parser said, if it said something.
    """

    rows: list[Row] = field(default_factory=list)
    found: int = 0
    left_out: Counter[str] = field(default_factory=Counter)
    problem: str = ""
    details: str = ""


class TimedOut(Exception):
    """The time limit of a function is over."""


def extract(job: tuple[str, bytes, Settings]) -> FileResult:
    """Find the functions of one file.

    Args:
        job: Path of the file in its project, its content, and the settings.

    >>> content = b"def area(a, b):\\n    c = a * b\\n    c = c / 2\\n    return c\\ndef f(): pass"
    >>> result = extract(("shapes.py", content, Settings()))
    >>> [(row.name, row.nodes) for row in result.rows], dict(result.left_out)
    ([('area', 24)], {'stub': 1})
    """
    path, content, settings = job
    try:
        text = _decoded(content)
    except (UnicodeDecodeError, SyntaxError, LookupError) as error:
        return FileResult(problem=UNREADABLE, details=_first_line(error))
    try:
        tree = parse(text, path)
    except ValueError as error:
        return FileResult(problem=NOT_PARSED, details=_first_line(error))
    lines = io.StringIO(text, newline="\n").readlines()  # as Python's parser counts them
    result = FileResult()
    for function in functions(tree):
        result.found += 1
        reason = refusal(function.node, lines, settings) or _built(function, path, lines, settings, result.rows)
        if reason:
            result.left_out[reason] += 1
    return result


def is_test_path(path: str) -> bool:
    """Whether a file belongs to tests, according to the names of its folders and its own.

    >>> [is_test_path(path) for path in ("a/tests/b.py", "a/test_b.py", "a/conftest.py", "a/testing.py", "latest/b.py")]
    [True, True, True, False, False]
    """
    parts = PurePosixPath(path.lower()).with_suffix("").parts
    return any(re.fullmatch(r"tests?|tests?_.*|.*_tests?|conftest", part) for part in parts)


def _decoded(content: bytes) -> str:
    """The text in the encoding that it declares (PEP 263), UTF-8 by default."""
    encoding, _ = tokenize.detect_encoding(io.BytesIO(content).readline)
    return io.TextIOWrapper(io.BytesIO(content), encoding).read()


def refusal(node: Definition, lines: list[str], settings: Settings) -> str:
    """Why a function is left out, as far as its syntax tells; empty if it is not."""
    name = node.name
    if name.startswith("__") and name.endswith("__") and len(name) > 4:
        return "dunder method"
    if name == "test" or (name.startswith("test") and not name[4:5].islower()):
        return "test function"
    if any(_last_name(decorator) == "overload" for decorator in node.decorator_list):
        return "overload"
    body = node.body[1:] if ast.get_docstring(node, clean=False) is not None else node.body
    if all(_says_nothing(statement) for statement in body):
        return "stub"
    if _line_count(body, lines) < settings.lines:
        return f"body of fewer than {settings.lines} lines"
    if not words_of(name):
        return "name without words"
    return ""


def _built(function: Function, path: str, lines: list[str], settings: Settings, rows: list[Row]) -> str:
    """Build the graphs of a function and append its row; the reason if that is not possible.

    The graphs are those of the text in the row, so that everybody who reads the corpus gets the same.
    """
    node = function.node
    too_large = f"graph of more than {settings.nodes} nodes"
    if sum(1 for _ in ast.walk(node)) > OVERSIZE * settings.nodes:
        return too_large
    first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
    source = "".join(lines[first - 1 : node.end_lineno])
    try:
        with time_limit(settings.time_limit):
            cut_out = cut_function(source, node.name, function.is_method)
            dataflow = graph_of(cut_out, "dataflow", "strict", False)
            if len(dataflow) > settings.nodes:
                return too_large
            sequential = graph_of(cut_out, "ast", "strict", False)
            hashes = dataflow.hash, sequential.hash
    except TimedOut:
        return "time limit exceeded"
    except (ValueError, RecursionError):
        return "graph cannot be built"
    rows.append(Row(source, node.name, words_of(node.name), path, first, function.is_method, len(dataflow), *hashes))
    return ""


def cut_function(source: str, name: str, method: bool) -> Function:
    """The function of a row of the corpus, which knows whether it was defined in a class.

    Args:
        source: Text of the function alone.
        name: Its name.
        method: Whether it was defined in a class.
    """
    first = next(functions(parse(source)), None)
    if first is None or first.node.name != name:
        raise ValueError(f"the text of {name!r} does not begin with its definition")
    return Function(first.node, name, method, False)


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise `TimedOut` in the main thread after some seconds; no limit in other threads, nor on Windows."""
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(_signal: int, _frame: Any) -> None:
        raise TimedOut

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _says_nothing(statement: ast.stmt) -> bool:
    """Whether a statement is `pass`, a constant such as `...`, or raises NotImplementedError."""
    if isinstance(statement, ast.Raise):
        raised = statement.exc.func if isinstance(statement.exc, ast.Call) else statement.exc
        return _last_name(raised) in ("NotImplementedError", "NotImplemented")
    if isinstance(statement, ast.Expr):
        return isinstance(statement.value, ast.Constant)
    return isinstance(statement, ast.Pass)


def _last_name(node: ast.AST | None) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _line_count(body: list[ast.stmt], lines: list[str]) -> int:
    """Number of lines of statements, without comments and blank lines."""
    inside = lines[body[0].lineno - 1 : body[-1].end_lineno]
    return sum(1 for line in inside if line.strip() and not line.lstrip().startswith("#"))


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0][:300]
