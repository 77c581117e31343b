"""Eigenvalues from the inverse are accurate relative to themselves, whatever the weights."""

import numpy as np
import pytest
import torch

from magnetite.linalg import eigen_sparse, elimination, large
from magnetite.linalg.eigen import SolverFailure
from magnetite.linalg.elimination import lowest_by_elimination
from magnetite.linalg.inverse import Eliminator
from magnetite.linalg.laplacian import Operator
from magnetite.linalg.large import lowest_of_large
from magnetite.linalg.pairs import pair_edges
from magnetite.linalg.sparse import gauged_laplacian, sparse_laplacian


def connected(random, size, more, orders=0.0):
    tree = np.stack([random.integers(0, np.arange(1, size)), np.arange(1, size)])
    edges = np.concatenate([tree, random.integers(0, size, (2, more))], axis=1)
    weights = 10 ** random.uniform(-orders / 2, orders / 2, edges.shape[1])
    return torch.from_numpy(edges), torch.from_numpy(weights)


def pairs_of(edges, size, weights):
    return pair_edges(edges, torch.tensor([0, edges.shape[1]]), torch.tensor([size]), weights)


def exact(pairs, operator, k):
    """The lowest eigenvalues in the paper's convention or multi-q, to 60 digits."""
    mp = pytest.importorskip("mpmath")
    with mp.workdps(60):
        n, count, q = int(pairs.sizes[0]), int(pairs.count[0]), mp.mpf(operator.q)
        matrix, degree = mp.matrix(n, n), [mp.mpf(0)] * n
        for p in range(count):
            u, v = int(pairs.low[p]), int(pairs.high[p])
            a, b = mp.mpf(float(pairs.forward[p])), mp.mpf(float(pairs.backward[p]))
            total = a + b
            weight, entry = total, a * mp.expjpi(2 * q) + b * mp.expjpi(-2 * q)
            if operator.convention == "paper":
                weight = total / 2 if a > 0 and b > 0 else total
                entry = weight * mp.expjpi(2 * q * (a - b) / total)
            degree[u] += weight
            matrix[u, v] -= entry if u != v else entry.real
            if u != v:
                degree[v] += weight
                matrix[v, u] -= mp.conj(entry)
        for u in range(n):
            matrix[u, u] += degree[u]
        if operator.normalised:
            root = [mp.sqrt(value) for value in degree]
            matrix = mp.matrix([[matrix[u, v] / (root[u] * root[v]) for v in range(n)] for u in range(n)])
        return np.array(sorted(float(value) for value in mp.eighe(matrix, eigvals_only=True)))[:k]


@pytest.mark.parametrize("convention", ["paper", "multi-q"])
@pytest.mark.parametrize("normalised", [True, False])
@pytest.mark.parametrize("q", [0.0, 0.1, 0.25])
def test_eigenvalues_have_all_their_digits(convention, normalised, q):
    random = np.random.default_rng(3)
    operator = Operator(q, normalised, convention)
    for orders in (12, 16):
        edges, weights = connected(random, 9, 6, orders)
        pairs = pairs_of(edges, 9, weights)
        found = lowest_by_elimination(pairs, operator, 5)
        assert found is not None
        expected = exact(pairs, operator, 5)
        first = int(expected[0] < 1e-40)
        np.testing.assert_allclose(found[0][first:], expected[first:], rtol=1e-12)
        assert (found[1].conj() @ found[1].T - torch.eye(5)).abs().max() < 1e-12


