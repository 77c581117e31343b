import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given

import magnetite as mt
from magnetite.encodings.svd import by_lapack, by_symmetric_problems
from magnetite.testing import assert_permutation_equivariant, digraphs


@given(digraphs())
def test_svd_rebuilds_the_adjacency_matrix(graphs):
    encoding = mt.SVD(rank=12, dtype=torch.float64)(graphs)
    for graph, features in zip(graphs.to_scipy(), encoding, strict=True):
        left, right = features[:, :12], features[:, 12:]
        np.testing.assert_allclose((left @ right.mT).numpy(), graph.toarray(), atol=1e-9)


def test_svd_keeps_the_largest_rank():
    graph = mt.Digraphs.from_networkx(nx.gnp_random_graph(20, 0.3, seed=0, directed=True))
    left, right = mt.SVD(rank=4, dtype=torch.float64)(graph)[0].chunk(2, dim=1)
    matrix = graph.to_scipy()[0].toarray()
    best = np.linalg.norm(np.linalg.svd(matrix)[1][4:])
    assert np.isclose(np.linalg.norm(matrix - (left @ right.mT).numpy()), best)


def test_symmetric_problems_give_the_singular_pairs_of_lapack():
    adjacency = torch.rand(5, 12, 12, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    adjacency[1, 3:] = 0  # of rank 3
    adjacency[2] = 0
    for scale, rank in ((1.0, 4), (1.0, 12), (1e-8, 12), (1e8, 12)):
        found = zip(*(solve(adjacency * scale, rank) for solve in (by_symmetric_problems, by_lapack)), strict=True)
        for mine, theirs in found:
            sign = (mine * theirs).sum(1, keepdim=True).sign()
            torch.testing.assert_close(mine * sign, theirs, rtol=1e-6, atol=1e-6 * scale**0.5)


def test_sinusoidal_starts_again_in_every_graph():
    graphs = mt.Digraphs.from_edges([np.array([[0], [3]]), np.array([[0], [1]])])
    encoding = mt.Sinusoidal(width=8)(graphs)
    assert torch.equal(encoding[0][:2], encoding[1])
    v, j = np.arange(4)[:, None], np.arange(4)
    np.testing.assert_allclose(encoding[0][:, ::2].numpy(), np.cos(v / 10_000 ** (2 * j / 8)), atol=1e-6)


@given(digraphs())
def test_depth_is_the_distance_from_the_sources(graphs):
    encoding = mt.Depth(cap=5)(graphs)
    for graph, depth in zip(graphs.to_networkx(), encoding, strict=True):
        sources = [v for v in graph if all(u == v for u in graph.predecessors(v))]
        expected = nx.multi_source_dijkstra_path_length(graph, sources, weight=None) if sources else {}
        assert depth.tolist() == [min(expected.get(v, 5), 5) for v in graph]
    assert_permutation_equivariant(mt.Depth(cap=5), graphs)


@pytest.mark.parametrize("make", [lambda: mt.SVD(rank=0), lambda: mt.Sinusoidal(width=3), lambda: mt.Depth(cap=0)])
def test_bad_parameters(make):
    with pytest.raises(ValueError, match="must be"):
        make()
