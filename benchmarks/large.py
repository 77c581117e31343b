"""A graph of a million nodes and the graph of Debian's packages: 16 eigenpairs against ARPACK, and PageRank.

    python benchmarks/large.py        # writes results/benchmark-large-{debian,random}.json
    python benchmarks/large.py --graphs products --limit 0 --starts 10000      # 62 million edges, without ARPACK
    python benchmarks/large.py --graphs products --limit 0 --device cuda       # the iteration on a GPU

Both run in one process. ARPACK is given the same matrix, the same tolerance and the end of the spectrum at which it is
fastest (the largest eigenvalues of `2I − L`); after `--limit` seconds it is stopped, and its time is a lower bound.
Debian's graph comes from `apt-cache dumpavail`: edges point from a package to those that it depends on, and from a
virtual package to those that provide it. `products` is a random graph with the numbers of nodes and edges of
ogbn-products: every node cites earlier ones, preferably the first, and numbers are permuted.
"""

import argparse
import re
import resource
import subprocess
import time
from functools import partial
from pathlib import Path

import numpy as np
import torch
from scipy.sparse import eye_array
from scipy.sparse.linalg import LinearOperator, eigsh

import magnetite as mt
from magnetite.io.record import Record
from magnetite.linalg.eigen_sparse import SPARSE_TOLERANCE
from magnetite.linalg.laplacian import Operator
from magnetite.linalg.large import lowest_of_large
from magnetite.linalg.pairs import pair_edges
from magnetite.linalg.sparse import sparse_laplacian
from magnetite.linalg.walks import top_walks

K = 16
PRODUCTS = 2_449_029, 61_859_140
"""Numbers of nodes and edges of ogbn-products."""


def random_graph(nodes: int, seed: int) -> mt.Digraphs:
    """Five random edges per node."""
    random = torch.Generator().manual_seed(seed)
    return mt.Digraphs.from_edges(torch.randint(0, nodes, (2, 5 * nodes), generator=random), num_nodes=nodes)


def products_graph(seed: int) -> mt.Digraphs:
    """2,449,029 nodes and 61,859,140 edges, as ogbn-products has, with degrees of a heavy tail."""
    random, (nodes, edges) = np.random.default_rng(seed), PRODUCTS
    source = random.integers(1, nodes, edges)
    target = (source * random.random(edges) ** 2).astype(np.int64)
    return mt.Digraphs.from_edges(random.permutation(nodes)[np.stack([source, target])], num_nodes=nodes)


def debian_graph() -> mt.Digraphs:
    """Packages and virtual packages from the lists of apt."""
    text = subprocess.run(["apt-cache", "dumpavail"], capture_output=True, text=True, check=True).stdout
    edges: list[tuple[str, str]] = []
    provided: list[tuple[str, str]] = []
    names: dict[str, int] = {}
    for record in text.split("\n\n"):
        fields = dict(re.findall(r"^(Package|Depends|Pre-Depends|Provides): (.*)$", record, re.MULTILINE))
        if "Package" not in fields:
            continue
        package = fields["Package"]
        names.setdefault(package, len(names))
        for field in ("Depends", "Pre-Depends"):
            edges += [(package, name) for name in _names(fields.get(field, ""))]
        provided += [(name, package) for name in _names(fields.get("Provides", ""))]
    needed = {name for _, name in edges}
    edges += [pair for pair in provided if pair[0] in needed]
    for pair in edges:
        for name in pair:
            names.setdefault(name, len(names))
    index = np.array([(names[u], names[v]) for u, v in sorted(set(edges)) if u != v]).T
    return mt.Digraphs.from_edges(index, num_nodes=len(names))


def _names(field: str) -> list[str]:
    return [re.split(r"[ (:]", part.strip())[0] for part in re.split(r"[,|]", field) if part.strip()]


