"""`magnetite data`: generate the data set of a task, or a corpus of functions."""

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from magnetite.cli import functions
from magnetite.cli._tasks import task_commands
from magnetite.tasks import TASKS, Task
from magnetite.tasks.base import SPLITS, check_split
from magnetite.tasks.shards import write
from magnetite.training.options import make


def data(
    task: str,
    options: dict[str, Any],
    out: Annotated[
        Path, typer.Option(help="Folder of the data set; run the same command again to continue after an interruption.")
    ],
    split: Annotated[
        list[str] | None, typer.Option(help="Split to generate: train, valid or test; may be repeated; all by default.")
    ] = None,
) -> None:
    """Generate the data set of a task as safetensors files with a manifest."""
    chosen = make(TASKS[task], options, "task")
    if out.exists() and not out.is_dir():
        raise ValueError(f"{out} is a file: give a folder for the data set")
    splits = split or list(SPLITS)
    for name in splits:
        check_split(name)
    _write(chosen, out, splits)


def _write(task: Task, out: Path, splits: list[str]) -> None:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("files"))
    console = Console(stderr=True)
    with Progress(*columns, TimeRemainingColumn(), console=console, disable=not console.is_terminal) as bar:
        rows = {split: bar.add_task(split, total=task.shard_count(split)) for split in splits}
        manifest = write(task, out, splits, lambda split, _graphs: bar.advance(rows[split]))
    typer.echo(f"{task} → {manifest}")


app = task_commands(
    data,
    "magnetite data sorting --split train --out sorting-networks",
    data_only=True,
    others={"functions": functions.app},
)
