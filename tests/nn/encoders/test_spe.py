"""SPE: neither phases nor the basis of an eigenspace matter; the products are those of complex matrices."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import magnetite as mt
from magnetite import nn
from magnetite.encodings import Eigenpairs
from magnetite.nn.encoders.spe import spectral_pairs
from magnetite.testing import assert_phase_invariant, digraphs
from tests.nn.zoo import K, generic_digraphs

ENCODINGS = {
    "magnetic": mt.MagneticLaplacian(k=K),
    "multi-q": mt.MagneticLaplacian(k=K, q=(0.1, mt.Relative(0.25))),
    "Laplacian": mt.Laplacian(k=K),
}
every_encoding = pytest.mark.parametrize("name", ENCODINGS)


def all_forms(name):
    torch.manual_seed(0)
    return nn.SPE(K, width=16, heads=2, layers=2, pairs=True, channels=4, encoding=ENCODINGS[name])


@torch.no_grad()
def everything(encoder, graphs, pairs):
    """All numbers that the encoder gives."""
    positions = encoder(mt.batch(graphs, pairs))
    biases = [part for layer in positions.biases for part in layer]
    return torch.cat([tensor.flatten() for tensor in (positions.nodes, *biases, *positions.pairs)])


@every_encoding
@settings(max_examples=8)
@given(graphs=digraphs(max_nodes=8))
def test_phases_do_not_matter(name, graphs):
    encoder = all_forms(name)
    assert_phase_invariant(lambda pairs: everything(encoder, graphs, pairs), ENCODINGS[name](graphs))


def doubled(seed):
    """Graphs of two equal components: every eigenvalue occurs twice."""
    one = generic_digraphs(seed, count=1)
    half = one[:1] if one.num_nodes <= K // 2 else mt.Digraphs.from_edges([[0, 1], [1, 2]], edge_weight=[1.0, 1.7])
    edges = torch.cat([half.edges, half.edges + half.num_nodes], dim=1)
    weights = half.edge_weight.repeat(2)
    return mt.Digraphs.from_edges(edges, num_nodes=2 * half.num_nodes, edge_weight=weights)


def rotated(pairs, seed):
    """The same eigenspaces in other bases: each group of equal eigenvalues times a unitary matrix."""
    generator = torch.Generator().manual_seed(seed)
    vectors = pairs.vectors.clone()
    groups = pairs.group[0] if pairs.group.ndim == 3 else pairs.group
    for potential, numbers in enumerate(groups):
        part = vectors[:, potential] if vectors.ndim == 3 else vectors
        for number in numbers[numbers >= 0].unique():
            chosen = numbers == number
            size = int(chosen.sum())
            basis, _ = torch.linalg.qr(torch.randn(size, size, dtype=vectors.dtype, generator=generator))
            part[:, chosen] = part[:, chosen] @ basis
    return Eigenpairs.from_tensors({**pairs.tensors(), "vectors": vectors})


@every_encoding
@settings(max_examples=8)
@given(seed=st.integers(0, 2**16))
def test_the_basis_of_an_eigenspace_does_not_matter(name, seed):
    graphs = doubled(seed)
    pairs = ENCODINGS[name](graphs)
    other = rotated(pairs, seed)
    assert not torch.allclose(pairs.vectors, other.vectors, atol=1e-2)
    encoder = all_forms(name)
    torch.testing.assert_close(
        everything(encoder, graphs, other), everything(encoder, graphs, pairs), rtol=1e-5, atol=1e-5
    )


def test_pairs_are_products_of_complex_matrices():
    generator = torch.Generator().manual_seed(0)
    vectors = torch.randn(2, 5, 3, dtype=torch.complex64, generator=generator)
    weights = torch.randn(2, 3, 4, generator=generator)
    expected = torch.einsum("buj,bjc,bvj->buvc", vectors, weights + 0j, vectors.conj())
    real, imag = spectral_pairs(torch.view_as_real(vectors), weights).chunk(2, dim=-1)
    torch.testing.assert_close(torch.complex(real, imag), expected)


def test_pair_features_are_read_by_a_pair_head():
    encoder = nn.SPE(K, pairs=True, channels=4)
    head = nn.PairHead(pair_channels=encoder.pair_channels)
    model = nn.DigraphTransformer(16, 1, head, encoder, heads=2)
    assert model(generic_digraphs(0)).shape == (int(generic_digraphs(0).sizes.square().sum()), 1)


def test_wrong_arguments_are_rejected():
    with pytest.raises(ValueError, match="SPE has no output: give width"):
        nn.SPE(K)
    with pytest.raises(ValueError, match="give both the same k"):
        nn.SPE(K, width=16, encoding=mt.MagneticLaplacian(k=K + 1))
    graphs = generic_digraphs(0)
    with pytest.raises(ValueError, match="has 6 real eigenvectors per graph, expected 6 complex ones"):
        nn.SPE(K, width=16)(mt.batch(graphs, mt.Laplacian(k=K)(graphs)))
    with pytest.raises(ValueError, match="encoding 'pairs' of the batch has no eigenpairs"):
        nn.SPE(K, width=16, of="pairs")(mt.batch(graphs, mt.RandomWalk()(graphs)))
