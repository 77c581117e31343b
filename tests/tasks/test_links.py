"""Links: what a model may see, what it is asked about, and what is refused."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import magnetite as mt
from magnetite.tasks import DataSet, Supervised, split_links
from magnetite.tasks.base import SPLITS

FRACTIONS = (0.6, 0.2, 0.2)


def random_graphs(seed: int, count: int = 1, nodes: int = 12, edges: int = 40) -> mt.Digraphs:
    """Graphs with self-loops, parallel edges, edges in both directions, weights and features."""
    random = np.random.default_rng(seed)
    lists = [random.integers(0, nodes, (2, edges)) for _ in range(count)]
    graphs = mt.Digraphs.from_edges(lists, num_nodes=[nodes] * count)
    number = torch.arange(graphs.num_edges, dtype=torch.float32) + 1
    return graphs.replace(weights=number, edge_features={"number": number})


def edges_of(graphs: mt.Digraphs, number: int = 0) -> set[tuple[int, int]]:
    return set(map(tuple, graphs[number].edges.T.tolist()))


def asked(links: DataSet, split: str, label: int | None = None) -> list[tuple[int, int, int]]:
    """Copy, source and target of the query pairs of a split."""
    pairs = links.pairs
    mask = links.splits["links"][split]
    mask = mask if label is None else mask & (pairs.labels == label)
    view = torch.repeat_interleave(pairs.counts)
    return list(zip(view[mask].tolist(), *pairs.nodes[:, mask].tolist(), strict=True))


CASES = st.tuples(
    st.integers(0, 2**31),
    st.sampled_from(["existence", "direction"]),
    st.sampled_from(["random", "reversed", "both"]),
    st.integers(2, 4),
    st.integers(30, 90),
)


@settings(max_examples=25, deadline=None)
@given(CASES)
def test_the_laws_of_links(case):
    seed, target, negatives, folds, count = case
    graphs = random_graphs(seed % 1000, nodes=14, edges=count)
    links = split_links(graphs, target, None if target == "direction" else negatives, FRACTIONS, folds=folds, seed=seed)
    true = edges_of(graphs)
    one_way = {(u, v) for u, v in true if (v, u) not in true}
    held_out, seen_as_training = set(), set()
    for split in SPLITS:
        for view, u, v in asked(links, split):
            visible = edges_of(links.graphs, view)
            assert u != v and (u, v) not in visible and (v, u) not in visible  # the answer cannot be read off
        positives, others = asked(links, split, 1), asked(links, split, 0)
        assert len({pair[1:] for pair in positives}) == len(positives)  # parallel edges are asked about once
        assert {pair[1:] for pair in positives} <= true
        links_asked = {pair[1:] for pair in positives}
        if target == "direction":
            links_asked |= {(v, u) for _, u, v in others}
            assert links_asked <= one_way and abs(len(positives) - len(others)) <= 1
        else:
            assert not {pair[1:] for pair in others} & true
            if negatives == "random":
                assert not {(v, u) for _, u, v in others} & true and len(others) == len(positives)
            if negatives == "reversed":
                assert {(v, u) for _, u, v in others} == {edge for edge in links_asked if edge in one_way}
        (seen_as_training if split == "train" else held_out).update(links_asked)
    expected = one_way if target == "direction" else {edge for edge in true if edge[0] != edge[1]}
    assert held_out | seen_as_training == expected and not held_out & seen_as_training
    for view in range(len(links.graphs)):
        visible = edges_of(links.graphs, view)
        assert not visible & (held_out | {(v, u) for u, v in held_out})
        for weight, (u, v) in zip(
            links.graphs[view].weights.tolist(), links.graphs[view].edges.T.tolist(), strict=True
        ):
            assert graphs.edges[:, int(weight) - 1].tolist() == [u, v]  # weights stay with their edges
    assert torch.equal(links.graphs.weights, links.graphs.edge_features["number"])
    assert edges_of(links.graphs, len(links.graphs) - 1) == true - held_out  # validation and test see all of training


@pytest.mark.parametrize("target", ["direction", "existence"])
def test_held_out_edges_leave_no_trace_in_what_models_see(target):
    graphs = mt.Digraphs.from_edges(np.unique(np.random.default_rng(3).integers(0, 30, (2, 90)), axis=1), num_nodes=30)
    links = split_links(graphs, target, seed=1)
    trained = edges_of(links.graphs, len(links.graphs) - 1)
    flip = torch.tensor([tuple(edge) not in trained for edge in graphs.edges.T.tolist()])
    assert 10 < int(flip.sum()) < 30
    other = graphs.replace(edges=torch.where(flip, graphs.edges.flip(0), graphs.edges))
    tasks = [Supervised(each, level="link", target=target, seed=1) for each in (graphs, other)]
    assert tasks[0].fingerprint != tasks[1].fingerprint
    for split in SPLITS:
        first, second = (task.examples(split).graphs for task in tasks)
        encodings = [mt.MagneticLaplacian(k=4)(each) for each in (first, second)]
        assert all(torch.equal(first.tensors()[name], second.tensors()[name]) for name in first.tensors())
        assert torch.equal(encodings[0].vectors, encodings[1].vectors)


def test_the_same_seed_gives_the_same_links():
    graphs = random_graphs(0, count=3)
    first, again, other = (split_links(graphs, negatives="both", seed=seed) for seed in (4, 4, 5))
    assert first.fingerprint == again.fingerprint != other.fingerprint
    assert first.fingerprint == "b4849932f5d0b681"  # on every machine


@pytest.mark.parametrize("negatives", ["random", "both"])
def test_dense_graphs_have_the_negatives_that_exist(negatives):
    pairs = [(u, v) for u in range(12) for v in range(12) if abs(u - v) > 1]  # a path is missing
    links = split_links(mt.Digraphs.from_edges(np.array(pairs).T), negatives=negatives, splits=FRACTIONS, seed=2)
    found = [pair[1:] for split in SPLITS for pair in asked(links, split, 0)]
    assert len(found) == 22 and {abs(u - v) for u, v in found} == {1}


def test_two_edges_are_read_as_those_of_the_other_splits():
    edges = np.array([[0, 0, 1, 2, 3, 4, 5, 6, 7, 3], [1, 2, 3, 3, 4, 5, 6, 7, 0, 6]])
    valid = np.array([[0, 1], [2, 3]])  # 0 → 1 and 2 → 3 by row, 0 → 2 and 1 → 3 by column: all are edges
    for by_row, expected in ((True, [[0, 1], [2, 3]]), (False, [[0, 2], [1, 3]])):
        splits = {"train": edges[:, 4:7], "test": edges[:, 7:]}
        splits = {name: pairs.T if by_row else pairs for name, pairs in splits.items()} | {"valid": valid}
        links = split_links(mt.Digraphs.from_edges(edges), splits=splits, folds=2)
        nodes = links.pairs.nodes[:, links.splits["links"]["valid"] & (links.pairs.labels == 1)]
        assert nodes.T.tolist() == expected


def test_no_pair_is_asked_about_twice_with_both_negatives():
    edges = np.random.default_rng(3).integers(0, 9, (2, 30))
    links = split_links(mt.Digraphs.from_edges(edges), negatives="both", folds=2, reverse_in_training=True)
    pairs = links.pairs.nodes.T.tolist()
    assert len({tuple(pair) for pair in pairs}) == len(pairs)


def test_several_graphs_share_their_edges_among_the_splits():
    graphs = random_graphs(1, count=6)
    task = Supervised(graphs, level="link", target="existence", folds=3)
    assert [len(task.examples(split)) for split in SPLITS] == [18, 6, 6]
    whole = {"train": [0, 1, 2, 3], "valid": [4], "test": [5]}
    links = split_links(graphs, splits=whole, folds=3)
    assert len(links.graphs) == 18
    for split, numbers in whole.items():
        shown = {tuple(graphs[each].edges.T.flatten().tolist()) for each in numbers}
        for view in {pair[0] for pair in asked(links, split)}:
            inside = edges_of(links.graphs, view)
            assert any(inside < set(zip(each[::2], each[1::2], strict=True)) for each in shown)


def test_given_splits():
    graphs = mt.Digraphs.from_edges([[0, 1, 2, 3, 4, 1, 0], [1, 2, 3, 4, 0, 0, 0]])
    mask = [torch.tensor([number in chosen for number in range(7)]) for chosen in ((0, 1, 2, 6), (3,), (4, 5))]
    forms = [
        dict(zip(SPLITS, mask, strict=True)),
        {"train": [0, 1, 2, 6], "val": [3], "test": [4, 5]},
        {"train": graphs.edges[:, mask[0]], "valid": graphs.edges[:, mask[1]], "test": graphs.edges[:, mask[2]]},
        {name: {"edge": graphs.edges[:, each].T} for name, each in zip(SPLITS, mask, strict=True)},
    ]
    expected = split_links(graphs, splits=forms[0], folds=2)
    for form in forms[1:]:
        assert split_links(graphs, splits=form, folds=2).fingerprint == expected.fingerprint
    featured = graphs.replace(edge_features=dict(zip(("train_mask", "val_mask", "test_mask"), mask, strict=True)))
    found = split_links(featured, folds=2)
    assert torch.equal(found.pairs.nodes, expected.pairs.nodes)
    assert Supervised(featured, level="link", target="existence", folds=2).edge_inputs == {}
    # The edge 0 → 1 is the reverse of a test edge, and is not left in training; the self-loop is.
    assert edges_of(expected.graphs, len(expected.graphs) - 1) == {(1, 2), (2, 3), (0, 0)}
    kept = split_links(graphs, splits=forms[0], folds=2, reverse_in_training=True)
    assert edges_of(kept.graphs, len(kept.graphs) - 1) == {(0, 1), (1, 2), (2, 3), (0, 0)}
    with_negatives = {**forms[3], "test": {"edge": [[4, 0], [1, 0]], "edge_neg": [[0, 2], [2, 0], [4, 2]]}}
    links = split_links(graphs, splits=with_negatives, folds=2)
    assert [pair[1:] for pair in asked(links, "test", 0)] == [(0, 2), (2, 0), (4, 2)]
    task = Supervised(graphs, level="link", target="existence", splits=forms[2], folds=2)
    assert task.options()["splits"] == "given"
    other = {**forms[2], "test": graphs.edges[:, 5:6]}
    assert Supervised(graphs, level="link", target="existence", splits=other, folds=2).fingerprint != task.fingerprint


def test_the_metrics_and_their_selection():
    graphs = random_graphs(5, nodes=20, edges=100)
    task = Supervised(graphs, level="link", target="existence", select="mrr")
    assert task.selects == "mrr" and task.larger_is_better and task.schema().kind == "link"
    examples = task.examples("test")
    batch = mt.batch(examples.graphs, query=examples.query())
    outputs = (task.rows_of(batch)[0] * 4 - 2).float()
    metric = task.metric()
    metric.update(outputs, batch)
    found = metric.compute()
    assert found["auc"] == found["ap"] == found["mrr"] == found["accuracy"] == 1
    assert float(task.weights(examples).sum()) == len(outputs)


GRAPH = random_graphs(0)


@pytest.mark.parametrize(
    ("data", "options", "match"),
    [
        (GRAPH, {"target": "y"}, "target of links must be one of existence, direction, got 'y'"),
        (GRAPH, {"negatives": "hard"}, "negatives of links must be one of random, reversed, both"),
        (GRAPH, {"target": "direction", "negatives": "random"}, "leave them out"),
        (GRAPH, {"folds": 1}, "folds must be at least 2"),
        (GRAPH, {"kind": "classification"}, "links are there or not"),
        (GRAPH, {"select": "rmse"}, "select must be one of auc, ap"),
        (GRAPH, {"select": "hits@100"}, "needs 100 negatives in validation, got 2"),
        (GRAPH, {"splits": (0.5, 0.5)}, "three fractions"),
        (GRAPH, {"splits": {"train": [0], "valid": [1], "test": [99]}}, "has id 99, but ids go from 0 to 39"),
        (GRAPH, {"splits": {"train": [0, 1], "valid": [1], "test": [3]}}, "edge 1 is in train and valid"),
        (GRAPH, {"splits": {"train": [0], "valid": [1], "test": []}}, "the test split"),
        (GRAPH, {"splits": {"train": [0], "valid": [1], "test": [[0, 0], [1, 11]]}}, "of the test split is not in"),
        (GRAPH, {"splits": {"train": [0], "valid": [1], "test": [[0], [12]]}}, r"has \(0, 12\), but the graph has no"),
        (GRAPH, {"splits": {"train": {"nodes": []}, "valid": [1], "test": [2]}}, "expected 'edge'"),
        (mt.Digraphs.from_edges([[0, 1], [1, 0]]), {"target": "direction"}, "no edge to predict the direction of"),
        (mt.Digraphs.from_edges([[0, 1], [0, 1]]), {}, "no edge to predict the existence of .2 edges; all are self-"),
        (mt.Digraphs.from_edges([[0, 1], [1, 2]]), {}, "2 linked node pairs cannot be split"),
        (mt.Digraphs.from_edges([[0, 0, 1, 1, 2, 2], [1, 2, 0, 2, 0, 1]]), {}, "no random negatives: almost all nodes"),
        (
            mt.Digraphs.from_edges([[0, 0, 1, 1, 2, 2], [1, 2, 0, 2, 0, 1]]),
            {"negatives": "reversed"},
            "no reversed negatives: every edge also",
        ),
    ],
)
def test_refusals(data, options, match):
    with pytest.raises(ValueError, match=match) as caught:
        Supervised(data, **{"level": "link", "target": "existence", **options})
    assert "\n" not in str(caught.value)


def test_negatives_belong_to_links():
    graphs = GRAPH.replace(graph_features={"y": torch.zeros(1)})
    with pytest.raises(ValueError, match="negatives are for level link"):
        Supervised(graphs, negatives="random")
    with pytest.raises(ValueError, match="which is an edge"):
        parts = {"train": {"edge": GRAPH.edges[:, :5].T}, "valid": {"edge": GRAPH.edges[:, 5:8].T}}
        test = {"edge": GRAPH.edges[:, 8:10].T, "edge_neg": GRAPH.edges[:, 11:12].T}
        split_links(GRAPH, splits={**parts, "test": test})
