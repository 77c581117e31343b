"""A task of one's own, in one file: does a random graph have more edges than nodes?"""

from dataclasses import dataclass
from typing import ClassVar

import torch

import magnetite as mt
from magnetite.nn import GraphHead, SameNodes
from magnetite.tasks import TASKS, Examples, Split, Task
from magnetite.tasks.metrics import ClassificationByGroup


@dataclass(frozen=True)
class Dense(Task):
    """Random graphs, labelled by whether they have more edges than nodes.

    Args:
        nodes: Number of nodes of each graph.
        count: Number of graphs per split.
        loops: Whether edges may be loops.
        seed: Seed of the data.
        shard_size: Number of graphs per file.
    """

    presets: ClassVar = {
        "quick": {
            "encoding": {"k": 4},
            "model": {"width": 32, "layers": 1},
            "optim": {"batch": 20, "epochs": 2, "warmup": 0.5},
        }
    }

    nodes: int = 6
    count: int = 60
    loops: bool = False
    seed: int = 0
    shard_size: int = 100

    def split(self, name: str) -> Split:
        return Split(name, range(self.nodes, self.nodes + 1), self.count)

    def shard(self, split: str, number: int, device: torch.device | str = "cpu") -> Examples:
        generator = torch.Generator().manual_seed(self.seed * 10 + self.split(split).number)
        first, size = self.shard_span(split, number)
        dense = torch.rand(first + size, self.nodes, self.nodes, generator=generator)[first:] < 1 / self.nodes
        if not self.loops:
            dense &= ~torch.eye(self.nodes, dtype=torch.bool)
        graphs = mt.Digraphs.from_edges([each.nonzero().T for each in dense], num_nodes=[self.nodes] * size)
        labels = (graphs.edge_ptr.diff() > self.nodes).long()
        features = {"label": labels, "kind": torch.zeros_like(labels)}
        return Examples(graphs.replace(graph_features=features).to(device))

    def embedding(self) -> SameNodes:
        return SameNodes()

    def head(self, readout: str, pair_channels: int) -> GraphHead:
        return GraphHead(2, readout)

    def loss(self, outputs, batch):
        return torch.nn.functional.cross_entropy(outputs, batch.graph_features["label"], reduction="sum")

    def metric(self, device: torch.device | str = "cpu") -> ClassificationByGroup:
        return ClassificationByGroup("label", "kind", 1, device)

    @property
    def selects(self) -> str:
        return "accuracy"


def register(monkeypatch) -> None:
    """Add the task to `TASKS` for the duration of a test; a user writes `TASKS["dense"] = Dense`."""
    monkeypatch.setitem(TASKS, "dense", Dense)
