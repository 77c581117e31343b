from itertools import islice

import pytest
import torch

import magnetite as mt
from magnetite.sorting import SortingNetworks
from magnetite.sorting.matched import KINDS
from magnetite.tasks import Sorting
from magnetite.tasks.sorting import GROUPS, UNFINISHED, WireNodes, draw_inputs


def networks_of(graphs) -> SortingNetworks:
    return SortingNetworks(
        node_ptr=graphs.node_ptr, lengths=graphs.graph_features["length"], wires=graphs.node_features["wires"]
    )


def test_training_is_balanced_and_every_twin_incorrect():
    graphs = Sorting(train=2000).shard("train", 0).graphs
    labels = graphs.graph_features["label"].view(2, -1)
    assert bool((labels[0] == 1).all()) and bool((labels[1] == 0).all())
    correct, twins = graphs[:2000], graphs[2000:]
    assert torch.equal(correct.sizes, twins.sizes + 1)
    assert torch.equal(networks_of(graphs).is_correct().long(), graphs.graph_features["label"])
    assert [net.without_last() for net in networks_of(correct[:20])] == list(networks_of(twins[:20]))


@pytest.mark.parametrize(("split", "lengths"), [("valid", [12]), ("test", [13, 14, 15, 16])])
def test_validation_and_test_add_reversed_networks_with_their_true_label(split, lengths):
    graphs = Sorting(valid=60, test=60).shard(split, 0).graphs
    assert len(graphs) == 180
    assert sorted(set(graphs.graph_features["length"].tolist())) == lengths
    assert [net.reverse() for net in networks_of(graphs[:60])] == list(networks_of(graphs[120:]))
    assert torch.equal(networks_of(graphs).is_correct().long(), graphs.graph_features["label"])
    assert graphs.graph_features["label"][:120].tolist() == [1] * 60 + [0] * 60


def test_splits_are_the_papers():
    task = Sorting()
    assert [task.split(name).sizes for name in ("train", "valid", "test")] == [
        range(7, 12),
        range(12, 13),
        range(13, 17),
    ]
    assert [task.split(name).count for name in ("train", "valid", "test")] == [400_000, 20_000, 20_000]


