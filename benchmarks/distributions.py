"""What the drawn data look like: comparators, reversed networks that sort, and the balance of the playground's classes.

python benchmarks/distributions.py        # writes results/distributions.json
"""

import argparse
from pathlib import Path
from typing import Any

from rich.console import Console

from magnetite.record import Record
from magnetite.sorting import generate
from magnetite.tasks import Playground

NETWORKS = 20_000
GRAPHS = 20_000


def networks(length: int, seed: int) -> dict[str, float]:
    """Mean and largest number of comparators of one length, and how many reversed networks still sort."""
    drawn = generate(NETWORKS, [length], seed)
    reversed_correct = int(drawn.reverse().is_correct().sum())
    sizes = drawn.sizes.double()
    return {
        "mean_comparators": float(sizes.mean()),
        "most_comparators": int(sizes.max()),
        "reversed_that_sort": reversed_correct,
        "twins_that_sort": int(drawn.without_last().is_correct().sum()),
    }


def positives(target: str, acyclic: bool, seed: int) -> float:
    """Share of the pairs that count whose target is 1."""
    task = Playground(target, acyclic=acyclic, train=GRAPHS, shard_size=GRAPHS, seed=seed)
    targets: Any = task.shard("train", 0).targets
    return float(targets.values[targets.mask].double().mean())


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("results"))
    options = parser.parse_args()
    record = Record("distributions", seed=0)
    result = {
        "networks_of_each_length": NETWORKS,
        "networks": {str(length): networks(length, record.seed) for length in range(7, 17)},
        "playground_graphs": GRAPHS,
        "share_of_positive_pairs": {
            f"{target}, {'DAG' if acyclic else 'general'}": positives(target, acyclic, record.seed)
            for target in ("adjacency", "reachability")
            for acyclic in (False, True)
        },
    }
    path = record.write(options.out, result)
    Console().print(result, f"written: {path}")


if __name__ == "__main__":
    main()
