"""The documentation is true: Python blocks run, command lines parse, links and the list of public names are complete.

A page is README.md, CONTRIBUTING.md or a file in docs/. Its Python blocks run in order in one namespace, in an empty
folder: those with `>>>` as doctests, others as a script. A block that cannot run says why, after its language:
```python not run: needs a GPU
"""

import doctest
import importlib
import importlib.util
import inspect
import os
import re
import shlex
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, fields
from itertools import takewhile
from pathlib import Path
from typing import Any

import nbformat
import pytest
import typer
from markdown_it import MarkdownIt
from nbclient import NotebookClient
from typer.testing import CliRunner

import magnetite as mt
from magnetite import cli
from magnetite.cli import _tasks
from magnetite.encodings import ENCODINGS
from magnetite.nn.encoders import ENCODERS
from magnetite.tasks import TASKS
from magnetite.training.config import Data, Optim, Run
from magnetite.training.encodings import SHORTHANDS, names_known
from magnetite.training.models import MODELS
from magnetite.training.trained import train

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
PAGES += sorted(path for path in (ROOT / "docs").rglob("*.md") if "_build" not in path.parts)
NAMES = [str(path.relative_to(ROOT)) for path in PAGES]

AS_TYPED = ("docs/start.md",)
"""Pages of which everything is run as it stands, commands included. On the others training is made short."""

SMALL = {"optim.epochs": 2, "optim.warmup": 0.5, "model.width": 16, "model.layers": 1, "encoding.k": 4}

LANGUAGES = ("", "python", "shell", "text", "bibtex", "json")
"""Languages of blocks; a block without one holds command lines or text."""

NOT_RUN = re.compile(r"not run: \w.*")
PROGRAMS = ("magnetite", "make", "pip", "python", "paper/series.sh")
"""What a line of a shell block begins with, if it is a command that is checked."""


@dataclass(frozen=True)
class Block:
    """A fenced block of a page.

    Attributes:
        language: First word after the fence.
        note: The words after it.
        text: Content.
        line: Number of its first line in the page, from 0.
    """

    language: str
    note: str
    text: str
    line: int


def blocks(page: Path) -> list[Block]:
    tokens = MarkdownIt("commonmark").parse(page.read_text(encoding="utf-8"))
    fences = [token for token in tokens if token.type == "fence" and not token.info.startswith("{")]
    split = [(*token.info.strip().partition(" "), token) for token in fences]
    return [Block(language, note, token.content, token.map[0] + 1) for language, _, note, token in split]


def commands(page: Path) -> Iterator[str]:
    """The command lines of a page: lines of shell blocks, and code in sentences that begins with `magnetite`."""
    for block in blocks(page):
        if block.language in ("", "shell"):
            lines = block.text.replace("\\\n", " ").splitlines()
            yield from (line.strip() for line in lines if line.strip().startswith(PROGRAMS))


def phrases(page: Path) -> Iterator[str]:
    """Code in sentences and tables that begins with `magnetite`, such as `magnetite encode FILE --advise`."""
    for token in MarkdownIt("commonmark").enable("table").parse(page.read_text(encoding="utf-8")):
        for child in token.children or ():
            if child.type == "code_inline" and child.content.startswith("magnetite "):
                yield " ".join(child.content.split())


@pytest.fixture
def small_training(monkeypatch: pytest.MonkeyPatch) -> None:
    """Training takes two epochs of a small model, whatever the page asks for."""

    def small(task: Any, encoding: Any = None, model: Any = None, **given: Any) -> mt.Run:
        kept = {name: value for name, value in given.items() if name in ("out", "preset", "seed", "resume")}
        options = {name: value for name, value in SMALL.items() if encoding != "none" or name != "encoding.k"}
        return train(task, encoding, model, **kept, device="cpu", settings=options)

    monkeypatch.setattr(mt, "train", small)


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize("name", NAMES)
def test_every_block_runs(name, tmp_path, monkeypatch, request):
    if name not in AS_TYPED:
        request.getfixturevalue("small_training")
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, Any] = {"__name__": "__main__"}
    for block in blocks(ROOT / name):
        if block.note:
            assert NOT_RUN.fullmatch(block.note), f"{name}:{block.line}: expected 'not run: REASON', got {block.note!r}"
        elif block.language == "python":
            run_python(block, namespace, name)
        elif block.language == "shell" and name in AS_TYPED:
            run_commands(block, name)


def run_python(block: Block, namespace: dict[str, Any], name: str) -> None:
    if ">>> " not in block.text:
        exec(compile("\n" * block.line + block.text, str(ROOT / name), "exec"), namespace)
        return
    test = doctest.DocTestParser().get_doctest(block.text, {}, name, str(ROOT / name), block.line)
    test.globs = namespace
    runner = doctest.DebugRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    try:
        runner.run(test, clear_globs=False)
    except doctest.DocTestFailure as failure:
        line = block.line + failure.example.lineno + 1
        expected, got = failure.example.want, failure.got
        pytest.fail(f"{name}:{line}: {failure.example.source}expected {expected!r}, got {got!r}", pytrace=False)
    except doctest.UnexpectedException as failure:
        raise failure.exc_info[1] from None


