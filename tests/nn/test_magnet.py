"""MagNet: its matrix is the magnetic Laplacian of the encodings, its filters are Chebyshev polynomials."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings

import magnetite as mt
from magnetite import nn
from magnetite.linalg.laplacian import magnetic_laplacian, shifted_laplacian
from magnetite.nn.magnet import ChebyshevFilter
from magnetite.nn.sparse import SparseMatrix
from magnetite.testing import digraphs
from tests.nn.zoo import WIDTH, generic_digraphs


def dense(graphs: mt.Digraphs, q: float) -> torch.Tensor:
    """`L_N − I` of all graphs, block by block, from the Laplacian of the encodings."""
    blocks = [magnetic_laplacian(torch.from_numpy(matrix.toarray()), q) for matrix in graphs.to_scipy()]
    return torch.block_diag(*[block - torch.eye(len(block)) for block in blocks])


@pytest.mark.parametrize("q", [0.0, 0.1, 0.25])
@settings(max_examples=10)
@given(digraphs(max_nodes=7))
def test_the_matrix_is_the_normalised_laplacian_less_the_identity(q, graphs):
    size, weight = graphs.num_nodes, graphs.edge_weight.double()
    (row, column), real, imag = shifted_laplacian(graphs.edge_index, weight, size, q)
    found = torch.zeros(size, size, dtype=torch.complex128)
    found = found.index_put((row, column), torch.complex(real, imag), accumulate=True)
    torch.testing.assert_close(found, dense(graphs, q), rtol=1e-5, atol=1e-6)


def test_the_matrix_has_finite_gradients():
    weight = torch.ones(3, requires_grad=True)
    _, real, imag = shifted_laplacian(torch.tensor([[0, 1, 1], [1, 0, 3]]), weight, size=5, q=0.2)
    (real + imag).sum().backward()
    assert weight.grad is not None
    assert weight.grad.isfinite().all()


@settings(max_examples=10)
@given(digraphs(max_nodes=7))
def test_answers_and_gradients_are_those_of_dense_matrices(graphs):
    torch.manual_seed(0)
    model = nn.MagNet(WIDTH, 2, nn.NodeHead(3), position=nn.SinusoidalEncoder(WIDTH)).eval()
    batch, matrix = model.prepare(graphs), dense(graphs, model.q)
    answer = model(batch)
    states, _, positions = model.embed(batch)
    real, imag = states, states
    for layer in model.filters:
        terms = [torch.complex(real, imag)]
        terms.append(matrix.to(terms[0]) @ terms[0])
        terms.append(2 * matrix.to(terms[0]) @ terms[1] - terms[0])
        real, imag = (layer.linear(torch.cat(side, dim=-1)) for side in
                      ([term.real for term in terms], [term.imag for term in terms]))  # fmt: skip
        real, imag = real * (real > 0), imag * (real > 0)
    expected = model.head(model.out(torch.cat([real, imag], dim=-1)), batch, positions)
    torch.testing.assert_close(answer, expected, rtol=1e-4, atol=1e-5)
    found, wanted = (
        torch.autograd.grad(each.square().sum(), list(model.parameters()), allow_unused=True)
        for each in (answer, expected)
    )
    for one, other in zip(found, wanted, strict=True):
        assert (one is None) == (other is None)
        if one is not None:
            torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-4)


def test_filters_are_chebyshev_polynomials():
    order, width = 4, 3
    matrix = torch.linalg.qr(torch.randn(5, 5, dtype=torch.complex128, generator=torch.Generator().manual_seed(0)))[0]
    matrix = matrix @ torch.diag(torch.linspace(-1, 1, 5)).to(matrix) @ matrix.mH
    states = torch.randn(5, width, dtype=torch.complex128, generator=torch.Generator().manual_seed(1))
    layer = ChebyshevFilter(width, order).double()
    values, vectors = np.linalg.eigh(matrix.numpy())
    total = torch.zeros(5, width, dtype=torch.complex128)
    for degree, weight in enumerate(layer.linear.weight.chunk(order + 1, dim=1)):
        polynomial = np.polynomial.chebyshev.Chebyshev.basis(degree)(values)
        term = torch.from_numpy(vectors * polynomial @ vectors.conj().T)
        total = total + term @ states @ weight.T.to(states)
    total = total + torch.complex(layer.linear.bias, layer.linear.bias)
    expected = total * (total.real > 0)
    row, column = torch.cartesian_prod(torch.arange(5), torch.arange(5)).T
    parts = [SparseMatrix(row, column, part.flatten(), size=5) for part in (matrix.real, matrix.imag)]
    real, imag = layer(states.real.contiguous(), states.imag.contiguous(), (parts[0], parts[1]))
    torch.testing.assert_close(torch.complex(real, imag), expected)


def test_wrong_options_are_rejected():
    with pytest.raises(ValueError, match="outside"):
        nn.MagNet(WIDTH, 2, nn.NodeHead(1), q=0.7)
    with pytest.raises(ValueError, match="order must be at least 1, got 0"):
        nn.MagNet(WIDTH, 2, nn.NodeHead(1), order=0)


def test_a_real_signal_and_order_one():
    graphs = generic_digraphs(0)
    batch, size = mt.batch(graphs), graphs.num_nodes
    model = nn.MagNet(WIDTH, layers=1, head=nn.NodeHead(1), order=1, real_start=True).eval()
    states, _, positions = model.embed(batch)
    (layer,) = model.filters

    def laplacian(edges: torch.Tensor, weight: torch.Tensor, size: int) -> tuple[SparseMatrix, SparseMatrix]:
        (row, column), real, imag = shifted_laplacian(edges, weight, size, 0.1)
        return SparseMatrix(row, column, real, size), SparseMatrix(row, column, imag, size)

    both = layer(states, torch.zeros_like(states), laplacian(batch.edge_index, batch.edge_weight, size))
    torch.testing.assert_close(model.body(states, batch, positions), model.out(torch.cat(both, dim=-1)))
    # `Im (X_0 W_0 + L̃ X_0 W_1) = Im(L̃) X_0 W_1`: without one-way edges, the imaginary part is the bias alone.
    edges = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    real, imag = layer(torch.ones(3, WIDTH), torch.zeros(3, WIDTH), laplacian(edges, torch.ones(4), 3))
    torch.testing.assert_close(imag, layer.linear.bias.expand_as(imag) * (real > 0))
