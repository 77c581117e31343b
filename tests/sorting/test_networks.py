import json
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import magnetite as mt
from magnetite.sorting import SortingNetwork, SortingNetworks, batcher, bitonic, optimal

SIZES = {2: 1, 3: 3, 4: 5, 5: 9, 6: 12, 7: 16, 8: 19, 9: 25, 10: 29}


def sorts_by_force(network: SortingNetwork) -> bool:
    """All 0-1 inputs as rows of an array, comparator by comparator: nothing shared with the kernels."""
    rows = np.array(list(product((0, 1), repeat=network.length)), dtype=np.int8)
    for low, high in network.comparators:
        pair = rows[:, [low, high]]
        rows[:, low], rows[:, high] = pair.min(1), pair.max(1)
    return bool((np.diff(rows, axis=1) >= 0).all())


def random_networks(count: int, seed: int, longest: int = 12) -> list[SortingNetwork]:
    """Complete networks, networks that lack one comparator, beginnings, and comparators of either direction."""
    rng = np.random.default_rng(seed)
    drawn = mt.sorting.generate(count, lengths=range(2, longest + 1), seed=seed)
    result = []
    for network in drawn:
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


@pytest.mark.parametrize("length", SIZES)
def test_known_optimal_networks(length):
    network = optimal(length)
    assert len(network) == SIZES[length]
    assert network.is_correct() and sorts_by_force(network)
    for position in range(len(network)):  # and no comparator can be spared
        pairs = list(network.comparators)
        del pairs[position]
        assert not SortingNetwork(length, pairs).is_correct()


@pytest.mark.parametrize("length", [*range(1, 18), 20])
def test_batcher_and_bitonic_sort_at_every_length(length):
    for family in (batcher, bitonic):
        network = family(length)
        assert network.is_correct()
        assert all(low < high for low, high in network.comparators)
        if length > 1:
            assert not network.without_last().is_correct()


def test_sizes_of_batchers_families():
    assert [len(batcher(length)) for length in (2, 4, 8, 16, 32)] == [1, 5, 19, 63, 191]
    assert [len(bitonic(length)) for length in (2, 4, 8, 16, 32)] == [1, 6, 24, 80, 240]


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
    with pytest.raises(ValueError, match=r"bad\.json is no sorting network"):
        SortingNetwork.load(tmp_path / "bad.json")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"length": 3, "comparators": [[0, 3]]}, "needs two different wires of 0…2"),
        ({"length": 3, "comparators": [[1, 1]]}, "needs two different wires"),
        ({"length": 3, "comparators": [[1]]}, "no comparator"),
        ({"length": 3, "comparators": [7]}, "no comparator"),
        ({"length": 0, "comparators": []}, "has no wires"),
        ({"wires": 3}, "is no network"),
        ({"length": "3", "comparators": []}, "is no network"),
    ],
)
def test_bad_networks_are_named(content, message):
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
