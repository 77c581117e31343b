"""Metrics and losses against what they mean, written out graph by graph."""

import math

import pytest
import torch

import magnetite as mt
from magnetite.batching import BatchShape, gather
from magnetite.batching.buckets import split_sizes
from magnetite.tasks import Distances, Sorting
from magnetite.tasks.metrics import f1


def naive(labels: list[int], scores: list[float]) -> dict[str, float]:
    said = [score > 0 for score in scores]
    hits = sum(s and y for s, y in zip(said, labels, strict=True))
    alarms = sum(s and not y for s, y in zip(said, labels, strict=True))
    misses = sum(y and not s for s, y in zip(said, labels, strict=True))
    precision, recall = hits / (hits + alarms), hits / (hits + misses)
    yes = [score for score, label in zip(scores, labels, strict=True) if label]
    no = [score for score, label in zip(scores, labels, strict=True) if not label]
    return {
        "accuracy": sum(bool(s) == bool(y) for s, y in zip(said, labels, strict=True)) / len(labels),
        "f1": 2 * precision * recall / (precision + recall),
        "auc": sum((a > b) + (a == b) / 2 for a in yes for b in no) / (len(yes) * len(no)),
    }


@pytest.fixture(scope="module")
def networks() -> tuple[Sorting, mt.Digraphs, torch.Tensor]:
    task = Sorting(test=100)
    graphs = task.examples("test").graphs
    outputs = torch.randn(len(graphs), 2, generator=torch.Generator().manual_seed(0)) * 3
    return task, graphs, outputs


def test_sorting_in_total_and_by_length(networks):
    task, graphs, outputs = networks
    metric = task.metric()
    for start in range(0, len(graphs), 64):
        ids = torch.arange(start, min(start + 64, len(graphs)))
        metric.update(outputs[ids], mt.batch(graphs, ids=ids))
    figures = metric.compute()
    labels, lengths = (graphs.graph_features[name] for name in ("label", "length"))
    scores = outputs[:, 1] - outputs[:, 0]
    for name, chosen in {"": lengths > 0, **{f"/{n}": lengths == n for n in range(13, 17)}}.items():
        expected = naive(labels[chosen].tolist(), scores[chosen].tolist())
        for measure, value in expected.items():
            assert figures[measure + name] == pytest.approx(value, abs=2e-3 if measure == "auc" else 1e-12)


def test_metrics_of_two_processes_add_up(networks):
    task, graphs, outputs = networks
    whole, first, second = task.metric(), task.metric(), task.metric()
    half = len(graphs) // 2
    for metric, part in ((whole, slice(None)), (first, slice(half)), (second, slice(half, None))):
        metric.update(outputs[part], mt.batch(graphs[part]))
    first.state = first.state + second.state
    assert first.compute() == whole.compute()


@pytest.mark.parametrize("target", ["reachability", "directed-distance"])
def test_pairs_against_a_loop_over_graphs(target):
    task = Distances(target=target, train=40)
    examples = task.examples("train")
    graphs, query = examples.graphs, examples.targets.query()
    sizes = graphs.sizes.numpy()
    buckets = split_sizes(sizes)[0]
    shape = BatchShape(buckets, int(sizes.sum()), graphs.num_edges, query.labels.numel() + 50)  # with padding
    batch = gather(graphs, torch.arange(40), shape, {}, query)
    generator = torch.Generator().manual_seed(0)
    outputs = [torch.randn(size, size, generator=generator) for size in sizes.tolist()]
    flat = [outputs[graph][u, v] for graph in range(40) for u, v in query[graph].nodes.T.tolist()]
    listed = torch.cat([torch.stack(flat), torch.full((50,), 7.0)])[:, None]
    labels, answers, losses, counts = [], [], 0.0, []
    for number in range(40):
        targets = examples.targets[number]
        counts.append(0)
        for u in range(len(targets)):
            for v in range(len(targets)):
                if u == v or targets[u, v] < 0:
                    continue
                answer, truth = float(outputs[number][u, v]), float(targets[u, v])
                counts[-1] += 1
                labels.append(truth)
                answers.append(answer)
                chance = 1 / (1 + math.exp(-answer))
                losses += (answer - truth) ** 2 if "distance" in target else -math.log(chance if truth else 1 - chance)
    assert task.weights(examples).tolist() == counts
    assert query.counts.tolist() == counts
    assert float(task.loss(listed, batch)) == pytest.approx(losses, rel=1e-5)
    metric = task.metric()
    metric.update(listed, batch)
    figures = metric.compute()
    if task.classifies:
        expected = naive([int(label) for label in labels], answers)
        assert figures["f1"] == pytest.approx(expected["f1"])
        assert figures["accuracy"] == pytest.approx(expected["accuracy"])
    else:
        assert figures["rmse"] == pytest.approx(math.sqrt(losses / len(labels)), rel=1e-6)


@pytest.mark.parametrize("target", ["reachability", "directed-distance"])
def test_a_batch_without_query_pairs_is_rejected(target):
    task, batch = Distances(target=target), mt.batch(mt.Digraphs.from_edges([[0], [1]]))
    for measure in (task.loss, task.metric().update):
        with pytest.raises(ValueError, match="the batch has no query pairs"):
            measure(torch.zeros(1, 1), batch)


def test_sorting_loss_is_the_cross_entropy(networks):
    task, graphs, outputs = networks
    expected = torch.nn.functional.cross_entropy(outputs, graphs.graph_features["label"], reduction="sum")
    assert float(task.loss(outputs, mt.batch(graphs))) == pytest.approx(float(expected), rel=1e-6)


def test_f1_is_not_clipped():
    """Precision 0.9 and recall 0.9 give 0.9; with their sum clipped to 1 it would be 1.62."""
    assert f1(9, 1, 1) == pytest.approx(0.9)
    assert f1(1, 99, 99) == pytest.approx(0.01)
    assert math.isnan(f1(0, 0, 0))


def test_the_error_by_graph_is_the_mean_of_the_errors_of_graphs():
    task = Distances(target="directed-distance", per_size=2)
    examples = task.shard("test", 0)
    query = examples.targets.query()
    outputs = torch.rand(query.labels.numel(), 1, generator=torch.Generator().manual_seed(0)) * 5
    metric = task.metric()
    metric.update(outputs, mt.batch(examples.graphs, query=query))
    each = [
        float((outputs[part, 0] - query.labels[part]).square().mean().sqrt())
        for part in (slice(*ends) for ends in zip(query.query_ptr, query.query_ptr[1:], strict=False))
        if part.stop > part.start
    ]
    assert metric.compute()["rmse_by_graph"] == pytest.approx(sum(each) / len(each), rel=1e-6)
    parts, ids = task.metric(), torch.arange(len(examples.graphs))
    for some in ids.split(5):  # batches add up
        whole = mt.batch(examples.graphs, query=query, ids=some)
        ends = query.query_ptr[some[0]], query.query_ptr[some[-1] + 1]
        parts.update(outputs[slice(*ends)], whole)
    assert parts.compute()["rmse_by_graph"] == pytest.approx(sum(each) / len(each), rel=1e-6)
