from itertools import product

import pytest
import torch

from magnetite.sorting import (
    SortingNetwork,
    SortingNetworks,
    beginnings,
    compact,
    damaged,
    depths,
    generate,
    known_networks,
    merging,
    optimal,
    prune,
    relabel,
    spoil,
)


def sorts(network: SortingNetwork) -> bool:
    """By brute force, without the compiled checker."""
    return all(network.sort(values) == sorted(values) for values in product((0, 1), repeat=network.length))


def without(network: SortingNetwork, place: int) -> SortingNetwork:
    return SortingNetwork(network.length, [*network.comparators[:place], *network.comparators[place + 1 :]])


def swaps(network: SortingNetwork) -> list[bool]:
    """For each comparator, whether it swaps any input."""
    found = [False] * len(network)
    for values in product((0, 1), repeat=network.length):
        wires = list(values)
        for place, (low, high) in enumerate(network.comparators):
            if wires[low] > wires[high]:
                wires[low], wires[high], found[place] = wires[high], wires[low], True
    return found


def is_part_of(part: SortingNetwork, whole: SortingNetwork) -> bool:
    rest = iter(whole.comparators)
    return all(pair in rest for pair in part.comparators)


@pytest.mark.parametrize("make", [compact, merging])
def test_compact_networks_sort_and_need_nearly_all_comparators(make):
    needed = total = 0
    for network in make(30, lengths=range(3, 8), seed=1):
        assert sorts(network) and all(swaps(network))
        needed += sum(not sorts(without(network, place)) for place in range(len(network)))
        total += len(network)
    assert needed > 0.98 * total  # each is tried once, so that a later removal may rarely make one superfluous


def test_pruned_networks_are_parts_of_their_sources():
    nets = generate(50, lengths=range(4, 10), seed=2)
    assert all(is_part_of(*pair) for pair in zip(prune(nets, seed=0), nets, strict=True))


def test_incorrect_networks_only_lose_comparators_that_never_swap():
    for network in generate(20, lengths=[5, 6], seed=3).without_last():
        found = prune(SortingNetworks.from_networks([network]), seed=0)[0]
        kept = [pair for pair, swap in zip(network.comparators, swaps(network), strict=True) if swap]
        assert list(found.comparators) == kept


@pytest.mark.parametrize(("length", "mean"), [(7, 18.6), (11, 44.2)])
def test_mean_comparators(length, mean):
    assert abs(float(compact(1500, [length], seed=4).sizes.double().mean()) - mean) < 0.2


def test_merging_networks_reach_the_size_of_merge_sorts():
    sizes = merging(3000, lengths=[8], seed=0).sizes
    assert int(sizes.min()) == 19 and len(sizes.unique()) > 4


@pytest.mark.parametrize("change", ["remove", "rewire", "swap", "last"])
def test_spoiled_networks_differ_by_one_change_and_do_not_sort(change):
    nets = compact(60, lengths=range(4, 8), seed=5)
    wrong, source = spoil(nets, seed=6, changes=[change])
    assert len(wrong) > 50
    for network, number in zip(wrong, source.tolist(), strict=True):
        before = nets[number]
        assert not sorts(network)
        if change in ("remove", "last"):
            places = [len(before) - 1] if change == "last" else range(len(before))
            assert network in [without(before, place) for place in places]
        elif change == "rewire":
            pairs = zip(network.comparators, before.comparators, strict=True)
            assert sum(one != two for one, two in pairs) == 1
            assert all(low < high for low, high in network.comparators)
        else:
            assert sorted(network.comparators) == sorted(before.comparators)
    places = {
        next((i for i, (a, b) in enumerate(zip(net.comparators, nets[n].comparators, strict=False)) if a != b), -1)
        for net, n in zip(wrong, source.tolist(), strict=True)
    }
    assert change == "last" or len(places) > 8  # anywhere


def test_changes_that_never_spoil_are_left_out():
    repeated = SortingNetwork(2, [(0, 1), (0, 1)])
    wrong, source = spoil(SortingNetworks.from_networks([repeated]), seed=0, changes=["remove"])
    assert len(wrong) == len(source) == 0
    with pytest.raises(ValueError, match="changes must be some of remove, rewire, swap, last"):
        spoil(SortingNetworks.from_networks([repeated]), seed=0, changes=["add"])


def test_relabelled_networks_sort_and_keep_size_and_depth():
    nets = SortingNetworks.from_networks(optimal(length) for length in range(3, 12) for _ in range(4))
    others = relabel(nets, seed=0)
    assert bool(others.is_correct().all()) and not torch.equal(others.wires, nets.wires)
    assert torch.equal(others.sizes, nets.sizes) and torch.equal(depths(others), depths(nets))
    assert bool((others.wires[:, 0] < others.wires[:, 1]).all())


def test_depth_is_the_number_of_layers():
    nets = generate(40, lengths=range(3, 12), seed=7)
    assert depths(nets).tolist() == [len(net.layers()) for net in nets]


def test_parts_of_a_sequence_are_the_same():
    for make in (compact, merging):
        whole = make(700, lengths=[5, 7], seed=8)
        assert list(make(100, lengths=[5, 7], seed=8, start=600)) == list(whole[600:])


def test_known_networks_and_their_damaged_copies():
    nets = known_networks(variants=3)
    assert len(nets) == 3 * 14 and bool(nets.is_correct().all())
    assert [len(net) for net in nets[:14]] == [3, 5, 9, 12, 16, 19, 25, 29, 35, 39, 45, 51, 56, 60]
    wrong = damaged(known_networks([4, 5], variants=2))
    assert not any(sorts(net) for net in wrong)
    removed = [net for net in wrong if len(net) < {4: 5, 5: 9}[net.length]]
    assert len(removed) == 2 * (5 + 9)  # none of the smallest networks sorts without any of its comparators


def test_a_beginning_is_a_proper_part_of_its_network_whatever_comes_before():
    networks = generate(60, lengths=range(2, 8), seed=3)
    parts = beginnings(networks, seed=1)
    for part, network in zip(parts, networks, strict=True):
        assert 1 <= len(part) < len(network) or len(network) == 1
        assert network.comparators[: len(part)] == part.comparators
        assert part.length == network.length
    assert list(beginnings(networks[20:], seed=1, start=20)) == list(parts)[20:]
