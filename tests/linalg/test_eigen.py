import pytest
import torch

import magnetite as mt
from magnetite.linalg import eigen
from magnetite.linalg.eigen import SolverFailure, lowest_eigenpairs, verify
from magnetite.linalg.laplacian import magnetic_laplacian


@pytest.fixture
def matrices():
    generator = torch.Generator().manual_seed(0)
    return magnetic_laplacian((torch.rand(16, 12, 12, generator=generator) < 0.2).double(), 0.05)


def wrong(matrices, k):
    """A driver that returns NaN for the third matrix of a batch, as cuSOLVER was seen to do."""
    values, vectors = torch.linalg.eigh(matrices)
    vectors[2] = torch.nan
    return values[:, :k], vectors[:, :, :k]


def broken(matrices, k):
    raise torch.linalg.LinAlgError("no convergence")


def test_what_one_driver_gets_wrong_the_next_one_solves(matrices, monkeypatch):
    expected = lowest_eigenpairs(matrices, 4)[0]
    monkeypatch.setattr(eigen, "DRIVERS", (broken, wrong, eigen.qr_iteration))
    values, vectors = lowest_eigenpairs(matrices, 4)
    residual, unitarity = verify(matrices, values, vectors)
    torch.testing.assert_close(values, expected)
    assert max(residual.max(), unitarity.max()) < 1e-12


def test_the_error_names_the_graph(monkeypatch, odd, dense_only):
    monkeypatch.setattr(eigen, "DRIVERS", (broken,))
    monkeypatch.setattr("magnetite.encodings.solve.ENGINE_UP_TO", 0)
    with pytest.raises(SolverFailure, match=r"graph \d+ \(\d+ nodes\)"):
        mt.MagneticLaplacian(k=4)(odd)


def test_every_driver_agrees(matrices, monkeypatch):
    spectra = []
    for driver in eigen.DRIVERS:
        monkeypatch.setattr(eigen, "DRIVERS", (driver,))
        spectra.append(lowest_eigenpairs(matrices, 12)[0])
    for spectrum in spectra[1:]:
        torch.testing.assert_close(spectrum, spectra[0], atol=1e-12, rtol=0)


def test_groups_of_two_disjoint_edges():
    pairs = mt.MagneticLaplacian(k=5, q=0.0)(mt.Digraphs.from_edges([[0, 2], [1, 3]]))
    torch.testing.assert_close(pairs.values, torch.tensor([[0.0, 0.0, 2.0, 2.0, 0.0]]))
    assert pairs.mask.tolist() == [[True] * 4 + [False]]
    assert pairs.group.tolist() == [[0, 0, 1, 1, -1]]
