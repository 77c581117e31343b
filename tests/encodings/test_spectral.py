import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given
from jaxtyping import TypeCheckError

import magnetite as mt
from magnetite.encodings import solve
from magnetite.encodings.checks import check_graphs
from magnetite.linalg import eigen
from magnetite.linalg.laplacian import laplacian, magnetic_laplacian
from magnetite.testing import assert_permutation_equivariant, digraphs

from ..conftest import odd_digraphs


def check_against_definition(graphs: mt.Digraphs, pairs: mt.Eigenpairs, tolerance: float) -> None:
    """Residual, unitarity and mask of every graph, with matrices built from each graph on its own."""
    for graph, one in zip(graphs, pairs, strict=True):
        adjacency = torch.from_numpy(graph.to_scipy()[0].toarray())
        q = mt.Relative(0.25).absolute(adjacency)
        matrix = magnetic_laplacian(adjacency, q).to(one.vectors)
        kept = int(one.mask.sum())
        assert kept == min(graph.num_nodes, one.values.numel())
        vectors, values = one.vectors[:, :kept], one.values[:kept]
        assert (matrix @ vectors - vectors * values).norm(dim=0).max() < tolerance
        assert (vectors.mH @ vectors - torch.eye(kept)).abs().max() < tolerance
        assert not one.vectors[:, kept:].any()
        assert (values.diff() >= 0).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("weighted", [True, False])
def test_every_odd_graph_is_solved(dtype, weighted):
    graphs = odd_digraphs(seed=3, count=400, high=40, weighted=weighted)
    pairs = mt.MagneticLaplacian(k=16, dtype=dtype)(graphs)
    check_against_definition(graphs, pairs, 1e-5 if dtype == torch.float32 else 1e-10)


@given(digraphs())
def test_permutation_equivariance(graphs):
    for encoding in (mt.MagneticLaplacian(k=4), mt.MagneticLaplacian(k=20, q=0.1), mt.Laplacian(k=4)):
        assert_permutation_equivariant(encoding, graphs, tolerance=1e-5)


def test_engine_drivers_and_dtypes_agree_where_the_spectrum_is_simple(odd, monkeypatch):
    encoding = mt.MagneticLaplacian(k=8, dtype=torch.float64)
    expected = encoding(odd)
    fixed = expected.determined()[odd.node_graph]
    assert fixed.double().mean() > 0.3
    results = [mt.MagneticLaplacian(k=8, dtype=torch.float32)(odd)]
    monkeypatch.setattr(solve, "ENGINE_UP_TO", 0)
    for driver in eigen.DRIVERS:
        monkeypatch.setattr(eigen, "DRIVERS", (driver,))
        results.append(encoding(odd))
    for result in results:
        torch.testing.assert_close(
            result.vectors.to(torch.complex128) * fixed, expected.vectors * fixed, atol=1e-5, rtol=0
        )


def test_bits_do_not_depend_on_threads_or_runs(odd):
    encoding = mt.MagneticLaplacian(k=8)
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        single = encoding(odd)
        torch.set_num_threads(2)
        double, again = encoding(odd), encoding(odd)
    finally:
        torch.set_num_threads(before)
    for other in (double, again):
        for name, tensor in single.tensors().items():
            assert torch.equal(tensor, other.tensors()[name]), name


def test_q_zero_is_the_combinatorial_laplacian_solved_as_a_real_problem(odd, monkeypatch, dense_only):
    seen = []
    first = eigen.DRIVERS[0]
    monkeypatch.setattr(eigen, "DRIVERS", (lambda m, k: seen.append(m.dtype) or first(m, k), *eigen.DRIVERS[1:]))
    magnetic, real = mt.MagneticLaplacian(k=5, q=0)(odd), mt.Laplacian(k=5)(odd)
    assert set(seen) == {torch.float64}
    assert torch.equal(magnetic.vectors.real, real.vectors)
    assert not magnetic.vectors.imag.any()
    assert magnetic.vectors.is_complex()


def test_undirected_graphs_have_real_encodings_at_any_q():
    graph = mt.Digraphs.from_edges([[0, 1, 1, 2], [1, 0, 2, 1]])
    assert mt.MagneticLaplacian(k=3, q=0.3)(graph).vectors.imag.abs().max() < 1e-6


def test_the_eigenvectors_of_a_path_are_turned_cosines():
    """γ[v, j] = c exp(−i2πqv) cos((v + ½) j π / n) for L_U (the paper, section 3)."""
    size, q = 9, 0.07
    path = mt.Digraphs.from_edges([list(range(size - 1)), list(range(1, size))])
    pairs = mt.MagneticLaplacian(k=size, q=q, normalised=False, dtype=torch.float64)(path)
    v, j = np.arange(size)[:, None], np.arange(size)
    expected = np.exp(-2j * np.pi * q * v) * np.cos((v + 0.5) * j * np.pi / size)
    expected /= np.linalg.norm(expected, axis=0)
    np.testing.assert_allclose(np.abs((expected.conj() * pairs.vectors.numpy()).sum(0)), 1, atol=1e-10)


