"""Eigenpairs of batches on a GPU: ours (verified) against cuSOLVER's batched solver, JAX, CuPy and torch.

    python benchmarks/eigen_gpu.py            # writes results/benchmark-eigen-gpu.json

Each library runs in a process of its own, one after the other, so that none holds memory that another needs, on the
same matrices, in complex128 and complex64, for `--limit` seconds at most. Every measurement is printed and written at
once; all compile before they are measured, and where one call takes long there is no other. Ours returns the k lowest
pairs, and its time includes the verification of every matrix and the conversion to single precision; the others return
all pairs, unverified. Wrong matrices of all sides are counted here: those with a residual or unitarity error of the k
lowest pairs above the limit and, among the first, those whose eigenvalues differ from LAPACK's. `random` are normalised
magnetic Laplacians of random digraphs (q' = 0.25); the other kinds are hard: `repeated` are those of four copies of a
smaller digraph, and `clustered` have eigenvalues in clusters that are narrower than single precision resolves.
"""

import argparse
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path
from typing import Any

import torch
from timing import needs_gpu
from torch import Tensor

from magnetite.io.record import Record
from magnetite.linalg.eigen import SINGLE_TOLERANCE, TOLERANCE, lowest_eigenpairs, verify
from magnetite.linalg.eigen_cuda import cusolver_batched
from magnetite.linalg.laplacian import magnetic_laplacian
from magnetite.linalg.potential import Relative

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # JAX would take three quarters of the GPU's memory

SIZES = (16, 24, 32, 33, 48, 64, 80, 100, 128, 160, 200, 256, 384, 512, 768, 1024)
HARD_SIZES = (24, 64, 128, 256, 512)
HARD_COUNT = 256
BASES = 8
"""Number of random bases of the clustered matrices of one size."""

BYTES = 2**31
"""Memory of the complex128 matrices of one size, at most."""

SAMPLE = 16
"""Number of matrices for libraries that solve one after the other."""

TOGETHER = 50.0
"""A library that takes less than this many microseconds per matrix for `SAMPLE` matrices solves them together."""

COMPARED = 2048
"""Number of rows of the matrices whose eigenvalues are compared with those of LAPACK on the CPU."""

ENOUGH = 0.5
"""No further round begins after this many seconds."""

CLOSE = {"double": 1e-9, "single": 1e-4}
"""Largest accepted difference from the eigenvalues of LAPACK."""

LIMITS = {"double": TOLERANCE, "single": SINGLE_TOLERANCE}

Pairs = tuple[Tensor, Tensor]


