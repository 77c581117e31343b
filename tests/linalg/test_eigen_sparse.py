import numpy as np
import pytest
import torch

import magnetite as mt
from magnetite.linalg import eigen_sparse, large
from magnetite.linalg.eigen import SolverFailure, lowest_eigenpairs
from magnetite.linalg.eigen_sparse import lowest_sparse
from magnetite.linalg.inverse import Eliminator
from magnetite.linalg.laplacian import Operator
from magnetite.linalg.large import lowest_of_large
from magnetite.linalg.pairs import pair_edges
from magnetite.linalg.sparse import gauged_laplacian, sparse_laplacian


def random_edges(nodes, edges, seed=0):
    return torch.randint(0, nodes, (2, edges), generator=torch.Generator().manual_seed(seed))


def pairs_of(edges, size, weights=None):
    return pair_edges(edges, torch.tensor([0, edges.shape[1]]), torch.tensor([size]), weights)


@pytest.mark.parametrize("convention", ["paper", "networkx", "pygsd", "multi-q"])
@pytest.mark.parametrize("normalised", [True, False])
def test_the_sparse_matrix_is_the_dense_one(odd_weighted, convention, normalised):
    for q in (0, 0.1, mt.Relative(0.25)):
        operator = Operator(q, normalised, convention)
        for graph in odd_weighted[:60]:
            sparse = sparse_laplacian(pairs_of(graph.edges, graph.num_nodes, graph.weights), operator).to_scipy()
            dense = operator.dense(torch.from_numpy(graph.to_scipy()[0].toarray()))
            torch.testing.assert_close(torch.from_numpy(sparse.toarray()), dense, atol=1e-13, rtol=1e-13)


@pytest.mark.parametrize("q", [0, 0.1])
def test_products(q):
    matrix = sparse_laplacian(pairs_of(random_edges(300, 900), 300), Operator(q))
    vectors = torch.randn((11, 300), dtype=matrix.data.dtype, generator=torch.Generator().manual_seed(0))
    expected = torch.from_numpy(matrix.to_scipy() @ vectors.T.numpy()).T
    torch.testing.assert_close(matrix.times(vectors), expected)


@pytest.mark.parametrize(
    "operator", [Operator(0.1), Operator(0), Operator(mt.Relative(0.25), normalised=False)], ids=str
)
@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_the_lowest_pairs_are_found(operator, device):
    matrix = sparse_laplacian(pairs_of(random_edges(700, 2100), 700), operator)
    values, vectors, residuals = (part.cpu() for part in lowest_sparse(matrix.to(device), 10, tolerance=1e-10)[:3])
    assert residuals.max() < 1e-10
    torch.testing.assert_close(vectors @ vectors.mH, torch.eye(10, dtype=vectors.dtype), atol=1e-9, rtol=0)
    dense = torch.from_numpy(matrix.to_scipy().toarray())[None]
    torch.testing.assert_close(values, lowest_eigenpairs(dense, 10)[0][0], atol=1e-9, rtol=0)


def test_bits_do_not_depend_on_the_threads():
    matrix = sparse_laplacian(pairs_of(random_edges(20_000, 60_000), 20_000), Operator(0.1))
    before = torch.get_num_threads()
    found = []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        found.append(lowest_sparse(matrix, 4, tolerance=1e-4)[:3])
    torch.set_num_threads(before)
    assert all(torch.equal(one, two) for one, two in zip(*found, strict=True))


def test_trees_are_real_problems():
    parent = (torch.rand(1999, generator=torch.Generator().manual_seed(0)) * torch.arange(1, 2000)).long()
    edges = torch.stack([parent, torch.arange(1, 2000)])
    matrix, turn = gauged_laplacian(pairs_of(edges, 2000), Operator(0.2))
    assert matrix.data.dtype == torch.float64 and turn is not None
    values, vectors = lowest_of_large(edges, 2000, None, Operator(0.2), 5)
    assert values[0].abs() < 1e-10 and vectors.is_complex()