def test_multi_q_has_an_axis_for_the_potentials(odd):
    single = mt.MagneticLaplacian(k=3, q=0.1)(odd)
    several = mt.MagneticLaplacian(k=3, q=(0.0, 0.1, mt.Relative(0.25)))(odd)
    assert several.values.shape == (len(odd), 3, 3)
    assert several.vectors.shape == (odd.num_nodes, 3, 3)
    assert torch.equal(several.vectors[:, 1], single.vectors)
    assert several[4].values.shape == (3, 3)


def test_one_graph_of_the_pairs(odd):
    pairs = mt.MagneticLaplacian(k=3)(odd)
    one = pairs[7]
    assert one.vectors.shape == (int(odd.sizes[7]), 3)
    assert one.values.shape == one.mask.shape == one.group.shape == (3,)
    with pytest.raises(TypeError, match="one graph's"):
        one[0]


def test_projectors_are_the_same_in_every_basis():
    graph = mt.Digraphs.from_edges([[0, 2, 4], [1, 3, 5]])
    pairs = mt.MagneticLaplacian(k=6, dtype=torch.float64)(graph)[0]
    projectors = pairs.projectors()
    assert len(projectors) == 2
    torch.testing.assert_close(sum(projectors), torch.eye(6, dtype=torch.complex128))
    for projector in projectors:
        torch.testing.assert_close(projector @ projector, projector)


def test_large_graphs_beside_small_ones(monkeypatch, dense_only):
    from magnetite.encodings import dense

    graphs = odd_digraphs(seed=5, count=30, high=12)
    expected = mt.MagneticLaplacian(k=3)(graphs)
    monkeypatch.setattr(dense, "ONE_THREAD_BELOW", 6)
    monkeypatch.setitem(dense.BATCH_BYTES, "cpu", 1)
    result = mt.MagneticLaplacian(k=3)(graphs)
    torch.testing.assert_close(result.values, expected.values)
    assert torch.equal(result.mask, expected.mask)


def test_extreme_weights():
    for scale in (1e-30, 1e30):
        graph = mt.Digraphs.from_edges([[0, 1, 2], [1, 2, 0]], edge_weight=[scale, 2 * scale, 3 * scale])
        reference = mt.Digraphs.from_edges([[0, 1, 2], [1, 2, 0]], edge_weight=[1.0, 2.0, 3.0])
        torch.testing.assert_close(
            mt.MagneticLaplacian(k=3)(graph).vectors, mt.MagneticLaplacian(k=3)(reference).vectors
        )


def test_other_graph_types_are_rejected_with_the_way_to_convert():
    for encoding in (mt.MagneticLaplacian(k=2), mt.Laplacian(k=2)):
        with pytest.raises((TypeError, TypeCheckError)):
            encoding(nx.path_graph(3, nx.DiGraph))
    with pytest.raises(TypeError, match="from_networkx"):
        check_graphs(nx.path_graph(3, nx.DiGraph))


def test_single_precision_is_for_gpus(odd):
    double, single = mt.MagneticLaplacian(k=4), mt.MagneticLaplacian(k=4, precision="single")
    assert torch.equal(double(odd).vectors, single(odd).vectors)
    with pytest.raises(ValueError, match="precision"):
        mt.MagneticLaplacian(k=4, precision="half")


@pytest.mark.parametrize("encoding", [mt.MagneticLaplacian, mt.Laplacian])
def test_bad_parameters(encoding):
    with pytest.raises(ValueError, match="k must be a positive integer, got 0"):
        encoding(k=0)
    with pytest.raises(ValueError, match="dtype"):
        encoding(k=1, dtype=torch.float16)


def test_laplacian_is_blind_to_direction(odd):
    forward, backward = mt.Laplacian(k=4)(odd), mt.Laplacian(k=4)(odd.reverse())
    assert torch.equal(forward.vectors, backward.vectors)
    adjacency = torch.from_numpy(odd[3].to_scipy()[0].toarray())
    values = torch.linalg.eigvalsh(laplacian(adjacency))[:4]
    torch.testing.assert_close(forward[3].values[: len(values)], values.float(), atol=1e-6, rtol=0)


@pytest.mark.parametrize("encoding", [mt.MagneticLaplacian, mt.Laplacian])
def test_parallel_edges_that_count_once_are_those_of_the_simple_graph(encoding):
    doubled = [[0, 0, 1, 3, 2, 2], [1, 1, 2, 0, 3, 3]]
    simple = [[0, 1, 2, 3], [1, 2, 3, 0]]
    graphs, plain = (mt.Digraphs.from_edges([edges, [[0, 1], [1, 0]]]) for edges in (doubled, simple))
    once, expected = encoding(k=3, parallel="once")(graphs), encoding(k=3)(plain)
    assert torch.equal(once.values, expected.values) and torch.equal(once.vectors, expected.vectors)
    assert not torch.allclose(encoding(k=3)(graphs).values, expected.values)
    weighted = mt.Digraphs.from_edges([[0, 0, 1], [1, 1, 2]], edge_weight=[1.0, 3.0, 2.0])
    largest = mt.Digraphs.from_edges([[0, 1], [1, 2]], edge_weight=[3.0, 2.0])
    assert torch.equal(encoding(k=3, parallel="once")(weighted).values, encoding(k=3)(largest).values)
    with pytest.raises(ValueError, match="unknown parallel 'twice': choose one of summed, once"):
        encoding(k=3, parallel="twice")
