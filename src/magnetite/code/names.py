"""Names for functions: those that a trained model proposes, and how well it finds the present one to fit.

Functions are read, never run. Their own names are hidden from the model, see `build`.
"""

import ast
import inspect
import io
import keyword
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

from magnetite.code.corpus.extraction import LARGEST_FILE, OVERSIZE, TimedOut, refusal, time_limit
from magnetite.code.corpus.settings import Settings
from magnetite.code.corpus.words import words_of
from magnetite.code.graph import CodeGraph
from magnetite.code.source import Function, find, functions, graph_of, parse, read_source
from magnetite.io.storage import read_json

SHIPPED = Path(__file__).parent / "namer"
"""Folder of the model that comes with magnetite."""

CARD = "card.json"
"""What is known about a model: data, metrics, calibration; `card.md` is the same for readers."""

UNLIKELY = 0.01
"""Likelihood below which a present name is unlikely, for models without a card."""

MOST_PROPOSALS = 500
"""Largest number of proposals for a function; the time grows with its square."""

WINDOW = 50_000
"""Number of nodes of graphs that are kept until they are given to the model."""

SECONDS = 10.0
"""Time after which the graph of a function is given up."""

SKIPPED = ("__pycache__", "node_modules")
"""Folders that have no source of the user, beside hidden ones and virtual environments."""

JUDGED = Settings(lines=1)
"""Which functions have a name that could be another: no dunder methods, tests, overloads and stubs."""

Proposals = list[tuple[str, float]]
Judgement = tuple[list[tuple[list[str], float]], float | None]
"""Word lists with probabilities, best first, and the likelihood of the present name."""


class Model(Protocol):
    """What is used of a `magnetite.tasks.namer.Namer`."""

    vocabularies: Any

    def judge(self, functions: Sequence[CodeGraph], present: Sequence[Sequence[str]], top: int) -> Sequence[Judgement]:
        """Proposals for functions, and the likelihood of their present words."""
        ...


@dataclass(frozen=True)
class NamedFunction:
    """A function of a file, and names for it.

    Args:
        path: The file.
        line: Line of its `def`.
        name: Qualified name.
        proposals: Names with probabilities, best first.
        likelihood: Expected share of the words of its present name that the model would use; None without words.
        fixed: Why its name cannot be any other, such as "dunder method"; empty if it can.
        problem: Why there are no proposals; empty if there are.
    """

    path: str
    line: int
    name: str
    proposals: tuple[tuple[str, float], ...] = ()
    likelihood: float | None = None
    fixed: str = ""
    problem: str = ""


@dataclass(frozen=True)
class NamedFile:
    """A file and its functions.

    Args:
        path: The file.
        functions: All functions, in text order.
        problem: Why it has none; empty if it was read.
    """

    path: str
    functions: tuple[NamedFunction, ...] = ()
    problem: str = ""


def check_top(top: int) -> None:
    """Raise an error unless this is a number of proposals."""
    if not isinstance(top, int) or isinstance(top, bool) or not 1 <= top <= MOST_PROPOSALS:
        raise ValueError(f"top must be an integer from 1 to {MOST_PROPOSALS}, got {top!r}")


def suggest_names(
    source: str | Callable[..., Any],
    top: int = 5,
    name: str | None = None,
    model: str | os.PathLike[str] | None = None,
) -> Proposals:
    """Names for a function with their probabilities, best first, from its body alone: its own name is hidden.

    Args:
        source: Python source that defines the function, or the function itself, whose source is then looked up.
        top: Number of names.
        name: Name or qualified name; needed where the source defines several functions.
        model: Folder of a run of the task `naming`; by default the model that comes with magnetite.
    """
    check_top(top)
    namer = load_namer(model)
    function = _function(source, name)
    graph = _graph(function, namer)
    if isinstance(graph, str):
        raise ValueError(f"{function.name}: {graph}")
    ((proposals, _),) = namer.judge([graph], [[]], top)
    return named(proposals)


