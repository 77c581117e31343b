"""Training runs of the table of function names: every row and seed is one `magnetite train naming`.

    python -m paper train-code --data CORPUS --rows sat,dataflow-magnetic --seeds 0,1,2 --epochs 8 --side 2

Each run writes `code/<row>-seed<seed>.json` (configuration, scores, speed) and `.parquet` (its answers for the test
split) to the folder of results. Runs that are there are not trained again; those that were interrupted continue.

With `--rates 1e-3,2e-3`, each row first tries these learning rates for a fraction of the training, and is trained with
the best in validation; the tries are written to `code/rates`.
"""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from magnetite.io.record import read_record
from magnetite.io.storage import replacing, write_json
from magnetite.tasks.naming import PRESETS
from magnetite.training.runs import CONFIG, PREDICTIONS, RESULT
from paper.baselines import by_project

FOLDER = "code"
"""Folder of the results of rows in the folder of results."""

RATES = "rates"
"""Folder of the tries of learning rates in the folder of the rows."""

ROWS = (
    "sat-no-gnn", "sat", "sat++-no-gnn", "sat++",
    "dataflow", "dataflow-walks", "dataflow-magnetic-mlp", "dataflow-magnetic", "dataflow-multi-q", "tokens",
)  # fmt: skip
"""The rows that are compared, in the order of the paper's table."""

VARIANTS: dict[str, tuple[str, tuple[str, ...]]] = {
    "dataflow-magnetic-unscaled": ("dataflow-magnetic", ("--set", "model.position_scale=0")),
    "small-uncopied": ("small", ("--set", "task.copied=false")),
    "small-whole": ("small", ("--set", "task.subwords=0")),
    "small-neither": ("small", ("--set", "task.copied=false", "--set", "task.subwords=0")),
    "small-5000": ("small", ("--set", "task.words=5000")),
    "small-docstrings": ("small", ("--set", "task.keep_docstrings=true")),
    "small-magnetic": ("small", ("--encoding", "magnetic", "--set", "encoding.k=8")),
}
"""Rows that are a preset with a change, to see what helps: the preset and the arguments."""

TRIED_AS = {
    "sat-no-gnn": "sat++-no-gnn",
    "dataflow-walks": "dataflow-magnetic",
    "dataflow-magnetic-mlp": "dataflow-magnetic",
    "dataflow-multi-q": "dataflow-magnetic",
    "sequential-magnetic": "dataflow-magnetic",
    "best": "dataflow-magnetic",
}
"""Rows that do not try learning rates, but have that of a similar row."""

STOPPING = 60.0
"""Seconds that runs have to save when time is over."""

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@dataclass(frozen=True)
class Cell:
    """One row with one seed.

    Args:
        row: Name of the preset or the variant.
        seed: Seed of the run.
        given: Further arguments of `magnetite train naming`.
        rate: Learning rate, if this is a try.
    """

    row: str
    seed: int
    given: tuple[str, ...] = ()
    rate: float | None = None

    @property
    def name(self) -> str:
        """Name of its files."""
        return f"{self.row}-seed{self.seed}" if self.rate is None else f"{self.row}-lr{self.rate:g}"

    def result(self, out: Path) -> Path:
        """Its file in the folder of results."""
        return out / FOLDER / ("" if self.rate is None else RATES) / f"{self.name}.json"


def read_rows(out: Path) -> dict[tuple[str, int], dict[str, Any]]:
    """The records of all rows that have been trained, by row and seed; their answers lie beside them as `.parquet`.

    Args:
        out: Folder of results.
    """
    found = {}
    for path in sorted((out / FOLDER).glob("*-seed*.json")):
        row, _, seed = path.stem.rpartition("-seed")
        found[row, int(seed)] = read_record(path)
    return found


@app.command("train-code")
def main(
    data: Annotated[Path, typer.Option(help="Folder of the corpus.")],
    rows: Annotated[str, typer.Option(help="Names of presets or variants, separated by commas.")] = ",".join(ROWS),
    seeds: Annotated[str, typer.Option(help="Seeds, separated by commas.")] = "0",
    epochs: Annotated[float | None, typer.Option(help="Number of passes over the training functions.")] = None,
    side: Annotated[int, typer.Option(help="Number of runs at the same time.")] = 1,
    minutes: Annotated[float, typer.Option(help="Time after which runs save and stop.")] = 1e6,
    runs: Annotated[Path, typer.Option(help="Folder of the runs.")] = Path("runs/code"),
    out: Annotated[Path, typer.Option(help="Folder of results.")] = Path("results"),
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    settings: Annotated[list[str] | None, typer.Option("--set", help="Change a setting of all rows.")] = None,
    rates: Annotated[str, typer.Option(help="Learning rates that each row tries, separated by commas.")] = "",
    tried: Annotated[float, typer.Option(help="Fraction of the training that is done to try a rate.")] = 0.12,
) -> None:
    """Train rows of the table of function names."""
    chosen = [name.strip() for name in rows.split(",")]
    known = [*PRESETS, *VARIANTS]
    unknown = next((name for name in chosen if name not in known), None)
    if unknown is not None:
        raise ValueError(f"unknown row {unknown!r}: choose one of {', '.join(known)}")
    if side < 1:
        raise ValueError(f"side must be a positive integer, got {side}")
    given = [*([] if epochs is None else ["--epochs", str(epochs)]), "--device", device]
    given += [part for setting in settings or () for part in ("--set", setting)]
    end, best = time.monotonic() + 60 * minutes, dict.fromkeys(chosen, ())
    if rates:
        values, tries = [float(rate) for rate in rates.split(",")], list(dict.fromkeys(map(_tried_as, chosen)))
        cells = [Cell(row, 0, (*_rate(rate), "--budget", str(tried)), rate) for row in tries for rate in values]
        _train_all(cells, data, runs, out, given, side, end)
        best = {row: _rate(_best_rate(_tried_as(row), values, out)) for row in chosen}
    cells = [Cell(row, int(seed), best[row]) for seed in seeds.split(",") for row in chosen]
    _train_all(cells, data, runs, out, given, side, end)


