"""What a model of your own data reads and predicts, stored with a run: predictions need no training data."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor

from magnetite.graphs import Digraphs
from magnetite.tasks.scores import KINDS


@dataclass(frozen=True)
class Schema:
    """Inputs and outputs of a model.

    Args:
        level: What has a target: graph, node or pair.
        kind: regression, classification or multilabel.
        targets: Names of the targets.
        classes: The classes in classification, as they are written in the data.
        node_features: Number of columns of each node feature that the model reads.
        edge_features: Number of columns of each edge feature that the model reads.
    """

    level: str
    kind: str
    targets: tuple[str, ...]
    classes: tuple[int | str, ...]
    node_features: Mapping[str, int]
    edge_features: Mapping[str, int]

    def to_dict(self) -> dict[str, Any]:
        """A table in JSON types."""
        return asdict(self)

    @classmethod
    def from_dict(cls, table: Mapping[str, Any]) -> "Schema":
        """The inverse of `to_dict`."""
        lists = {name: tuple(table[name]) for name in ("targets", "classes")}
        return cls(**{**table, **lists})

    def read(self, graphs: Digraphs) -> Digraphs:
        """The graphs with the features that the model reads; an error names one that is missing or does not fit."""
        nodes = _chosen(graphs.node_features, self.node_features, "node")
        held = dict(graphs.edge_features) | ({} if graphs.weights is None else {"weight": graphs.weights})
        edges = _chosen(held, self.edge_features, "edge")
        edges.pop("weight", None)
        return graphs.replace(node_features=nodes, edge_features=edges, graph_features={}, names=None)

    def answers(self, outputs: Tensor) -> Tensor | list[str]:
        """Numbers in the units of the target, classes as they are written in the data, or yes and no for each label.

        One target gives one number per row, several give one column each; classes that are text give a list.
        """
        if self.kind == "classification":
            if any(isinstance(each, str) for each in self.classes):
                return [str(self.classes[number]) for number in outputs.argmax(-1).tolist()]
            return torch.tensor(self.classes)[outputs.argmax(-1).cpu()]
        answers = outputs > 0 if self.kind == "multilabel" else outputs
        return answers.squeeze(1).cpu() if answers.shape[1] == 1 else answers.cpu()

    def table(self, outputs: Tensor) -> dict[str, Tensor | list[str]]:
        """The answers as columns by name, with the probability of each class or label."""
        found = KINDS[self.kind].predict(outputs).cpu()
        if self.kind == "classification":
            name = self.targets[0]
            columns = {f"{name}_probability_{each}": found[:, i] for i, each in enumerate(self.classes)}
            return {name: self.answers(outputs), **columns}
        names = self.columns(outputs.shape[1])
        if self.kind == "multilabel":
            return {f"{name}_probability": found[:, i] for i, name in enumerate(names)}
        return {name: found[:, i] for i, name in enumerate(names)}

    def columns(self, outputs: int) -> list[str]:
        """The name of each output: that of its target, or, if a target has several columns, with their number."""
        if len(self.targets) == outputs:
            return list(self.targets)
        return [f"{'_'.join(self.targets)}_{number}" for number in range(outputs)]


def _chosen(features: Mapping[str, Tensor], expected: Mapping[str, int], side: str) -> dict[str, Tensor]:
    for name, width in expected.items():
        if name not in features:
            raise ValueError(
                f"the graphs have no {side} feature {name!r}, which the model reads (they have "
                f"{', '.join(features) or 'none'}): give them the features of the training graphs"
            )
        found = features[name]
        columns = 1 if found.ndim == 1 else found.shape[1]
        if columns != width:
            raise ValueError(f"{side} feature {name!r} has {columns} columns, but the model reads {width}")
    return {name: features[name] for name in expected}
