"""Whole training steps including data, against the bare transformer on prepared batches.

    python benchmarks/training.py             # writes results/benchmark-training.json

Both sides use the paper's preset: bf16, compiled layers, CUDA graphs, adaptive clipping and AdamW, on the same shapes.
Ours gathers each batch from the data on the device and has a position encoder; the bare model has none, and is given
the same batches in every step. `--toy` is a small size for a machine without a GPU.
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
from torch import Tensor

from magnetite.batching import Batch
from magnetite.io.record import Record
from magnetite.training.capture import Captured
from magnetite.training.config import configuration
from magnetite.training.loop import Trainer
from magnetite.training.runs import Machine, accelerator_named, compile_mode

SETTINGS = ("sorting", "distances")
ENCODINGS = ("magnetic", "walks", "laplacian", "sinusoidal")
TOY = {"optim": {"batch": 32}, "model": {"width": 32, "layers": 1}, "run": {"precision": "32-true"}}


def trainer(task: str, encoding: str, toy: bool, accelerator: str) -> Trainer:
    """A run of the paper's preset, ready for its first step."""
    changes: dict[str, Any] = {
        "task": {"train": 200 if toy else 100_000},
        "run": {"compile": compile_mode(accelerator)},
    }
    for table, options in (TOY if toy else {}).items():
        changes[table] = {**changes.get(table, {}), **options}
    config = configuration(task, encoding, "paper", changes)
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
    rows = {}
    for encoding in encodings:
        ours, bare = (trainer(task, name, toy, accelerator) for name in (encoding, "none"))
        block, shapes = next(ours.data.blocks(0)), ours.progress.shapes
        steps = min(len(block), 2 if toy else 20)
        speed = graphs_per_second(ours, partial(ours.step, block), steps)
        other = next(bare.data.blocks(0))
        bare.block, bare.progress.shapes = other, shapes
        step = bare_step(bare, other.weights[0], other.batches(other.ids[0], shapes), accelerator)
        alone = graphs_per_second(bare, step, steps)
        rows[encoding] = {
            "graphs_per_second": speed,
            "bare_graphs_per_second": alone,
            "of_bare": speed / alone,
            "buckets": [[bucket.graphs, bucket.nodes] for shape in shapes for bucket in shape.buckets],
            "padded_nodes_per_graph": sum(shape.tokens for shape in shapes) / ours.config.optim.batch,
        }
        del ours, bare, block, other, step
        torch.compiler.reset()
    return rows


def main() -> None:
    """Measure, print the table, write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("results"))
    parser.add_argument("--toy", action="store_true")
    parser.add_argument("--only", nargs="*", default=list(SETTINGS))
    parser.add_argument("--encodings", nargs="*", default=list(ENCODINGS))
    options = parser.parse_args()
    record, result = Record("benchmark-training", seed=0), {}
    table = Table("task", "encoding", "graphs/s", "bare", "of bare", "padded nodes per graph")
    for task in options.only:
        result[task] = measure(task, options.encodings, options.toy, accelerator_named("auto"))
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
