"""MagNet: its matrix is the magnetic Laplacian of the encodings, its filters are Chebyshev polynomials."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings

import magnetite as mt
from magnetite import nn
from magnetite.linalg.laplacian import magnetic_laplacian, shifted_laplacian
from magnetite.nn.magnet import ChebyshevFilter
from magnetite.testing import digraphs
from tests.nn.zoo import WIDTH, generic_digraphs


@settings(max_examples=20)
@given(digraphs(max_nodes=7))
def test_the_matrix_is_the_normalised_laplacian_less_the_identity(graphs):
    real, imag = shifted_laplacian(mt.batch(graphs).adjacency()[0], q=0.1)
    for number, matrix in enumerate(graphs.to_scipy()):
        expected = magnetic_laplacian(torch.from_numpy(matrix.toarray()), 0.1)
        size = expected.shape[0]
        found = torch.complex(real, imag)[number, :size, :size] + torch.eye(size)
        torch.testing.assert_close(found, expected.to(torch.complex64), rtol=1e-5, atol=1e-6)


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
    parts = matrix.real[None], matrix.imag[None]
    real, imag = layer(states.real[None], states.imag[None], parts)
    torch.testing.assert_close(torch.complex(real, imag)[0], expected)


def test_wrong_options_are_rejected():
    with pytest.raises(ValueError, match="outside"):
        nn.MagNet(WIDTH, 2, nn.NodeHead(1), q=0.7)
    with pytest.raises(ValueError, match="order must be at least 1, got 0"):
        nn.MagNet(WIDTH, 2, nn.NodeHead(1), order=0)


def test_a_real_signal_and_order_one():
    graphs = generic_digraphs(0)
    batch = mt.batch(graphs)
    options = {"layers": 1, "order": 1, "real_start": True}
    model = nn.MagNet(WIDTH, head=nn.NodeHead(1), **options).eval()
    states, positions = model.embed(batch)
    parts = zip(batch.pad(states), batch.adjacency(), strict=True)
    (layer,) = model.filters
    both = [layer(padded, torch.zeros_like(padded), shifted_laplacian(matrix, 0.1)) for padded, matrix in parts]
    expected = model.out(batch.unpad([torch.cat(pair, dim=-1) for pair in both]))
    torch.testing.assert_close(model.body(states, batch, positions), expected)
    # `Im (X_0 W_0 + L̃ X_0 W_1) = Im(L̃) X_0 W_1`: without one-way edges, the imaginary part is the bias alone.
    sideways = shifted_laplacian(torch.ones(1, 3, 3), 0.1)
    real, imag = layer(torch.ones(1, 3, WIDTH), torch.zeros(1, 3, WIDTH), sideways)
    torch.testing.assert_close(imag, layer.linear.bias.expand_as(imag) * (real > 0))
