"""Laws of splits: drawn ones are reproducible, disjoint, complete and in proportion; given ones are taken as given."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import magnetite as mt
from magnetite.tasks import DataSet
from magnetite.tasks.targets import FRACTIONS, Targets, targets_of
from tests.tasks.own_data import paths, with_pairs, with_targets

SPLITS = ("train", "valid", "test")


def of(data, name="y", level="graph", kind="regression", splits=None, seed=0) -> Targets:
    return targets_of(data if isinstance(data, DataSet) else DataSet(data), [name], level, kind, splits, seed)


def split_of(targets: Targets) -> np.ndarray:
    """The number of the split of each row, −1 for none."""
    stacked = torch.stack([targets.masks[split] for split in SPLITS])
    assert bool((stacked.sum(0) <= 1).all())
    return torch.where(stacked.any(0), stacked.int().argmax(0), -1).numpy()


@given(
    count=st.integers(3, 60),
    seed=st.integers(0, 5),
    parts=st.tuples(st.integers(1, 9), st.integers(1, 9), st.integers(1, 9)),
)
def test_drawn_splits_are_disjoint_complete_and_in_proportion(count, seed, parts):
    fractions = [part / sum(parts) for part in parts]
    split = split_of(of(with_targets(paths(count)), splits=fractions, seed=seed))
    assert (split >= 0).all()
    for number, fraction in enumerate(fractions):
        found = int((split == number).sum())
        assert found >= 1 and abs(found - fraction * count) <= 2


def test_drawn_splits_depend_on_the_seed_alone():
    data = with_targets(paths(50))
    first, again, other = (split_of(of(data, seed=seed)) for seed in (3, 3, 4))
    assert (first == again).all() and (first != other).any()
    assert (split_of(of(data, "c", seed=3)) == first).all()  # not on the target, unless classes are stratified


@given(counts=st.lists(st.integers(1, 40), min_size=2, max_size=5), seed=st.integers(0, 5))
def test_drawn_splits_keep_the_proportions_of_the_classes(counts, seed):
    total = sum(counts)
    if total < 10:
        counts = [each * 10 for each in counts]
        total = sum(counts)
    classes = torch.repeat_interleave(torch.arange(len(counts)) * 7, torch.tensor(counts))
    classes = classes[torch.randperm(total, generator=torch.Generator().manual_seed(seed))]
    data = paths(total, high=3).replace(graph_features={"c": classes})
    targets = of(data, "c", kind="classification", seed=seed)
    split = split_of(targets)
    for number, count in enumerate(counts):
        rows = targets.values.numpy() == number
        assert rows.sum() == count and (split[rows] == 0).any()  # every class can be learned
        for part, fraction in enumerate(FRACTIONS):
            assert abs((split[rows] == part).sum() - fraction * count) <= 2.5


def test_nodes_and_pairs_of_several_graphs_are_split_graph_by_graph():
    graphs = with_targets(paths(20))
    nodes, pairs = of(graphs, level="node"), of(with_pairs(graphs, "y"), level="pair")
    for targets in (nodes, pairs):
        split = split_of(targets)
        for graph in range(20):
            assert len(set(split[targets.graph.numpy() == graph])) == 1
        assert {len(set(targets.graph[targets.masks[name]].tolist())) for name in SPLITS} == {16, 2}


def test_nodes_of_one_graph_are_split_one_by_one():
    targets = of(with_targets(paths(1, low=50, high=50)), "c", "node", "classification")
    assert sorted(np.bincount(split_of(targets))) == [5, 5, 40]


def test_ids_masks_and_ids_of_graphs_say_the_same():
    graphs = with_targets(paths(10))
    ids = {"train": [0, 1, 2, 9], "valid": np.array([5]), "test": torch.tensor([8, 7])}
    masks = {}
    for name, each in ids.items():
        masks[name] = torch.zeros(10, dtype=torch.bool)
        masks[name][torch.as_tensor(each)] = True
    by_graph = split_of(of(graphs, splits=ids))
    assert (split_of(of(graphs, splits=masks)) == by_graph).all()
    assert by_graph.tolist() == [0, 0, 0, -1, -1, 1, -1, 2, 2, 0]
    for splits in (ids, masks):
        nodes = of(graphs, level="node", splits=splits)
        assert (split_of(nodes) == by_graph[nodes.graph.numpy()]).all()
    rows = {name: mask[graphs.node_graph] for name, mask in masks.items()}
    assert (split_of(of(graphs, level="node", splits=rows)) == by_graph[graphs.node_graph.numpy()]).all()


def test_masks_of_the_nodes_are_found():
    graphs = with_targets(paths(1, low=9, high=9))
    masks = {name: torch.arange(9) % 3 == part for part, name in enumerate(("train_mask", "val_mask", "test_mask"))}
    graphs = graphs.replace(node_features={**graphs.node_features, **masks})
    assert split_of(of(graphs, level="node")).tolist() == [0, 1, 2] * 3


def test_masks_may_be_numbers_and_are_not_ignored():
    graphs = with_targets(paths(1, low=9, high=9))
    masks = {
        name: (torch.arange(9) % 3 == part).byte() for part, name in enumerate(("train_mask", "val_mask", "test_mask"))
    }
    whole = graphs.replace(node_features={**graphs.node_features, **masks})
    assert split_of(of(whole, level="node")).tolist() == [0, 1, 2] * 3
    for some in (
        {"train_mask": masks["train_mask"], "test_mask": masks["test_mask"]},
        {**masks, "val_mask": torch.arange(9)},
    ):
        partly = graphs.replace(node_features={**graphs.node_features, **some})
        with pytest.raises(ValueError, match="which are no split: give train_mask, val_mask and test_mask"):
            of(partly, level="node")
        assert len(of(partly, level="node", splits=(0.5, 0.25, 0.25)).values) == 9


def test_fractions_may_be_numbers_of_any_library():
    expected = split_of(of(with_targets(paths(20)), splits=(0.5, 0.25, 0.25)))
    for some in (np.array([0.5, 0.25, 0.25]), torch.tensor([0.5, 0.25, 0.25]), tuple(np.float32([0.5, 0.25, 0.25]))):
        assert (split_of(of(with_targets(paths(20)), splits=some)) == expected).all()


def test_of_several_masks_one_is_chosen():
    graphs = with_targets(paths(1, low=9, high=9))
    order = torch.arange(9)
    masks = {
        name: torch.stack([order % 3 == part, order // 3 == part], 1)
        for part, name in enumerate(("train_mask", "val_mask", "test_mask"))
    }
    graphs = graphs.replace(node_features={**graphs.node_features, **masks})
    assert split_of(of(graphs, level="node", splits="0")).tolist() == [0, 1, 2] * 3
    assert split_of(of(graphs, level="node", splits="1")).tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    for splits, match in (
        (None, "the masks have 2 splits: choose one with splits, '0' to '1'"),
        ("2", "unknown split"),
    ):
        with pytest.raises(ValueError, match=match):
            of(graphs, level="node", splits=splits)


def test_targets_of_rows_in_no_split_need_not_be_known():
    graphs = paths(1, low=6, high=6)
    splits = {"train": [0, 1], "valid": [2], "test": [3]}
    numbers = torch.tensor([1.0, 2, 3, 4, torch.nan, torch.nan])
    classes = torch.tensor([1, 2, 1, 2, -1, -1])
    labels = torch.tensor([0, 1, 1, 0, -1, 7])
    data = graphs.replace(node_features={"y": numbers, "c": classes, "l": labels})
    assert bool(of(data, "y", "node", splits=splits).values.isfinite().all())
    assert of(data, "c", "node", "classification", splits).classes == (1, 2)
    assert of(data, "l", "node", "multilabel", splits).values.unique().tolist() == [0, 1]


def test_classes_are_numbered_and_remembered():
    graphs = paths(40).replace(graph_features={"c": torch.tensor([-3, 5, 5, 100] * 10)})
    targets = of(graphs, "c", kind="classification")
    assert targets.classes == (-3, 5, 100) and targets.outputs == 3 and targets.values[:4].tolist() == [0, 1, 1, 2]
    named = DataSet(graphs.replace(graph_features={"c": torch.arange(40) % 2}), classes={"c": ("low", "high")})
    assert of(named, "c", kind="classification").classes == ("low", "high")


def test_several_targets_and_columns_are_one_matrix():
    graphs = paths(10).replace(graph_features={"a": torch.arange(10), "b": torch.rand(10, 2)})
    targets = targets_of(DataSet(graphs), ["a", "b"], "graph", "regression", None, 0)
    assert targets.values.shape == (10, 3) and targets.outputs == 3 and targets.values[:, 0].tolist() == list(range(10))


GRAPHS = with_targets(paths(10))
OK = {"train": list(range(6)), "valid": [6, 7], "test": [8, 9]}


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"name": "z"}, "no graph feature 'z' to predict .they have y, c, l"),
        ({"level": "pair"}, "needs node pairs"),
        ({"name": "y", "kind": "classification"}, "has fractions"),
        ({"name": "l", "kind": "classification"}, "one target with one column, got 'l' with 3"),
        ({"name": "c", "kind": "multilabel"}, "0 or 1, but 'c' has 10"),
        ({"splits": "random"}, "unknown split 'random': choose one of none"),
        ({"splits": "given"}, "given in memory"),
        ({"splits": [0.5, 0.5]}, "three fractions"),
        ({"splits": [0.9, 0.2, -0.1]}, "three fractions"),
        ({"splits": [0.5, 0.4, 0.2]}, "three fractions"),
        ({"splits": ["a", "b", "c"]}, "three fractions"),
        ({"splits": 0.8}, "splits must be fractions"),
        ({"splits": {"train": [0], "test": [1]}}, "must have train, valid and test"),
        ({"splits": {**OK, "val": [7]}}, "must have train, valid and test"),
        ({"splits": {**OK, "train": [0, 0]}}, "the train split has id 0 twice"),
        ({"splits": {**OK, "train": [0, 10]}}, "id 10, but ids go from 0 to 9"),
        ({"splits": {**OK, "test": [5]}}, "graph 5 is in train and test"),
        ({"splits": {**OK, "test": [0.5]}}, "list of ids or a mask"),
        ({"splits": {**OK, "test": ["a"]}}, "list of ids or a mask"),
        ({"splits": {**OK, "test": [[0], [1, 2]]}}, "list of ids or a mask"),
        ({"splits": {**OK, "test": np.ones(3, dtype=bool)}}, r"mask of the test split has shape \(3,\)"),
        ({"splits": {**OK, "valid": np.zeros(0, dtype=int)}}, "valid split has no graph"),
    ],
)
def test_refusals(change, match):
    with pytest.raises(ValueError, match=match) as caught:
        of(GRAPHS, **change)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("values", "kind", "match"),
    [
        (torch.tensor([1.0, torch.nan] * 5), "regression", "target 'y' of graph 1 is nan"),
        (torch.tensor([1.0, torch.inf] * 5), "classification", "target 'y' of graph 1 is inf"),
        (torch.ones(10), "classification", "single class 1"),
        (
            torch.tensor([0] * 9 + [1]),
            "classification",
            "class 1 of target 'y' is in the test split, but not in training",
        ),
        (torch.zeros(10, 2, 2), "regression", "one or two dimensions"),
        (torch.zeros(10, dtype=torch.complex64), "regression", "real numbers"),
    ],
)
def test_targets_that_cannot_be_learned_are_refused(values, kind, match):
    with pytest.raises(ValueError, match=match):
        of(paths(10).replace(graph_features={"y": values}), kind=kind, splits=OK)


def test_too_few_graphs_cannot_be_split():
    with pytest.raises(ValueError, match="2 graphs cannot be split"):
        of(with_targets(paths(2)))


def test_messages_name_nodes_and_files():
    graphs = mt.Digraphs.from_edges([[0, 1], [1, 2]]).replace(names=["a", "b", "c"])
    data = DataSet(graphs.replace(node_features={"y": torch.tensor([1, 2, torch.nan])}), names=("net.csv",))
    with pytest.raises(ValueError, match=r"target 'y' of node 'c' of graph 0 \(net.csv\) is nan"):
        of(data, level="node", splits={"train": [0], "valid": [1], "test": [2]})