def test_no_pair_of_a_component_is_lost(monkeypatch):
    monkeypatch.setattr(large, "ENGINE_UP_TO", 200)
    pieces = [random_edges(300, 1500, seed) + 300 * seed for seed in range(3)]
    small = torch.tensor([[900, 901, 903], [901, 902, 904]])
    edges = torch.cat([*pieces, small], dim=1)
    operator = Operator(0.1, normalised=False)
    values, vectors = lowest_of_large(edges, 906, None, operator, 12)
    matrix = sparse_laplacian(pairs_of(edges, 906), operator).to_scipy()
    expected, _ = lowest_eigenpairs(torch.from_numpy(matrix.toarray())[None], 12)
    torch.testing.assert_close(values, expected[0], atol=1e-9, rtol=0)
    torch.testing.assert_close(torch.from_numpy(matrix @ vectors.numpy()), vectors * values, atol=1e-6, rtol=0)


def test_repeated_eigenvalues_are_all_found(monkeypatch):
    monkeypatch.setattr(large, "ENGINE_UP_TO", 100)
    arms = torch.arange(1, 1201).view(-1, 3)
    hub = torch.zeros(len(arms), dtype=torch.long)
    edges = torch.cat([torch.stack([hub, arms[:, 0]]), arms[:, :2].T, arms[:, 1:].T], dim=1)
    values, _ = lowest_of_large(edges, 1201, None, Operator(0.25), 12)
    matrix = Operator(0.25).dense(torch.from_numpy(mt.Digraphs.from_edges(edges).to_scipy()[0].toarray()))
    torch.testing.assert_close(values, lowest_eigenpairs(matrix[None], 12)[0][0], atol=1e-8, rtol=0)


