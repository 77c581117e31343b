import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest
import torch

import magnetite as mt
from magnetite.sorting import SortingNetwork, generate

FIRST, TOTAL = ((0, 6), (0, 3), (2, 5)), 42_591_900_369  # of 1,000 networks of seed 0


@pytest.fixture
def threads():
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


def unsorted_wires(network: SortingNetwork) -> set[int]:
    """Wires that are out of order for some input, by brute force."""
    rows = (np.arange(2**network.length)[:, None] >> np.arange(network.length)) & 1
    goal = np.sort(rows, axis=1)
    for low, high in network.comparators:
        rows[:, [low, high]] = np.sort(rows[:, [low, high]], axis=1)
    return set((rows != goal).any(0).nonzero()[0].tolist())


def test_every_network_is_correct_but_not_without_its_last_comparator(networks):
    assert bool(networks.is_correct().all())
    assert not bool(networks.without_last().is_correct().any())


def test_every_comparator_joins_two_unsorted_wires_and_never_the_last_two_again():
    for network in generate(60, lengths=range(3, 9), seed=1):
        pairs = network.comparators
        assert all(one != two for one, two in pairwise(pairs))
        assert all(low < high for low, high in pairs)
        for step, pair in enumerate(pairs):
            assert set(pair) <= unsorted_wires(SortingNetwork(network.length, pairs[:step]))


def test_first_comparators_are_uniform():
    first = generate(20_000, lengths=[7], seed=2)
    pairs = first.wires[first.node_ptr[:-1]].long()
    counts = torch.bincount(pairs[:, 0] * 7 + pairs[:, 1], minlength=49)
    counts = counts[counts > 0]
    expected = 20_000 / 21
    assert counts.numel() == 21
    assert float(((counts - expected) ** 2 / expected).sum()) < 45.3  # 99.9 % of chi-square with 20 degrees of freedom


@pytest.mark.parametrize(("length", "mean"), [(7, 35), (9, 68), (11, 112)])
def test_mean_comparators(length, mean):
    assert abs(float(generate(4000, [length], seed=3).sizes.double().mean()) - mean) < 1


def test_lengths_are_equally_likely(networks):
    counts = torch.bincount(networks.lengths)[7:].double()
    assert float(((counts - 600) ** 2 / 600).sum()) < 18.5  # 99.9 % of chi-square with 4 degrees of freedom


def test_some_reversed_networks_are_correct():
    short = generate(4000, lengths=range(7, 12), seed=4).reverse().is_correct().double().mean()
    assert 0 < float(short) < 0.05
    assert float(generate(4000, lengths=[3], seed=4).reverse().is_correct().double().mean()) > 0.1


def test_no_network_is_longer_than_512():
    longest = generate(300, lengths=[20], seed=5).sizes
    assert int(longest.max()) <= 512
    assert int(longest.max()) > 450  # at this length many are discarded


def test_same_bytes_on_any_number_of_threads_and_in_every_run(threads):
    results = []
    for count in (1, 2, 2, 3):
        threads(count)
        nets = generate(2000, lengths=range(7, 12), seed=6)
        results.append((nets.wires, nets.node_ptr, nets.to_digraphs().edges, nets.is_correct()))
    assert all(torch.equal(*pair) for other in results for pair in zip(results[0], other, strict=True))


def test_a_part_is_the_same_as_the_whole(networks):
    part = generate(700, lengths=range(7, 12), seed=0, start=1000)
    whole = networks.select(slice(1000, 1700))
    assert torch.equal(part.wires, whole.wires) and torch.equal(part.lengths, whole.lengths)
    assert not torch.equal(generate(10, [7], seed=1).lengths, generate(10, range(7, 12), seed=2).lengths)


def test_these_bytes_never_change():
    nets = generate(1000, lengths=range(7, 12), seed=0)
    assert nets[0].comparators[:3] == FIRST
    assert int((nets.wires.long() * torch.arange(1, nets.wires.numel() + 1).view(-1, 2)).sum()) == TOTAL


@pytest.mark.parametrize("lengths", [[1], [21], []])
def test_lengths_out_of_range_are_rejected(lengths):
    with pytest.raises(ValueError, match="lengths must be from 2 to 20"):
        generate(1, lengths=lengths, seed=0)


def test_the_package_is_an_attribute_of_magnetite():
    assert mt.sorting.generate is generate


def test_importing_it_does_not_load_numba():
    program = "import sys, magnetite.cli.data; print('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout == "False\n"


def test_negative_counts_are_rejected():
    with pytest.raises(ValueError, match="count=-1"):
        generate(-1, lengths=[7], seed=0)