def random_laplacians(size: int, count: int, seed: int) -> Tensor:
    """Normalised magnetic Laplacians of Erdős–Rényi digraphs of mean degree 2."""
    generator = torch.Generator("cuda").manual_seed(seed + size)
    parts = []
    for some in torch.arange(count).split(max(1, 2**28 // size**2)):
        chance = torch.rand((len(some), size, size), device="cuda", generator=generator)
        adjacency = (chance < 2 / (size - 1)).double()
        adjacency.diagonal(dim1=1, dim2=2).zero_()
        parts.append(magnetic_laplacian(adjacency, Relative(0.25).absolute(adjacency)))
    return torch.cat(parts)


def repeated(size: int, count: int, seed: int) -> Tensor:
    """Laplacians of digraphs of four equal parts, with nodes in random order: every eigenvalue occurs four times."""
    generator = torch.Generator("cuda").manual_seed(seed)
    part = random_laplacians(size // 4, count, seed)
    whole = torch.kron(torch.eye(4, dtype=part.dtype, device="cuda"), part)
    order = torch.rand((count, size), device="cuda", generator=generator).argsort(1)
    rows = torch.arange(count, device="cuda")[:, None, None]
    return whole[rows, order[:, :, None], order[:, None, :]]


def clustered(size: int, count: int, seed: int) -> Tensor:
    """Hermitian matrices with eigenvalues in clusters of eight, which differ by 1e-9 to 1e-6 within a cluster."""
    generator = torch.Generator("cuda").manual_seed(seed)
    options: Any = {"device": "cuda", "dtype": torch.float64, "generator": generator}
    bases = torch.linalg.qr(torch.view_as_complex(torch.randn((BASES, size, size, 2), **options)))[0]
    basis = bases[torch.arange(count, device="cuda") % BASES]
    centre = (torch.arange(size, device="cuda") // 8) * (16 / size)
    values = centre + 10 ** (-9 + 3 * torch.rand((count, size), **options))
    matrices = (basis * values[:, None, :]) @ basis.mH
    return (matrices + matrices.mH) / 2


KINDS: dict[str, Callable[[int, int, int], Tensor]] = {
    "random": random_laplacians,
    "repeated": repeated,
    "clustered": clustered,
}


def by_jax(matrices: Tensor, _k: int) -> Callable[[], Pairs]:
    """JAX's batched `eigh` on the same memory."""
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)
    array = jnp.from_dlpack(matrices)
    compiled = jax.jit(lambda batch: jnp.linalg.eigh(batch)).lower(array).compile()

    def solve() -> Pairs:
        values, vectors = compiled(array)
        vectors.block_until_ready()
        return torch.from_dlpack(values), torch.from_dlpack(vectors)

    return solve


def by_cupy(matrices: Tensor, _k: int) -> Callable[[], Pairs]:
    """CuPy's `eigh` on the same memory."""
    import cupy

    array = cupy.from_dlpack(matrices)

    def solve() -> Pairs:
        values, vectors = cupy.linalg.eigh(array)
        return torch.from_dlpack(values), torch.from_dlpack(vectors)

    return solve


SIDES: dict[str, Callable[[Tensor, int], Callable[[], Pairs]]] = {
    "ours": lambda matrices, k: lambda: lowest_eigenpairs(matrices, k),
    "cusolver": lambda matrices, k: lambda: cusolver_batched(matrices, k),
    "jax": by_jax,
    "cupy": by_cupy,
    "torch": lambda matrices, _: lambda: torch.linalg.eigh(matrices),
}
PEERS = ("cusolver", "jax", "cupy")
ONE_BY_ONE = ("cupy", "torch")


def solver(side: str, double: Tensor, precision: str, k: int) -> Callable[[], Pairs]:
    """A function that solves all matrices with one library."""
    if side == "ours":  # its input is in double precision, and so is its result
        return lambda: lowest_eigenpairs(double, k, single=precision == "single")
    return SIDES[side]((double if precision == "double" else double.to(torch.complex64)).contiguous(), k)


def compile_ours(sizes: Sequence[int], precisions: Sequence[str], k: int) -> None:
    """Compile all variants of our kernel at once: one after the other, they take longer than the measurements."""

    def work(given: tuple[int, str]) -> None:
        lowest_eigenpairs(random_laplacians(given[0], 2, 0), k, single=given[1] == "single")

    work((min(sizes), precisions[0]))  # loads cuSOLVER and the compiler
    with ThreadPoolExecutor() as pool:
        list(pool.map(work, product(sizes, precisions)))


def seconds(solve: Callable[[], Pairs]) -> float:
    """Seconds of one call."""
    torch.cuda.synchronize()
    start = time.perf_counter()
    solve()
    torch.cuda.synchronize()
    return time.perf_counter() - start


def chosen(side: str, double: Tensor, precision: str, k: int) -> Tensor:
    """The matrices that a library is measured on: few if it solves one after the other."""
    if side not in ONE_BY_ONE:
        return double
    taken = 0.0
    for count in (2, SAMPLE):
        few = solver(side, double[:count], precision, k)
        few()
        taken = seconds(few) / count
        if SAMPLE * taken > ENOUGH:
            return double[:count]
    return double[:SAMPLE] if 1e6 * taken > TOGETHER else double


def measure(side: str, double: Tensor, expected: Tensor, precision: str, k: int, rounds: int) -> dict[str, Any]:
    """Microseconds per matrix in the fastest of some rounds, and wrong matrices."""
    double = chosen(side, double, precision, k)
    solve = solver(side, double, precision, k)
    pairs, times = solve(), []
    while len(times) < rounds and sum(times) < ENOUGH:
        times.append(seconds(solve))
    error = errors(double, pairs, k)
    compared = min(len(expected), len(double))
    away = (pairs[0][:compared, :k].cpu().double() - expected[:compared]).abs().amax(1) > CLOSE[precision]
    wrong = error >= LIMITS[precision]
    wrong[:compared] |= away.to(wrong.device)
    return {
        "solved": len(double), "us": round(1e6 * min(times) / len(double), 3), "wrong": int(wrong.sum()),
        "largest_error": float(error.max()),
    }  # fmt: skip


def errors(matrices: Tensor, pairs: Pairs, k: int) -> Tensor:
    """The larger of residual and unitarity error of each matrix, in double precision, some matrices at a time."""
    values, vectors, step = pairs[0][:, :k].double(), pairs[1][:, :, :k], max(1, 2**26 // matrices.shape[1] ** 2)
    parts = zip(matrices.split(step), values.split(step), vectors.split(step), strict=True)
    found = [torch.stack(verify(some, low, own.to(some.dtype))).amax(0) for some, low, own in parts]
    return torch.cat(found).nan_to_num(nan=torch.inf)


def child(options: argparse.Namespace) -> None:
    """All measurements of one library, each printed as a line."""
    if options.side == "ours":
        compile_ours(options.sizes, options.precisions, options.k)
    for kind in options.kinds:
        for size in options.sizes if kind == "random" else [size for size in options.sizes if size in HARD_SIZES]:
            count = min(8192, BYTES // (16 * size**2)) if kind == "random" else HARD_COUNT
            double = KINDS[kind](size, count, options.seed)
            compared = max(2, min(COMPARED // size, count))
            expected = torch.linalg.eigvalsh(double[:compared].cpu())[:, : options.k]
            for precision in options.precisions:
                row: dict[str, Any] = {"side": options.side, "kind": kind, "n": size, "precision": precision}
                try:
                    row |= measure(options.side, double, expected, precision, options.k, options.rounds)
                except Exception as error:  # a library that fails for one size is measured at the others
                    row["failed"] = f"{type(error).__name__}: {error}"[:200]
                print(json.dumps(row), flush=True)
                torch.cuda.empty_cache()


def lines(side: str, limit: float) -> Iterator[dict[str, Any]]:
    """The measurements of one library in a process of its own, which ends after `limit` seconds."""
    process = subprocess.Popen([sys.executable, *sys.argv, "--side", side], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    timer = threading.Timer(limit, process.kill)
    timer.start()
    yield from (json.loads(line) for line in process.stdout if line.startswith("{"))
    process.wait()
    timer.cancel()


def table(rows: list[dict[str, Any]]) -> str:
    """Microseconds per matrix and wrong matrices of all sides, and how much faster ours is than the best of `PEERS`."""
    sides = list(dict.fromkeys(row["side"] for row in rows))
    lines = [f"{'precision kind n':24}" + "".join(f"{side:>20}" for side in sides) + f"{'best peer / ours':>18}"]
    for key in sorted({(row["precision"], row["kind"], row["n"]) for row in rows}):
        own = {row["side"]: row for row in rows if (row["precision"], row["kind"], row["n"]) == key}
        cells = [
            f"{row['us']:.2f} ({row['wrong']}/{row['solved']})" if "us" in (row := own.get(side, {})) else "–"
            for side in sides
        ]
        times = faster(own)
        lines.append(f"{' '.join(map(str, key)):24}" + "".join(f"{cell:>20}" for cell in cells) + f"{times:>18.2f}")
    return "\n".join(lines)


def faster(own: dict[str, dict[str, Any]]) -> float:
    """How much faster ours is than the best of `PEERS`, given the rows of one size by side."""
    best = min((own[side]["us"] for side in PEERS if "us" in own.get(side, {})), default=float("nan"))
    return best / own.get("ours", {}).get("us", float("nan"))


def main() -> None:
    """Measure each library in its own process, write, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("results"))
    parser.add_argument("--k", type=int, default=25)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--limit", type=float, default=90, help="seconds per library")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=[*KINDS])
    parser.add_argument("--precisions", nargs="+", choices=LIMITS, default=[*LIMITS])
    parser.add_argument("--sides", nargs="+", choices=SIDES, default=[*SIDES])
    parser.add_argument("--side", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.side:
        child(options)
        return
    needs_gpu()
    record = Record("benchmark-eigen-gpu", options.seed)
    rows: list[dict[str, Any]] = []
    for side in options.sides:
        begin, before = time.perf_counter(), len(rows)
        for row in lines(side, options.limit):
            rows.append(row)
            print(row, flush=True)
            record.write(options.out, {"k": options.k, "hard_count": HARD_COUNT, "rows": rows})
        print(f"{side}: {len(rows) - before} measurements, {time.perf_counter() - begin:.0f} s", flush=True)
    print(table(rows))


if __name__ == "__main__":
    main()
