"""From nothing to encoded: 400,000 sorting networks with their twins, k = 25 magnetic eigenpairs, on a GPU.

    PYTHONPATH=src python benchmarks/sorting_encoded.py      # writes results/benchmark-sorting-encoded.json

The wall clock runs from before the networks are drawn until the last eigenpair lies in the GPU's memory, verified and
normalised; the compilation of kernels is included, the import of the libraries is not.
"""

import argparse
import time
from pathlib import Path

import torch
from rich.console import Console

import magnetite as mt
from magnetite.reproduce.record import Record
from magnetite.tasks import Sorting


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("results"))
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--networks", type=int, default=400_000)
    options = parser.parse_args()
    record = Record("benchmark-sorting-encoded", seed=0)
    encoding = mt.MagneticLaplacian(k=25)
    moments = [time.perf_counter()]
    task = Sorting(seed=record.seed, train=options.networks, shard_size=options.networks)
    graphs = task.shard("train", 0).graphs
    moments.append(time.perf_counter())
    pairs = encoding(graphs.to(options.device))
    if options.device == "cuda":
        torch.cuda.synchronize()
    moments.append(time.perf_counter())
    result = {
        "graphs": len(graphs),
        "smallest": int(graphs.sizes.min()),
        "largest": int(graphs.sizes.max()),
        "encoding": repr(encoding),
        "seconds_generated": round(moments[1] - moments[0], 2),
        "seconds_encoded": round(moments[2] - moments[1], 2),
        "seconds_together": round(moments[2] - moments[0], 2),
        "finite": bool(pairs.vectors.isfinite().all()),
    }
    path = record.write(options.out, result)
    Console().print(result, f"written: {path}")


if __name__ == "__main__":
    main()
