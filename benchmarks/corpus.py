"""Encode a corpus on processes of this machine and on a local Ray cluster, also with processes and the driver killed.

Each side is a run of `magnetite encode`, from start to end. The outputs of all sides are compared byte for byte. Beside
the time, the CPU time of all processes is measured, which depends less on what else the machine does.

python benchmarks/corpus.py                      # writes results/benchmark-corpus.json
python benchmarks/corpus.py --graphs 200000
"""

import argparse
import hashlib
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT)]

import numpy as np  # noqa: E402
from rich.console import Console  # noqa: E402
from rich.table import Table  # noqa: E402

import magnetite as mt  # noqa: E402
from benchmarks.timing import random_digraphs  # noqa: E402
from magnetite.io.record import Record  # noqa: E402
from magnetite.kernels._compat import available_cores  # noqa: E402
from tests.workers.cluster import Started, cluster, finish, kill, shards, wait_until  # noqa: E402

SMALLEST, LARGEST, K = 15, 25, 8
PER_FILE = 10_000
ENCODING = ("--k", str(K), "--q", "0.1")


class Measured:
    """Wall time of a block, and CPU time of the processes that were started, once they run in it."""

    def __init__(self, started: Started):
        self.started, self.done = started, threading.Event()

    def __enter__(self) -> "Measured":
        self.started.processes()
        self.before = sum(self.started.seconds.values())
        self.begin = time.perf_counter()
        self.thread = threading.Thread(target=self._watch)
        self.thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.seconds = time.perf_counter() - self.begin
        self.done.set()
        self.thread.join()
        self.cpu = sum(self.started.seconds.values()) - self.before

    def _watch(self) -> None:
        while not self.done.wait(0.2):
            self.started.processes()
        self.started.processes()

    def row(self, graphs: int) -> dict[str, float]:
        """The figures."""
        return {
            "seconds": round(self.seconds, 2),
            "graphs_per_second": round(graphs / self.seconds, 1),
            "cpu_seconds": round(self.cpu, 2),
            "cpu_microseconds_per_graph": round(1e6 * self.cpu / graphs, 1),
        }


def written(folder: Path, count: int, seed: int) -> None:
    """Write the graphs."""
    rng = np.random.default_rng(seed)
    for number, first in enumerate(range(0, count, PER_FILE)):
        graphs = random_digraphs(rng, SMALLEST, LARGEST, min(PER_FILE, count - first))
        graphs.save(folder / f"{number:05d}.safetensors")


def digest(folder: Path) -> str:
    """Hash of the names and bytes of all files of a folder."""
    total = hashlib.sha256()
    for path in sorted(folder.iterdir()):
        total.update(path.name.encode() + hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()


def with_faults(started: Started, command: list[str], out: Path, count: int) -> dict[str, Any]:
    """Encode; a process is killed after a quarter of the shards, and the driver after half of them."""
    driver = started.run(*command)
    wait_until(lambda: len(shards(out)) >= count // 4, driver, 3600)
    kill(started.workers()[0])
    wait_until(lambda: len(shards(out)) >= count // 2, driver, 3600)
    driver.kill()
    driver.communicate()
    kept = shards(out)
    finish(started.run(*command))
    again = sum(shards(out)[name] != status for name, status in kept.items())
    return {"shards_before_the_driver_was_killed": len(kept), "shards_encoded_twice": again}


def main() -> None:
    """Print a table and write it as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graphs", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("results"), help="folder for the JSON")
    options = parser.parse_args()
    record, cores = Record("benchmark-corpus", options.seed), available_cores()
    count = -(-options.graphs // PER_FILE)
    sides: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory() as place:
        base = Path(place)
        written(base / "in", options.graphs, options.seed)
        mt.MagneticLaplacian(k=K, q=0.1)(random_digraphs(np.random.default_rng(0), SMALLEST, LARGEST, 100))  # compiles
        load = [round(value, 2) for value in os.getloadavg()]

        def command(name: str, *more: str) -> list[str]:
            return ["encode", str(base / "in"), *ENCODING, *more, "--out", str(base / name)]

        def side(name: str, started: Started, work: Callable[[], Any]) -> None:
            with Measured(started) as measured:
                found = work()
            extra = found if isinstance(found, dict) else {}
            folder = base / ("processes" if name == "verified" else name)
            sides[name] = {**measured.row(options.graphs), **extra, "sha256": digest(folder)}
            print(name, sides[name], flush=True)

        local = Started()
        side("one process", local, lambda: finish(local.run(*command("one process", "--workers", "1"))))
        side("processes", local, lambda: finish(local.run(*command("processes", "--workers", str(cores)))))
        begin = time.perf_counter()
        with cluster(cores) as (started, address):
            starting = time.perf_counter() - begin
            side("ray", started, lambda: finish(started.run(*command("ray", "--ray", address))))
            faulty = command("ray with faults", "--ray", address)
            side("ray with faults", started, lambda: with_faults(started, faulty, base / "ray with faults", count))
        side("verified", local, lambda: finish(local.run(*command("processes", "--workers", str(cores)))))
        made = len(shards(base / "processes"))
        size = sum(path.stat().st_size for path in (base / "processes").iterdir())
        read = sum(path.stat().st_size for path in (base / "in").iterdir())
    hashes = {row.pop("sha256") for row in sides.values()}
    if len(hashes) > 1:
        raise SystemExit("the sides wrote different files")
    result = {
        "graphs": options.graphs,
        "nodes": f"{SMALLEST}–{LARGEST}",
        "k": K,
        "shards": made,
        "cores": cores,
        "load_before": load,
        "identical": True,
        "seconds_to_start_the_cluster": round(starting, 2),
        "sides": sides,
        "ray_overhead": round(sides["ray"]["seconds"] / sides["processes"]["seconds"] - 1, 3),
        "ray_overhead_cpu": round(sides["ray"]["cpu_seconds"] / sides["processes"]["cpu_seconds"] - 1, 3),
        "bytes_per_graph_read": round(read / options.graphs, 1),
        "bytes_per_graph_written": round(size / options.graphs, 1),
    }
    table = Table("side", "seconds", "graphs/s", "CPU seconds", "µs CPU per graph")
    for name, row in sides.items():
        table.add_row(name, *(f"{value:,}" for value in list(row.values())[:4]))
    Console().print(table)
    print(record.write(options.out, result))


if __name__ == "__main__":
    main()
