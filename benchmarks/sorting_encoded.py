"""Time to generate and encode 400,000 sorting networks with their twins, k = 25 magnetic eigenpairs, on a GPU.

    python benchmarks/sorting_encoded.py      # writes results/benchmark-sorting-encoded.json

Wall-clock time from the first network until the last eigenpair is in GPU memory, verified and normalised. It is
measured in two processes, one after the other: on a new machine the first one also compiles the kernels. The import of
the libraries does not count.
"""

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from timing import needs_gpu

import magnetite as mt
from magnetite.io.record import Record
from magnetite.tasks import Sorting

SEED = 0


def measure(networks: int, device: str) -> dict[str, Any]:
    """Generate and encode; seconds of both."""
    encoding = mt.MagneticLaplacian(k=25)
    moments = [time.perf_counter()]
    graphs = Sorting(seed=SEED, train=networks, shard_size=networks).shard("train", 0).graphs
    moments.append(time.perf_counter())
    pairs = encoding(graphs.to(device))
    if device == "cuda":
        torch.cuda.synchronize()
    moments.append(time.perf_counter())
    return {
        "graphs": len(graphs),
        "smallest": int(graphs.sizes.min()),
        "largest": int(graphs.sizes.max()),
        "encoding": repr(encoding),
        "seconds_generated": round(moments[1] - moments[0], 2),
        "seconds_encoded": round(moments[2] - moments[1], 2),
        "seconds_together": round(moments[2] - moments[0], 2),
        "finite": bool(pairs.vectors.isfinite().all()),
    }


def main() -> None:
    """Measure in two processes, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("results"))
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--networks", type=int, default=400_000)
    parser.add_argument("--once", action="store_true", help="measure in this process and print JSON")
    options = parser.parse_args()
    if options.once:
        print(json.dumps(measure(options.networks, options.device)))
        return
    if options.device != "cpu":
        needs_gpu()
    record = Record(f"benchmark-sorting-encoded{'-cpu' if options.device == 'cpu' else ''}", SEED)
    command = [sys.executable, __file__, "--once", "--device", options.device, "--networks", str(options.networks)]
    runs = [subprocess.run(command, capture_output=True, text=True, check=True) for _ in range(2)]
    result = {name: json.loads(run.stdout) for name, run in zip(("first", "second"), runs, strict=True)}
    path = record.write(options.out, result)
    Console().print(result, f"written: {path}")


if __name__ == "__main__":
    main()
