"""Losses and metrics by hand."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import magnetite as mt
from magnetite.tasks.scores import KINDS, MOST_RANKED, Scores
from tests.tasks.own_data import paths


def scores(kind, outputs, targets, names=("a", "b"), selected=None, at_once=100) -> dict[str, float]:
    """The metrics after updates with a few rows at a time."""
    chosen = torch.ones(len(targets), dtype=torch.bool) if selected is None else selected

    def rows_of(batch):
        return targets[batch.graph_features["row"]], chosen[batch.graph_features["row"]]

    metric = Scores(KINDS[kind], outputs.shape[1], names, rows_of)
    for rows in torch.arange(len(targets)).split(at_once):
        graphs = paths(len(rows)).replace(graph_features={"row": rows})
        metric.update(outputs[rows], mt.batch(graphs))
    return metric.compute()


def auc(scores, positive) -> float:
    above, below = scores[positive], scores[~positive]
    greater = (above[:, None] > below).double() + 0.5 * (above[:, None] == below)
    return float(greater.mean())


@pytest.mark.parametrize("at_once", [1, 7, 100])
def test_regression(at_once):
    torch.manual_seed(0)
    outputs, targets = torch.randn(20, 2), torch.randn(20, 2) + 3
    found = scores("regression", outputs, targets, at_once=at_once)
    error = (outputs - targets).double()
    rmse, mae = error.square().mean(0).sqrt(), error.abs().mean(0)
    r2 = 1 - error.square().sum(0) / (targets.double() - targets.double().mean(0)).square().sum(0)
    for name, values in {"rmse": rmse, "mae": mae, "r2": r2}.items():
        assert found[name] == pytest.approx(float(values.mean()), rel=1e-5)
        assert [found[f"{name}/a"], found[f"{name}/b"]] == pytest.approx(values.tolist(), rel=1e-5)
    assert found["mape"] == pytest.approx(float((error / targets).abs().mean()), rel=1e-5)


@pytest.mark.parametrize("classes", [2, 4, 30])
def test_classification(classes):
    torch.manual_seed(1)
    outputs, targets = torch.randn(60, classes), torch.arange(60) % classes
    found = scores("classification", outputs, targets, at_once=13)
    answer, probability = outputs.argmax(1), outputs.double().softmax(1)
    assert found["accuracy"] == pytest.approx(float((answer == targets).double().mean()))
    f1 = [
        2 * ((answer == c) & (targets == c)).sum() / ((answer == c).sum() + (targets == c).sum())
        for c in range(classes)
    ]
    assert found["f1"] == pytest.approx(float(torch.stack(f1).mean()), rel=1e-5)
    each = [auc(probability[:, c], targets == c) for c in range(classes)]
    assert found["auc"] == pytest.approx(sum(each) / classes, abs=1e-6)


@pytest.mark.parametrize("labels", [1, 3, 30])
def test_multilabel(labels):
    torch.manual_seed(2)
    outputs, targets = torch.randn(50, labels), torch.randint(0, 2, (50, labels)).float()
    found = scores("multilabel", outputs, targets, at_once=9)
    assert found["accuracy"] == pytest.approx(float(((outputs > 0) == (targets > 0)).double().mean()), rel=1e-5)
    each = [auc(outputs[:, label], targets[:, label] > 0) for label in range(labels)]
    assert found["auc"] == pytest.approx(sum(each) / labels, abs=1e-5)


def test_scores_of_large_logits_are_not_tied():
    """Their probabilities are all 1 in double precision."""
    outputs, targets = torch.tensor([[40.0], [60.0], [50.0], [45.0]]), torch.tensor([[0.0], [1], [1], [0]])
    for kind in ("link", "multilabel"):
        assert scores(kind, outputs, targets)["auc"] == 1
    assert scores("link", outputs, targets)["mrr"] == 1


def test_too_many_classes_have_no_auc():
    outputs, targets = torch.randn(4, MOST_RANKED + 1), torch.arange(4)
    assert set(scores("classification", outputs, targets)) == {"accuracy", "f1"}
    assert "auc" not in scores("multilabel", outputs, torch.zeros(4, MOST_RANKED + 1))


def test_classes_that_a_split_lacks_do_not_lower_the_auc():
    outputs = torch.tensor([[4.0, 0, 0], [3, 1, 0], [0, 3, 0], [1, 2, 0]])
    assert scores("classification", outputs, torch.tensor([0, 0, 1, 1]))["auc"] == pytest.approx(1)
    labels = torch.tensor([[0.0, 1], [0, 1], [0, 0], [0, 0]])
    assert scores("multilabel", outputs[:, :2].flip(1) * torch.tensor([1, 1]), labels)["auc"] == pytest.approx(1)


@pytest.mark.parametrize("unit", [1e-20, 1e-6, 1.0, 1e20])
def test_relative_errors_do_not_depend_on_the_unit(unit):
    torch.manual_seed(5)
    outputs, targets = torch.randn(30, 2).double(), torch.randn(30, 2).double()
    plain, scaled = scores("regression", outputs, targets), scores("regression", outputs * unit, targets * unit)
    for name in ("r2", "mape"):
        assert scaled[name] == pytest.approx(plain[name], rel=1e-5)


def test_metrics_that_are_not_defined_are_nan():
    assert math.isnan(scores("regression", torch.randn(9, 1), torch.full((9, 1), 0.3))["r2"])
    assert math.isnan(scores("regression", torch.randn(1, 2), torch.randn(1, 2))["r2"])
    assert math.isnan(scores("classification", torch.randn(3, 2), torch.tensor([1, 1, 1]))["auc"])
    assert math.isnan(scores("multilabel", torch.randn(3, 1), torch.ones(3, 1), ["a"])["auc"])


@pytest.mark.parametrize("kind", list(KINDS))
def test_rows_outside_the_split_do_not_count(kind):
    torch.manual_seed(3)
    outputs, selected = torch.randn(30, 2), torch.arange(30) % 3 > 0
    targets = {
        "regression": torch.randn(30, 2),
        "classification": torch.randint(0, 2, (30,)),
        "multilabel": torch.randint(0, 2, (30, 2)).float(),
        "link": torch.randint(0, 2, (30, 1)).float(),
    }[kind]
    outputs = outputs[:, :1] if kind == "link" else outputs
    assert scores(kind, outputs, targets, selected=selected) == pytest.approx(
        scores(kind, outputs[selected], targets[selected]), rel=1e-6, nan_ok=True
    )
    assert scores(kind, outputs, targets).keys() >= KINDS[kind].metrics.keys()


def test_losses_by_hand():
    outputs, scale = torch.tensor([[1.0, 2.0], [0.0, -1.0]]), torch.tensor([2.0, 0.5])
    regression = KINDS["regression"].loss(outputs, torch.tensor([[3.0, 1.0], [0.0, 0.0]]), scale)
    assert regression.tolist() == pytest.approx([(1 + 4) / 2, (0 + 4) / 2])
    classes = KINDS["classification"].loss(outputs, torch.tensor([1, 0]), scale)
    assert classes.tolist() == pytest.approx([math.log(1 + math.exp(-1)), math.log(1 + math.exp(-1))])
    labels = KINDS["multilabel"].loss(outputs, torch.tensor([[1.0, 0], [0, 1]]), scale)
    soft = [math.log(1 + math.exp(value)) for value in (-1, 2, 0, 1)]
    assert labels.tolist() == pytest.approx([(soft[0] + soft[1]) / 2, (soft[2] + soft[3]) / 2])


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**31), st.integers(1, 40), st.integers(1, 130))
def test_metrics_of_links_by_hand(seed, links, others):
    random = torch.Generator().manual_seed(seed)
    logits = torch.randint(-4, 5, (links + others, 1), generator=random).double() + 0.5  # with ties, and none 0
    labels = (torch.arange(links + others) < links).float()[:, None]
    order = torch.randperm(links + others, generator=random)
    found = scores("link", logits[order], labels[order])
    high, low = logits[:links], logits[links:].T
    assert found["auc"] == pytest.approx(float((high > low).double().mean() + (high == low).double().mean() / 2))
    ranks = 1 + (low > high).sum(1) + (low == high).sum(1) / 2
    assert found["mrr"] == pytest.approx(float((1 / ranks).mean()), rel=1e-6)
    assert found["accuracy"] == pytest.approx(float(((logits > 0) == labels.bool()).double().mean()))
    precisions = []
    for level in logits.unique().flip(0):
        chosen = logits >= level
        gained = ((logits == level) & labels.bool()).sum() / links
        precisions.append(float(gained * (labels * chosen).sum() / chosen.sum()))
    assert found["ap"] == pytest.approx(sum(precisions), rel=1e-5)
    for count in (10, 50, 100):
        if others < count:
            assert math.isnan(found[f"hits@{count}"])
        else:
            bar = logits[links:, 0].sort(descending=True).values[count - 1]
            assert found[f"hits@{count}"] == pytest.approx(float((high > bar).double().mean()))