def repeated(name):
    """Edges and size of graphs whose lowest eigenvalues are repeated, or as good as repeated."""
    node = torch.arange(480)
    whole = torch.triu_indices(60, 60, 1)
    match name:
        case "torus":
            grid = node.view(20, 24)
            ends = [torch.stack([grid.flatten(), grid.roll(1, axis).flatten()]) for axis in (0, 1)]
            return torch.cat(ends, dim=1), 480
        case "hypercube":
            corner, bit = torch.meshgrid(torch.arange(256), torch.arange(8), indexing="ij")
            other = corner ^ (1 << bit)
            return torch.stack([corner, other])[:, corner < other], 256
        case "star":
            return torch.stack([torch.zeros(479, dtype=torch.long), node[1:]]), 480
        case "complete":
            return torch.triu_indices(200, 200, 1), 200
        case "binary tree":
            return torch.stack([(node[1:] - 1) // 2, node[1:]]), 480
        case "cliques in a row":
            return torch.cat([*(whole + 60 * i for i in range(8)), 60 * torch.stack([node[:7], node[1:8]])], dim=1), 480
    copies = [random_edges(60, 180) + 60 * i for i in range(8)]
    return torch.cat([*copies, torch.stack([torch.full((8,), 480), 60 * node[:8]])], dim=1), 481


@pytest.mark.parametrize("k", [1, 2, 16, 40])
@pytest.mark.parametrize("operator", [Operator(0), Operator(0.25), Operator(0.1, normalised=False)], ids=str)
@pytest.mark.parametrize(
    "name", ["torus", "hypercube", "star", "complete", "binary tree", "cliques in a row", "copies at a hub"]
)
@pytest.mark.parametrize("inverse", [False, True], ids=["filter", "inverse"])
def test_no_copy_of_an_eigenvalue_is_missed(monkeypatch, inverse, name, operator, k):
    monkeypatch.setattr(eigen_sparse, "FEW", 1000)
    monkeypatch.setattr(eigen_sparse, "BUDGET", 10**6)
    edges, size = repeated(name)
    pairs = pairs_of(edges[:, edges[0] != edges[1]], size)
    matrix, invert = gauged_laplacian(pairs, operator)[0], Eliminator(pairs, operator).inverse
    values, vectors, residuals, _ = lowest_sparse(matrix, k, tolerance=1e-10, invert=invert if inverse else None)
    expected = torch.from_numpy(np.linalg.eigvalsh(matrix.to_scipy().toarray())[:k])
    torch.testing.assert_close(values, expected, atol=1e-9 * matrix.top, rtol=0)
    torch.testing.assert_close(vectors @ vectors.mH, torch.eye(k, dtype=vectors.dtype), atol=1e-9, rtol=0)
    assert residuals.max() < 1e-10


@pytest.mark.parametrize("size", [1000, 30_000])
@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_small_eigenvalues_of_a_path(size, device):
    edges = torch.stack([torch.arange(size - 1), torch.arange(1, size)])
    values, vectors = lowest_of_large(edges, size, None, Operator(0.1), 8, device=device)
    # cos is not accurate near 1.
    expected = 2 * torch.sin(torch.arange(8) * np.pi / (2 * (size - 1))).double() ** 2
    torch.testing.assert_close(values, expected, rtol=1e-6, atol=1e-15)
    gram = vectors.mH @ vectors
    torch.testing.assert_close(gram, torch.eye(8, dtype=gram.dtype), atol=1e-10, rtol=0)


def test_what_has_not_converged_is_the_best_of_its_span(monkeypatch):
    monkeypatch.setattr(eigen_sparse, "ROOM", 0)
    monkeypatch.setattr(eigen_sparse, "CYCLES", 1)
    matrix = sparse_laplacian(pairs_of(random_edges(3000, 12_000), 3000), Operator(0.1))
    values, vectors, residuals, _ = lowest_sparse(matrix, 24, tolerance=1e-13)
    assert residuals.max() > 1e-13
    images = matrix.times(vectors)
    torch.testing.assert_close(vectors.conj() @ images.mT, torch.diag(values).to(images), atol=1e-12, rtol=0)
    off = torch.linalg.vector_norm(images - values[:, None] * vectors, dim=1) / matrix.top
    torch.testing.assert_close(off, residuals, atol=1e-12, rtol=0)


def test_a_failure_is_said(monkeypatch):
    monkeypatch.setattr(large, "lowest_sparse", lambda matrix, k, *_, **__: (
        torch.zeros(k, dtype=torch.float64), torch.zeros((k, matrix.size), dtype=matrix.data.dtype), None, 0.0
    ))  # fmt: skip
    with pytest.raises(SolverFailure, match="1500 nodes"):
        lowest_of_large(random_edges(1500, 9000), 1500, None, Operator(0.1), 4)


@pytest.mark.parametrize("k", [8, 9, 12])
@pytest.mark.parametrize("kind", ["recursive", "binary", "broom"])
def test_copies_of_an_eigenvalue_far_below_the_norm_are_found(kind, k):
    random, size = np.random.default_rng(3), 1000
    parents = {
        "recursive": [int(random.integers(child)) for child in range(1, size)],
        "binary": [(child - 1) // 2 for child in range(1, size)],
        "broom": [min(child - 1, size // 2) for child in range(1, size)],
    }
    edges = torch.stack([torch.tensor(parents[kind]), torch.arange(1, size)])
    weights = torch.from_numpy(np.where(random.random(size - 1) < 0.02, 1e-8, 1.0))
    values, vectors = lowest_of_large(edges, size, weights, Operator(0.25, normalised=False), k)
    adjacency = torch.zeros((size, size), dtype=torch.float64).index_put_((edges[0], edges[1]), weights)
    symmetric = adjacency + adjacency.T
    expected = torch.linalg.eigvalsh(torch.diag(symmetric.sum(0)) - symmetric)[:k]
    torch.testing.assert_close(values, expected, rtol=1e-3, atol=1e-12)
    torch.testing.assert_close(vectors.mH @ vectors, torch.eye(k).to(vectors), rtol=0, atol=1e-9)


@pytest.mark.parametrize("weights", [(1e-8, 1e8), (1e-4, 1e4)])
def test_stars_with_two_sizes_of_weights(weights):
    size = 1200
    edges = torch.stack([torch.zeros(size - 1, dtype=torch.long), torch.arange(1, size)])
    heavy = torch.tensor(weights, dtype=torch.float64).repeat(size)[: size - 1]
    values, _ = lowest_of_large(edges, size, heavy, Operator(0.25), 8)
    torch.testing.assert_close(values, torch.tensor([0.0] + [1.0] * 7, dtype=torch.float64), rtol=0, atol=1e-6)


@pytest.mark.slow
def test_a_hundred_thousand_nodes():
    edges = random_edges(100_000, 500_000)
    values, vectors = lowest_of_large(edges, 100_000, None, Operator(mt.Relative(0.25)), 16)
    assert values.shape == (16,) and vectors.shape == (100_000, 16)
