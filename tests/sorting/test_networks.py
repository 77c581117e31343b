import json
from itertools import product

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import magnetite as mt
from magnetite.sorting import SortingNetwork, SortingNetworks, batcher, generate, optimal


def sorts_by_force(network: SortingNetwork) -> bool:
    """All 0-1 inputs as rows of an array, comparator by comparator, independently of the kernels."""
    rows = np.array(list(product((0, 1), repeat=network.length)), dtype=np.int8)
    for low, high in network.comparators:
        pair = rows[:, [low, high]]
        rows[:, low], rows[:, high] = pair.min(1), pair.max(1)
    return bool((np.diff(rows, axis=1) >= 0).all())


def random_networks(count: int, seed: int, longest: int = 12) -> list[SortingNetwork]:
    """Complete networks, networks without one comparator, prefixes, reversed ones, comparators of either direction."""
    rng = np.random.default_rng(seed)
    complete = mt.sorting.generate(count, lengths=range(2, longest + 1), seed=seed)
    result = []
    for network in complete:
        pairs, kind = list(network.comparators), rng.integers(5)
        if kind == 1:
            del pairs[rng.integers(len(pairs))]
        elif kind == 2:
            pairs = pairs[: rng.integers(len(pairs) + 1)]
        elif kind == 3:
            pairs = [pair if rng.random() < 0.98 else pair[::-1] for pair in pairs]
        elif kind == 4:
            pairs = pairs[::-1]
        result.append(SortingNetwork(network.length, pairs))
    return result


def agree(count: int) -> list[bool]:
    networks = random_networks(count, seed=5)
    checked = SortingNetworks.from_networks(networks).is_correct().tolist()
    assert checked == [sorts_by_force(network) for network in networks]
    return checked


def test_checker_agrees_with_brute_force():
    checked = agree(400)
    assert 0.1 < np.mean(checked) < 0.9


@pytest.mark.slow
def test_checker_agrees_with_brute_force_on_ten_thousand():
    checked = agree(10_000)
    assert 0.1 < np.mean(checked) < 0.9


def test_the_papers_example():
    network = SortingNetwork(length=3, comparators=[(0, 2), (0, 1), (1, 2)])
    assert network.is_correct() and not network.reverse().is_correct()
    here, there = network.to_digraphs(), network.reverse().to_digraphs()
    undirected = [{frozenset(edge) for edge in g.edges.T.tolist()} for g in (here, there)]
    assert undirected[0] == undirected[1]


def test_comparators_of_either_direction():
    assert SortingNetwork(2, [(0, 1)]).is_correct()
    assert not SortingNetwork(2, [(1, 0)]).is_correct()
    assert SortingNetwork(2, [(1, 0)]).sort([1, 2]) == [2, 1]
    assert SortingNetwork(2, [(1, 0), (0, 1)]).is_correct()


def test_long_networks_are_checked_in_blocks():
    assert batcher(21).is_correct()
    assert not batcher(21).without_last().is_correct()
    with pytest.raises(ValueError, match=r"2\^40 inputs"):
        batcher(40).is_correct()


@given(st.integers(2, 10), st.data())
def test_correct_networks_sort_anything(length, data):
    values = data.draw(st.lists(st.integers(), min_size=length, max_size=length))
    assert optimal(length).sort(values) == sorted(values)


@given(st.integers(2, 9), st.integers(0, 2**32))
def test_lists_json_and_files_round_trip(length, seed):
    network = mt.sorting.generate(1, [length], seed)[0]
    assert SortingNetwork.from_dict(json.loads(json.dumps(network.to_dict()))) == network
    assert network.reverse().reverse() == network
    assert SortingNetworks.from_networks([network])[0] == network


def test_files(tmp_path):
    batcher(8).save(tmp_path / "batcher.json")
    assert SortingNetwork.load(tmp_path / "batcher.json") == batcher(8)
    (tmp_path / "bad.json").write_text("{")
    with pytest.raises(ValueError, match=r"bad\.json .*sorting network"):
        SortingNetwork.load(tmp_path / "bad.json")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"length": 3, "comparators": [[0, 3]]}, "two different wires from 0 to 2, got "),
        ({"length": 3, "comparators": [[1, 1]]}, "two different wires"),
        ({"length": 3, "comparators": [[1]]}, "must be two wires"),
        ({"length": 3, "comparators": [7]}, "must be two wires"),
        ({"length": 0, "comparators": []}, "length must be a positive integer, got 0"),
        ({"wires": 3}, "expected a network"),
        ({"length": "3", "comparators": []}, "expected a network"),
    ],
)
def test_bad_networks_are_rejected(content, message):
    with pytest.raises(ValueError, match=message):
        SortingNetwork.from_dict(content)