def hubs(random, size):
    """A tree of two hubs and their leaves, and some long edges, so that rows are longer than those that are read."""
    node = np.arange(2, size)
    edges = np.concatenate([[[0], [1]], np.stack([node % 2, node]), random.integers(0, size, (2, size // 4))], axis=1)
    return torch.from_numpy(edges), torch.from_numpy(random.uniform(0.5, 2, edges.shape[1]))


@pytest.mark.parametrize(
    "graph", [lambda random: connected(random, 300, 200), lambda random: hubs(random, 300)], ids=["tree", "hubs"]
)
@pytest.mark.parametrize("operator", [Operator(0), Operator(0.2), Operator(0.2, normalised=False)], ids=str)
@pytest.mark.parametrize("shift", [1e-3, 0.5])
def test_the_inverse_of_a_shifted_matrix(graph, operator, shift):
    edges, weights = graph(np.random.default_rng(5))
    pairs = pairs_of(edges, 300, weights)
    matrix = gauged_laplacian(pairs, operator)[0]
    inverse = Eliminator(pairs, operator).inverse(shift, 10**7)
    assert inverse is not None and inverse.size == 300 and inverse.entries >= len(pairs.low) - 300
    vectors = torch.randn((300, 3), dtype=matrix.data.dtype, generator=torch.Generator().manual_seed(0))
    shifted = torch.from_numpy(matrix.to_scipy().toarray()) + shift * torch.eye(300, dtype=torch.float64)
    torch.testing.assert_close(shifted @ inverse.times(vectors), vectors, atol=1e-11, rtol=0)
    torch.testing.assert_close(inverse.times(vectors[:, 1].contiguous()), inverse.times(vectors)[:, 1])


def test_an_inverse_that_fills_up_is_given_up_early():
    random = np.random.default_rng(0)
    edges = torch.from_numpy(random.integers(0, 3000, (2, 20_000)))
    eliminator = Eliminator(pairs_of(edges, 3000, None), Operator(0.1))
    assert eliminator.inverse(0.1, 10**6) is None
    tree = torch.stack([torch.zeros(2999, dtype=torch.long), torch.arange(1, 3000)])
    assert Eliminator(pairs_of(tree, 3000, None), Operator(0.1)).inverse(0.1, 30_000) is not None


def test_repeated_eigenvalues_are_all_found():
    star = torch.stack([torch.zeros(60, dtype=torch.long), torch.arange(1, 61)])
    found = lowest_by_elimination(pairs_of(star, 61, None), Operator(0, normalised=False), 30)
    assert found is not None
    torch.testing.assert_close(found[0], torch.tensor([0.0] + 29 * [1.0], dtype=torch.float64))


def test_all_eigenpairs_of_a_small_graph():
    edges, weights = connected(np.random.default_rng(0), 20, 30)
    pairs = pairs_of(edges, 20, weights)
    found = lowest_by_elimination(pairs, Operator(0.2), 25)
    assert found is not None and len(found[0]) == 20
    matrix = sparse_laplacian(pairs, Operator(0.2)).to_scipy().toarray()
    np.testing.assert_allclose(found[0], np.linalg.eigvalsh(matrix), atol=1e-13)


HEAVY = {"one of 1e6": 1e6, "one of 1e9": 1e9, "12 orders": None}


@pytest.mark.parametrize("heavy", HEAVY)
@pytest.mark.parametrize("q", [0.0, 0.1])
def test_a_large_graph_with_heavy_edges(monkeypatch, heavy, q):
    monkeypatch.setattr(large, "ENGINE_UP_TO", 100)
    random = np.random.default_rng(1)
    edges, weights = connected(random, 400, 200, 12 if HEAVY[heavy] is None else 0)
    if HEAVY[heavy] is not None:
        weights[7] = HEAVY[heavy]
    operator = Operator(q, normalised=False)
    values, vectors = lowest_of_large(edges, 400, weights, operator, 6)
    matrix = sparse_laplacian(pairs_of(edges, 400, weights), operator)
    expected, basis = np.linalg.eigh(matrix.to_scipy().toarray())
    # LAPACK's own errors are relative to ‖L‖.
    limit = 1e-14 * matrix.top
    assert np.abs(values.numpy() - expected[:6]).max() < limit
    gaps = np.diff(expected[:7])
    last = int(np.nonzero(gaps > limit)[0][-1]) + 1
    overlap = np.linalg.svd(basis[:, :last].conj().T @ vectors[:, :last].numpy())[1]
    assert overlap.min() > 0.999


def test_what_cannot_be_resolved_is_refused(monkeypatch):
    monkeypatch.setattr(large, "ENGINE_UP_TO", 100)
    monkeypatch.setattr(elimination, "BUDGET", 10)
    monkeypatch.setattr(large, "DENSE_UP_TO", 0)
    monkeypatch.setattr(eigen_sparse, "CYCLES", 3)
    random = np.random.default_rng(2)
    edges, weights = connected(random, 400, 300)
    weights[3] = 1e14
    with pytest.raises(SolverFailure, match="400 nodes"):
        lowest_of_large(edges, 400, weights, Operator(0, normalised=False), 4)


def test_a_dense_matrix_is_the_last_resort(monkeypatch):
    monkeypatch.setattr(large, "ENGINE_UP_TO", 100)
    edges, weights = connected(np.random.default_rng(2), 400, 300)
    weights[3] = 1e6
    operator = Operator(0, normalised=False)
    expected = lowest_of_large(edges, 400, weights, operator, 4)[0]
    monkeypatch.setattr(elimination, "BUDGET", 10)
    torch.testing.assert_close(lowest_of_large(edges, 400, weights, operator, 4)[0], expected, atol=1e-8, rtol=0)