def by_arpack(matrix, limit: float) -> dict:
    """Seconds, largest residual and matrix products of SciPy's `eigsh`."""
    turned = 2 * eye_array(matrix.shape[0], dtype=matrix.dtype, format="csr") - matrix
    begin, products = time.perf_counter(), 0

    def multiply(vector: np.ndarray) -> np.ndarray:
        nonlocal products
        products += 1
        if time.perf_counter() - begin > limit:
            raise TimeoutError
        return turned @ vector

    start = np.random.default_rng(0).normal(size=matrix.shape[0]).astype(matrix.dtype)
    operator = LinearOperator(matrix.shape, matvec=multiply, dtype=matrix.dtype)
    try:
        values, vectors = eigsh(operator, k=K, which="LA", tol=SPARSE_TOLERANCE, v0=start)
    except TimeoutError:
        return {"seconds": time.perf_counter() - begin, "finished": False, "products": products}
    seconds = time.perf_counter() - begin
    residual = np.linalg.norm(turned @ vectors - vectors * values, axis=0).max() / 2
    return {"seconds": seconds, "finished": True, "products": products, "residual": float(residual),
            "values": np.sort(2 - values).tolist()}  # fmt: skip


def eigenpairs(graphs: mt.Digraphs, limit: float, device: str) -> dict:
    """Ours, including assembly and verification, against ARPACK on the assembled matrix, which is on the CPU."""
    operator = Operator(mt.Relative(0.25))
    begin = time.perf_counter()

    def progress(found: int, worst: float) -> None:
        print(f"  {time.perf_counter() - begin:.0f} s: {found} of {K} found, largest residual {worst:.1e}", flush=True)

    options = operator, K, progress, SPARSE_TOLERANCE, device
    values, vectors = lowest_of_large(graphs.edges, graphs.num_nodes, None, *options)
    seconds = time.perf_counter() - begin
    matrix = sparse_laplacian(pair_edges(graphs.edges, graphs.edge_ptr, graphs.sizes, None), operator)
    rows = vectors.T.contiguous()
    residual = torch.linalg.vector_norm(matrix.times(rows) - values[:, None] * rows, dim=1).max() / matrix.top
    ours = {"seconds": seconds, "residual": float(residual), "values": values.tolist()}
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print("  ours", ours, flush=True)
    result = {
        "nodes": graphs.num_nodes,
        "edges": graphs.num_edges,
        "k": K,
        "ours": ours,
        "device": device,
        "peak_gib_before_arpack": peak,
    }
    if device == "cuda":
        result["peak_gib_of_gpu"] = torch.cuda.max_memory_allocated() / 2**30
    if not limit:
        return result
    arpack = by_arpack(matrix.to_scipy(), limit)
    print("  ARPACK", arpack, flush=True)
    return {**result, "arpack": arpack, "times_faster": arpack["seconds"] / ours["seconds"]}


def walks(graphs: mt.Digraphs, starts: int) -> dict:
    """Seconds to find the 64 landing nodes of highest PageRank for each start node, in both directions."""
    encoding = mt.SparseRandomWalk(steps=3, restart=0.05, top=64)
    limit = min(starts, graphs.num_nodes)
    begin = time.perf_counter()
    options = encoding.steps, encoding.restart, encoding.reverse, encoding.top, encoding.tolerance
    found = top_walks(graphs.edges, graphs.num_nodes, graphs.weights, *options, starts=limit)
    seconds = time.perf_counter() - begin
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    result = {"starts": limit, "seconds": seconds, "milliseconds_a_start": 1e3 * seconds / limit, "peak_gib": peak}
    print("  walks", result, flush=True)
    return {**result, "tolerance": encoding.tolerance, "mean_lost": found.lost.mean(0).tolist()}


def main() -> None:
    """Run, print, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--graphs", nargs="+", default=["debian", "random"], choices=["debian", "random", "products"])
    parser.add_argument("--nodes", type=int, default=1_000_000)
    parser.add_argument("--limit", type=float, default=900, help="seconds of ARPACK; 0 leaves it out")
    parser.add_argument("--starts", type=int, default=100_000, help="start nodes of the walks")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="where ours iterates")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("results"))
    options = parser.parse_args()
    # Compile before the measurement.
    mt.MagneticLaplacian(k=2)(mt.Digraphs.concat([random_graph(3000, seed=0), random_graph(30, seed=0)]))
    for name in options.graphs:
        record = Record(f"benchmark-large-{name}{'-cuda' if options.device == 'cuda' else ''}", options.seed)
        makers = {
            "debian": debian_graph,
            "random": partial(random_graph, options.nodes, options.seed),
            "products": partial(products_graph, options.seed),
        }
        graphs = makers[name]()
        print(name, graphs, flush=True)
        result = {
            "eigenpairs": eigenpairs(graphs, options.limit, options.device),
            "walks": walks(graphs, options.starts),
        }
        print("written:", record.write(options.out, result), flush=True)


if __name__ == "__main__":
    main()