def test_layers_hold_every_comparator_once_and_in_order():
    network = mt.sorting.generate(1, [11], seed=3)[0]
    flat = [pair for layer in network.layers() for pair in layer]
    assert sorted(flat) == sorted(network.comparators)
    for layer in network.layers():
        wires = [wire for pair in layer for wire in pair]
        assert len(wires) == len(set(wires))
    assert SortingNetwork(11, flat).to_digraphs().num_edges == network.to_digraphs().num_edges


def plain_graph(network: SortingNetwork) -> list[tuple[int, int]]:
    """Edges from each comparator to the next one on the wire, as the paper defines them."""
    edges, last = [], {}
    for node, pair in enumerate(network.comparators):
        edges += [(last[wire], node) for wire in pair if wire in last]
        last.update(dict.fromkeys(pair, node))
    return edges


def test_graphs(networks):
    few = networks.select(slice(0, 50))
    graphs = few.to_digraphs()
    graphs = graphs.replace(edges=graphs.edges)  # validated
    for network, graph in zip(few, graphs, strict=True):
        assert graph.edges.T.tolist() == [list(edge) for edge in plain_graph(network)]
        assert graph.node_features["wires"].tolist() == [list(pair) for pair in network.comparators]
        assert graph.graph_features["length"].tolist() == [network.length]
        alone = network.to_digraphs()
        assert torch.equal(alone.edges, graph.edges) and alone.graph_features["label"].tolist() == [1]


def test_degrees_are_two_but_at_the_ends(networks):
    graphs = networks.to_digraphs()
    source, target = graphs.edge_index
    for nodes in (source, target):
        degree = torch.bincount(nodes, minlength=graphs.num_nodes)
        assert int(degree.max()) == 2
        missing = torch.zeros(len(graphs), dtype=torch.long).index_add_(0, graphs.node_graph, 2 - degree)
        assert torch.equal(missing, networks.lengths)  # each wire has one first and one last comparator


def test_reversed_networks_have_the_reversed_graph(networks):
    few = networks.select(slice(0, 30))
    assert [net.comparators for net in few.reverse()] == [net.reverse().comparators for net in few]
    for graph, turned in zip(few.to_digraphs(), few.reverse().to_digraphs(), strict=True):
        last = graph.num_nodes - 1
        flipped = {(last - v, last - u) for u, v in graph.edges.T.tolist()}
        assert flipped == {tuple(edge) for edge in turned.edges.T.tolist()}


def test_collections_are_indexed_saved_and_joined(networks, tmp_path):
    assert networks[-1] == networks[2999]
    assert [net.length for net in networks.select([5, 2])] == [networks[5].length, networks[2].length]
    networks.save(tmp_path / "nets.safetensors")
    again = SortingNetworks.load(tmp_path / "nets.safetensors")
    assert torch.equal(again.wires, networks.wires) and bool(again.is_correct().all())
    assert len(SortingNetworks.concat([networks, again])) == 6000
    assert len(generate(0, [7], seed=0)) == 0


def test_empty_networks_have_no_graph():
    with pytest.raises(ValueError, match="network 1 has no comparators"):
        SortingNetworks.from_networks([SortingNetwork(2, [(0, 1)]), SortingNetwork(2, [])]).to_digraphs()


def test_inputs_of_zeros_and_ones_are_run_through_their_networks():
    mixed = generate(20, lengths=[3, 7, 9], seed=4)
    networks = SortingNetworks.concat([mixed, mixed.without_last(), mixed.reverse()])
    inputs = torch.rand((len(networks), 70, 9), generator=torch.Generator().manual_seed(0)) < 0.5
    found = networks.sorts(inputs)
    for network, rows, is_sorted in zip(networks, inputs.tolist(), found.tolist(), strict=True):
        values = [network.sort(row[: network.length]) for row in rows]
        assert is_sorted == [value == sorted(value) for value in values]
    assert not found.all()
    assert networks[:0].sorts(torch.zeros(0, 5, 0, dtype=torch.bool)).shape == (0, 5)


@pytest.mark.parametrize("inputs", [torch.zeros(2, 4, 2).bool(), torch.zeros(3, 4, 3).bool()])
def test_inputs_must_fit_the_networks(inputs):
    networks = SortingNetworks.from_networks([SortingNetwork(3, [(0, 1)]), SortingNetwork(2, [(0, 1)])])
    with pytest.raises(ValueError, match=r"inputs must be a bool tensor \[2, inputs, 3\], got "):
        networks.sorts(inputs)
