"""Directed distances from the features of `PairWalkEncoder` without any parameter: the first non-zero power is it.

python benchmarks/readout.py        # writes results/benchmark-readout.json
"""

import argparse
from pathlib import Path

import torch
from rich.console import Console

import magnetite as mt
from magnetite.io.record import Record
from magnetite.nn import PairWalkEncoder
from magnetite.tasks import Distances

STEPS = 16
"""Length of the longest walk, as in the preset `best` of the task distances."""

AT_ONCE = 200
"""Graphs per batch."""


def measured(acyclic: bool, seed: int, per_size: int) -> dict[str, float | int]:
    """Errors of `min {k : T^k[u, v] > 0}` on the test graphs; pairs beyond the longest walk count as one step more.

    Args:
        acyclic: Whether the graphs are DAGs.
        seed: Seed of the data.
        per_size: Number of test graphs of each size.
    """
    task = Distances("directed-distance", acyclic=acyclic, per_size=per_size, seed=seed)
    examples = task.examples("test")
    if examples.targets is None:
        raise RuntimeError("the task has no targets of node pairs")
    query, encoder, metric, wrong = examples.targets.query(), PairWalkEncoder(STEPS, root=False), task.metric(), 0
    for ids in torch.arange(len(examples.graphs)).split(AT_ONCE):
        batch = mt.batch(examples.graphs, query=query, ids=ids)
        pairs = encoder(batch).pairs
        if batch.query is None or pairs is None:
            raise RuntimeError("the batch has no query pairs")
        along = batch.at_query(pairs, batch.query)[:, STEPS:] > 0
        first = torch.where(along.any(1), along.int().argmax(1) + 1, STEPS + 1)
        metric.update(first[:, None].float(), batch)
        wrong += int(batch.query.sum((first != batch.query.labels).long()))
    count = int(query.counts.sum())
    return {"graphs": len(examples.graphs), "pairs": count, "wrong": wrong, "parameters": 0, **metric.compute()}


def main() -> None:
    """Measure both kinds of graphs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="seed of the data")
    parser.add_argument("--per-size", type=int, default=2_500, help="number of test graphs of each size")
    parser.add_argument("--out", type=Path, default=Path("results"), help="folder of the JSON file")
    options = parser.parse_args()
    record = Record("benchmark-readout", options.seed)
    kinds = {"dag": True, "general": False}
    found = {name: measured(acyclic, options.seed, options.per_size) for name, acyclic in kinds.items()}
    Console(soft_wrap=True).print(found)
    record.write(options.out, {"steps": STEPS, **found})


if __name__ == "__main__":
    main()
