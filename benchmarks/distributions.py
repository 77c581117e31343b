"""Statistics of the generated data: numbers of comparators, reversed networks that sort, balance of the classes of
node pairs, and how much directed distances differ from undirected ones.

python benchmarks/distributions.py        # writes results/distributions.json
"""

import argparse
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from torch import Tensor

from magnetite.io.record import Record
from magnetite.sorting import generate
from magnetite.tasks import Distances

NETWORKS = 20_000
GRAPHS = 20_000
TEST_GRAPHS = Distances().split("test").count


def networks(length: int, seed: int) -> dict[str, float]:
    """Numbers of comparators of networks of one length, and of reversed networks and twins that sort."""
    found = generate(NETWORKS, [length], seed)
    reversed_correct = int(found.reverse().is_correct().sum())
    sizes = found.sizes.double()
    return {
        "mean_comparators": float(sizes.mean()),
        "most_comparators": int(sizes.max()),
        "reversed_that_sort": reversed_correct,
        "twins_that_sort": int(found.without_last().is_correct().sum()),
    }


def positives(target: str, acyclic: bool, seed: int) -> float:
    """Share of the node pairs with a target whose target is 1."""
    task = Distances(target, acyclic=acyclic, train=GRAPHS, shard_size=GRAPHS, seed=seed)
    targets: Any = task.shard("train", 0).targets
    return float(targets.values[targets.mask].double().mean())


def direction_of_distances(acyclic: bool, seed: int) -> dict[str, float]:
    """How directed distances differ from undirected ones, over all node pairs of the test graphs that have both.

    The best function of the undirected distance has the error of a model that knows this distance exactly and nothing
    else. A GNN with three steps sees distances up to 3 from either node, and up to 6 from both.
    """
    directed, undirected = (
        _distances(Distances(target, acyclic=acyclic, shard_size=TEST_GRAPHS, seed=seed))
        for target in ("directed-distance", "undirected-distance")
    )
    joined = directed > 0
    directed, undirected = directed[joined].double(), undirected[joined].long()
    means = torch.bincount(undirected, weights=directed) / torch.bincount(undirected).clamp(min=1)
    return {
        "pairs": len(directed),
        "share_that_differs": float((directed != undirected).double().mean()),
        "deviation": float(directed.std()),
        "rmse_of_undirected": float((directed - undirected).square().mean().sqrt()),
        "rmse_of_its_best_function": float((directed - means[undirected]).square().mean().sqrt()),
        "share_up_to_3": float((directed <= 3).double().mean()),
        "share_up_to_6": float((directed <= 6).double().mean()),
    }


def _distances(task: Distances) -> Tensor:
    targets: Any = task.shard("test", 0).targets
    return targets.values


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("results"))
    options = parser.parse_args()
    record = Record("distributions", seed=0)
    result: dict[str, Any] = {
        "networks_of_each_length": NETWORKS,
        "networks": {str(length): networks(length, record.seed) for length in range(7, 17)},
        "playground_graphs": GRAPHS,
        "share_of_positive_pairs": {
            f"{target}, {'DAG' if acyclic else 'general'}": positives(target, acyclic, record.seed)
            for target in ("adjacency", "reachability")
            for acyclic in (False, True)
        },
    }
    kinds = {"DAG": True, "general": False}
    result["directed_distances"] = {
        kind: direction_of_distances(acyclic, record.seed) for kind, acyclic in kinds.items()
    }
    path = record.write(options.out, result)
    Console().print(result, f"written: {path}")


if __name__ == "__main__":
    main()
