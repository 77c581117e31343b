"""`magnetite name`: names for the functions of Python files."""

import json
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

if TYPE_CHECKING:
    from magnetite.code.names import NamedFile, NamedFunction

FAILED = 3
"""Exit code if some files could not be read and the others were."""

LISTED = 10
"""Number of files with problems that are printed without --json."""


def name(
    paths: Annotated[
        list[Path],
        typer.Argument(help="Python files, or folders that are searched for them.", metavar="FILE|FOLDER…"),
    ],
    top: Annotated[int, typer.Option(min=1, help="Number of proposals for each function.")] = 5,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object per function and line.")] = False,
    only_bad: Annotated[
        bool,
        typer.Option(
            "--only-bad",
            help="Only functions whose present name the model finds unlikely, the most unlikely first; dunder "
            "methods, tests, overloads and stubs are left out.",
        ),
    ] = False,
    threshold: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=1,
            help="Names are unlikely if the model expects less than this share of their words.",
            show_default="that of the model",
        ),
    ] = None,
    model: Annotated[
        Path | None,
        typer.Option(
            help="Folder of a run of the task naming.", show_default="the model that comes with magnetite"
        ),
    ] = None,
) -> None:
    """Propose names for functions, from their bodies alone; code is read, never run.

    Exit code 0: all files were read. 3: some files could not be read or parsed, the others were. 2: the input was
    rejected.
    """
    from magnetite.code.names import load_namer, name_files, python_files, unlikely

    files = python_files(paths)
    namer = load_namer(model)
    limit = unlikely(model) if threshold is None else threshold
    problems: dict[str, str] = {}
    with _bar(len(files)) as bar:
        row = bar.add_task("functions", total=len(files))
        found = name_files(files, namer, top, lambda count: bar.advance(row, count))
        printed = _sorted(found, limit, problems) if only_bad else _listed(found, problems)
        try:
            count = _print(printed, as_json, problems, bar)
        except BrokenPipeError:  # such as `| head`: whoever reads has seen enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return
    if len(problems) == len(files):
        path, reason = next(iter(problems.items()))
        raise ValueError(f"{path}: {reason}")
    _summary(count, len(files), limit if only_bad else None, problems, as_json)
    if problems:
        raise typer.Exit(FAILED)
