"""A whole training step, data included, against the bare transformer on tensors that are there already.

    PYTHONPATH=src python benchmarks/training.py             # writes results/benchmark-training.json

Both sides are the paper's preset: bf16, compiled layers, CUDA graphs, adaptive clipping and AdamW, on the same shapes.
Ours gathers each batch from the data on the device and encodes positions; the bare model has none, and meets the
same batches again and again. `--toy` is a small size for a machine without a GPU.
"""

import argparse
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from magnetite.training.presets import configuration
from magnetite.training.session import Machine, accelerator_named, compile_mode
from rich.console import Console
from rich.table import Table
from torch import Tensor

from magnetite.batching import Batch
from magnetite.io.record import Record
from magnetite.training.capture import Captured
from magnetite.training.loop import Trainer

SETTINGS: dict[str, dict[str, Any]] = {
    "sorting": {"task": {}},
    "playground": {"task": {"target": "directed-distance"}},
}
ENCODINGS = ("magnetic", "walks", "laplacian", "sinusoidal")
TOY = {"optim": {"batch": 32}, "model": {"width": 32, "layers": 1}, "run": {"precision": "32-true"}}


def trainer(task: str, encoding: str, toy: bool, accelerator: str) -> Trainer:
    """A training of the paper's preset, ready to step."""
    count = 200 if toy else 100_000
    changes = {"task": {**SETTINGS[task]["task"], "train": count}, "run": {"compile": compile_mode(accelerator)}}
    for table, options in (TOY if toy else {}).items():
        changes[table] = {**changes.get(table, {}), **options}
    config = configuration(task, encoding, "paper", changes)
    made = Trainer(config, Path(tempfile.mkdtemp()), Machine(accelerator).fabric(config.run.precision))
    made.prepare()
    return made


def graphs_per_second(made: Trainer, step: Callable[[int], None], steps: int) -> float:
    """The best of the passes over some steps, after a first one that compiles."""
    best = float("inf")
    for _ in range(4):
        _wait()
        start = time.perf_counter()
        for place in range(steps):
            step(place)
        _wait()
        best = min(best, time.perf_counter() - start)
    return steps * made.config.optim.batch / best


def standing(made: Trainer, total: Tensor, batches: Sequence[Batch], accelerator: str) -> Callable[[int], None]:
    """A step that meets the same batches whenever it is done."""
    update = Captured(made.update_by) if accelerator == "cuda" else made.update_by
    return lambda _: update(total, *batches)


def _wait() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def measure(task: str, encodings: Sequence[str], toy: bool, accelerator: str) -> dict[str, Any]:
    """Encodings of one task, and the bare model on the shapes of each."""
    rows = {}
    for encoding in encodings:
        ours, bare = (trainer(task, name, toy, accelerator) for name in (encoding, "none"))
        block, shapes = next(ours.data.blocks(0)), ours.position.shapes
        steps = min(len(block), 2 if toy else 20)
        speed = graphs_per_second(ours, partial(ours.step, block), steps)
        batches = list(next(bare.data.blocks(0)).chunks(0, shapes))
        alone = graphs_per_second(bare, standing(bare, block.totals[0], batches, accelerator), steps)
        slots = sum(shape.graphs * shape.nodes for shape in shapes)
        rows[encoding] = {
            "graphs_per_second": speed,
            "bare_graphs_per_second": alone,
            "of_bare": speed / alone,
            "chunks": [[shape.graphs, shape.nodes] for shape in shapes],
            "slots_a_graph": slots / ours.config.optim.batch,
        }
        del ours, bare, block, batches
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
    table = Table("task", "encoding", "graphs/s", "bare", "of bare", "slots a graph")
    for task in options.only:
        result[task] = measure(task, options.encodings, options.toy, accelerator_named("auto"))
        for encoding, row in result[task].items():
            figures = (
                f"{row['graphs_per_second']:,.0f}",
                f"{row['bare_graphs_per_second']:,.0f}",
                f"{row['of_bare']:.2f}",
            )
            table.add_row(task, encoding, *figures, f"{row['slots_a_graph']:.0f}")
        record.write(options.out, result)
    Console().print(table)


if __name__ == "__main__":
    main()
