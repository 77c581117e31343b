"""MagLapNet: what a SignNet must not see, what a network of comparators needs, and what is refused."""

import pytest
import torch

import magnetite as mt
from magnetite import nn
from magnetite.encodings import Eigenpairs
from tests.nn.zoo import HEADS, WIDTH, K, generic_digraphs

NETWORK = mt.sorting.SortingNetwork(length=3, comparators=[(0, 2), (0, 1), (1, 2)])


def flipped(pairs: Eigenpairs, columns: slice) -> Eigenpairs:
    vectors = pairs.vectors.clone()
    vectors[..., columns] *= -1
    return Eigenpairs.from_tensors({**pairs.tensors(), "vectors": vectors})


@pytest.mark.parametrize("sign", [nn.SignMLP(), nn.SignGNN(), nn.SignGNN(steps=2, directed=False)])
@pytest.mark.parametrize("encoding", [mt.MagneticLaplacian(k=K), mt.MagneticLaplacian(k=K, q=(0.1, 0.2))])
def test_sign_nets_see_no_sign_but_that_of_the_first_vector(sign, encoding):
    encoder = nn.MagLapNet(K, WIDTH, encoding, sign=nn.rebuild(nn.describe(sign))).eval()
    graphs = generic_digraphs(3)
    pairs = encoding(graphs)
    nodes = encoder(mt.pad(graphs, pairs)).nodes
    others, first = (encoder(mt.pad(graphs, flipped(pairs, part))).nodes for part in (slice(1, None), slice(0, 1)))
    torch.testing.assert_close(others, nodes, rtol=1e-5, atol=1e-5)
    assert (first - nodes).abs().max() > 1e-3


def test_without_a_sign_net_signs_matter_and_are_drawn_for_the_laplacian():
    graphs = generic_digraphs(3)
    pairs = mt.Laplacian(k=K)(graphs)
    batch = mt.pad(graphs, laplacian=pairs)
    encoder = nn.LaplacianEncoder(K, WIDTH, dropout=0.0)
    encoder.eval()
    assert (
        encoder(mt.pad(graphs, laplacian=flipped(pairs, slice(1, 2)))).nodes - encoder(batch).nodes
    ).abs().max() > 0.01
    encoder.train()
    assert (encoder(batch).nodes - encoder(batch).nodes).abs().max() > 0.01


def answers(position: nn.PositionEncoder) -> torch.Tensor:
    """What an untrained model says about the network and its reverse."""
    torch.manual_seed(0)
    position = nn.rebuild(nn.describe(position))
    model = nn.DigraphTransformer(WIDTH, 2, nn.GraphHead(2, "sum"), position, nn.WireNodes(16)).eval()
    with torch.no_grad():
        return torch.cat([model(network.to_digraphs()) for network in (NETWORK, NETWORK.reverse())])


@pytest.mark.parametrize(
    ("position", "told_apart"),
    [
        (nn.MagLapNet(K, WIDTH), True),
        (nn.MagLapNet(K, WIDTH, sign=nn.SignGNN()), True),
        (nn.SPE(K, WIDTH), True),
        (nn.WalkEncoder(WIDTH), True),
        (nn.RelativeWalkEncoder(HEADS, layers=2), True),
        (nn.SPE(K, WIDTH, encoding=mt.Laplacian(k=K)), False),
    ],
)
def test_a_sorting_network_is_told_from_its_reverse_by_directed_encodings(position, told_apart):
    forward, backward = answers(position)
    assert NETWORK.is_correct() != NETWORK.reverse().is_correct()
    difference = (forward - backward).abs().max()
    assert difference > 1e-4 if told_apart else difference < 2e-6


def test_the_combinatorial_laplacian_of_a_network_is_that_of_its_reverse():
    graphs = NETWORK.to_digraphs()
    model = nn.DigraphTransformer(WIDTH, 2, nn.GraphHead(2), nn.LaplacianEncoder(K, WIDTH), nn.WireNodes(16)).eval()
    torch.testing.assert_close(model(graphs.reverse()), model(graphs), rtol=0, atol=0)


def test_eigenpairs_that_do_not_fit_are_refused():
    graphs = generic_digraphs(0)
    with pytest.raises(ValueError, match="holds 3 complex eigenvectors a graph, this encoder takes 6 complex ones"):
        nn.MagLapNet(K, WIDTH)(mt.pad(graphs, mt.MagneticLaplacian(k=3)(graphs)))
    with pytest.raises(ValueError, match="holds no encoding 'eigenpairs'"):
        nn.MagLapNet(K, WIDTH)(mt.pad(graphs))
    with pytest.raises(ValueError, match="give both the same k"):
        nn.MagLapNet(K, WIDTH, mt.MagneticLaplacian(k=3))
