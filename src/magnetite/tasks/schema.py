"""What a model of your own data reads and predicts, stored with a run: predictions need no training data."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import torch
from torch import Tensor

from magnetite.graphs import Digraphs
from magnetite.tasks.datasets import DataSet
from magnetite.tasks.scores import KINDS
from magnetite.tasks.targets import ROWS


@dataclass(frozen=True)
class Schema:
    """Inputs and outputs of a model.

    Args:
        level: What has a target: graph, node, pair or link.
        kind: regression, classification, multilabel or link.
        targets: Names of the targets.
        classes: The classes in classification, as they are written in the data.
        node_features: Number of columns of each node feature that the model reads.
        edge_features: Number of columns of each edge feature that the model reads.
        categories: The texts that the numbers 0, 1, … of a node feature stand for, by its name.
        columns: The name of each output: that of its target, with a number if the target has several columns. Empty in
            classification, and in runs of older versions.
    """

    level: str
    kind: str
    targets: tuple[str, ...]
    classes: tuple[int | str, ...]
    node_features: Mapping[str, int]
    edge_features: Mapping[str, int]
    categories: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    columns: tuple[str, ...] = ()

    @property
    def rows(self) -> str:
        """What has a row of outputs: graph, node or pair."""
        return ROWS[self.level]

    def to_dict(self) -> dict[str, Any]:
        """A table in JSON types."""
        return asdict(self)

    @classmethod
    def from_dict(cls, table: Mapping[str, Any]) -> "Schema":
        """The inverse of `to_dict`."""
        lists = {name: tuple(table.get(name, ())) for name in ("targets", "classes", "columns")}
        categories = {name: tuple(texts) for name, texts in table.get("categories", {}).items()}
        return cls(**{**table, **lists, "categories": categories})

    def read(self, data: DataSet) -> Digraphs:
        """The graphs with the features that the model reads; an error names one that is missing or does not fit.

        Args:
            data: The graphs; categories that are text are numbered as in training.
        """
        graphs = data.graphs
        text = next((name for name in self.node_features if name in data.classes and name not in self.categories), None)
        if text is not None:
            shown = ", ".join(map(repr, data.classes[text][:3]))
            raise ValueError(f"node feature {text!r} is text ({shown}, …), but the model was trained on numbers")
        nodes = _chosen(node_features(graphs), self.node_features, "node")
        nodes |= {name: self._numbered(data, name, nodes[name]) for name in self.categories}
        held = dict(graphs.edge_features) | ({} if graphs.weights is None else {"weight": graphs.weights})
        edges = _chosen(held, self.edge_features, "edge")
        edges.pop("weight", None)
        return graphs.replace(node_features=nodes, edge_features=edges, graph_features={}, names=None)

    def _numbered(self, data: DataSet, name: str, values: Tensor) -> Tensor:
        """A feature whose categories are text, with the numbers that they had in training."""
        known = self.categories[name]
        if name not in data.classes:
            if values.is_floating_point() or not bool(((values >= 0) & (values < len(known))).all()):
                raise ValueError(f"node feature {name!r} must be text, or the numbers of its {len(known)} categories")
            return values
        number = {text: number for number, text in enumerate(known)}
        texts = data.classes[name]
        found = torch.tensor([number.get(text, -1) for text in texts] + [-1])[values.long()]
        wrong = (found < 0).nonzero()
        if len(wrong):
            node = int(wrong[0])
            text = texts[int(values[node])] if int(values[node]) >= 0 else ""
            raise ValueError(
                f"node feature {name!r} of {data.described('node', node, int(data.graphs.node_graph[node]))} is "
                f"{text!r}, which training did not have: known are {', '.join(map(repr, known[:8]))}"
                f"{' and others' if len(known) > 8 else ''}"
            )
        return found

    def answers(self, outputs: Tensor) -> Tensor | list[str]:
        """Numbers in the units of the target, classes as they are written in the data, yes or no, or probabilities.

        One target gives one number per row, several give one column each; classes that are text give a list.
        """
        if self.kind == "classification":
            if any(isinstance(each, str) for each in self.classes):
                return [str(self.classes[number]) for number in outputs.argmax(-1).tolist()]
            return torch.tensor(self.classes)[outputs.argmax(-1).cpu()]
        answers = outputs
        if self.kind == "multilabel":
            answers = outputs > 0
        elif self.kind == "link":
            answers = KINDS[self.kind].predict(outputs)
        return answers.squeeze(1).cpu() if answers.shape[1] == 1 else answers.cpu()

    def table(self, outputs: Tensor) -> dict[str, Tensor | list[str]]:
        """The answers as columns by name, with the probability of each class or label."""
        found = KINDS[self.kind].predict(outputs).cpu()
        if self.kind == "classification":
            name = self.targets[0]
            columns = {f"{name}_probability_{each}": found[:, i] for i, each in enumerate(self.classes)}
            return {name: self.answers(outputs), **columns}
        ending = "_probability" if self.kind in ("multilabel", "link") else ""
        return {f"{name}{ending}": found[:, i] for i, name in enumerate(self._names(outputs.shape[1]))}

    def _names(self, outputs: int) -> Sequence[str]:
        """The name of each output."""
        numbered = [f"{'_'.join(self.targets)}_{number}" for number in range(outputs)]
        return next((names for names in (self.columns, self.targets) if len(names) == outputs), numbered)


def node_features(graphs: Digraphs) -> dict[str, Tensor]:
    """The features of the nodes; all nodes of a graph have its graph features, unless a node feature has this name."""
    found = dict(graphs.node_features)
    for name, values in graphs.graph_features.items():
        found.setdefault(name, values[graphs.node_graph])
    return found


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
        wrong = (~found.float().isfinite()).reshape(len(found), columns).any(1)
        if found.is_floating_point() and bool(wrong.any()):
            row = int(wrong.nonzero()[0])
            raise ValueError(f"{side} feature {name!r} of {side} {row} is not finite: replace it by a number")
    return {name: features[name] for name in expected}