def test_shards_are_parts_of_one_whole():
    whole = networks_of(Sorting(train=100, shard_size=100).shard("train", 0).graphs)
    parts = [networks_of(Sorting(train=100, shard_size=30).shard("train", i).graphs) for i in range(4)]
    joined = [net for part in parts for net in part[: len(part) // 2]]
    assert joined == list(whole[:100])


def test_the_stream_is_endless_and_seeded():
    first, second = islice(Sorting().stream(seed=0, batch=64), 2)
    again = next(Sorting().stream(seed=0, batch=64))
    assert torch.equal(first.graphs.edges, again.graphs.edges)
    assert int(first.graphs.graph_features["label"].sum()) == 32
    others = [second, next(Sorting().stream(seed=1, batch=64)), Sorting(train=32).shard("train", 0)]
    assert not any(torch.equal(first.graphs.node_ptr, other.graphs.node_ptr) for other in others)


def test_bad_input_is_named():
    with pytest.raises(ValueError, match=r"batch must be a multiple of 2 .*, got 3"):
        next(Sorting().stream(seed=0, batch=3))
    with pytest.raises(ValueError, match="valid must be a positive integer, got 0"):
        Sorting(valid=0)
    with pytest.raises(ValueError, match="unknown split 'all'"):
        Sorting().split("all")


@pytest.mark.slow
def test_the_whole_training_set():
    task = Sorting(shard_size=50_000)
    for number in range(8):
        labels = task.shard("train", number).graphs.graph_features["label"]
        assert labels.view(2, -1).sum(1).tolist() == [50_000, 0]


def test_reversed_networks_can_be_trained_on():
    task = Sorting(train=30, train_reversed=True)
    for examples in (task.shard("train", 0), next(task.stream(seed=0, batch=90))):
        networks = networks_of(examples.graphs)
        assert len(networks) == 90
        assert [net.reverse() for net in networks[:30]] == list(networks[60:])
        assert torch.equal(networks.is_correct().long(), examples.graphs.graph_features["label"])
    with pytest.raises(ValueError, match=r"multiple of 3 .*, got 4"):
        next(task.stream(seed=0, batch=4))


def batch_of(*wires: torch.Tensor):
    path = mt.Digraphs.from_edges([[0, 1], [1, 2]])
    return mt.batch(mt.Digraphs.concat([path.replace(node_features={"wires": each}) for each in wires]))


def embedding(**options) -> WireNodes:
    torch.manual_seed(0)
    made = WireNodes(16, **options)
    made.setup(8)
    return made


def test_wires_of_a_network_are_shifted_together_in_training_only():
    shifting, plain = embedding(places=12), embedding()
    wires = torch.tensor([[0, 3], [1, 3], [0, 2]])
    torch.manual_seed(0)
    shifts = shifting._shift(torch.full((200,), 3), 12)
    assert shifts.unique().tolist() == list(range(9))  # the last of four wires stays below twelve
    shifted = shifting.train()(batch_of(wires, wires))
    plain.eval()
    for one in (shifted[:3], shifted[3:]):
        assert sum(torch.allclose(one, plain(batch_of(wires + shift)), atol=1e-6) for shift in range(9)) == 1
    torch.testing.assert_close(shifting.eval()(batch_of(wires)), plain(batch_of(wires)))


def test_wires_near_a_border_are_marked_at_any_length():
    marking = embedding(borders=2)
    near = marking._near(torch.tensor([[0, 5], [1, 4], [2, 3]]), torch.tensor([[5]] * 3))
    first, second, far = [1.0, 0.0], [0.0, 1.0], [0.0, 0.0]
    assert near[0].tolist() == [first + far, far + first]
    assert near[1].tolist() == [second + far, far + second]
    assert near[2].tolist() == [far + far] * 2
    short, long = torch.tensor([[0, 2], [1, 2], [0, 1]]), torch.tensor([[0, 5], [1, 4], [0, 1]])
    both = marking(batch_of(short, long))
    torch.testing.assert_close(both, torch.cat([marking(batch_of(short)), marking(batch_of(long))]))


def test_options_of_the_embedding_do_not_change_the_data(tmp_path):
    from magnetite.tasks.shards import describe

    assert describe(Sorting(places=24, borders=2)) == describe(Sorting())
    assert describe(Sorting(train_longest=9)) != describe(Sorting())


MIXED = {"compact": 0.5, "merging": 0.25, "shortest": 4, "train_longest": 6, "valid_longest": 7, "longest": 9}


def test_compact_networks_are_mixed_into_all_splits():
    task = Sorting(train=400, valid=40, test=40, **MIXED)
    for split, lengths in (("train", {4, 5, 6}), ("valid", {7}), ("test", {8, 9})):
        graphs = task.shard(split, 0).graphs
        count = task.split(split).count
        labels, kinds = graphs.graph_features["label"], graphs.graph_features["kind"]
        assert labels.tolist() == [1] * count + [0] * count
        assert torch.equal(kinds[:count], kinds[count:])
        assert set(graphs.graph_features["length"].tolist()) == lengths
        shares = (kinds[:count].bincount(minlength=3) / count - torch.tensor([0.25, 0.5, 0.25])).abs()
        assert float(shares.max()) < 0.08
        assert torch.equal(networks_of(graphs).is_correct().long(), labels)


def test_mixed_shards_and_streams_are_parts_of_one_whole():
    whole = networks_of(Sorting(train=100, shard_size=100, **MIXED).shard("train", 0).graphs)
    parts = [networks_of(Sorting(train=100, shard_size=30, **MIXED).shard("train", i).graphs) for i in range(4)]
    assert [net for part in parts for net in part[: len(part) // 2]] == list(whole[:100])
    first, second = islice(Sorting(**MIXED).stream(seed=0, batch=64), 2)
    again = next(Sorting(**MIXED).stream(seed=0, batch=64, start=1))
    assert torch.equal(second.graphs.edges, again.graphs.edges)
    assert not torch.equal(first.graphs.node_ptr, second.graphs.node_ptr)
    assert int(first.graphs.graph_features["label"].sum()) == 32


def test_unfinished_networks_are_incorrect_and_take_the_place_of_others():
    plain, cut = (Sorting(train=400, unfinished=share, **MIXED).shard("train", 0).graphs for share in (0.0, 0.5))
    assert torch.equal(networks_of(cut).is_correct().long(), cut.graph_features["label"])
    kinds = cut.graph_features["kind"]
    assert 0.4 < float((kinds[400:] == GROUPS.index(UNFINISHED)).double().mean()) < 0.6
    assert list(networks_of(cut)[:400]) == list(networks_of(plain)[:400])
    whole, parts = set(networks_of(plain)[400:]), networks_of(cut)[400:]
    assert all((net in whole) == (kind < len(KINDS)) for net, kind in zip(parts, kinds[400:].tolist(), strict=True))


def test_options_of_the_mixture_are_checked():
    with pytest.raises(ValueError, match="unfinished has no effect"):
        Sorting(unfinished=0.5)
    with pytest.raises(ValueError, match=r"compact \+ merging must be at most 1"):
        Sorting(compact=0.7, merging=0.7)
    with pytest.raises(ValueError, match="train_reversed has no effect"):
        Sorting(compact=0.5, train_reversed=True)
    with pytest.raises(ValueError, match="longest must be at most 20, got 21"):
        Sorting(longest=21)


def test_the_papers_data_have_the_options_that_they_had():
    assert not {"compact", "merging", "longest", "shortest", "ports"} & Sorting().data_options().keys()
    assert Sorting(compact=0.5).data_options()["compact"] == 0.5


def test_longer_networks_can_be_tested():
    task = Sorting(test=6, longest=20, valid_longest=16)
    graphs = task.shard("test", 0).graphs
    assert set(graphs.graph_features["length"].tolist()) <= {17, 18, 19, 20}
    assert graphs.graph_features["label"][:12].tolist() == [1] * 6 + [0] * 6


def test_known_networks_are_an_evaluation_set():
    graphs = Sorting(longest=12, train_longest=8, valid_longest=9).examples("known").graphs
    kinds, labels = graphs.graph_features["kind"], graphs.graph_features["label"]
    assert kinds.unique().tolist() == [3, 4, 5]  # the smallest, one comparator removed, one rewired
    assert torch.equal(labels == 1, kinds == 3)
    assert int((kinds == 3).sum()) == 8 * 6
    assert int((kinds == 4).sum()) == 8 * (16 + 19 + 25 + 29 + 35 + 39)
    assert torch.equal(networks_of(graphs).is_correct().long(), labels)


def test_ports_say_which_output_enters_which_input():
    network = SortingNetworks.from_networks([mt.sorting.SortingNetwork(3, [(0, 2), (0, 1), (1, 2), (1, 2)])])
    graphs = network.to_digraphs(ports=True)
    both = zip(graphs.edges.T.tolist(), graphs.edge_features["ports"].tolist(), strict=True)
    found = [(*edge, *port) for edge, port in both]
    assert sorted(found) == [(0, 1, 0, 0), (0, 2, 1, 1), (1, 2, 1, 0), (2, 3, 0, 0), (2, 3, 1, 1)]
    task = Sorting(train=20, ports=True)
    graphs = task.shard("train", 0).graphs
    wires, ports = graphs.node_features["wires"].long(), graphs.edge_features["ports"].long()
    source, target = graphs.edges.long() + graphs.node_ptr[:-1].repeat_interleave(graphs.edge_ptr.diff())
    one, two = wires[source].gather(1, ports[:, :1]), wires[target].gather(1, ports[:, 1:])
    assert torch.equal(one, two)  # the wire of the edge
    assert task.edge_embedding() is not None and Sorting().edge_embedding() is None


def test_the_base_of_the_codes_of_wires_is_an_option():
    rates = Sorting(base=26.0).embedding().rates
    assert rates[0] == 1 and float(rates[1]) == pytest.approx(26 ** (-2 / 64))
    assert float(Sorting().embedding().rates[1]) == pytest.approx(100 ** (-2 / 64))


GIVEN = {
    "inputs": 5, "compact": 0.5, "merging": 0.2, "unfinished": 0.2, "ports": True, "shortest": 3, "train_longest": 6,
    "valid_longest": 7, "longest": 8, "train": 60, "valid": 12, "test": 8,
}  # fmt: skip


def executed(graph) -> list[int]:
    """What comes out of a network on each wire, computed from the features of its graph alone."""
    wires, inputs = graph.node_features["wires"].tolist(), graph.node_features["inputs"].tolist()
    values = {}
    for pair, entering in zip(wires, inputs, strict=True):
        for wire, value in zip(pair, entering, strict=True):
            assert (wire in values) == (value == 0)
            values.setdefault(wire, value)
        values[pair[0]], values[pair[1]] = sorted(values[wire] for wire in pair)
    return [values[wire] for wire in sorted(values)]


@pytest.mark.parametrize("mixed", [True, False])
def test_inputs_enter_where_no_comparator_comes_before_and_labels_say_what_becomes_of_them(mixed):
    task = Sorting(**{**GIVEN, **({} if mixed else {"compact": 0.0, "merging": 0.0, "unfinished": 0.0})})
    for examples in (task.shard("train", 0), task.shard("valid", 0), next(task.stream(seed=3, batch=40))):
        graphs = examples.graphs
        features = graphs.graph_features
        complete = [len(set(graph.node_features["wires"].flatten().tolist())) for graph in graphs]
        for graph, length, count in zip(graphs, features["length"].tolist(), complete, strict=True):
            if count == length:  # otherwise a wire has no comparator
                values = executed(graph)
                assert int(graph.graph_features["label"]) == (values == sorted(values))
        assert not ((features["sorts"] == 1) & (features["label"] == 0)).any()
        assert torch.equal(networks_of(graphs).is_correct().long(), features["sorts"])


def test_training_prefers_inputs_that_are_not_sorted_and_other_splits_have_many_of_each_network():
    task = Sorting(**GIVEN)
    train, valid = (task.shard(split, 0).graphs.graph_features for split in ("train", "valid"))
    assert 0.5 < 1 - float(train["label"][train["sorts"] == 0].float().mean()) < 0.95
    assert train["network"].tolist() == list(range(120))
    assert valid["network"].tolist() == [number for number in range(24) for _ in range(5)]
    assert int(task.examples("known").graphs.graph_features["network"].max()) < len(task.metric().state)


def test_short_networks_get_every_input_and_others_random_ones():
    networks = SortingNetworks.from_networks([mt.sorting.batcher(length) for length in (3, 4, 5)])
    values = draw_inputs(networks, 16, torch.tensor([5, 6, 7]))
    assert values.shape == (3, 16, 5)
    rows = [{tuple(row) for row in each[:, :length].tolist()} for each, length in zip(values, (3, 4, 5), strict=True)]
    assert [len(each) for each in rows[:2]] == [8, 16]
    assert 8 < len(rows[2]) <= 16
    assert torch.equal(draw_inputs(networks[1:], 16, torch.tensor([6, 7])), values[1:])


def test_inputs_are_a_function_of_the_seed():
    def values(seed: int, batch: int = 40) -> list[list[int]]:
        return next(Sorting(**GIVEN).stream(seed, batch)).graphs.node_features["inputs"].tolist()

    assert values(1) == values(1) != values(2)


def test_a_network_counts_as_correct_if_all_its_inputs_are_found_sorted():
    task = Sorting(**GIVEN)
    graphs = task.shard("test", 0).graphs
    true = graphs.graph_features["label"].float()
    outputs = torch.stack([1 - true, true], dim=1)
    metrics = []
    for parts in ([slice(0, len(graphs))], [slice(0, 17), slice(17, len(graphs))]):
        metric = task.metric()
        for part in parts:
            metric.update(outputs[part], mt.batch(graphs[part]))
        metrics.append(metric.compute())
    assert metrics[0] == pytest.approx(metrics[1], rel=0, nan_ok=True)
    assert metrics[0]["input_accuracy"] == 1
    labels = graphs.graph_features["sorts"].view(-1, 5)[:, 0].bool()
    verdicts = true.view(-1, 5).bool().all(1)
    assert metrics[0]["accuracy"] == float((labels == verdicts).float().mean())
    assert metrics[0]["auc"] > 0.5
    # One input that is wrongly found unsorted costs a correct network its verdict.
    wrong = outputs.clone()
    wrong[int(labels.nonzero()[0]) * 5] = torch.tensor([1.0, 0.0])
    metric = task.metric()
    metric.update(wrong, mt.batch(graphs))
    assert metric.compute()["accuracy"] == pytest.approx(metrics[0]["accuracy"] - 1 / len(labels))