def name_files(
    paths: Iterable[str | os.PathLike[str]],
    model: Model,
    top: int = 5,
    progress: Callable[[], None] | None = None,
) -> Iterator[NamedFile]:
    """Names for all functions of files, methods and nested functions included; file by file, in order.

    Args:
        paths: Python files.
        model: The model, see `load_namer`.
        top: Number of names for each function.
        progress: Called after each file.
    """
    waiting: list[tuple[NamedFile, list[CodeGraph | None]]] = []
    nodes = 0
    for path in paths:
        read = _read(os.fspath(path), model)
        waiting.append(read)
        nodes += sum(len(graph) for graph in read[1] if graph is not None)
        if nodes > WINDOW:
            yield from _answered(waiting, model, top, progress)
            waiting, nodes = [], 0
    yield from _answered(waiting, model, top, progress)


def python_files(paths: Iterable[str | os.PathLike[str]]) -> list[Path]:
    """The files that are given, and the Python files in folders that are given, each once.

    In folders, hidden folders and files, virtual environments, and links to folders are left out.

    Args:
        paths: Files and folders.
    """
    found: dict[str, Path] = {}
    for path in map(Path, paths):
        if not path.exists():
            raise FileNotFoundError(f"{path} does not exist: give Python files or folders")
        inside = _walk(path) if path.is_dir() else [path]
        if not inside:
            raise ValueError(f"{path} has no Python files: give a folder that has some, or a file")
        for file in inside:
            found.setdefault(os.path.realpath(file), file)
    return list(found.values())


def unlikely(folder: str | os.PathLike[str] | None = None) -> float:
    """The likelihood below which a present name is unlikely, as the card of a model says.

    Args:
        folder: Folder of the model; by default the one that comes with magnetite.
    """
    path = (SHIPPED if folder is None else Path(folder)) / CARD
    if not path.is_file():
        return UNLIKELY
    return read_json(path, "card of a model", "make it again with `python -m paper ship-namer`")["unlikely"]


def named(proposals: Iterable[tuple[Sequence[str], float]]) -> Proposals:
    """Word lists as names in snake case; a keyword gets an underscore, as PEP 8 recommends.

    Args:
        proposals: Word lists with probabilities.

    >>> named([(["read", "utf8"], 0.5), (["import"], 0.25), (["2d"], 0.125)])
    [('read_utf8', 0.5), ('import_', 0.25), ('_2d', 0.125)]
    """
    return [(_identifier(words), probability) for words, probability in proposals]


def load_namer(folder: str | os.PathLike[str] | None = None) -> Model:
    """A model that names functions.

    Args:
        folder: Folder of a run of the task `naming`; by default the model that comes with magnetite.
    """
    return _loaded(None if folder is None else os.path.realpath(folder))


@cache
def _loaded(folder: str | None) -> Model:
    if folder is None and not (SHIPPED / "model.json").is_file():
        raise FileNotFoundError(
            f"{SHIPPED} has no model: this copy of magnetite was built without it; give the folder of a run of "
            "`magnetite train naming` as model"
        )
    # Imported here because models belong to a layer above.
    return import_module("magnetite.tasks.namer").Namer.load(SHIPPED if folder is None else folder)


def _function(source: Any, name: str | None) -> Function:
    """The function that is meant; one with the parameter `self` or `cls` is taken for a method cut out of its class."""
    text = source if isinstance(source, str) else _source_of(source)
    function = find(functions(parse(text)), name)
    arguments = function.node.args
    first = next(iter([*arguments.posonlyargs, *arguments.args]), None)
    cut_out = first is not None and first.arg in ("self", "cls")
    return Function(function.node, function.name, function.is_method or cut_out, function.is_nested)


