"""Magnetic eigenpairs against NumPy and PyG's transform, walks against NumPy, in one process; `import magnetite`.

    python benchmarks/encodings.py            # writes results/benchmark-encodings.json

(a) builds each graph's magnetic Laplacian and calls `numpy.linalg.eigh`, in a pool of two threads with BLAS at one
thread; (b) is PyG's `AddLaplacianEigenvectorPE`, which ignores directions. Each side encodes the same graphs, k = 16;
the fastest of several interleaved rounds is reported. Walks are three powers and PageRank in both directions; NumPy's
side multiplies and inverts dense matrices, in the same pool of two threads.
"""

import argparse
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from threadpoolctl import threadpool_limits
from timing import least_seconds, random_digraphs
from torch_geometric.data import Data
from torch_geometric.transforms import AddLaplacianEigenvectorPE

import magnetite as mt
from magnetite.io.record import Record

K = 16
RANGES = {"16-27": (16, 27, 2000), "72-83": (72, 83, 400), "100-150": (100, 150, 200)}


def numpy_eigenpairs(graph: mt.Digraphs) -> tuple[np.ndarray, np.ndarray]:
    """The plain way in NumPy: dense matrix, all eigenpairs, the first k."""
    size = graph.num_nodes
    adjacency = np.zeros((size, size))
    adjacency[tuple(graph.edges.numpy())] = 1
    symmetric = np.maximum(adjacency, adjacency.T)
    one_way = int(((adjacency == 1) & (adjacency.T == 0)).sum())
    phase = 2 * np.pi * 0.25 / max(min(one_way, size), 1) * (adjacency - adjacency.T)
    degree = symmetric.sum(1)
    scale = np.where(degree > 0, degree, np.inf) ** -0.5
    laplacian = np.eye(size) - scale[:, None] * symmetric * scale * np.exp(1j * phase)
    values, vectors = np.linalg.eigh(laplacian)
    return values[:K], vectors[:, :K]


def in_numpy_pool(graphs: list[mt.Digraphs]) -> int:
    """Encode all; returns the number of failures."""
    with threadpool_limits(1), ThreadPoolExecutor(2) as pool:
        list(pool.map(numpy_eigenpairs, graphs))
    return 0


WALKS = {"16-31": (16, 31, 1000), "32-64": (32, 64, 500), "100-150": (100, 150, 100)}


def numpy_walks(graph: mt.Digraphs) -> np.ndarray:
    """Landing probabilities of walks against and along the edges, in NumPy."""
    size = graph.num_nodes
    adjacency, identity = np.zeros((size, size)), np.eye(size)
    adjacency[tuple(graph.edges.numpy())] = 1
    found = []
    for matrix in (adjacency, adjacency.T):
        degree = matrix.sum(1, keepdims=True)
        step = np.where(degree > 0, matrix / np.maximum(degree, 1), identity)
        second = step @ step
        found.append([step, second, second @ step, 0.05 * np.linalg.inv(identity - 0.95 * step)])
    return np.stack([*found[1][::-1], *found[0]], axis=-1).astype(np.float32)


def walks_in_numpy_pool(graphs: list[mt.Digraphs]) -> int:
    """Encode all; returns the number of failures."""
    with threadpool_limits(1), ThreadPoolExecutor(2) as pool:
        list(pool.map(numpy_walks, graphs))
    return 0


def measure_walks(rng: np.random.Generator, low: int, high: int, count: int, rounds: int) -> dict[str, object]:
    """Milliseconds per graph, their ratio, and the largest difference."""
    graphs = random_digraphs(rng, low, high, count)
    singles, encoding = list(graphs), mt.RandomWalk()
    found = encoding(graphs)
    off = max(float(np.abs(found[i].numpy() - numpy_walks(graph)).max()) for i, graph in enumerate(singles[:20]))
    sides = {"magnetite": lambda: len(encoding(graphs)) - count, "numpy": lambda: walks_in_numpy_pool(singles)}
    seconds, _ = least_seconds(sides, rounds)
    row: dict[str, object] = {f"{name}_ms": round(1e3 * value / count, 4) for name, value in seconds.items()}
    return row | {"times_numpy": round(seconds["numpy"] / seconds["magnetite"], 2), "difference": off, "graphs": count}


def with_pyg(data: list[Data]) -> int:
    """Encode all; returns the number of failures."""
    transform = AddLaplacianEigenvectorPE(k=K, attr_name="pe", is_undirected=False)
    failures = 0
    for item in data:
        try:
            transform(item.clone())
        except Exception:
            failures += 1
    return failures


def with_magnetite(graphs: mt.Digraphs) -> int:
    """Encode all; a failure would raise an error."""
    mt.MagneticLaplacian(k=K)(graphs)
    return 0


def import_seconds(rounds: int = 5) -> float:
    """Seconds that `import magnetite` adds to `import torch`, the least of several processes."""
    program = "import torch, time; t = time.perf_counter(); import magnetite; print(time.perf_counter() - t)"
    runs = [
        subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
        for _ in range(rounds)
    ]
    return min(float(run.stdout) for run in runs)


def measure(rng: np.random.Generator, low: int, high: int, count: int, rounds: int) -> dict[str, object]:
    """Milliseconds per graph, ratios and failures of one size range."""
    graphs = random_digraphs(rng, low, high, count)
    singles, data = list(graphs), graphs.to_pyg()
    sides = {
        "magnetite": lambda: with_magnetite(graphs),
        "numpy": lambda: in_numpy_pool(singles),
        "pyg": lambda: with_pyg(data),
    }
    with_magnetite(graphs[:50])
    seconds, failures = least_seconds(sides, rounds)
    row: dict[str, object] = {f"{name}_ms": round(1e3 * value / count, 4) for name, value in seconds.items()}
    row |= {f"times_{name}": round(seconds[name] / seconds["magnetite"], 2) for name in ("numpy", "pyg")}
    return row | {f"{name}_failures": number for name, number in failures.items()} | {"graphs": count}


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("results"))
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(2)
    record = Record("benchmark-encodings", seed=0)
    rng = np.random.default_rng(record.seed)
    rows = {name: measure(rng, *span, options.rounds) for name, span in RANGES.items()}
    walks = {name: measure_walks(rng, *span, options.rounds) for name, span in WALKS.items()}
    result = {"k": K, "rows": rows, "walks": walks, "import_seconds": round(import_seconds(), 3)}
    table = Table("nodes", *next(iter(rows.values())), title=f"magnetic eigenpairs, k={K}, milliseconds per graph")
    for name, row in rows.items():
        table.add_row(name, *map(str, row.values()))
    console = Console(width=160)
    console.print(table)
    table = Table("nodes", *next(iter(walks.values())), title="walks, milliseconds per graph")
    for name, row in walks.items():
        table.add_row(name, *map(str, row.values()))
    console.print(table)
    console.print(f"import magnetite adds {result['import_seconds']} s; written: {record.write(options.out, result)}")


if __name__ == "__main__":
    main()
