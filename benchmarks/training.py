"""Whole training steps including data, against the bare transformer on prepared batches.

    python benchmarks/training.py             # writes results/benchmark-training.json
    python benchmarks/training.py --only naming --data CORPUS --rows sat++ dataflow-magnetic

Both sides use the paper's preset: bf16, compiled layers, CUDA graphs, adaptive clipping and AdamW, on the same shapes.
Ours gathers each batch from the data on the device and has a position encoder; the bare model has none, and is given
the same batches in every step. For function names, rows are presets; both sides have the row's network for queries and
keys, and the transformer without it is timed as well. `--toy` is a small size for a machine without a GPU.
"""

import argparse
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table
from timing import needs_gpu
from torch import Tensor

from magnetite.batching import Batch
from magnetite.io.record import Record
from magnetite.training.capture import Captured
from magnetite.training.config import configuration
from magnetite.training.loop import Trainer
from magnetite.training.runs import Machine, accelerator_named, compile_mode

SETTINGS = ("sorting", "distances")
ENCODINGS = ("magnetic", "walks", "laplacian", "sinusoidal")
ROWS = ("sat++", "dataflow", "dataflow-magnetic")
"""Presets of the task naming."""

TOY = {"optim": {"batch": 32}, "model": {"width": 32, "layers": 1}, "run": {"precision": "32-true"}}


def trainer(
    task: str,
    encoding: str | None,
    toy: bool,
    accelerator: str,
    options: dict[str, Any] | None = None,
    preset: str = "paper",
    overrides: Sequence[str] = (),
) -> Trainer:
    """A run of the paper's preset, ready for its first step."""
    changes: dict[str, Any] = {
        "task": {"train": 200 if toy else 100_000} if options is None else options,
        "run": {"compile": compile_mode(accelerator)},
    }
    for table, values in (TOY if toy else {}).items():
        changes[table] = {**changes.get(table, {}), **values}
    config = configuration(task, encoding, preset, changes, overrides)
    made = Trainer(config, Path(tempfile.mkdtemp()), Machine(accelerator).fabric(config.run.precision))
    made.prepare()
    return made


def graphs_per_second(made: Trainer, step: Callable[[int], None], steps: int) -> float:
    """Speed in the fastest of several passes over `steps` steps; the first one compiles."""
    best = float("inf")
    for _ in range(4):
        _wait()
        start = time.perf_counter()
        for number in range(steps):
            step(number)
        _wait()
        best = min(best, time.perf_counter() - start)
    return steps * made.config.optim.batch / best


def bare_step(made: Trainer, weight: Tensor, batches: Sequence[Batch], accelerator: str) -> Callable[[int], None]:
    """A step on the same batches every time."""
    update = Captured(made.update) if accelerator == "cuda" else made.update
    return lambda _: update(weight, *batches)


def _wait() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def measure(task: str, encodings: Sequence[str], toy: bool, accelerator: str) -> dict[str, Any]:
    """All encodings of one task, each with the bare model on the same shapes."""
    return {
        encoding: compare(
            lambda encoding=encoding: trainer(task, encoding, toy, accelerator),
            {"bare": lambda: trainer(task, "none", toy, accelerator)},
            toy,
            accelerator,
        )
        for encoding in encodings
    }


def measure_naming(rows: Sequence[str], data: Path, cache: str, toy: bool, accelerator: str) -> dict[str, Any]:
    """Rows of the table of function names."""
    options = {"data": str(data), **({"most": 200, "max_nodes": 100} if toy else {})}
    make = partial(trainer, "naming", toy=toy, accelerator=accelerator, options=options)
    settings = [f"data.cache={cache}"]
    return {
        row: compare(
            partial(make, encoding=None, preset=row, overrides=settings),
            {
                "bare": partial(make, encoding="none", preset=row),
                "transformer": partial(make, encoding="none", preset=row, overrides=["model.local=0"]),
            },
            toy,
            accelerator,
        )
        for row in rows
    }


def compare(
    make: Callable[[], Trainer], others: dict[str, Callable[[], Trainer]], toy: bool, accelerator: str
) -> dict[str, Any]:
    """The speed of a run, and of other models on the same batches in every step."""
    ours = make()
    block, shapes, batch = next(ours.data.blocks(0)), ours.progress.shapes, ours.config.optim.batch
    steps = min(len(block), 2 if toy else 20)
    speed = graphs_per_second(ours, partial(ours.step, block), steps)
    row: dict[str, Any] = {"graphs_per_second": speed}
    del ours, block
    torch.compiler.reset()
    for name, maker in others.items():
        bare = maker()
        other = next(bare.data.blocks(0))
        bare.block, bare.progress.shapes = other, shapes
        step = bare_step(bare, other.weights[0], other.batches(other.ids[0], shapes), accelerator)
        alone = graphs_per_second(bare, step, steps)
        row |= {f"{name}_graphs_per_second": alone, f"of_{name}": speed / alone}
        del bare, other, step
        torch.compiler.reset()
    row["buckets"] = [[bucket.graphs, bucket.nodes] for shape in shapes for bucket in shape.buckets]
    row["padded_nodes_per_graph"] = sum(shape.tokens for shape in shapes) / batch
    return row


def main() -> None:
    """Measure, print the table, write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("results"))
    parser.add_argument("--toy", action="store_true", help="small models, also without a GPU")
    parser.add_argument("--only", nargs="*", default=list(SETTINGS))
    parser.add_argument("--encodings", nargs="*", default=list(ENCODINGS))
    parser.add_argument("--data", type=Path, help="a corpus, for naming")
    parser.add_argument("--cache", default="", help="folder of encodings of the corpus, see the option data.cache")
    parser.add_argument("--rows", nargs="*", default=list(ROWS))
    options = parser.parse_args()
    if "naming" in options.only and options.data is None:
        parser.error("naming needs --data, a corpus that `magnetite data functions` wrote")
    if not options.toy:
        needs_gpu()
    record, result = Record("benchmark-training-toy" if options.toy else "benchmark-training", seed=0), {}
    table = Table("task", "encoding", "graphs/s", "bare", "of bare", "padded nodes per graph")
    for task in options.only:
        accelerator = accelerator_named("auto")
        result[task] = (
            measure_naming(options.rows, options.data, options.cache, options.toy, accelerator)
            if task == "naming"
            else measure(task, options.encodings, options.toy, accelerator)
        )
        for encoding, row in result[task].items():
            figures = (
                f"{row['graphs_per_second']:,.0f}",
                f"{row['bare_graphs_per_second']:,.0f}",
                f"{row['of_bare']:.2f}",
            )
            table.add_row(task, encoding, *figures, f"{row['padded_nodes_per_graph']:.0f}")
        record.write(options.out, result)
    Console().print(table)


if __name__ == "__main__":
    main()
