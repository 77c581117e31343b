"""`magnetite name`: names for the functions of Python files."""

import gc
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

if TYPE_CHECKING:
    from magnetite.code.names import NamedFunction

FAILED = 3
"""Exit code if some files could not be read and the others were."""

LISTED = 10
"""Number of files with problems that are printed; --json has all."""


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
        typer.Option(help="Folder of a run of the task naming.", show_default="the model that comes with magnetite"),
    ] = None,
) -> None:
    """Propose names for functions, from their bodies alone; code is read, never run.

    Exit code 0: all files were read. 3: some files could not be read or parsed, the others were. 2: the input was
    rejected.
    """
    from magnetite.code.names import load_namer, name_files, python_files, unlikely

    files = python_files(paths)
    namer = load_namer(model)
    gc.freeze()  # what is imported stays: no need to scan it while graphs are built
    limit = unlikely(model) if threshold is None else threshold
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("files"))
    with Progress(
        *columns, TimeElapsedColumn(), console=console, disable=not console.is_terminal, transient=True
    ) as bar:
        row = bar.add_task("naming functions", total=len(files))
        found = list(name_files(files, namer, top, lambda: bar.advance(row)))
    problems = {file.path: file.problem for file in found if file.problem}
    if len(problems) == len(files):
        raise ValueError(next(iter(problems.values())))
    every = [function for file in found for function in file.functions]
    chosen = _bad(every, limit) if only_bad else every
    try:
        _print(chosen, problems, as_json)
    except BrokenPipeError:  # such as `| head`: whoever reads has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return
    _summary(every, chosen, problems, len(files), limit if only_bad else None)
    if problems:
        raise typer.Exit(FAILED)


def _bad(found: list["NamedFunction"], limit: float) -> list["NamedFunction"]:
    """Functions whose names are unlikely, the most unlikely first."""
    judged = [(each.likelihood, each) for each in found if each.likelihood is not None and not each.fixed]
    chosen = [pair for pair in judged if pair[0] < limit]
    return [function for _, function in sorted(chosen, key=lambda pair: pair[0])]


def _print(chosen: list["NamedFunction"], problems: dict[str, str], as_json: bool) -> None:
    if as_json:
        rows = [_plain(function) for function in chosen]
        rows += [{"file": _text(path), "problem": _text(reason)} for path, reason in problems.items()]
        for row in rows:
            typer.echo(json.dumps(row, ensure_ascii=False, allow_nan=False))
    for function in () if as_json else chosen:
        likelihood = "" if function.likelihood is None else f"  (likelihood {function.likelihood:.2g})"
        typer.echo(f"{_text(function.path)}:{function.line}  {function.name}{likelihood}")
        proposals = "  ".join(f"{name} {probability:.3f}" for name, probability in function.proposals)
        typer.echo(f"    {function.problem or proposals or 'no proposal'}")
    sys.stdout.flush()


def _plain(function: "NamedFunction") -> dict[str, Any]:
    row: dict[str, Any] = {"file": _text(function.path), "line": function.line, "name": function.name}
    if function.problem:
        return {**row, "problem": function.problem}
    likelihood = None if function.likelihood is None else round(function.likelihood, 6)
    proposals = [{"name": name, "probability": round(each, 6)} for name, each in function.proposals]
    return {**row, "likelihood": likelihood, "fixed": function.fixed or None, "proposals": proposals}


def _summary(
    every: list["NamedFunction"],
    chosen: list["NamedFunction"],
    problems: dict[str, str],
    files: int,
    limit: float | None,
) -> None:
    """Say on standard error what was read and what was not."""
    for reason in list(problems.values())[:LISTED]:
        typer.echo(f"left out: {_text(reason)}", err=True)
    if len(problems) > LISTED:
        typer.echo(f"left out: {len(problems) - LISTED:,} more files, see --json", err=True)
    unnamed = sum(bool(function.problem) for function in every)
    parts = [f"{len(every):,} functions in {files - len(problems):,} files"]
    if limit is not None:
        parts.append(f"{len(chosen):,} with a likelihood below {limit:.3g}")
    if unnamed:
        parts.append(f"{unnamed:,} without proposals")
    if problems:
        parts.append(f"{len(problems):,} files left out")
    typer.echo("; ".join(parts), err=True)


def _text(path: str) -> str:
    """A path that can be printed, whatever bytes it has."""
    return path.encode("utf-8", "backslashreplace").decode()
