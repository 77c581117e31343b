"""`python -m paper known-networks RUN…`: models on the smallest sorting networks known and on damaged copies."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from magnetite.io.record import Record
from magnetite.tasks.sorting import KNOWN
from magnetite.training import runs

COLUMNS = {
    "balanced accuracy": "balanced_accuracy",
    "smallest": "accuracy/smallest",
    "one removed": "accuracy/removed",
    "one rewired": "accuracy/rewired",
    "auc": "auc",
}

app = typer.Typer(
    add_completion=False, pretty_exceptions_enable=False, context_settings={"help_option_names": ["-h", "--help"]}
)


@app.command(epilog="Example: python -m paper known-networks runs/sorting-magnetic-best-seed0")
def main(
    folders: Annotated[list[Path], typer.Argument(help="Folders of runs of the task sorting.")],
    out: Annotated[Path, typer.Option(help="Folder of the JSON file.")] = Path("results"),
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
) -> None:
    """Evaluate runs on the smallest sorting networks known (7 to 16 wires), and on copies with one comparator changed.

    Balanced accuracy is the mean of the fraction of correct networks called correct and of incorrect ones called
    incorrect; guessing gives 0.5.
    """
    record, rows = Record("known-networks", 0), []
    for folder in folders:
        figures = runs.evaluate(folder, KNOWN, runs.Machine(runs.accelerator_named(device)))
        rows.append({"run": folder.name, **{name: figures[metric] for name, metric in COLUMNS.items()}})
    table = Table("run", *COLUMNS, title="smallest networks known")
    for row in rows:
        table.add_row(row["run"], *(f"{row[name]:.4f}" for name in COLUMNS))
    Console(soft_wrap=True).print(table)
    record.write(out, {"rows": rows})
