"""Time to read a large safetensors file of graphs with validation, against reading it with the checksum alone.

python benchmarks/validation.py           # writes results/benchmark-validation.json

Both sides read the same file in turns, in one process, from the page cache of the operating system: a disk would take
longer to read, but not to validate. The validation runs beside the checksum in a thread of its own, so the ratio holds
where a second core is free; `alone` is the time that it takes by itself.
"""

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

from magnetite.graphs import Digraphs
from magnetite.io.record import Record
from magnetite.io.storage import read_tensors
from magnetite.packed import starts

SEED = 0
EDGES = 10_000_000
ROUNDS = 25
FILES = {
    "10,000 graphs, weighted": (10_000, True),
    "100,000 graphs, weighted": (100_000, True),
    "100,000 graphs": (100_000, False),
    "1,000,000 graphs": (1_000_000, False),
}


def generated(count: int, weighted: bool, edges: int) -> Digraphs:
    """Random graphs of 8 to 63 nodes with `edges` edges in total."""
    generator = torch.Generator().manual_seed(SEED)
    sizes = torch.randint(8, 64, (count,), generator=generator)
    edge_ptr = starts(torch.full((count,), edges // count))
    limits = torch.repeat_interleave(sizes, edge_ptr.diff())
    numbers = torch.rand(2, edges, generator=generator)
    return Digraphs(
        node_ptr=starts(sizes),
        edge_ptr=edge_ptr,
        edges=(numbers * limits).int(),
        weights=torch.rand(edges, generator=generator, dtype=torch.float64) + 0.5 if weighted else None,
    )


def read_only(path: Path) -> Digraphs:
    """Read and verify the checksum, without validation."""
    return Digraphs.from_tensors(read_tensors(path)[0], validate=False)


def timed(work: Callable[[], Any]) -> float:
    """Seconds of one call."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def compared(path: Path) -> dict[str, float]:
    """Seconds of reading without and with validation, the fastest of several rounds in turns, and their ratio."""
    pairs = []
    for number in range(ROUNDS + 1):
        order = (read_only, Digraphs.load) if number % 2 else (Digraphs.load, read_only)
        seconds = {side: timed(lambda side=side: side(path)) for side in order}
        pairs.append((seconds[read_only], seconds[Digraphs.load]))
    read, both = (min(side) for side in zip(*pairs[1:], strict=True))
    return {"read": read, "validated": both, "ratio": both / read}


def main() -> None:
    """Print a table and write it as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("results"), help="folder for the JSON")
    parser.add_argument("--edges", type=int, default=EDGES, help="edges per file")
    options = parser.parse_args()
    record = Record("benchmark-validation", SEED)
    table = Table("file", "MB", "read, ms", "and validated, ms", "ratio", "alone, ms")
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        for name, (count, weighted) in FILES.items():
            path = Path(folder) / "graphs.safetensors"
            generated(count, weighted, options.edges).save(path)
            loaded = Digraphs.load(path)
            alone = min(timed(loaded.check) for _ in range(5))
            row = {"file": name, "megabytes": path.stat().st_size / 1e6, **compared(path), "alone": alone}
            rows.append(row)
            times = [f"{1000 * row[side]:.1f}" for side in ("read", "validated")]
            table.add_row(name, f"{row['megabytes']:.0f}", *times, f"{row['ratio']:.3f}", f"{1000 * alone:.1f}")
    Console().print(table)
    record.write(options.out, {"edges": options.edges, "rows": rows})


if __name__ == "__main__":
    main()
