"""Small data sets of one's own, for the tests of supervised tasks."""

import numpy as np
import torch

import magnetite as mt
from magnetite.batching import QueryPairs
from magnetite.packed import starts
from magnetite.tasks import DataSet


def paths(count: int, seed: int = 0, low: int = 2, high: int = 6) -> mt.Digraphs:
    """Paths of random lengths, without features."""
    sizes = np.random.default_rng(seed).integers(low, high + 1, count).tolist()
    return mt.Digraphs.from_edges([np.stack([np.arange(n - 1), np.arange(1, n)]) for n in sizes], sizes)


def with_targets(graphs: mt.Digraphs, **graph_features: torch.Tensor) -> mt.Digraphs:
    """The graphs with targets `y` (number), `c` (four classes) and `l` (three labels) of graphs and of nodes."""
    random = torch.Generator().manual_seed(1)

    def targets(rows: int) -> dict[str, torch.Tensor]:
        numbers = torch.randn(rows, generator=random) * 50 + 300
        return {
            "y": numbers,
            "c": torch.arange(rows) % 4 * 10,
            "l": torch.randint(0, 2, (rows, 3), generator=random),
        }

    return graphs.replace(
        graph_features={**targets(len(graphs)), **graph_features}, node_features=targets(graphs.num_nodes)
    )


def with_pairs(graphs: mt.Digraphs, labels: str = "c") -> DataSet:
    """Three node pairs of each graph, with classes, numbers or labels."""
    count = 3 * len(graphs)
    nodes = torch.stack([torch.zeros(count, dtype=torch.long), torch.arange(count) % 2])
    values = {
        "c": torch.arange(count) % 2,
        "y": torch.randn(count) * 9 + 4,
        "l": torch.arange(3 * count)[: 2 * count].view(-1, 2) % 3 % 2,
    }
    query_ptr = starts(torch.full((len(graphs),), 3))
    return DataSet(
        graphs, QueryPairs(node_ptr=graphs.node_ptr, query_ptr=query_ptr, nodes=nodes, labels=values[labels])
    )
