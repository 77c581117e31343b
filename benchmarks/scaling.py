"""What several GPUs gain in training: a model of communication on measured steps of one GPU.

python benchmarks/scaling.py             # reads results/benchmark-training.json, writes results/scaling.json

With data parallelism, p processes compute the gradients of a p-th of the batch and add them up. A ring all-reduce of B
bytes of gradients over links of W bytes per second and latency L takes

    2 (p − 1) / p · B / W + 2 (p − 1) · L.

A step takes T / p + that time with the same batch on p GPUs (strong scaling), and T + that time with p times the batch
(weak scaling), where T is the measured step. Nothing overlaps in this model, although DistributedDataParallel sends
gradients while it computes others; and the GPUs are assumed to be as fast per graph on a p-th of the batch.
"""

import argparse
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from magnetite.io.record import Record, read_record
from magnetite.training.config import configuration
from magnetite.training.models import build_model

LINKS = {
    "NVLink, 450 GB/s": (450e9, 5e-6),
    "InfiniBand, 400 Gbit/s": (50e9, 10e-6),
    "Ethernet, 100 Gbit/s": (12.5e9, 25e-6),
    "Ethernet, 10 Gbit/s": (1.25e9, 50e-6),
}
"""Bytes per second in each direction and seconds of latency, by the name of the link: nominal values."""

PROCESSES = (2, 8, 64)
BYTES = 4
"""Of a gradient: single precision, also where the model computes in bfloat16."""


def exchange(size: float, processes: int, bandwidth: float, latency: float) -> float:
    """Seconds of a ring all-reduce of `size` bytes.

    >>> round(exchange(1e9, 2, 1e9, 0.0), 3)
    1.0
    """
    return 2 * (processes - 1) / processes * size / bandwidth + 2 * (processes - 1) * latency


def main() -> None:
    """Print a table and write it as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--out", type=Path, default=Path("results"), help="folder with the measured steps, and for the JSON"
    )
    options = parser.parse_args()
    measured = read_record(options.out / "benchmark-training.json")
    record, rows = Record("scaling", measured["seed"]), []
    table = Table("training", "link", "GPUs", "exchange (ms)", "same batch", "batch × GPUs")
    for task, encodings in measured["result"].items():
        for encoding, figures in encodings.items():
            if task == "naming":  # its rows are presets, whose models need a corpus
                continue
            config = configuration(task, encoding, "paper")
            parameters = build_model(config.task, config.encoding, config.model, 0).parameter_count
            step = config.optim.batch / figures["graphs_per_second"]
            for link, (bandwidth, latency) in LINKS.items():
                for processes in PROCESSES:
                    seconds = exchange(BYTES * parameters, processes, bandwidth, latency)
                    row: dict[str, Any] = {
                        "task": task,
                        "encoding": encoding,
                        "parameters": parameters,
                        "batch": config.optim.batch,
                        "step_seconds": step,
                        "link": link,
                        "processes": processes,
                        "exchange_seconds": seconds,
                        "strong_efficiency": (step / processes) / (step / processes + seconds),
                        "weak_efficiency": step / (step + seconds),
                    }
                    rows.append(row)
                    shares = (f"{row[name]:.0%}" for name in ("strong_efficiency", "weak_efficiency"))
                    table.add_row(f"{task}, {encoding}", link, str(processes), f"{1000 * seconds:.2f}", *shares)
    Console().print(table)
    print(
        record.write(options.out, {"measured_on": measured["device"], "measured_at": measured["commit"], "rows": rows})
    )


if __name__ == "__main__":
    main()
