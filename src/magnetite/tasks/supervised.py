"""Your own data: graphs with features, and targets of graphs, nodes, node pairs or links."""

import hashlib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import cached_property, partial
from typing import Annotated, Any, ClassVar

import numpy as np
import torch
from jaxtyping import Bool, Float, Shaped
from torch import Tensor

from magnetite.batching import Batch, QueryPairs
from magnetite.encodings.checks import COUNT, SEED
from magnetite.io.storage import as_bytes
from magnetite.nn import CategoryEdges, CategoryNodes, GraphHead, LinearEdges, LinearNodes, NodeHead, PairHead, Rescaled
from magnetite.nn.embeddings import Embedding, Embeddings
from magnetite.nn.heads import Head
from magnetite.nn.layers import mean_and_std
from magnetite.packed import starts
from magnetite.tasks.base import Examples, HeldTask, Presets
from magnetite.tasks.datasets import MEMORY, DataSet, data_set
from magnetite.tasks.links import FOLDS, check_options, split_links
from magnetite.tasks.links import SPLIT as LINKS
from magnetite.tasks.metrics import query_of
from magnetite.tasks.schema import Schema, node_features
from magnetite.tasks.scores import HITS, KINDS, MOST_RANKED, Kind, Scores
from magnetite.tasks.targets import GIVEN, ROWS, Targets, check_resolved, mask_names, targets_of

TARGET, SELECTED = "target", "selected"
"""Names of the features that hold the targets, and whether a node belongs to the split."""

LINK = "link"
"""The level, and the kind of target, of links."""

MOST_CATEGORIES = 1_000_000
"""Integer features with larger values are not categories."""

STEPS = {"quick": 1_500, "default": 10_000, "large": 50_000}
"""Number of training steps at which a preset aims."""

LARGEST_BATCH = {"quick": 64, "default": 128, "large": 256}

LARGE = 8_192
"""Graphs with more nodes get linear attention, and those whose nodes have targets are trained on neighbourhoods."""

TARGETS = {"quick": 256, "default": 512, "large": 1024}
"""Number of targets per step in training on neighbourhoods."""

NEIGHBOURS = {"quick": (6, 2), "default": (8, 3), "large": (10, 5)}
"""Numbers of successors and of predecessors per node that a neighbourhood has, for each hop."""

PRESETS: Presets = {
    "quick": {
        "encoding": {"k": 8, "rank": 8, "scaling": "nodes", "dropout": 0.0},
        "model": {"width": 64, "layers": 2, "local": 2, "local_added": True, "dropout": 0.1, "norm": "pre"},
        "optim": {"lr": 1e-3, "weight_decay": 1e-4, "betas": (0.9, 0.98), "clip": 0.1},
        "data": {"tokens": 8192},
        "run": {"patience": 8},
    },
    "default": {
        "base": "quick",
        "encoding": {"k": 16, "rank": 16},
        "model": {"width": 128, "layers": 4},
        "data": {"tokens": 65_536},
        "run": {"patience": 12},
    },
    "large": {
        "base": "default",
        "encoding": {"k": 32, "rank": 32},
        "model": {"width": 256, "layers": 6},
        "optim": {"lr": 5e-4},
        "data": {"tokens": 262_144},
        "run": {"patience": 20},
    },
}

Columns = int | tuple[int, ...]
"""Number of columns of a continuous feature, or number of categories of each column."""


