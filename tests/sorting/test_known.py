import pytest

from magnetite.sorting import SortingNetwork, batcher, bitonic, optimal
from tests.sorting.test_networks import sorts_by_force

SIZES = {2: 1, 3: 3, 4: 5, 5: 9, 6: 12, 7: 16, 8: 19, 9: 25, 10: 29}


@pytest.mark.parametrize("length", SIZES)
def test_known_optimal_networks(length):
    network = optimal(length)
    assert len(network) == SIZES[length]
    assert network.is_correct() and sorts_by_force(network)
    for position in range(len(network)):  # no comparator is redundant
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
