"""`magnetite evaluate`: measure the model of a run."""

from pathlib import Path
from typing import Annotated

import typer


def evaluate(
    run: Annotated[Path, typer.Argument(help="Folder of a run, written by `magnetite train`.")],
    split: Annotated[str, typer.Option(help="Split to evaluate on: train, valid or test.")] = "test",
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
) -> None:
    """Evaluate the best model of a run on a split: print the table, and write evaluation-<split>.json to its folder."""
    from magnetite.tasks.base import check_split
    from magnetite.training import runs

    check_split(split)
    runs.evaluate(run, split, runs.Machine(runs.accelerator_named(device)))
