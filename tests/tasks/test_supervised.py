"""Tasks of one's own: what a model sees, how it is weighted and scored, and what is refused before training."""

import dataclasses
import json
import math

import numpy as np
import pytest
import torch

import magnetite as mt
from magnetite.nn import Rescaled
from magnetite.tasks import DataSet, Supervised
from magnetite.tasks.supervised import SELECTED, TARGET
from tests.batching.cases import forms
from tests.tasks.own_data import paths, with_pairs, with_targets

GRAPHS = with_targets(paths(40))
CASES = [
    (level, kind, name)
    for level in ("graph", "node")
    for kind, name in (("regression", "y"), ("classification", "c"), ("multilabel", "l"))
]


def made(level: str, kind: str, name: str, **options) -> Supervised:
    data = with_pairs(GRAPHS, name) if level == "pair" else GRAPHS
    return Supervised(data, target=name, level=level, kind=kind, **options)


ALL = [*CASES, ("pair", "regression", "y"), ("pair", "classification", "c"), ("pair", "multilabel", "l")]


@pytest.mark.parametrize(("level", "kind", "name"), ALL)
def test_examples_have_the_rows_of_their_split(level, kind, name):
    task = made(level, kind, name)
    total = 0
    for split in ("train", "valid", "test"):
        examples, mask = task.examples(split), task.targets.masks[split]
        if level == "graph":
            rows = examples.graphs.graph_features[TARGET]
        elif level == "node":
            rows = examples.graphs.node_features[TARGET][examples.graphs.node_features[SELECTED]]
        else:
            rows = examples.query().labels
        assert torch.equal(rows, task.targets.values[mask])
        assert len(examples) == len(task.targets.graph[mask].unique()) == task.split(split).count
        assert float(task.weights(examples).sum()) == len(rows)
        total += len(rows)
    assert total == len(task.targets.values)


@pytest.mark.parametrize(("level", "kind", "name"), ALL)
def test_padding_changes_neither_loss_nor_metrics(level, kind, name):
    weights = "balanced" if kind == "classification" else None
    task = made(level, kind, name, class_weights=weights)
    examples = task.examples("train")
    outputs = task.targets.outputs
    torch.manual_seed(0)
    rows = {"graph": len(examples), "node": examples.graphs.num_nodes, "pair": int(examples.query_counts.sum())}[level]
    given = torch.randn(rows, outputs)
    found = []
    query = examples.query()
    if query is not None and query.labels.ndim == 2 and query.labels.shape[1] > 1:
        batches = {"exact": mt.batch(examples.graphs, query=query)}
    else:
        batches = forms(examples.graphs, query=query)
    for batch in batches.values():
        targets, selected = task.rows_of(batch)
        real = {"graph": torch.ones(len(batch), dtype=torch.bool), "node": batch.node_mask}.get(level, selected)
        padded = torch.full((len(targets), outputs), 1e4)  # whatever a network says about padding
        padded[real] = given
        metric = task.metric()
        metric.update(padded, batch)
        found.append((float(task.loss(padded, batch)), metric.compute()))
    for loss, metrics in found:
        assert loss == pytest.approx(found[0][0], rel=1e-5) and metrics == pytest.approx(found[0][1], rel=1e-5)


@pytest.mark.parametrize(("level", "kind", "name"), ALL)
def test_the_loss_by_hand(level, kind, name):
    task = made(level, kind, name)
    examples = task.examples("valid")
    batch = mt.batch(examples.graphs, query=examples.query())
    targets, selected = task.rows_of(batch)
    outputs = torch.randn(len(targets), task.targets.outputs)
    rows, known = outputs[selected].double(), targets[selected]
    if kind == "regression":
        std = task.targets.values[task.targets.masks["train"]].double().std(0, correction=0)
        expected = ((rows - known) / std).square().mean(1).sum()
    elif kind == "classification":
        expected = -rows.log_softmax(1)[torch.arange(len(rows)), known].sum()
    else:
        expected = -torch.where(known > 0, rows, -rows).sigmoid().log().mean(1).sum()
    assert float(task.loss(outputs, batch)) == pytest.approx(float(expected), rel=1e-4)


