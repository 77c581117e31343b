"""Laws: multiplying all weights multiplies the eigenvalues of L_U, and changes nothing else."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import magnetite as mt
from tests.conftest import odd_digraph

CONVENTIONS = ["paper", "networkx", "multi-q"]
exponents = st.integers(-660, 660)
factors = st.floats(-200, 200).map(lambda power: 10**power)


def graph_of(seed, size=12, factor=1.0):
    edges, weights = odd_digraph(np.random.default_rng(seed), size)
    return mt.Digraphs.from_edges(edges, size, weights * factor)


def pairs_of(graphs, convention="paper", normalised=False, q=0.1, k=6):
    encoding = mt.MagneticLaplacian(k=k, q=q, convention=convention, normalised=normalised, dtype=torch.float64)
    return encoding(graphs)


@given(st.integers(0, 10**6), exponents, st.sampled_from(CONVENTIONS), st.booleans())
def test_powers_of_two_change_no_bit(seed, exponent, convention, normalised):
    one, other = (pairs_of(graph_of(seed, factor=2.0**e), convention, normalised) for e in (0, exponent))
    assert torch.equal(one.values * (1.0 if normalised else 2.0**exponent), other.values)
    assert torch.equal(one.vectors, other.vectors) and torch.equal(one.group, other.group)
    assert torch.equal(one.anchored, other.anchored)


@given(st.integers(0, 10**6), factors, st.sampled_from(CONVENTIONS))
def test_any_factor(seed, factor, convention):
    one, other = (pairs_of(graph_of(seed, factor=c), convention) for c in (1.0, factor))
    largest = max(float(one.values.max()), 1.0)
    torch.testing.assert_close(other.values / factor, one.values, atol=1e-11 * largest, rtol=1e-11)
    same, changed = (pairs_of(graph_of(seed, factor=c), convention, True) for c in (1.0, factor))
    torch.testing.assert_close(changed.values, same.values, atol=1e-12, rtol=0)


@given(st.integers(0, 10**6), factors)
def test_walks_and_singular_vectors(seed, factor):
    one, other = graph_of(seed), graph_of(seed, factor=factor)
    for walk in (mt.RandomWalk(dtype=torch.float64), mt.SparseRandomWalk(steps=2, restart=None, tolerance=0.0)):
        torch.testing.assert_close(walk(other).values, walk(one).values)
    svd = mt.SVD(rank=1, dtype=torch.float64)
    torch.testing.assert_close(svd(other).values.abs() / factor**0.5, svd(one).values.abs(), atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("normalised", [True, False])
@pytest.mark.parametrize("exponent", [-660, 301])
def test_large_graphs(normalised, exponent):
    random = np.random.default_rng(5)
    edges, weights = random.integers(0, 1100, (2, 4000)), random.uniform(0.5, 1.5, 4000)
    one, other = (
        pairs_of(mt.Digraphs.from_edges(edges, 1100, weights * 2.0**e), normalised=normalised) for e in (0, exponent)
    )
    assert torch.equal(one.values * (1.0 if normalised else 2.0**exponent), other.values)
    assert torch.equal(one.vectors, other.vectors) and torch.equal(one.group, other.group)


@pytest.mark.parametrize("weight", [1e-7, 1e-200, 1e39, 1e300])
@pytest.mark.parametrize("size", [5, 1100])
def test_a_path_of_any_weight(weight, size):
    nodes = np.arange(size)
    graphs = mt.Digraphs.from_edges(np.stack([nodes[:-1], nodes[1:]]), size, np.full(size - 1, weight))
    pairs = pairs_of(graphs, k=4)
    expected = weight * (2 - 2 * np.cos(np.pi * np.arange(4) / size))
    np.testing.assert_allclose(pairs.values[0], expected, atol=1e-13 * weight)
    assert pairs.group[0].tolist() == [0, 1, 2, 3]


def test_results_beyond_their_type_are_refused():
    huge, tiny = (mt.Digraphs.from_edges([[0, 1], [1, 2]], edge_weight=[w, w]) for w in (1e39, 1e-200))
    with pytest.raises(
        ValueError, match=r"eigenvalues of graph 0 are as large as 1e\+39, beyond float32: ask for dtype"
    ):
        mt.MagneticLaplacian(k=2, normalised=False)(huge)
    with pytest.raises(ValueError, match="at most 1e-200, below float32"):
        mt.Laplacian(k=2, normalised=False)(tiny)
    with pytest.raises(ValueError, match="singular vectors of graph 0"):
        mt.SVD(rank=2)(mt.Digraphs.from_edges([[0], [1]], edge_weight=[1e300]))
    top = mt.Digraphs.from_edges([[0, 1], [1, 2]], edge_weight=[1.7e308, 1.7e308])
    with pytest.raises(ValueError, match="beyond float64: divide its weights"):
        mt.MagneticLaplacian(k=3, normalised=False, dtype=torch.float64)(top)
    assert mt.MagneticLaplacian(k=3)(top).values.isfinite().all()


def test_a_graph_with_weights_far_apart():
    graphs = mt.Digraphs.from_edges([[0, 1, 2, 3], [1, 2, 3, 4]], edge_weight=[1.0, 1e-200, 1e-310, 1e300])
    for normalised in (True, False):
        pairs = pairs_of(graphs, normalised=normalised, k=5)
        assert pairs.values.isfinite().all() and torch.view_as_real(pairs.vectors).isfinite().all()
        gram = pairs.vectors.mH @ pairs.vectors
        torch.testing.assert_close(gram, torch.eye(5, dtype=gram.dtype))
    assert mt.RandomWalk()(graphs).values.isfinite().all()


def test_tiny_weights_beside_ordinary_ones_keep_their_proportions():
    one = mt.Digraphs.from_edges([[0, 1, 3], [1, 2, 4]], edge_weight=[1e-200, 3e-200, 1.0])
    two = mt.Digraphs.from_edges([[0, 1, 3], [1, 2, 4]], edge_weight=[1.0, 3.0, 1.0])
    torch.testing.assert_close(pairs_of(one, normalised=True).values, pairs_of(two, normalised=True).values)


def test_phases_of_weights_beyond_double_precision_are_refused():
    graphs = mt.Digraphs.from_edges([[0, 1], [1, 2]], edge_weight=[1.0, 1e17])
    with pytest.raises(ValueError, match=r"edge 1 of graph 0 has weight 1e.17, and convention 'pygsd'"):
        pairs_of(graphs, "pygsd")
    assert pairs_of(graphs, "pygsd", q=0).values.isfinite().all()


def test_phases_that_grow_with_the_weights_are_those_of_the_weights():
    one, other = (mt.Digraphs.from_edges([[0, 1, 2], [1, 2, 0]], edge_weight=[w, w, w]) for w in (4.0, 0.25))
    assert pairs_of(one, "pygsd", q=0.25).values[0, 0] < 1e-12  # whole turns
    assert pairs_of(other, "pygsd", q=0.25).values[0, 0] > 1e-3
