import numpy as np
import pytest
import torch

import magnetite as mt
from magnetite.linalg.eigen import TOLERANCE, lowest_eigenpairs, verify
from magnetite.linalg.eigen_cpu import lowest_of_graphs
from magnetite.linalg.laplacian import Operator
from magnetite.linalg.phase import CONVENTIONS, normalise
from tests.conftest import odd_digraphs

OPERATORS = [
    Operator(mt.Relative(0.25)),
    Operator(0.25, normalised=False),
    Operator(0),
    *(Operator(0.1, convention=name) for name in CONVENTIONS),
]


def parts(graphs):
    return graphs.edges, graphs.edge_ptr, graphs.sizes, graphs.weights


def dense(graph, operator):
    return operator.dense(torch.from_numpy(graph.to_scipy()[0].toarray()))[None]


def one_graph(graphs, solved, index, kept):
    rows = slice(*graphs.node_ptr[index : index + 2].tolist())
    return solved.values[index : index + 1, :kept], solved.vectors[rows, :kept][None]


@pytest.mark.parametrize("operator", OPERATORS, ids=str)
@pytest.mark.parametrize("k", [1, 7, 40])
def test_every_eigenpair_is_one_of_the_dense_matrix(odd_weighted, operator, k):
    solved = lowest_of_graphs(*parts(odd_weighted), operator, k)
    assert solved.passed.all()
    for index, graph in enumerate(odd_weighted):
        kept = min(k, graph.num_nodes)
        matrix = dense(graph, operator).to(torch.complex128)
        values, vectors = one_graph(odd_weighted, solved, index, kept)
        assert max(verify(matrix, values, vectors)) < TOLERANCE
        scale = max(1.0, float(matrix.abs().sum(-1).max()))
        torch.testing.assert_close(values, lowest_eigenpairs(matrix, k)[0], atol=1e-12 * scale, rtol=0)


def test_it_normalises_as_the_reference_does(odd):
    operator = Operator(mt.Relative(0.25))
    solved = lowest_of_graphs(*parts(odd), operator, 9)
    for index, graph in enumerate(odd):
        kept = min(9, graph.num_nodes)
        _, vectors = one_graph(odd, solved, index, kept)
        again, anchored = normalise(vectors)
        torch.testing.assert_close(again, vectors, atol=1e-9, rtol=0)
        assert torch.equal(anchored[0], solved.anchored[index, :kept])


def test_a_given_root_is_real_and_positive(odd):
    roots = odd.sizes - 1
    solved = lowest_of_graphs(*parts(odd), Operator(0.1), 3, roots)
    first = solved.vectors[odd.node_ptr[1:] - 1, 0]
    clear = first.abs() > 1e-3
    assert (first[clear].real > 0).all() and (first[clear].imag.abs() < 1e-9).all()


def test_bits_depend_on_the_graph_alone(odd):
    operator = Operator(mt.Relative(0.25))
    whole = lowest_of_graphs(*parts(odd), operator, 8)
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        single = lowest_of_graphs(*parts(odd), operator, 8)
    finally:
        torch.set_num_threads(before)
    assert torch.equal(whole.values, single.values) and torch.equal(whole.vectors, single.vectors)
    for index in range(0, len(odd), 17):
        alone = lowest_of_graphs(*parts(odd[[index]]), operator, 8)
        rows = slice(*odd.node_ptr[index : index + 2].tolist())
        assert torch.equal(alone.vectors, whole.vectors[rows])


@pytest.mark.parametrize("exponent", [-12, 12])
def test_weights_of_extreme_range(exponent):
    graphs = odd_digraphs(seed=5, count=60, weighted=True)
    spread = 10.0 ** np.random.default_rng(0).uniform(*sorted([0, exponent]), size=graphs.num_edges)
    graphs = graphs.replace(weights=graphs.weights * torch.from_numpy(spread))
    for operator in (Operator(0.1), Operator(0.1, normalised=False)):
        assert lowest_of_graphs(*parts(graphs), operator, 8).passed.all()


def test_degenerate_graphs():
    complete = np.stack(np.nonzero(1 - np.eye(30)))
    star = np.stack([np.zeros(29, int), np.arange(1, 30)])
    circle = np.stack([np.arange(30), np.roll(np.arange(30), -1)])
    nothing = np.zeros((2, 0), int)
    graphs = mt.Digraphs.from_edges([complete, star, circle, nothing, nothing], [30, 30, 30, 30, 1])
    for operator in OPERATORS:
        for k in (1, 16, 30):
            assert lowest_of_graphs(*parts(graphs), operator, k).passed.all()


def test_graphs_that_fail_verification_go_to_the_other_drivers(odd, monkeypatch):
    import magnetite.encodings.solve as solve

    def fails_everywhere(*arguments):
        solved = lowest_of_graphs(*arguments)
        solved.passed[:] = False
        solved.values[:] = torch.nan
        return solved

    expected = mt.MagneticLaplacian(k=4)(odd)
    monkeypatch.setattr(solve, "lowest_of_graphs", fails_everywhere)
    pairs = mt.MagneticLaplacian(k=4)(odd)
    torch.testing.assert_close(pairs.values[pairs.mask], expected.values[pairs.mask], atol=1e-6, rtol=0)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_thousands_of_odd_graphs(seed):
    for weighted in (False, True):
        graphs = odd_digraphs(seed, count=500, high=60, weighted=weighted)
        for operator in OPERATORS:
            for k in (5, 16, 60):
                assert lowest_of_graphs(*parts(graphs), operator, k).passed.all()
