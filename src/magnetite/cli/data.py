"""`magnetite data`: build a data set from the command line."""

from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from magnetite.tasks import TASKS
from magnetite.tasks.examples import SPLITS, Task, check_split, shard_count
from magnetite.tasks.shards import write


def data(
    task: Annotated[str, typer.Argument(help="Which task: playground or sorting.")],
    out: Annotated[
        Path, typer.Option(help="Folder for the shards; a run that was stopped goes on there. Sizes and seed stay.")
    ],
    split: Annotated[
        list[str] | None, typer.Option(help="train, valid or test; may be repeated; all if left out.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="The data are a function of the seed.")] = None,
    shard_size: Annotated[int | None, typer.Option(help="Graphs (or networks) in a file.")] = None,
    train: Annotated[int | None, typer.Option(help="Graphs (or networks) of the training split.")] = None,
    valid: Annotated[int | None, typer.Option(help="sorting: networks of the validation split.")] = None,
    test: Annotated[int | None, typer.Option(help="sorting: networks of the test split.")] = None,
    per_size: Annotated[int | None, typer.Option(help="playground: validation and test graphs of each size.")] = None,
    target: Annotated[
        str | None, typer.Option(help="playground: adjacency, reachability, directed-distance, …")
    ] = None,
    acyclic: Annotated[bool | None, typer.Option(help="playground: draw DAGs.")] = None,
) -> None:
    """Build a data set as safetensors shards with a manifest; run it again to go on after an interruption."""
    options = {"seed": seed, "shard_size": shard_size, "train": train, "valid": valid, "test": test}
    chosen = _task(task, options | {"per_size": per_size, "target": target, "acyclic": acyclic})
    if out.exists() and not out.is_dir():
        raise ValueError(f"{out} is a file: give a folder for the shards")
    splits = split or list(SPLITS)
    for name in splits:
        check_split(name)
    _write(chosen, out, splits)


def _task(name: str, options: dict[str, Any]) -> Task:
    """The task with the options that were given; its own defaults stand for the rest."""
    if name not in TASKS:
        raise ValueError(f"there is no task {name!r}: choose one of {', '.join(TASKS)}")
    given = {option: value for option, value in options.items() if value is not None}
    known = {field.name for field in fields(TASKS[name])}
    for option in given.keys() - known:
        raise ValueError(f"--{option.replace('_', '-')} means nothing to {name}: leave it out")
    return TASKS[name](**given)


def _write(task: Task, out: Path, splits: list[str]) -> None:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("shards"))
    console = Console(stderr=True)
    with Progress(*columns, TimeRemainingColumn(), console=console, disable=not console.is_terminal) as bar:
        rows = {split: bar.add_task(split, total=shard_count(task, split)) for split in splits}
        manifest = write(task, out, splits, lambda split, _graphs: bar.advance(rows[split]))
    typer.echo(f"{task} → {manifest}")
