"""`python -m paper known-networks RUN…`: models on the smallest sorting networks known and on damaged copies."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from magnetite.io.record import Record, read_record
from magnetite.tasks import Task
from magnetite.tasks.sorting import KNOWN
from magnetite.training import runs

COLUMNS = {
    "balanced accuracy": "balanced_accuracy",
    "smallest": "accuracy/smallest",
    "one removed": "accuracy/removed",
    "one rewired": "accuracy/rewired",
    "auc": "auc",
}


def executed(task: Task) -> dict[str, float]:
    """The metrics of verdicts by the labels of the inputs: those of a model that is right about every input.

    Args:
        task: The task sorting, with `inputs`.
    """
    features = task.examples(KNOWN).graphs.graph_features
    metric: Any = task.metric()
    metric.count(features["label"].bool(), features)
    return metric.compute()


def _columns(figures: Mapping[str, float]) -> dict[str, float]:
    return {name: figures[metric] for name, metric in COLUMNS.items()}


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
    incorrect; guessing gives 0.5. For runs of the option `inputs`, a row says what the same inputs tell if they are
    executed, which is what a model finds that is right about every input.
    """
    record, rows = Record("known-networks", 0), []
    for folder in folders:
        config, done = runs.read_config(folder), read_record(folder / runs.RESULT)
        figures = runs.evaluate(folder, KNOWN, runs.Machine(runs.accelerator_named(device)))
        about = {name: done[name] for name in ("seed", "device", "commit")}
        about |= {name: done["result"][name] for name in ("graphs_seen", "seconds_of_training")}
        rows.append({"run": folder.name, **_columns(figures), "training": about})
        if config.task.options().get("inputs"):
            rows.append({"run": f"{folder.name}: its inputs, executed", **_columns(executed(config.task))})
    table = Table("run", *COLUMNS, title="smallest networks known")
    for row in rows:
        table.add_row(row["run"], *(f"{row[name]:.4f}" for name in COLUMNS))
    Console(soft_wrap=True).print(table)
    record.write(out, {"rows": rows})