@dataclass(frozen=True, eq=False)
class Supervised(HeldTask):
    """Predict targets of your own graphs: of each graph, each node, some node pairs, or links.

    Integer features are categories; floating-point features are quantities, and standardised. A drawn split keeps the
    proportions of the classes. If there are several graphs, nodes and node pairs are split graph by graph. Links are
    split as in `magnetite.tasks.split_links`.

    Args:
        data: Folder or file of graphs, or `module:name` of a PyG data set (docs/howto/own-data.md); in Python also
            `Digraphs` or PyG graphs.
        target: Name of the feature to predict, or names of several; existence or direction of links.
        level: What has a target: graph, node, pair or link.
        kind: regression (the default), classification (one class each) or multilabel (several yes-or-no targets).
        splits: Fractions of training, validation and test; the name of a split of the data; or ids or masks by split.
            By default the split of the data if they have one, otherwise 0.8, 0.1 and 0.1. For links, of edges.
        features: Names of the features that the model reads; by default all node and edge features. Graph features,
            which all nodes of the graph have, are read only if they are named.
        continuous: Names of integer features that are quantities, not categories.
        class_weights: `balanced`, or one positive weight per class; equal weights by default.
        select: Metric by which validation chooses the best model; by default rmse, accuracy or auc.
        negatives: Pairs without a link that the model must distinguish from links: random (the default), reversed
            or both.
        folds: Number of folds of training links, each of which is predicted from the others.
        reverse_in_training: Whether the reverse of a validation or test link may be in the training graph.
        seed: Seed of a drawn split, and of negatives.
        fingerprint: Hash of the data; other data are refused.
        shard_size: Number of graphs that are taken at a time.

    >>> from magnetite import Digraphs
    >>> graphs = Digraphs.from_edges([np.array([[0, 1], [1, 2]]), np.array([[0], [1]])] * 10)
    >>> task = Supervised(graphs.replace(graph_features={"y": graphs.sizes.float()}), target="y")
    >>> [len(task.examples(split)) for split in ("train", "valid", "test")]
    [16, 2, 2]
    """

    presets: ClassVar[Presets] = PRESETS

    data: Any
    target: str | tuple[str, ...] = "y"
    level: str = "graph"
    kind: str | None = None
    splits: Any = None
    features: tuple[str, ...] | None = None
    continuous: tuple[str, ...] = ()
    class_weights: Any = None
    select: str | None = None
    negatives: str | None = None
    folds: Annotated[int, COUNT] = FOLDS
    reverse_in_training: bool = False
    seed: Annotated[int, SEED] = 0
    fingerprint: str = ""
    shard_size: Annotated[int, COUNT] = 10_000

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_level()
        for name in ("splits", "class_weights"):  # a configuration stores them as plain numbers
            given = getattr(self, name)
            if isinstance(given, np.ndarray | Tensor | list | tuple):
                object.__setattr__(self, name, tuple(item.item() if hasattr(item, "item") else item for item in given))
        object.__setattr__(self, "data", self.data_set)  # so that a copy with other options does not read it again
        found = self._found_fingerprint()
        if self.fingerprint not in ("", found):
            raise ValueError(
                f"the data in {self.data_set.source or 'memory'} are not those of the run (fingerprint {found}, not "
                f"{self.fingerprint}): give the same data"
            )
        object.__setattr__(self, "fingerprint", found)
        _check_names(self.target_names)
        if self.selects not in self._kind.metrics:
            raise ValueError(f"select must be one of {', '.join(self._kind.metrics)}, got {self.select!r}")
        _ = self.targets, self.node_inputs, self.edge_inputs, self._weights  # which checks them
        self._check_selectable()

    @cached_property
    def data_set(self) -> DataSet:
        """The graphs, features, targets and splits."""
        return data_set(self.data)

    @cached_property
    def queried(self) -> DataSet:
        """The graphs that models see, with targets of graphs, nodes or node pairs; links are node pairs."""
        if self.level != LINK:
            return self.data_set
        return split_links(
            self.data_set,
            self.target_names[0],
            self.negatives,
            self.splits,
            self.folds,
            self.reverse_in_training,
            self.seed,
        )

    @cached_property
    def targets(self) -> Targets:
        """The targets of all graphs, nodes or node pairs."""
        splits = self.splits if self.queried is self.data_set else LINKS
        return targets_of(self.queried, self.target_names, self.rows, self._kind_name, splits, self.seed)

    @property
    def rows(self) -> str:
        """What has a row of outputs: graph, node or pair."""
        return ROWS[self.level]

    @cached_property
    def node_inputs(self) -> dict[str, Columns]:
        """The node features that the model reads."""
        graphs = self.data_set.graphs
        named = set(self.features or ()) - set(self.target_names if self.level == "graph" else ())
        features = {
            name: values
            for name, values in node_features(graphs).items()
            if name in named or name in graphs.node_features
        }
        hidden = {*mask_names(features), *(self.target_names if self.level == "node" else ())}
        hidden |= {name for name in self.data_set.labels if name not in (self.features or ())}
        encoded = next(
            (name for name in features if self.level == LINK and name.endswith("_pe") and name not in named), None
        )
        if encoded is not None and self.features is None:
            raise ValueError(
                f"node feature {encoded!r} is the encoding of all edges, with those to be predicted: remove it, or "
                "name the features that the model may read"
            )
        return self._inputs({name: values for name, values in features.items() if name not in hidden}, "node")

    @cached_property
    def edge_inputs(self) -> dict[str, Columns]:
        """The edge features that the model reads; the weights, if there are any, are one of them."""
        graphs = self.data_set.graphs
        if "weight" in graphs.edge_features:
            raise ValueError("an edge feature must not be called 'weight', the name of the weights: rename it")
        weights = {} if graphs.weights is None else {"weight": graphs.weights}
        hidden = mask_names(graphs.edge_features) if self.level == LINK else ()
        features = {name: values for name, values in graphs.edge_features.items() if name not in hidden}
        return self._inputs({**features, **weights}, "edge")

    @property
    def target_names(self) -> tuple[str, ...]:
        """Names of all targets."""
        return (self.target,) if isinstance(self.target, str) else tuple(self.target)

    def options(self) -> dict[str, Any]:
        """The options as a configuration stores them; graphs in memory and their splits are known by fingerprint."""
        given = {field.name: getattr(self, field.name) for field in fields(self)}
        given["data"] = self.data_set.source or MEMORY
        given["splits"] = GIVEN if isinstance(self.splits, Mapping) else self.splits
        return given

    def data_options(self) -> dict[str, Any]:
        """The options that determine the data."""
        return self.options()

    def schema(self) -> Schema:
        """What a model of this task reads and predicts."""
        inputs = (self.node_inputs, self.edge_inputs)
        nodes, edges = (
            {name: size if isinstance(size, int) else len(size) for name, size in each.items()} for each in inputs
        )
        texts = {name: self.data_set.classes[name] for name in nodes if name in self.data_set.classes}
        classes = self.targets.classes
        columns = () if classes else self.targets.names
        return Schema(self.level, self._kind_name, self.target_names, classes, nodes, edges, texts, columns)

    def derived(self, preset: str, epochs: float | None = None) -> dict[str, dict[str, Any]]:
        """Batch size and number of epochs for this number of training graphs; warm-up follows from the epochs.

        Large graphs get linear attention; those whose nodes have targets are trained on sampled neighbourhoods.
        """
        train = self.held("train").graphs
        large = int(train.sizes.max()) > LARGE
        sampled = large and self.rows == "node"
        if sampled:
            count = int(self.targets.masks["train"].sum())
            batch = min(TARGETS[preset], count)
        else:
            count = len(train)
            batch = int(min(LARGEST_BATCH[preset], 2 ** max(0, round(np.log2(count / 16)))))
        epochs = max(2.0, STEPS[preset] * batch / count) if epochs is None else epochs
        tables: dict[str, dict[str, Any]] = {
            "optim": {"batch": batch, "epochs": epochs, "warmup": epochs / 20},
            "run": {"evaluate_every": max(1.0, epochs / 40)},
        }
        if large:
            tables["model"] = {"attention": "linear"}
        if sampled:
            tables["data"] = {"neighbours": NEIGHBOURS[preset]}
        return tables

    def embedding(self) -> Embeddings:
        """One vector per category, and a linear layer for quantities, standardised by the training nodes."""
        values = self.held("train").graphs.node_features
        if self.rows == "node":
            values = {name: column[values[SELECTED]] for name, column in values.items()}
        return _embedding(self.node_inputs, values, LinearNodes, CategoryNodes)

    def edge_embedding(self) -> Embeddings:
        """The same for edge features and weights."""
        graphs = self.held("train").graphs
        return _embedding(
            self.edge_inputs, {**graphs.edge_features, "weight": graphs.edge_weight}, LinearEdges, CategoryEdges
        )

    def head(self, readout: str, pair_channels: int) -> Head:
        """One output per target or class; numbers have the units of the targets."""
        outputs = self.targets.outputs
        head: Head
        if self.rows == "graph":
            head = GraphHead(outputs, readout)
        elif self.rows == "node":
            head = NodeHead(outputs)
        else:
            head = PairHead(outputs, pair_channels=pair_channels)
        if self._kind_name != "regression":
            return head
        rescaled = Rescaled(head, outputs)
        rescaled.fit(self._training_targets)
        return rescaled

    def weights(self, examples: Examples) -> Float[Tensor, " graphs"]:
        """Sum of the weights of each graph's targets: their number, unless classes have weights."""
        graphs = examples.graphs
        if self.rows == "graph":
            return self._row_weights(graphs.graph_features[TARGET])
        selected = self.node_weights(examples)
        if selected is not None:
            weights, pointer = selected, graphs.node_ptr
        else:
            query = examples.query()
            if query is None:
                raise ValueError("the examples have no node pairs: they belong to another task")
            weights, pointer = self._row_weights(query.labels), query.query_ptr
        return starts(weights.double())[pointer].diff().float()

    def node_weights(self, examples: Examples) -> Float[Tensor, " nodes"] | None:
        """Weight of each node's target, 0 where it has none in this split; None if targets are not those of nodes."""
        if self.rows != "node":
            return None
        features = examples.graphs.node_features
        return torch.where(features[SELECTED], self._row_weights(features[TARGET]), 0.0)

    def only(self, nodes: Bool[Tensor, " nodes"]) -> dict[str, Tensor]:
        """Node features to set in a sampled subgraph so that only these nodes have targets."""
        return {SELECTED: nodes}

    def loss(self, outputs: Float[Tensor, "rows outputs"], batch: Batch) -> Float[Tensor, ""]:
        """Sum over the targets of the squared error, divided by their variance, or of the cross-entropy."""
        targets, selected = self.rows_of(batch)
        losses = self._kind.loss(outputs.float(), targets, self._on("scale", outputs.device))
        return torch.where(selected, losses * self._row_weights(targets), 0.0).sum()

    def metric(self, device: torch.device | str = "cpu") -> Scores:
        """The metrics of this kind of target."""
        outputs = self.targets.outputs
        return Scores(self._kind, outputs, self.targets.names, self.rows_of, device)

    def rows_of(self, batch: Batch) -> tuple[Shaped[Tensor, "rows ..."], Bool[Tensor, " rows"]]:
        """The targets in a batch, and which of them are real and belong to the split."""
        if self.rows == "graph":
            targets = batch.graph_features[TARGET]
            return targets, torch.ones(len(targets), dtype=torch.bool, device=targets.device)
        if self.rows == "node":
            return batch.node_features[TARGET], batch.node_features[SELECTED] & batch.node_mask
        query = query_of(batch)
        return query.labels, query.mask

    @property
    def selects(self) -> str:
        """The validation metric that chooses the best model."""
        return self.select or next(iter(self._kind.metrics))

    @property
    def larger_is_better(self) -> bool:
        """Whether a larger value of that metric is better."""
        return self._kind.metrics[self.selects]

    @property
    def variant(self) -> tuple[str, ...]:
        """The names of the targets."""
        return self.target_names

    def _check_level(self) -> None:
        """Raise an error unless level, kind and the options of links fit together."""
        kinds = tuple(kind for kind in KINDS if kind != LINK)
        if self.level not in ROWS:
            raise ValueError(f"level must be one of {', '.join(ROWS)}, got {self.level!r}")
        if self.level == LINK:
            if self.kind not in (None, LINK):
                raise ValueError(f"links are there or not, so kind is not {self.kind}: leave it out")
            check_options(", ".join(self.target_names), self.negatives, self.folds)
            return
        if self.kind not in (None, *kinds):
            raise ValueError(f"kind must be one of {', '.join(kinds)}, got {self.kind!r}")
        if self.negatives is not None:
            raise ValueError(f"negatives are for level link, not for level {self.level}: leave them out")

    def _check_selectable(self) -> None:
        """Raise an error if the validation split is too small or too uniform for the metric that chooses the model."""
        valid = self.targets.values[self.targets.masks["valid"]]
        if self.selects == "auc" and self.targets.outputs > MOST_RANKED:
            raise ValueError(f"select auc takes at most {MOST_RANKED} classes or labels: select another metric")
        if self.selects == "r2" and len(valid) < 2:
            raise ValueError("select r2 needs at least two validation targets, got 1: select another metric")
        if self.selects == "r2" and bool((valid == valid[0]).all(0).any()):
            raise ValueError("select r2 needs validation targets that differ: select another metric, or other splits")
        if self.selects == "auc" and bool((valid == valid[0]).all()):
            raise ValueError("select auc needs validation targets that differ: select another metric, or other splits")
        needed, negatives = HITS.get(self.selects, 0), int((valid == 0).sum())
        if negatives < needed:
            raise ValueError(
                f"select {self.selects} needs {needed} negatives in validation, got {negatives}: select another metric"
            )

    def _found_fingerprint(self) -> str:
        """The fingerprint of the data and of splits that are given."""
        found = self.data_set.fingerprint
        if not isinstance(self.splits, Mapping):
            return found
        if self.queried is not self.data_set:
            return self.queried.fingerprint
        digest = hashlib.sha256(found.encode())
        for name, mask in self.targets.masks.items():
            digest.update(name.encode() + as_bytes(mask.contiguous()))
        return digest.hexdigest()[:16]

    @property
    def _kind_name(self) -> str:
        return self.kind or (LINK if self.level == LINK else "regression")

    @property
    def _kind(self) -> Kind:
        return KINDS[self._kind_name]

    @property
    def _training_targets(self) -> Tensor:
        return self.targets.values[self.targets.masks["train"]]

    def make(self, split: str) -> Examples:
        """The graphs that have targets of the split, with the features that the model reads."""
        data, targets, mask = self.queried, self.targets, self.targets.masks[split]
        graphs = data.graphs
        held = node_features(graphs)
        nodes = {name: held[name] for name in self.node_inputs}
        edges = {name: graphs.edge_features[name] for name in self.edge_inputs if name != "weight"}
        of_graphs: dict[str, Tensor] = {}
        query = None
        if self.rows == "graph":
            of_graphs = {TARGET: targets.values}
        elif self.rows == "node":
            nodes |= {TARGET: targets.values, SELECTED: mask}
        elif data.pairs is not None:
            counts = torch.zeros(len(graphs), dtype=torch.long).index_add_(0, targets.graph, mask.long())
            query = QueryPairs(
                node_ptr=graphs.node_ptr,
                query_ptr=starts(counts),
                nodes=data.pairs.nodes[:, mask],
                labels=targets.values[mask],
            )
        graphs = graphs.replace(node_features=nodes, edge_features=edges, graph_features=of_graphs, names=None)
        chosen = torch.zeros(len(graphs), dtype=torch.bool)
        chosen[targets.graph[mask]] = True
        examples = Examples(graphs, pairs=query)
        return examples if bool(chosen.all()) else examples.select(chosen.nonzero().squeeze(1))

    def _inputs(self, features: Mapping[str, Tensor], side: str) -> dict[str, Columns]:
        graphs = self.data_set.graphs
        weight = () if graphs.weights is None else ("weight",)
        known = {*node_features(graphs), *graphs.edge_features, *weight}
        for name in (*(self.features or ()), *self.continuous):
            if name not in known:
                raise ValueError(f"the data have no feature {name!r}: they have {', '.join(sorted(known))}")
        chosen = {name: values for name, values in features.items() if self.features is None or name in self.features}
        for name in self.data_set.classes.keys() & chosen.keys():
            missing = (chosen[name] < 0).nonzero()
            if len(missing):
                place = self._place(side, int(missing[0]))
                raise ValueError(f"{side} feature {name!r} of {place} is missing: give it a value")
        where = partial(self._place, side)
        return {name: _columns(name, values, side, name in self.continuous, where) for name, values in chosen.items()}

    def _place(self, side: str, row: int) -> str:
        """A node or an edge, for messages."""
        if side != "node":
            return f"{side} {row}"
        graph = int(torch.searchsorted(self.data_set.graphs.node_ptr, row, right=True)) - 1
        return self.data_set.described(side, row, graph)

    def _row_weights(self, targets: Shaped[Tensor, "rows ..."]) -> Float[Tensor, " rows"]:
        if self.class_weights is None:
            return torch.ones(len(targets), device=targets.device)
        return self._on("weights", targets.device)[targets.long()]

    @cached_property
    def _weights(self) -> dict[str, Tensor]:
        """Standard deviations of the targets, and weights of the classes."""
        train = self._training_targets
        if self.class_weights is not None and self._kind_name != "classification":
            raise ValueError(f"class_weights are for classification, not for {self._kind_name}: leave them out")
        if self._kind_name == "regression":
            return {"scale": mean_and_std(train)[1].float()}
        found = {"scale": torch.ones(1)}
        if self.class_weights is not None:
            found["weights"] = self._checked_class_weights(train)
        return found

    def _checked_class_weights(self, train: Tensor) -> Float[Tensor, " classes"]:
        count = len(self.targets.classes)
        if self.class_weights == "balanced":
            sizes = torch.bincount(train, minlength=count).float()
            return len(train) / (count * sizes.clamp(min=1))
        given = self.class_weights
        numbers = [each for each in given if isinstance(each, int | float)] if isinstance(given, tuple) else []
        # A batch may have graphs of one class only, whose mean loss is not defined if they have no weight.
        if len(numbers) != count or given != tuple(numbers) or not all(0 < each < math.inf for each in numbers):
            raise ValueError(
                f"class_weights must be 'balanced' or {count} positive numbers, one per class, got {given!r}"
            )
        return torch.tensor(numbers).float()

    @cached_property
    def _moved(self) -> dict[tuple[str, torch.device], Tensor]:
        return {}

    def _on(self, name: str, device: torch.device) -> Tensor:
        """One of `_weights` on a device, where it is kept: a captured step must not copy it."""
        key = name, device
        if key not in self._moved:
            self._moved[key] = self._weights[name].to(device)
        return self._moved[key]