def run_commands(block: Block, name: str) -> None:
    for line in block.text.replace("\\\n", " ").splitlines():
        program, *arguments = shlex.split(line, comments=True) or [""]
        if program == "magnetite":
            result = CliRunner().invoke(cli.app, arguments)
            assert result.exit_code == 0, f"{name}: {line}: {result.output} {result.exception}"


@pytest.mark.parametrize("name", NAMES)
def test_every_command_line_parses(name, monkeypatch):
    monkeypatch.setattr(_tasks, "_implied", implied(_tasks._implied))
    for line in commands(ROOT / name):
        program, *arguments = shlex.split(line, comments=True)
        try:
            check(program, arguments)
        except Exception as error:
            pytest.fail(f"{name}: {line}: {getattr(error, 'message', error)!r}", pytrace=False)


def implied(original: Any) -> Any:
    """The run of `train --out RUN --resume` is not there: any task will do."""
    return lambda arguments: [_tasks.OWN_DATA] if "--resume" in arguments else original(arguments)


def check(program: str, arguments: list[str]) -> None:
    if program == "magnetite":
        parse(typer.main.get_command(cli.app), program, arguments)
    elif program == "make":
        targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
        assert {word for word in arguments if "=" not in word} <= targets
    elif program == "pip":
        extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
        named = re.findall(r"(?:magnetite|\.)\[([\w,]+)\]", " ".join(arguments))
        assert {extra for group in named for extra in group.split(",")} <= extras.keys()
    elif program == "python" and arguments[:2] == ["-m", "paper"]:
        paper = importlib.import_module("paper.__main__")
        own = paper.OWN.get(arguments[2])
        parse(typer.main.get_command(own or paper.app), "paper", arguments[2 if own is None else 3 :])
    elif program == "python" and arguments[0] == "-c":
        compile(arguments[1], "-c", "exec")
    elif program == "python" and arguments[0] == "-m":
        assert importlib.util.find_spec(arguments[1])
    else:
        assert (ROOT / (program if "/" in program else arguments[0])).exists()


def parse(command: Any, name: str, arguments: list[str], parent: Any = None) -> None:
    """Parse a command line without running it."""
    with command.make_context(name, list(arguments), parent=parent) as context:
        if hasattr(command, "resolve_command"):
            rest = [*getattr(context, "_protected_args", ()), *context.args]
            if rest:
                found, inner, rest = command.resolve_command(context, rest)
                parse(inner, found, rest, context)


@pytest.mark.parametrize("name", NAMES)
def test_every_option_in_a_sentence_exists(name):
    for phrase in phrases(ROOT / name):
        words = phrase.split()[1:]
        command, path = typer.main.get_command(cli.app), "magnetite"
        while words and hasattr(command, "resolve_command"):
            context = command.make_context(path, [], resilient_parsing=True)
            if words[0].startswith("--") or words[0] in ("…", "..."):
                words = ["supervised", *words]
            if words[0].isupper():  # TASK
                words[0] = "sorting"
            path, command, words = command.resolve_command(context, words)
        options = {option for parameter in command.params for option in parameter.opts + parameter.secondary_opts}
        typed = {word.partition("=")[0] for word in words if word.startswith("--")}
        assert typed <= options | {"--help"}, f"{name}: {phrase}: {typed - options}"


@pytest.mark.parametrize("name", NAMES)
def test_every_block_has_a_known_language(name):
    for block in blocks(ROOT / name):
        assert block.language in LANGUAGES, f"{name}:{block.line}: {block.language}"


@pytest.mark.parametrize("name", NAMES)
def test_every_link_to_a_file_leads_somewhere(name):
    text = (ROOT / name).read_text(encoding="utf-8")
    for target in re.findall(r"\]\(((?!https?:|#)[^)#\s]+)(?:#[^)]*)?\)", text):
        assert ((ROOT / name).parent / target).exists(), f"{name}: {target}"


PLACES = (ROOT, ROOT / "src", ROOT / "src" / "magnetite", ROOT / "src" / "magnetite" / "code")
"""Folders that the pages name files in."""


@pytest.mark.parametrize("name", NAMES)
def test_every_source_file_that_is_named_exists(name):
    text = (ROOT / name).read_text(encoding="utf-8")
    named = re.findall(r"`((?:[\w-]+/)+[\w-]+\.(?:py|cu|sh))`", text)
    named += re.findall(r"`((?:src|tests|docs|benchmarks|paper|examples)/[\w./-]*(?:/|\.\w+))`", text)
    missing = [path for path in named if not any((place / path).exists() for place in PLACES)]
    assert not missing, f"{name} names {missing}"


def test_the_citation_has_the_version():
    assert f"version: {mt.__version__}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")


@pytest.mark.parametrize("path", sorted((ROOT / "docs").glob("*.ipynb")), ids=lambda path: path.name)
def test_the_notebook_runs_and_is_stored_without_outputs(path, tmp_path, monkeypatch):
    notebook = nbformat.read(path, as_version=4)
    assert not any(cell.get("outputs") or cell.get("execution_count") for cell in notebook.cells)
    monkeypatch.setenv("MPLBACKEND", "agg")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))  # the same tree as this process
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()