def test_outputs_have_mean_and_deviation_of_the_training_targets():
    task = Supervised(GRAPHS, target="y")
    head = task.head("mean", 0)
    train = GRAPHS.graph_features["y"][task.targets.masks["train"]].double()
    assert isinstance(head, Rescaled)
    assert float(head.mean) == pytest.approx(float(train.mean()), rel=1e-5)
    assert float(head.std) == pytest.approx(float(train.std(correction=0)), rel=1e-5)


def test_a_constant_target_has_a_finite_loss():
    for value in (0.0, 0.1, 1e9):
        task = Supervised(paths(23).replace(graph_features={"y": torch.full((23,), value)}))
        batch = mt.batch(task.examples("train").graphs)
        assert float(task.loss(torch.full((len(batch), 1), value), batch)) == 0


def test_features_are_standardised_by_the_training_split():
    graphs = GRAPHS.replace(node_features={"x": torch.rand(GRAPHS.num_nodes, 2) * 1e4 + 7e4})
    task = Supervised(graphs, target="y")
    [part] = task.embedding()
    train = task.examples("train").graphs.node_features["x"].double()
    assert part.mean.tolist() == pytest.approx(train.mean(0).tolist(), rel=1e-6)
    assert part.std.tolist() == pytest.approx(train.std(0, correction=0).tolist(), rel=1e-5)


def test_class_weights():
    classes = torch.tensor([0] * 30 + [1] * 10)
    graphs = paths(40).replace(graph_features={"y": classes})
    splits = {"train": [*range(20), *range(30, 35)], "valid": [20, 35], "test": [21, 36]}
    task = Supervised(graphs, kind="classification", splits=splits, class_weights="balanced")
    batch = mt.batch(task.examples("train").graphs)
    outputs = torch.randn(25, 2)
    losses = -outputs.double().log_softmax(1)[torch.arange(25), classes[splits["train"]]]
    weights = torch.tensor([25 / 40, 25 / 10]).double()[classes[splits["train"]]]
    assert float(task.loss(outputs, batch)) == pytest.approx(float((losses * weights).sum()), rel=1e-5)
    assert float(task.weights(task.examples("train")).sum()) == pytest.approx(25)  # each class counts the same
    own = Supervised(graphs, kind="classification", splits=splits, class_weights=(1.0, 3.0))
    assert float(own.weights(own.examples("train")).sum()) == 20 + 15


def test_features_kinds_and_hidden_ones():
    count = GRAPHS.num_nodes
    features = {
        "wide": torch.rand(count, 300),
        "flag": torch.rand(count) > 0.5,
        "kind": torch.arange(count) % 5,
        "pairs": torch.stack([torch.arange(count) % 2, torch.arange(count) % 3], 1),
        "train_mask": torch.ones(count, dtype=torch.bool),
    }
    task = Supervised(GRAPHS.replace(node_features=features), target="y")
    assert task.node_inputs == {"wide": 300, "flag": (3,), "kind": (6,), "pairs": (3, 4)}
    chosen = Supervised(GRAPHS.replace(node_features=features), features=("kind", "wide"), continuous=("kind",))
    assert chosen.node_inputs == {"wide": 300, "kind": 1}
    labelled = Supervised(DataSet(GRAPHS, labels=("c", "l")), target="y", level="node")
    assert labelled.node_inputs == {}  # neither the target nor other targets are inputs


def test_a_copy_does_not_read_the_data_again(tmp_path, monkeypatch):
    GRAPHS.save(tmp_path / "g.safetensors")
    task = Supervised(tmp_path / "g.safetensors")
    (tmp_path / "g.safetensors").unlink()
    copy = dataclasses.replace(task, seed=3)
    assert copy.fingerprint == task.fingerprint and copy.options()["data"] == str(tmp_path / "g.safetensors")


