"""Whole training steps of a transformer without empty slots, against steps that take every slot along.

    PYTHONPATH=src python benchmarks/tokens.py          # writes results/benchmark-tokens-cpu.json, or -gpu.json

Both sides in one process, in turns, with the paper's settings; on a CPU in single precision and with smaller batches.
"""

import argparse
import tempfile
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from unittest import mock

import torch
from magnetite.nn.tokens import Tokens
from magnetite.training.presets import configuration
from magnetite.training.session import Machine, accelerator_named, compile_mode
from rich.console import Console
from rich.table import Table

from magnetite.io.record import Record
from magnetite.training.loop import Trainer

SETTINGS: dict[str, tuple[str, dict[str, object]]] = {
    "sorting": ("sorting", {"train": 20_000}),
    "reachability, general": ("playground", {"train": 20_000, "target": "reachability"}),
    "directed distance, DAG": ("playground", {"train": 20_000, "target": "directed-distance", "acyclic": True}),
    "directed distance, general": ("playground", {"train": 20_000, "target": "directed-distance"}),
}
SIDES = ("packed", "slots")


def side(name: str) -> AbstractContextManager[object]:
    """Hide from a model how many nodes there are together."""
    if name == "packed":
        return nullcontext()
    return mock.patch.object(Tokens, "of", lambda batches, *_, **__: Tokens(batches, None))


def stepper(trainer: Trainer) -> Callable[[int], None]:
    """Whole training steps of the first block, after they were compiled and captured."""
    trainer.prepare()
    block = next(trainer.data.blocks(0))

    def steps(count: int) -> None:
        for number in range(count):
            trainer.step(block, number % len(block))
        if trainer.fabric.device.type == "cuda":
            torch.cuda.synchronize()

    steps(6 if trainer.fabric.device.type == "cuda" else 1)
    return steps


def measure(task: str, changes: dict[str, object], rounds: int, seed: int) -> dict[str, float]:
    """Seconds a step of both sides, and how empty the slots are."""
    accelerator = accelerator_named("auto")
    gpu = accelerator == "cuda"
    run = {"seed": seed, "compile": compile_mode(accelerator)} | ({} if gpu else {"precision": "32-true"})
    tables = {"task": changes, "run": run, "optim": {} if gpu else {"batch": 96}}
    config = configuration(task, "magnetic", "paper", tables)  # type: ignore[arg-type]
    best = dict.fromkeys(SIDES, float("inf"))
    with tempfile.TemporaryDirectory() as folder:
        sides = {}
        for name in SIDES:
            with side(name):
                trainer = Trainer(config, Path(folder) / name, Machine(accelerator).fabric(config.run.precision))
                sides[name] = stepper(trainer)
        count = 20 if gpu else 1
        for name in SIDES * rounds:
            with side(name):
                start = time.perf_counter()
                sides[name](count)
                best[name] = min(best[name], (time.perf_counter() - start) / count)
    shapes = trainer.position.shapes
    slots, total = sum(shape.graphs * shape.nodes for shape in shapes), sum(shape.total for shape in shapes)
    speeds = {f"{name}_graphs_per_second": config.optim.batch / seconds for name, seconds in best.items()}
    return {**speeds, "slots": slots, "nodes_at_most": total, "times_as_fast": best["slots"] / best["packed"]}


def main() -> None:
    """Measure, print the table, write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("results"))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--only", nargs="*", default=list(SETTINGS), choices=list(SETTINGS))
    options = parser.parse_args()
    record = Record(f"benchmark-tokens-{'gpu' if torch.cuda.is_available() else 'cpu'}", options.seed)
    table = Table("setting", "graphs/s without empty slots", "with them", "times as fast", "slots", "nodes at most")
    rows = {}
    for name in options.only:
        task, changes = SETTINGS[name]
        row = rows[name] = measure(task, changes, options.rounds, options.seed)
        speeds = [f"{row[f'{one}_graphs_per_second']:,.0f}" for one in SIDES]
        table.add_row(name, *speeds, f"{row['times_as_fast']:.2f}", f"{row['slots']:,}", f"{row['nodes_at_most']:,}")
        record.write(options.out, rows)
    Console().print(table)


if __name__ == "__main__":
    main()
