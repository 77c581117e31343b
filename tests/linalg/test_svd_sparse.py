"""Singular values of large sparse matrices agree with those of dense ones."""

import numpy as np
import pytest
import torch

import magnetite as mt
from magnetite.encodings import svd
from magnetite.linalg.eigen import SolverFailure
from magnetite.linalg.svd_sparse import largest_singular


def edges_of(size, count, seed=0):
    return torch.from_numpy(np.random.default_rng(seed).integers(0, size, (2, count)))


@pytest.mark.parametrize("size", [12, 300])
def test_they_are_those_of_lapack(size):
    edges, weights = edges_of(size, 3 * size), torch.rand(3 * size, dtype=torch.float64) + 0.1
    dense = torch.zeros(size, size, dtype=torch.float64).index_put_((*edges,), weights, accumulate=True)
    scale, left, right = largest_singular(edges, size, weights, 8, "cpu")
    torch.testing.assert_close(scale, torch.linalg.svdvals(dense)[:8], rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(left.T @ dense @ right, torch.diag(scale), rtol=0, atol=1e-7)


def test_zero_and_repeated_singular_values(monkeypatch):
    star = torch.stack([torch.zeros(40, dtype=torch.long), torch.arange(1, 41)])
    scale, left, _ = largest_singular(star, 41, None, 3, "cpu")
    torch.testing.assert_close(scale, torch.tensor([40**0.5, 0, 0], dtype=torch.float64))
    assert not left[:, 1:].any()
    path = torch.stack([torch.arange(99), torch.arange(1, 100)])
    torch.testing.assert_close(largest_singular(path, 100, None, 9, "cpu")[0], torch.ones(9, dtype=torch.float64))
    assert not largest_singular(torch.zeros(2, 0, dtype=torch.long), 9, None, 2, "cpu")[0].any()
    monkeypatch.setattr("magnetite.linalg.svd_sparse.ACCEPTED", 0.0)
    with pytest.raises(SolverFailure):
        largest_singular(star, 41, None, 1, "cpu")


@pytest.mark.parametrize("unit", [1.0, 1e-200, 1e200])
def test_large_graphs_are_encoded_as_small_ones_are(monkeypatch, unit):
    edges, size = edges_of(120, 500), 120
    weight = (torch.rand(500, dtype=torch.float64) + 0.1) * unit
    graphs = mt.Digraphs.from_edges([edges, edges[:, :3] % 5], num_nodes=[size, 5], edge_weight=[weight, weight[:3]])
    dense = mt.SVD(rank=6, dtype=torch.float64)(graphs)
    monkeypatch.setattr(svd, "DENSE_UP_TO", 100)
    sparse = mt.SVD(rank=6, dtype=torch.float64)(graphs)
    torch.testing.assert_close(sparse.values / unit**0.5, dense.values / unit**0.5, rtol=1e-6, atol=1e-6)
    assert torch.equal(sparse.values, mt.SVD(rank=6, dtype=torch.float64)(graphs).values)
    assert torch.equal(sparse[0], mt.SVD(rank=6, dtype=torch.float64)(graphs[:1])[0])


def test_twenty_thousand_nodes_need_no_dense_matrix():
    found = mt.SVD(rank=2)(mt.Digraphs.from_edges(edges_of(20_000, 40_000), num_nodes=20_000))
    assert found.values.shape == (20_000, 4)
    assert found.values.isfinite().all()