def _check_names(names: tuple[str, ...]) -> None:
    if not names or not all(isinstance(name, str) for name in names) or len(set(names)) < len(names):
        raise ValueError(f"target must be a name, or different names, got {names}")


def _columns(name: str, values: Tensor, side: str, continuous: bool, where: Callable[[int], str]) -> Columns:
    """What a model must know about a feature; an error if it cannot be read."""
    if values.ndim > 2 or values.is_complex() or 0 in values.shape[1:]:
        raise ValueError(
            f"{side} feature {name!r} is {values.dtype} of shape {tuple(values.shape)}: give it one or two dimensions "
            "of real numbers, or leave it out of features"
        )
    width = 1 if values.ndim == 1 else values.shape[1]
    if values.is_floating_point() or continuous:
        wrong = (~values.double().isfinite()).reshape(len(values), width).any(1).nonzero()
        if len(wrong):
            raise ValueError(f"{side} feature {name!r} of {where(int(wrong[0]))} is not finite: replace it by a number")
        check_resolved(values, f"{side} feature {name!r}")
        return width
    if not len(values):
        return (1,) * width
    low, high = int(values.min()), int(values.max())
    if low < 0 or high > MOST_CATEGORIES:
        raise ValueError(
            f"{side} feature {name!r} has the value {low if low < 0 else high}, but integer features are categories "
            f"0, 1, …: renumber them, or name it in continuous"
        )
    # One more than occur: a category that only later graphs have does not take the vector of another one.
    return tuple((values.reshape(len(values), -1).long().amax(0) + 2).tolist())


def _embedding(inputs: Mapping[str, Columns], values: Mapping[str, Tensor], linear: Any, category: Any) -> Embeddings:
    parts: list[Embedding] = []
    for name, size in inputs.items():
        if isinstance(size, int):
            part = linear(name, size)
            part.fit(values[name])
            parts.append(part)
    categories = {name: size for name, size in inputs.items() if not isinstance(size, int)}
    if categories:
        part = category(categories)
        part.fit(values)
        parts.append(part)
    return parts or None
