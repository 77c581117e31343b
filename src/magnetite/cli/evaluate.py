"""`magnetite evaluate`: measure the model of a run."""

from pathlib import Path
from typing import Annotated

import typer


def evaluate(
    run: Annotated[Path, typer.Argument(help="Folder of a run, written by `magnetite train`.")],
    split: Annotated[
        str, typer.Option(help="Split to evaluate on: train, valid or test; of sorting also known, real networks.")
    ] = "test",
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", help="Setting of the task's data for this evaluation, such as task.longest=20."),
    ] = None,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
) -> None:
    """Evaluate the best model of a run on a split: print the table, and write evaluation-<split>.json to its folder."""
    from magnetite.training import runs

    runs.evaluate(run, split, runs.Machine(runs.accelerator_named(device)), set_ or [])
