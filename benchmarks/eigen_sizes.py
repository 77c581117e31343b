"""The k lowest magnetic eigenpairs over the size of the graph, on the CPU: ours and its peers, one process each.

    python benchmarks/eigen_sizes.py          # writes results/benchmark-eigen-sizes.json

Up to 1,024 nodes: as many random digraphs as make 32,768 nodes. From 2,048 on: one connected graph of each kind. Every
solver has both cores. `numpy` and `scipy` are LAPACK on dense matrices, all pairs and the k lowest; `arpack` is SciPy's
`eigsh` on the assembled sparse matrix, at the end of the spectrum where it is fastest, with our tolerance; on chains,
whose time is six times as long for twice the nodes, up to 4,096 nodes. `inverted` is `eigsh` around a shift, with
sparse LU, which is better where the lowest eigenvalues are close together; it is not tried where its factors are as
good as dense. The time of ours includes assembly and verification.

Wrong counts graphs with a residual or an error of unitarity above 1e-6, or with an eigenvalue that is 1e-6 above the
lowest that any solver found at that place: an eigenpair was missed.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from scipy.linalg import eigh
from scipy.sparse import eye_array
from scipy.sparse.linalg import eigsh
from timing import random_digraphs

import magnetite as mt
from magnetite.io.record import Record
from magnetite.linalg.eigen_sparse import tolerance_for
from magnetite.linalg.laplacian import Operator
from magnetite.linalg.pairs import pair_edges
from magnetite.linalg.sparse import SparseHermitian, sparse_laplacian

K = 16
Q = mt.Relative(0.25)
SMALL = (16, 24, 32, 48, 64, 96, 128, 256, 512, 1024)
LARGE = (2048, 4096, 8192, 16384)
NODES = 32_768
"""Number of nodes of all small graphs of one size together."""

DENSE_UP_TO = 1024
INVERTED_UP_TO = {
    "random": 2048, "power law": 2048, "blocks": 2048, "tree": 16384, "grid": 16384, "local DAG": 16384, "chain": 16384
}  # fmt: skip
LIMIT = 1e-6

Pairs = tuple[np.ndarray, np.ndarray]


# Graphs


def connected(kind: str, size: int, seed: int) -> mt.Digraphs:
    """A large graph; a path through all nodes of the random kinds makes them connected."""
    random = np.random.default_rng(seed)
    node = np.arange(size)
    path = np.stack([node[:-1], node[1:]])
    match kind:
        case "random":
            edges = np.concatenate([random.integers(0, size, (2, 5 * size)), random.permutation(size)[path]], axis=1)
        case "tree":
            parents = (random.random(size - 1) * node[1:]).astype(int)
            edges = np.concatenate([np.stack([parents, node[1:]]), random.integers(0, size, (2, size // 10))], axis=1)
        case "grid":
            square = node[: int(size**0.5) ** 2].reshape(int(size**0.5), -1)
            size = square.size
            across, down = (square[:, :-1], square[:, 1:]), (square[:-1], square[1:])
            edges = np.concatenate([np.stack([a.ravel(), b.ravel()]) for a, b in (across, down)], axis=1)
            turned = random.random(edges.shape[1]) < 0.3
            edges[:, turned] = edges[::-1, turned]
        case "chain":
            skips = np.arange(0, size - 2, 5)
            edges = np.concatenate([path, np.stack([skips, skips + 2])], axis=1)
        case "local DAG":
            ends = np.repeat(node[1:], 2)
            edges = np.concatenate(
                [np.stack([ends - np.minimum(ends, random.geometric(0.02, ends.size)), ends]), path], 1
            )
        case "power law":
            ends = np.repeat(node[1:], 4)
            edges = np.stack([(ends * random.random(ends.size) ** 2).astype(int), ends])
        case _:
            block = random.integers(0, 5, size)
            ends = random.integers(0, size, (2, 10 * size))
            likely = np.where((block[ends[1]] - block[ends[0]]) % 5 == 1, 1.0, 0.3)
            edges = np.concatenate(
                [ends[:, random.random(ends.shape[1]) < likely], random.permutation(size)[path]], axis=1
            )
    return mt.Digraphs.from_edges(edges[:, edges[0] != edges[1]], num_nodes=size)


def cases(quick: bool) -> list[tuple[str, int, mt.Digraphs]]:
    """Kind, size and graphs of every row."""
    found = []
    for size in SMALL[:3] if quick else SMALL:
        graphs = random_digraphs(np.random.default_rng(size), size, size, NODES // size // (8 if quick else 1))
        found.append(("random, mean degree 2", size, graphs))
    for size in LARGE[:1] if quick else LARGE:
        found += [(kind, size, connected(kind, size, seed=0)) for kind in INVERTED_UP_TO]
    return found


# Solvers


def sparse(graph: mt.Digraphs) -> SparseHermitian:
    """The normalised magnetic Laplacian."""
    return sparse_laplacian(pair_edges(graph.edges, graph.edge_ptr, graph.sizes, None), Operator(Q))


def by_numpy(matrix: SparseHermitian, k: int) -> Pairs:
    """All eigenpairs."""
    values, vectors = np.linalg.eigh(matrix.to_scipy().toarray())
    return values[:k], vectors[:, :k]


def by_scipy(matrix: SparseHermitian, k: int) -> Pairs:
    """The k lowest, by LAPACK."""
    values, vectors = eigh(matrix.to_scipy().toarray(), subset_by_index=(0, k - 1))
    return values, vectors


def by_arpack(matrix: SparseHermitian, k: int) -> Pairs:
    """The largest eigenvalues of `2I − L`."""
    flipped = 2 * eye_array(matrix.size, dtype=np.complex128, format="csr") - matrix.to_scipy()
    values, vectors = eigsh(flipped, k=k, which="LA", tol=tolerance_for(matrix.size), v0=first_vector(matrix.size))
    order = np.argsort(-values)
    return 2 - values[order], vectors[:, order]


def by_inversion(matrix: SparseHermitian, k: int) -> Pairs:
    """The eigenvalues next to a shift below 0."""
    tolerance = tolerance_for(matrix.size)
    values, vectors = eigsh(matrix.to_scipy().tocsc(), k=k, sigma=-1e-3, tol=tolerance, v0=first_vector(matrix.size))
    order = np.argsort(values)
    return values[order], vectors[:, order]


def first_vector(size: int) -> np.ndarray:
    """The same start for every run."""
    return np.random.default_rng(0).normal(size=size).astype(np.complex128)


SOLVERS: dict[str, Callable[[SparseHermitian, int], Pairs] | None] = {
    "magnetite": None, "numpy": by_numpy, "scipy": by_scipy, "arpack": by_arpack, "inverted": by_inversion
}  # fmt: skip


def suits(solver: str, kind: str, size: int) -> bool:
    """Whether a solver is measured on such graphs."""
    if solver in ("numpy", "scipy"):
        return size <= DENSE_UP_TO
    if solver == "arpack":
        return size > 4 * K and (kind != "chain" or size <= 4096)
    return size <= INVERTED_UP_TO.get(kind, 0) if solver == "inverted" else True


def solve(solver: str, graphs: mt.Digraphs, matrices: list[SparseHermitian]) -> list[Pairs]:
    """Eigenpairs of every graph."""
    k = min(K, min(matrix.size for matrix in matrices))
    by = SOLVERS[solver]
    if by is not None:
        return [by(matrix, k) for matrix in matrices]
    found = mt.MagneticLaplacian(k=k, q=Q, dtype=torch.float64)(graphs)
    ends = graphs.node_ptr.tolist()
    vectors = found.vectors.numpy()
    return [(found.values[i].numpy(), vectors[ends[i] : ends[i + 1]]) for i in range(len(graphs))]


def measure(solver: str, rounds: int, quick: bool) -> None:
    """Print one line of JSON per case: seconds, eigenvalues and the largest error of each graph."""
    for row, (kind, size, graphs) in enumerate(cases(quick)):
        if not suits(solver, kind, size):
            continue
        matrices = [sparse(graph) for graph in graphs]
        some = min(8, len(graphs))
        solve(solver, graphs[:some], matrices[:some])
        seconds, pairs = float("inf"), []
        for _ in range(rounds):
            begin = time.perf_counter()
            pairs = solve(solver, graphs, matrices)
            seconds = min(seconds, time.perf_counter() - begin)
        errors = [error(matrix, *each) for matrix, each in zip(matrices, pairs, strict=True)]
        values = [list(each[0]) for each in pairs]
        print(json.dumps({"row": row, "seconds": seconds, "values": values, "errors": errors}), flush=True)


def error(matrix: SparseHermitian, values: np.ndarray, vectors: np.ndarray) -> float:
    """The larger of residual, relative to `‖L‖`, and error of unitarity."""
    residual = np.linalg.norm(matrix.to_scipy() @ vectors - vectors * values, axis=0).max() / matrix.top
    unitarity = np.abs(vectors.conj().T @ vectors - np.eye(vectors.shape[1])).max()
    return float(max(residual, unitarity))


# The table


def table(lines: dict[str, dict[int, dict]], quick: bool) -> list[dict]:
    """Milliseconds per graph and wrong graphs of every solver."""
    rows = []
    for number, (kind, _, graphs) in enumerate(cases(quick)):
        found = {solver: each[number] for solver, each in lines.items() if number in each}
        lowest = np.min([np.array(line["values"]) for line in found.values()], axis=0)
        row = {"kind": kind, "nodes": graphs.num_nodes // len(graphs), "graphs": len(graphs)}
        row["edges"] = graphs.num_edges // len(graphs)
        for solver, line in found.items():
            missed = (np.array(line["values"]) - lowest).max(1) > LIMIT
            row[f"{solver}_ms"] = 1e3 * line["seconds"] / len(graphs)
            row[f"{solver}_wrong"] = int((missed | (np.array(line["errors"]) > LIMIT)).sum())
            row[f"{solver}_error"] = max(line["errors"])
        peers = [row[f"{solver}_ms"] for solver in found if solver != "magnetite"]
        rows.append(row | {"times_best": min(peers) / row["magnetite_ms"]})
    return rows


def show(rows: list[dict]) -> None:
    """Print a table."""
    shown = Table("kind", "nodes", "graphs", *SOLVERS, "best peer / ours", title=f"ms per graph, k={K} (wrong graphs)")
    for row in rows:
        cells = [f"{row[f'{name}_ms']:.3g} ({row[f'{name}_wrong']})" if f"{name}_ms" in row else "" for name in SOLVERS]
        shown.add_row(row["kind"], f"{row['nodes']:,}", f"{row['graphs']:,}", *cells, f"{row['times_best']:.2f}")
    Console(width=150).print(shown)


def main() -> None:
    """Run every solver in its own process, compare, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("results"))
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--quick", action="store_true", help="few sizes")
    parser.add_argument("--solver", choices=SOLVERS, help="measure one solver and print lines of JSON")
    options = parser.parse_args()
    if options.solver:
        measure(options.solver, options.rounds, options.quick)
        return
    record = Record("benchmark-eigen-sizes", seed=0)
    lines: dict[str, dict[int, dict]] = {}
    for solver in SOLVERS:
        command = [sys.executable, __file__, "--solver", solver, "--rounds", str(options.rounds)]
        command += ["--quick"] if options.quick else []
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        if run.returncode:
            raise SystemExit(f"{solver} failed: {run.stderr}")
        lines[solver] = {line["row"]: line for line in map(json.loads, run.stdout.splitlines())}
        print(f"{solver}: {len(lines[solver])} rows", flush=True)
    rows = table(lines, options.quick)
    show(rows)
    print("written:", record.write(options.out, {"k": K, "rows": rows}))


if __name__ == "__main__":
    main()
