"""Encode 20,000 unusual random digraphs of 1 to 150 nodes and report the largest residual and unitarity error.

    python benchmarks/verification.py         # writes results/verification.json

Complete graphs, DAGs, undirected graphs, trees, paths and circles, with several components, isolated nodes, self-loops,
repeated edges and weights. The check builds the matrices again, and computes in double precision.
"""

import argparse
import sys
from pathlib import Path

import torch
from rich.console import Console
from rich.progress import track

import magnetite as mt
from magnetite.io.record import Record
from magnetite.linalg.eigen import verify
from magnetite.linalg.laplacian import magnetic_laplacian

sys.path.insert(0, str(Path(__file__).parent.parent))
from tests.conftest import odd_digraphs

K = 16


def largest_errors(graphs: mt.Digraphs, dtype: torch.dtype) -> dict[str, float]:
    """Largest residual `‖Lγ − λγ‖` and largest entry of `|ΓᴴΓ − I|` over all graphs."""
    pairs = mt.MagneticLaplacian(k=K, dtype=dtype)(graphs)
    worst = torch.zeros(2, dtype=torch.float64)
    for graph, one in track(zip(graphs, pairs, strict=True), total=len(graphs), description=str(dtype)):
        adjacency = torch.from_numpy(graph.to_scipy()[0].toarray())
        matrix = magnetic_laplacian(adjacency, mt.Relative(0.25).absolute(adjacency))
        kept = min(K, graph.num_nodes)
        if int(one.mask.sum()) != kept:
            raise ValueError(
                f"a graph of {graph.num_nodes} nodes has {int(one.mask.sum())} eigenpairs, expected {kept}"
            )
        values, vectors = one.values[:kept].double(), one.vectors[:, :kept].to(torch.complex128)
        worst = torch.maximum(worst, torch.cat(verify(matrix[None], values[None], vectors[None])))
    return {"residual": float(worst[0]), "unitarity": float(worst[1])}


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("results"))
    parser.add_argument("--count", type=int, default=20_000)
    options = parser.parse_args()
    record = Record("verification", seed=7)
    half = options.count // 2
    graphs = mt.Digraphs.concat(
        [
            odd_digraphs(record.seed, half, high=150),
            odd_digraphs(record.seed + 1, options.count - half, high=150, weighted=True),
        ]
    )
    errors = {str(dtype): largest_errors(graphs, dtype) for dtype in (torch.float32, torch.float64)}
    path = record.write(options.out, {"graphs": len(graphs), "k": K, "failures": 0, "largest_errors": errors})
    Console().print(errors, f"written: {path}")


if __name__ == "__main__":
    main()