def _source_of(function: Any) -> str:
    if not callable(function):
        raise TypeError(f"source must be text or a function, got {type(function).__name__}")
    try:
        return inspect.getsource(function)
    except (OSError, TypeError) as error:
        raise ValueError(f"the source of {function!r:.80} is not available ({error}): give it as text") from error


def _graph(function: Function, model: Model) -> CodeGraph | str:
    """The graph of a function, or why it has none."""
    reads = model.vocabularies
    try:
        count = sum(1 for _ in ast.walk(function.node))
        if count <= OVERSIZE * reads.max_nodes:
            with time_limit(SECONDS):
                graph = graph_of(function, reads.graphs, "strict", reads.keep_docstrings)
            if len(graph) <= reads.max_nodes:
                return graph
            count = len(graph)
        return (
            f"too large: its graph has {count:,} nodes, the model reads up to {reads.max_nodes:,}; split the function"
        )
    except TimedOut:
        return f"too complex: its graph takes longer than {SECONDS:g} s; split it"
    except RecursionError:
        return "nested too deeply; split its longest expressions"
    except ValueError as error:
        return " ".join(str(error).split())


def _read(path: str, model: Model) -> tuple[NamedFile, list[CodeGraph | None]]:
    """A file whose functions have no proposals yet, and their graphs."""
    try:
        if not Path(path).is_file():
            raise ValueError(f"{path} is not a regular file: give a Python file")
        if Path(path).stat().st_size > LARGEST_FILE:
            raise ValueError(f"{path} is larger than {LARGEST_FILE // 2**20} MiB: it is data rather than source")
        text = read_source(path)
        found = list(functions(parse(text, path)))
    except (ValueError, OSError) as error:
        return NamedFile(path, problem=" ".join(str(error).split())), []
    lines = io.StringIO(text, newline="\n").readlines()  # as Python's parser counts them
    made = [_graph(function, model) for function in found]
    listed = tuple(
        NamedFunction(
            path,
            function.node.lineno,
            function.name,
            fixed=refusal(function.node, lines, JUDGED),
            problem=graph if isinstance(graph, str) else "",
        )
        for function, graph in zip(found, made, strict=True)
    )
    return NamedFile(path, listed), [None if isinstance(graph, str) else graph for graph in made]


def _answered(
    waiting: Sequence[tuple[NamedFile, list[CodeGraph | None]]],
    model: Model,
    top: int,
    progress: Callable[[], None] | None,
) -> Iterator[NamedFile]:
    """The files with the answers of the model, which is given all graphs at once and batches them by size."""
    pairs = [pair for file, graphs in waiting for pair in zip(file.functions, graphs, strict=True)]
    graphs = [graph for _, graph in pairs if graph is not None]
    present = [words_of(function.name.rpartition(".")[2]) for function, graph in pairs if graph is not None]
    judged = iter(model.judge(graphs, present, top) if graphs else [])
    for file, made in waiting:
        listed = tuple(
            function if graph is None else _with(function, *next(judged))
            for function, graph in zip(file.functions, made, strict=True)
        )
        if progress is not None:
            progress()
        yield NamedFile(file.path, listed, file.problem)


def _with(function: NamedFunction, proposals: list[tuple[list[str], float]], likelihood: float | None) -> NamedFunction:
    return replace(function, proposals=tuple(named(proposals)), likelihood=likelihood)


def _walk(folder: Path) -> list[Path]:
    """The Python files below a folder; links to folders are not followed, so that there are no cycles."""
    found: list[Path] = []
    for root, names, files in os.walk(folder):
        names[:] = sorted(
            name
            for name in names
            if not name.startswith(".") and name not in SKIPPED and not (Path(root, name) / "pyvenv.cfg").exists()
        )
        found += [Path(root, name) for name in sorted(files) if name.endswith(".py") and not name.startswith(".")]
    return found


def _identifier(words: Sequence[str]) -> str:
    name = "_".join(words)
    if keyword.iskeyword(name):
        return f"{name}_"
    return name if name.isidentifier() else f"_{name}"
