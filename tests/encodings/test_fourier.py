import pytest
import torch

import magnetite as mt
from magnetite.linalg.laplacian import magnetic_laplacian


@pytest.fixture
def pairs(odd):
    return mt.MagneticLaplacian(k=30, q=0.1, dtype=torch.float64)(odd)


def test_inverse_and_parseval(odd, pairs):
    signal = torch.randn(odd.num_nodes, 3, dtype=torch.complex128, generator=torch.Generator().manual_seed(0))
    spectrum = mt.fourier(pairs, signal)
    assert spectrum.shape == (len(odd), 30, 3)
    torch.testing.assert_close(mt.inverse_fourier(pairs, spectrum), signal)
    torch.testing.assert_close(spectrum.norm(), signal.norm())


def test_filtering_by_the_eigenvalues_applies_the_laplacian(odd, pairs):
    signal = torch.randn(odd.num_nodes, 2, dtype=torch.complex128, generator=torch.Generator().manual_seed(1))
    filtered = mt.graph_filter(pairs, signal, lambda values: values)
    for i, graph in enumerate(odd):
        adjacency = torch.from_numpy(graph.to_scipy()[0].toarray())
        rows = slice(*odd.node_ptr[i : i + 2].tolist())
        torch.testing.assert_close(filtered[rows], magnetic_laplacian(adjacency, 0.1) @ signal[rows])


def test_incomplete_eigenpairs_are_rejected(odd):
    pairs = mt.MagneticLaplacian(k=2)(odd)
    with pytest.raises(ValueError, match="larger k"):
        mt.fourier(pairs, torch.zeros(odd.num_nodes, 1))


def test_wrong_signals_are_rejected(pairs):
    with pytest.raises(ValueError, match="one row per node"):
        mt.fourier(pairs, torch.zeros(3, 1))