MODULES = (
    "magnetite",
    "magnetite.batching",
    "magnetite.code",
    "magnetite.code.corpus",
    "magnetite.datasets",
    "magnetite.encodings",
    "magnetite.nn",
    "magnetite.sorting",
    "magnetite.tasks",
    "magnetite.testing",
    "magnetite.training",
    "magnetite.transforms",
)
"""Modules whose public names are all in the API pages."""

LEFT_OUT = ("TaskDataset",)
"""Base classes that are documented by the classes derived from them."""


def names_in_api() -> dict[str, Any]:
    """What the API pages document, by its full name."""
    pages = (ROOT / "docs" / "api").glob("*.md")
    names = re.findall(r"\.\. auto(?:class|function|data|exception):: ([\w.]+)", "".join(map(Path.read_text, pages)))
    assert len(names) == len(set(names)), "a name is documented twice"
    found = {}
    for name in names:
        module, _, last = name.rpartition(".")
        found[name] = getattr(importlib.import_module(module), last)
    return found


@pytest.mark.parametrize("name", MODULES)
def test_every_public_name_is_in_the_api(name):
    documented = {id(item) for item in names_in_api().values()}
    module = importlib.import_module(name)
    own = [key for key, item in vars(module).items() if getattr(item, "__module__", None) == name and key[0] != "_"]
    public = {key: getattr(module, key) for key in getattr(module, "__all__", own) if key not in LEFT_OUT}
    missing = {key for key, item in public.items() if id(item) not in documented and not is_plain(item)}
    assert not missing, f"docs/api lacks {sorted(missing)} of {name}"


def is_plain(item: Any) -> bool:
    """Modules, which have pages of their own, and the version."""
    return inspect.ismodule(item) or isinstance(item, str)


def table(page: str, first: str) -> dict[str, list[str]]:
    """Rows of the table of a page whose heading begins with this word: further cells by the first one."""
    lines = iter((ROOT / page).read_text(encoding="utf-8").splitlines())
    while not next(lines).startswith(f"| {first} |"):
        pass
    cells = [line.strip("|").split("|") for line in takewhile(lambda line: line.startswith("|"), lines)][1:]
    return {name.strip(): rest for name, *rest in cells}


def names_in(cell: str) -> set[str]:
    return set(re.findall(r"`([\w-]+)`", cell))


def own(kinds: dict[str, Any]) -> dict[str, Any]:
    """Without those that other tests and paper/ add."""
    return {name: kind for name, kind in kinds.items() if kind.__module__.startswith("magnetite.")}


def test_the_tables_of_training_name_all_tasks_encodings_and_options():
    page = "docs/howto/training.md"
    assert set().union(*map(names_in, table(page, "task"))) == set(own(TASKS))
    encodings = table(page, "name")
    named = set().union(*map(names_in, encodings))
    assert set(own(ENCODINGS)) | set(SHORTHANDS) <= named <= set(names_known())
    assert named | set().union(*(names_in(encoder) for _, encoder in encodings.values())) >= set(own(ENCODERS))
    options = {name.strip("`"): rest[0] for name, rest in table(page, "table").items()}
    for name, kind in (("optim", Optim), ("data", Data), ("run", Run)):
        assert names_in(options[name]) == {field.name for field in fields(kind)}, name
    (models,) = re.findall(r"`name` \(([\w, ]+)\)", options["model"])
    assert models.split(", ") == list(own(MODELS))
    assert names_in(options["model"]) - {"name"} <= {
        each.name for kind in own(MODELS).values() for each in fields(kind)
    }


def test_the_table_of_packages_has_the_order_that_import_linter_checks():
    packages = [name for cell in table("docs/contributing/architecture.md", "package") for name in cell.split(", ")]
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = [layer for layer in contracts[0]["layers"] if layer not in ("__main__", "version")]
    assert [name.strip("`").removesuffix("/").removesuffix(".py") for name in packages] == layers


def test_every_command_is_in_the_api():
    page = (ROOT / "docs" / "api" / "commands.md").read_text()
    documented = {line.split()[0] for line in re.findall(r"\.\. command:: (.+)", page)}
    command = typer.main.get_command(cli.app)
    assert documented == set(command.list_commands(command.make_context("magnetite", [], resilient_parsing=True)))


def test_wrong_pages_are_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("```shell\nmagnetite encode a \\\n  --nonsense 3\n```\n\n`magnetite train sorting --nonsense`\n")
    (line,) = commands(page)
    with pytest.raises(Exception, match="nonsense"):
        check(*(lambda program, *rest: (program, rest))(*shlex.split(line)))
    assert list(phrases(page)) == ["magnetite train sorting --nonsense"]
    with pytest.raises(pytest.fail.Exception, match="expected '2"):
        run_python(Block("python", "", ">>> 1 + 2\n2\n", 0), {}, "page.md")
