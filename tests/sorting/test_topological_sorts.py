from math import comb

import networkx as nx
import numpy as np
import pytest

import magnetite as mt
from magnetite.sorting import batcher, bitonic, count_topological_sorts, estimate_topological_sorts, generate
from magnetite.sorting.topological_sorts import TooManyStates


def enumerated(graphs: mt.Digraphs) -> int:
    return sum(1 for _ in nx.all_topological_sorts(graphs.to_networkx()[0]))


def random_dag(rng: np.random.Generator, size: int) -> mt.Digraphs:
    upper = np.triu(rng.random((size, size)) < rng.uniform(0.1, 0.6), 1)
    order = rng.permutation(size)
    return mt.Digraphs.from_edges(order[np.stack(upper.nonzero())], num_nodes=size)


def test_agrees_with_enumeration():
    rng = np.random.default_rng(0)
    for _ in range(60):
        graph = random_dag(rng, int(rng.integers(1, 9)))
        assert count_topological_sorts(graph) == enumerated(graph)
    for length in range(2, 7):
        assert batcher(length).topological_sorts() == enumerated(batcher(length).to_digraphs())


def test_batchers_network_of_length_8_has_over_a_million():
    assert batcher(8).topological_sorts() == 7_055_168


@pytest.mark.slow
def test_batchers_network_of_length_8_by_enumeration():
    assert enumerated(batcher(8).to_digraphs()) == 7_055_168


def test_closed_forms():
    assert count_topological_sorts(mt.Digraphs.from_edges([[], []], num_nodes=12)) == 479_001_600
    path = mt.Digraphs.from_networkx(nx.path_graph(300, nx.DiGraph))
    assert count_topological_sorts(path) == 1
    grid = mt.Digraphs.from_networkx(nx.convert_node_labels_to_integers(nx.DiGraph(nx.grid_2d_graph(2, 5))))
    edges = grid.edges[:, grid.edges[0] < grid.edges[1]]
    # Standard Young tableaux of 2 × 5: the Catalan number.
    assert count_topological_sorts(mt.Digraphs.from_edges(edges)) == 42


def test_counting_backwards_gives_the_same():
    for network in (batcher(9), bitonic(8), generate(1, [7], seed=0)[0]):
        assert network.topological_sorts() == network.reverse().topological_sorts()


def test_exceeding_the_memory_limit_is_an_error():
    with pytest.raises(TooManyStates, match="raise max_states, or use estimate_topological_sorts"):
        batcher(12).topological_sorts(max_states=50)
    with pytest.raises(TooManyStates):  # immediately, not after a layer of 60 over 30 sets
        count_topological_sorts(mt.Digraphs.from_edges([[], []], num_nodes=60), max_states=10_000)


@pytest.mark.parametrize("network", [batcher(6), batcher(8), bitonic(8), batcher(11), generate(1, [9], seed=0)[0]])
@pytest.mark.parametrize("states", [1, 4, 16])
def test_the_estimate_is_unbiased(network, states):
    exact = network.topological_sorts()
    estimate = estimate_topological_sorts(network.to_digraphs(), states, runs=300, seed=1)
    assert abs(estimate.value - exact) < 4 * estimate.error + 1
    assert estimate.error < {1: 1, 4: 0.2, 16: 0.1}[states] * exact


def test_the_estimate_is_exact_where_all_states_fit():
    exact = batcher(12).topological_sorts()
    estimate = estimate_topological_sorts(batcher(12).to_digraphs(), states=1000, runs=2)
    assert (estimate.value, estimate.error) == (exact, 0)


def test_large_networks_are_estimated_well():
    """Sampling whole sorts is off by nine orders of magnitude here (10^153)."""
    network = generate(2, [16], seed=9)[1]
    exact = network.topological_sorts()
    estimate = estimate_topological_sorts(network.to_digraphs(), states=100, runs=8)
    assert abs(estimate.value - exact) < 5 * estimate.error < exact
    assert str(estimate).startswith("10^153.")


def test_counts_beyond_floats():
    ladder = np.stack([np.arange(600), np.arange(600) + 2])  # two paths of 301 nodes: a binomial coefficient
    estimate = estimate_topological_sorts(mt.Digraphs.from_edges(ladder), states=50, runs=4)
    assert abs(estimate.value - comb(602, 301)) < 6 * estimate.error + 1
    many = mt.Digraphs.from_edges(np.stack([np.arange(1800), np.arange(1800) + 4]))
    assert estimate_topological_sorts(many, states=5, runs=2).value > 10**800


def test_bad_input_is_rejected():
    with pytest.raises(ValueError, match="cycle"):
        count_topological_sorts(mt.Digraphs.from_edges([[0, 1], [1, 0]]))
    with pytest.raises(ValueError, match="one graph at a time"):
        count_topological_sorts(generate(2, [7], seed=0).to_digraphs())
    with pytest.raises(ValueError, match="runs=1"):
        estimate_topological_sorts(batcher(4).to_digraphs(), runs=1)