@pytest.mark.parametrize("count", [100, 10_000])
def test_presets_aim_at_a_number_of_steps(count):
    task = Supervised(paths(count, high=3).replace(graph_features={"y": torch.rand(count)}))
    for preset, steps in (("quick", 1_500), ("default", 10_000)):
        found = task.derived(preset)["optim"]
        assert found["epochs"] * 0.8 * count / found["batch"] == pytest.approx(steps, rel=0.01) and found["batch"] >= 1


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"level": "edge"}, "level must be one of graph, node, pair, link"),
        ({"kind": "ranking"}, "kind must be one of regression"),
        ({"target": "z"}, "no graph feature 'z'"),
        ({"target": ()}, "target must be a name"),
        ({"target": ("y", "y")}, "different names"),
        ({"select": "accuracy"}, "select must be one of rmse"),
        ({"features": ("z",)}, "no feature 'z'"),
        ({"continuous": ("z",)}, "no feature 'z'"),
        ({"class_weights": "balanced"}, "class_weights are for classification"),
        *(
            ({"target": "c", "kind": "classification", "class_weights": given}, "'balanced' or 4 positive numbers")
            for given in ((1.0,), (1.0, 1.0, 1.0, -1.0), "even", (1.0, 1.0, 1.0, 0.0), {0: 1.0, 1: 2.0, 2: 1.0, 3: 1.0})
        ),
        *(
            ({"target": "c", "kind": "classification", "class_weights": (1.0, 1.0, 1.0, given)}, "4 positive numbers")
            for given in (math.nan, math.inf, "1", None)
        ),
        ({"fingerprint": "0123"}, "the data in memory are not those of the run"),
        ({"select": "r2", "splits": {"train": range(30), "valid": [30], "test": [31]}}, "at least two validation"),
    ],
)
def test_refusals(options, match):
    with pytest.raises(ValueError, match=match) as caught:
        Supervised(GRAPHS, **options)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("features", "match"),
    [
        ({"x": torch.tensor([0.0, torch.nan])}, "node feature 'x' of node 1 is not finite"),
        ({"x": torch.tensor([0, -1])}, "has the value -1, but integer features are categories"),
        ({"x": torch.tensor([0, 10**9])}, "has the value 1000000000"),
        ({"x": torch.zeros(2, 2, 2)}, r"of shape \("),
        ({"x": torch.zeros(2, dtype=torch.complex64)}, "is torch.complex64 of shape"),
        ({"x": torch.zeros(2, 0)}, r"of shape \("),
        ({"x": torch.zeros(2, 0, dtype=torch.long)}, r"of shape \("),
        ({"x": torch.tensor([1.0, 1e300], dtype=torch.float64)}, r"has the value 1e\+300, beyond single precision"),
        ({"x": torch.tensor([1e9, 1e9 + 1], dtype=torch.float64)}, r"differs by 0.5 around 1e\+09, which single"),
    ],
)
def test_features_that_no_model_reads_are_refused(features, match):
    rows = {
        name: values.repeat(GRAPHS.num_nodes, *[1] * (values.ndim - 1))[: GRAPHS.num_nodes]
        for name, values in features.items()
    }
    with pytest.raises(ValueError, match=match):
        Supervised(GRAPHS.replace(node_features=rows))


def test_class_weights_and_fractions_of_any_library_are_the_same():
    given = [1.0, 2.0, 3.0, 4.0]
    for weights in (given, np.array(given), torch.tensor(given), (1, 2, 3, 4)):
        task = Supervised(GRAPHS, target="c", kind="classification", class_weights=weights)
        assert task._weights["weights"].tolist() == given and json.dumps(task.options()["class_weights"])
    for splits in (np.array([0.5, 0.25, 0.25]), torch.tensor([0.5, 0.25, 0.25]), (np.float32(0.5), 0.25, 0.25)):
        assert Supervised(GRAPHS, splits=splits).options()["splits"] == (0.5, 0.25, 0.25)


@pytest.mark.parametrize(
    ("values", "match"),
    [
        (torch.arange(40).double() % 7 + 2.0**53, "which single precision does not resolve"),
        (torch.arange(40).double() * 1e300, "beyond single precision"),
        (torch.arange(40) + 2**53, "which single precision does not resolve"),
        (torch.zeros(40, 0), "one or two dimensions"),
    ],
)
def test_targets_that_single_precision_loses_are_refused(values, match):
    values = values[torch.arange(len(GRAPHS)) % 40]
    with pytest.raises(ValueError, match=match):
        Supervised(GRAPHS.replace(graph_features={"y": values}))


def test_other_refusals():
    with pytest.raises(ValueError, match="must not be called 'weight'"):
        Supervised(GRAPHS.replace(edge_features={"weight": torch.ones(GRAPHS.num_edges)}))
    same = {"train": range(30), "valid": [32, 36], "test": [33]}
    with pytest.raises(ValueError, match="validation targets that differ"):
        Supervised(GRAPHS, target="c", kind="classification", select="auc", splits=same)
    with pytest.raises(ValueError, match="unknown split 'all'"):
        Supervised(GRAPHS).examples("all")
