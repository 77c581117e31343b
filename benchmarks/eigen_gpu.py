"""Eigenpairs of batches on a GPU: ours (verified) against `torch.linalg.eigh`, JAX's batched `eigh` and raw cuSOLVER.

    python benchmarks/eigen_gpu.py            # writes results/benchmark-eigen-gpu.json

One process, the same normalised magnetic Laplacians of random digraphs (q' = 0.25) for every side. Ours returns the k
lowest pairs and its time includes the verification of every matrix; the others return all pairs, unverified, and their
wrong matrices (residual or unitarity of the k lowest pairs above the limit, or NaN) are counted here.
`refined` solves in single precision and refines in double.
"""

import argparse
import os
import time
from collections.abc import Callable
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor

from magnetite.io.record import Record
from magnetite.linalg.eigen import SINGLE_TOLERANCE, TOLERANCE, lowest_eigenpairs, verify
from magnetite.linalg.eigen_cuda import cusolver_batched, refined_batched
from magnetite.linalg.laplacian import magnetic_laplacian
from magnetite.linalg.potential import Relative

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # JAX would take three quarters of the GPU's memory

SIZES = (24, 33, 48, 64, 80, 128, 200, 256)
TORCH_SAMPLE = 256
"""Number of matrices for torch, which solves one after the other."""

Pairs = tuple[Tensor, Tensor]


def laplacians(size: int, count: int, seed: int) -> Tensor:
    """Normalised magnetic Laplacians of Erdős–Rényi digraphs of mean degree 2."""
    generator = torch.Generator("cuda").manual_seed(seed + size)
    chance = torch.rand((count, size, size), device="cuda", generator=generator)
    adjacency = (chance < 2 / (size - 1)).double()
    adjacency.diagonal(dim1=1, dim2=2).zero_()
    return magnetic_laplacian(adjacency, Relative(0.25).absolute(adjacency))


def microseconds(solve: Callable[[], Pairs], count: int, rounds: int) -> tuple[float, Pairs]:
    """Shortest time per matrix in several rounds after a warm-up, and the result."""
    result = solve()
    best = float("inf")
    for _ in range(rounds):
        torch.cuda.synchronize()
        start = time.perf_counter()
        result = solve()
        torch.cuda.synchronize()
        best = min(best, time.perf_counter() - start)
    return 1e6 * best / count, result


def errors(matrices: Tensor, pairs: Pairs, k: int) -> Tensor:
    """The larger of residual and unitarity error of each matrix, in double precision, 1,024 matrices at a time."""
    values, vectors = pairs[0][:, :k].double(), pairs[1][:, :, :k].to(matrices.dtype)
    parts = zip(matrices.split(1024), values.split(1024), vectors.split(1024), strict=True)
    return torch.cat([torch.stack(verify(*part)).amax(0).nan_to_num(nan=torch.inf) for part in parts])


def by_jax(matrices: Tensor) -> Callable[[], Pairs]:
    """JAX's batched `eigh` in complex64 on the same memory; only this function needs JAX."""
    import jax
    import jax.numpy as jnp

    array = jnp.from_dlpack(matrices.contiguous())
    compiled = jax.jit(lambda batch: jnp.linalg.eigh(batch))

    def solve() -> Pairs:
        values, vectors = compiled(array)
        vectors.block_until_ready()
        return torch.from_dlpack(values), torch.from_dlpack(vectors)

    return solve


def measure(size: int, count: int, k: int, rounds: int, seed: int) -> dict[str, float | int]:
    """Microseconds per matrix, wrong matrices and ratios of every side, for one size."""
    double = laplacians(size, count, seed)
    single = double.to(torch.complex64)
    sample = double[:TORCH_SAMPLE]
    row: dict[str, float | int] = {"n": size}
    sides: dict[str, tuple[Callable[[], Pairs], int, float]] = {
        "ours_double": (lambda: lowest_eigenpairs(double, k), count, TOLERANCE),
        "ours_single": (lambda: lowest_eigenpairs(double, k, single=True), count, SINGLE_TOLERANCE),
        "cusolver_single": (lambda: cusolver_batched(single, k), count, SINGLE_TOLERANCE),
        "cusolver_double": (lambda: cusolver_batched(double, k), count, TOLERANCE),
        "refined": (lambda: refined_batched(double, k), count, TOLERANCE),
        "jax_single": (by_jax(single), count, SINGLE_TOLERANCE),
        "torch_double": (lambda: torch.linalg.eigh(sample), len(sample), TOLERANCE),
    }
    for name, (solve, solved, limit) in sides.items():
        time_each, pairs = microseconds(solve, solved, 1 if name.startswith("torch") else rounds)
        error = errors(double[:solved], pairs, k)
        row |= {f"{name}_us": round(time_each, 3), f"{name}_wrong": int((error >= limit).sum())}
        row[f"{name}_largest_error"] = float(error.max())
        del pairs
        torch.cuda.empty_cache()
    row["double_against_torch"] = round(row["torch_double_us"] / row["ours_double_us"], 1)
    row["double_against_jax_single"] = round(row["jax_single_us"] / row["ours_double_us"], 2)
    row["single_against_jax"] = round(row["jax_single_us"] / row["ours_single_us"], 2)
    return row


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("results"))
    parser.add_argument("--count", type=int, default=8192)
    parser.add_argument("--k", type=int, default=25)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    record = Record("benchmark-eigen-gpu", seed=0)
    rows: list[dict[str, float | int]] = []
    for size in SIZES:
        rows.append(measure(size, options.count, options.k, options.rounds, record.seed))
        record.write(options.out, {"graphs": options.count, "k": options.k, "torch_sample": TORCH_SAMPLE, "rows": rows})
    shown = [name for name in rows[0] if not name.endswith("_largest_error")]
    table = Table(*shown, title="microseconds per matrix")
    for row in rows:
        table.add_row(*(str(row[name]) for name in shown))
    Console(width=240).print(table)


if __name__ == "__main__":
    main()