def _tried_as(row: str) -> str:
    return TRIED_AS.get(row, row)


def _rate(rate: float) -> tuple[str, str]:
    return "--set", f"optim.lr={rate:g}"


def _best_rate(row: str, rates: Sequence[float], out: Path) -> float:
    """The learning rate with the largest F1 in validation."""
    tries = {rate: read_record(Cell(row, 0, rate=rate).result(out))["result"]["figures"] for rate in rates}
    return max(rates, key=lambda rate: tries[rate]["valid"]["f1_dropped"])


def _train_all(
    cells: Sequence[Cell], data: Path, runs: Path, out: Path, given: Sequence[str], side: int, end: float
) -> None:
    """Train the cells without a result, `side` at a time, and raise an error if some did not finish."""
    runs.mkdir(parents=True, exist_ok=True)
    waiting, running, unfinished = [cell for cell in cells if not cell.result(out).exists()], {}, []
    console = Console(soft_wrap=True, highlight=False)
    while waiting or running:
        while waiting and len(running) < side and time.monotonic() < end:
            cell = waiting.pop(0)
            running[cell] = _start(cell, data, runs, given)
        if time.monotonic() >= end:
            _stop(list(running.values()))
            unfinished += [cell.name for cell in waiting]
            waiting = []
        for cell, process in list(running.items()):
            if process.poll() is None:
                continue
            del running[cell]
            if process.returncode:
                unfinished.append(cell.name)
                console.print(f"{cell.name}: exit code {process.returncode}, see {runs / cell.name}.log")
            else:
                figures = _keep(cell, runs, out)["test"]
                console.print(f"{cell.name}: test f1 {figures['f1']:.4f}, f1_dropped {figures['f1_dropped']:.4f}")
        time.sleep(0.2)
    if unfinished:
        raise ValueError(f"not finished: {', '.join(unfinished)}; their logs are in {runs}, run the command again")


def _start(cell: Cell, data: Path, runs: Path, given: Sequence[str]) -> "subprocess.Popen[bytes]":
    folder = runs / cell.name
    command = [sys.executable, "-m", "magnetite", "train", "naming", "--out", str(folder)]
    if (folder / CONFIG).exists():
        command += ["--resume", "--device", given[list(given).index("--device") + 1]]
    else:
        preset, changes = VARIANTS.get(cell.row, (cell.row, ()))
        command += ["--data", str(data), "--preset", preset, "--seed", str(cell.seed), *given, *changes, *cell.given]
    with (runs / f"{cell.name}.log").open("ab") as log:
        return subprocess.Popen(command, stdout=log, stderr=log, env=os.environ | {"PYTHONUNBUFFERED": "1"})


def _stop(processes: Sequence["subprocess.Popen[bytes]"]) -> None:
    """Ask runs to save and to stop, and end those that do not."""
    for process in processes:
        process.send_signal(signal.SIGINT)
    end = time.monotonic() + STOPPING
    for process in processes:
        try:
            process.wait(max(0.0, end - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _keep(cell: Cell, runs: Path, out: Path) -> dict[str, Any]:
    """Copy the result and the answers of a run to the folder of results."""
    target = cell.result(out)
    target.parent.mkdir(parents=True, exist_ok=True)
    record = read_record(runs / cell.name / RESULT)
    if cell.rate is not None:
        shutil.copyfile(runs / cell.name / RESULT, target)
        return record["result"]["figures"]
    with replacing(target.with_suffix(".parquet")) as part:
        shutil.copyfile(runs / cell.name / PREDICTIONS, part)
    kept = {name: value for name, value in record.items() if name != "crc32"}
    # Intervals need only these sums, so that the answers need not be kept for them.
    kept["result"] = {**kept["result"], "projects": by_project(read_answers(target.with_suffix(".parquet")))}
    write_json(target, {**kept, "row": cell.row})
    return record["result"]["figures"]


def read_answers(path: Path) -> dict[str, list[Any]]:
    """The columns of a file of answers that scores by project need.

    Args:
        path: File that a run of the task naming wrote.
    """
    import pyarrow.parquet as pq

    return pq.read_table(path, columns=["project", "f1", "f1_dropped"]).to_pydict()
