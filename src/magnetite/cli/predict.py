"""`magnetite predict`: the answers of a trained model for other graphs."""

from pathlib import Path
from typing import Annotated

import typer

from magnetite.io.files import TABLE_WRITERS, check_outputs, write_table
from magnetite.io.storage import check_writable


def predict(
    run: Annotated[Path, typer.Argument(help="Folder of a run, written by `magnetite train --data …`.")],
    inputs: Annotated[
        list[str], typer.Argument(help="Files or folders of graphs with the features of the training graphs.")
    ],
    out: Annotated[Path, typer.Option(help=f"File for the answers: {', '.join(TABLE_WRITERS)}.")],
    pairs: Annotated[
        Path | None,
        typer.Option(help="Table of node pairs to predict for: source, target, and graph if there are several."),
    ] = None,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
) -> None:
    """Predict with a trained model: one row per graph, node or node pair, with the probability of each class."""
    from magnetite.training.runs import accelerator_named, check_not_own, read_schema
    from magnetite.training.trained import Run

    if out.suffix not in TABLE_WRITERS:
        raise ValueError(f"{out} has an unknown file extension: use one of {' '.join(TABLE_WRITERS)}")
    check_outputs([out], [*map(Path, inputs), *([pairs] if pairs else [])])
    check_not_own(out, run)
    check_writable(out)
    read_schema(run)  # before the graphs are read
    trained = Run(run, device=accelerator_named(device))
    table = trained.table(inputs, pairs)
    write_table(out, table)
    count = len(next(iter(table.values())))
    typer.echo(f"{count:,} answers, one for each {trained.schema.level} → {out}")
