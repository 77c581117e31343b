import math

import numpy as np
import pytest
import torch
from torch_geometric_signed_directed.utils.directed.get_magnetic_Laplacian import get_magnetic_Laplacian

from magnetite.linalg.laplacian import laplacian, magnetic_laplacian
from magnetite.linalg.phase import CONVENTIONS
from magnetite.linalg.potential import Relative, checked_potential


def random_weighted(seed: int, size: int = 12, count: int = 8, loops: bool = True) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    matrix = torch.rand((count, size, size), generator=generator, dtype=torch.float64)
    matrix *= torch.rand(matrix.shape, generator=generator) < 0.25
    matrix[:, -1], matrix[:, :, -1] = 0, 0  # an isolated node
    if not loops:
        matrix.diagonal(dim1=1, dim2=2).zero_()
    return matrix


@pytest.mark.parametrize("convention", CONVENTIONS)
@pytest.mark.parametrize("normalised", [True, False])
def test_laws(convention, normalised):
    weights = random_weighted(seed=0)
    for q in (0.0, 0.1, 0.25, 0.5):
        matrix = magnetic_laplacian(weights, q, normalised, convention)
        torch.testing.assert_close(matrix, matrix.mH)
        assert torch.linalg.eigvalsh(matrix).min() > -1e-12
        torch.testing.assert_close(magnetic_laplacian(weights.mT, q, normalised, convention), matrix.conj())
    torch.testing.assert_close(
        magnetic_laplacian(weights, 0.0, normalised, convention).real, laplacian(weights, normalised, convention)
    )


def test_normalised_spectrum_lies_between_0_and_2():
    values = torch.linalg.eigvalsh(magnetic_laplacian(random_weighted(seed=1), 0.2))
    assert values.min() > -1e-12
    assert values.max() < 2 + 1e-12


def test_paper_formula_on_weights():
    weights = torch.zeros(3, 3, dtype=torch.float64)
    weights[0, 1], weights[1, 2], weights[2, 1], weights[0, 0] = 3.0, 1.0, 5.0, 7.0
    matrix = magnetic_laplacian(weights, 0.1, normalised=False)
    turn = 2 * math.pi * 0.1
    torch.testing.assert_close(-matrix[0, 1], torch.polar(torch.tensor(3.0), torch.tensor(turn)).to(matrix))
    torch.testing.assert_close(
        -matrix[1, 2], torch.polar(torch.tensor(3.0), torch.tensor(turn * (1 - 5) / (1 + 5))).to(matrix)
    )
    assert matrix.diagonal().real.tolist() == [3.0, 6.0, 3.0]  # the self-loop cancels in L_U


def test_scale_of_the_weights_does_not_matter():
    weights = random_weighted(seed=2)
    torch.testing.assert_close(magnetic_laplacian(weights, 0.2), magnetic_laplacian(1e6 * weights, 0.2))


def test_isolated_nodes_keep_the_literal_formula():
    weights = random_weighted(seed=3)
    assert magnetic_laplacian(weights, 0.1)[:, -1, -1].real.tolist() == [1.0] * 8
    assert magnetic_laplacian(weights, 0.1, normalised=False)[:, -1, -1].real.tolist() == [0.0] * 8
    assert magnetic_laplacian(weights, 0.1, convention="networkx")[:, -1, -1].real.tolist() == [0.0] * 8


@pytest.mark.parametrize("normalised", [True, False])
def test_pygsd_equals_its_oracle(normalised):
    for weights in random_weighted(seed=4):
        source, target = weights.nonzero().T
        index, real, imag = get_magnetic_Laplacian(
            torch.stack([source, target]),
            weights[source, target],
            normalization="sym" if normalised else None,
            num_nodes=len(weights),
            q=0.15,
        )
        oracle = torch.zeros_like(weights, dtype=torch.complex128)
        oracle.index_put_(tuple(index), torch.complex(real.double(), imag.double()), accumulate=True)
        ours = magnetic_laplacian(weights, 0.15, normalised, "pygsd")
        torch.testing.assert_close(ours, oracle, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("normalised", [True, False])
def test_networkx_equals_its_published_formula(normalised):
    for weights in random_weighted(seed=5).numpy():
        symmetric = 0.5 * (weights + weights.T)
        turn = np.where(weights > 0, 1, 0) - np.where(weights.T > 0, 1, 0)
        degree = np.diag(symmetric.sum(1))
        oracle = degree - symmetric * np.exp(2j * np.pi * 0.15 * turn)
        if normalised:
            root = np.sqrt(np.linalg.pinv(degree))
            oracle = root @ oracle @ root
        ours = magnetic_laplacian(torch.from_numpy(weights), 0.15, normalised, "networkx")
        np.testing.assert_allclose(ours.numpy(), oracle, atol=1e-12)


@pytest.mark.parametrize("normalised", [True, False])
def test_multi_q_equals_its_published_formula(normalised):
    for weights in random_weighted(seed=6).numpy():
        hermitian = np.exp(2j * np.pi * 0.15) * weights + np.exp(-2j * np.pi * 0.15) * weights.T
        degree = (weights + weights.T).sum(1)
        oracle = np.diag(degree) - hermitian
        if normalised:
            root = np.where(degree > 0, degree, 1) ** -0.5
            oracle = np.eye(len(weights)) - root[:, None] * hermitian * root
        ours = magnetic_laplacian(torch.from_numpy(weights), 0.15, normalised, "multi-q")
        np.testing.assert_allclose(ours.numpy(), oracle, atol=1e-12)


def test_an_antiparallel_pair_weighs_twice_the_cosine_in_multi_q():
    pair = torch.tensor([[0.0, 1.0], [1.0, 0.0]], dtype=torch.float64)
    matrix = magnetic_laplacian(pair, 0.1, normalised=False, convention="multi-q")
    assert math.isclose(-float(matrix[0, 1].real), 2 * math.cos(2 * math.pi * 0.1), rel_tol=1e-12)


def test_the_conventions_agree_on_unweighted_oriented_graphs_up_to_scale():
    graph = torch.triu(random_weighted(seed=7, loops=False) > 0, 1).double()
    paper = magnetic_laplacian(graph, 0.1)
    for other in ("networkx", "pygsd", "multi-q"):
        rest = magnetic_laplacian(graph, 0.1, convention=other)
        connected = (graph + graph.mT).sum(-1) > 0
        torch.testing.assert_close(paper[connected], rest[connected])


def test_relative_potential_counts_one_way_edges():
    cases = {
        "path": (torch.diag(torch.ones(9), 1), 9),
        "more edges than nodes": (torch.triu(torch.ones(10, 10), 1), 10),
        "undirected": (torch.ones(4, 4), 1),
        "pair and edge": (torch.tensor([[0.0, 1, 1], [1, 0, 0], [0, 0, 0]]), 1),
        "weighted": (torch.tensor([[0.0, 0.5, 0.1], [0, 0, 0], [0, 0, 7.0]]), 2),
    }
    for name, (matrix, normaliser) in cases.items():
        q = Relative(0.25).absolute(matrix.double())
        assert float(q) == 0.25 / normaliser, name


@pytest.mark.parametrize("q", [-0.1, 0.51, math.nan, (), (0.1, 0.7), "0.1", True, None])
def test_bad_potentials(q):
    with pytest.raises(ValueError, match="q"):
        checked_potential(q)


def test_unknown_convention_lists_the_known():
    with pytest.raises(ValueError, match="paper, networkx, pygsd, multi-q"):
        magnetic_laplacian(torch.zeros(1, 1), 0.1, convention="fermi")
