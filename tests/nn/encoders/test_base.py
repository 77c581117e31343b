"""Several encoders at once give what each gives alone, added or concatenated."""

import pytest
import torch

import magnetite as mt
from magnetite import nn
from magnetite.nn.encoders import ENCODERS
from tests.batching.cases import forms
from tests.nn.zoo import HEADS, WIDTH, K, generic_digraphs


@torch.no_grad()
def test_node_vectors_and_biases_are_added_and_pair_features_concatenated():
    parts = [
        nn.SPE(K, WIDTH, heads=HEADS, layers=1, pairs=True, channels=4),
        nn.WalkEncoder(WIDTH),
        nn.RelativeWalkEncoder(HEADS, layers=3),
        nn.SPE(K, pairs=True, channels=2),
    ]
    graphs, combined = generic_digraphs(0), nn.Combined(parts)
    encodings = {name: encoding(graphs) for name, encoding in combined.encodings().items()}
    assert combined.pair_channels == 8 + 4
    for batch in forms(graphs, encodings).values():
        together, alone = combined(batch), [part(batch) for part in parts]
        torch.testing.assert_close(together.nodes, alone[0].nodes + alone[1].nodes)
        assert len(together.biases) == 3
        for bucket in range(len(batch.buckets)):
            for layer in range(3):  # one bias serves all layers
                expected = alone[0].biases[0][bucket] + alone[2].biases[layer][bucket]
                torch.testing.assert_close(together.bias(layer)[bucket], expected)
            expected = torch.cat([alone[0].pairs[bucket], alone[3].pairs[bucket]], dim=-1)
            torch.testing.assert_close(together.pairs[bucket], expected)


def test_two_encodings_of_one_name_are_rejected():
    with pytest.raises(ValueError, match="different encodings as 'eigenpairs': give each its own of="):
        nn.Combined([nn.MagLapNet(4, WIDTH), nn.MagLapNet(5, WIDTH)])
    combined = nn.Combined([nn.MagLapNet(4, WIDTH), nn.MagLapNet(5, WIDTH, of="more")])
    assert set(combined.encodings()) == {"eigenpairs", "more"}


@torch.no_grad()
def test_normalised_node_vectors_have_the_scale_and_all_else_is_as_it_was():
    encoder = nn.SPE(K, WIDTH, heads=HEADS, layers=1, pairs=True, channels=4)
    normalised = nn.Normalised(encoder, WIDTH, scale=0.1)
    graphs = generic_digraphs(0)
    batch = mt.batch(graphs, **{name: encoding(graphs) for name, encoding in normalised.encodings().items()})
    found, plain = normalised(batch), encoder(batch)
    torch.testing.assert_close(found.nodes.mean(1), torch.zeros(batch.num_nodes), atol=1e-6, rtol=0)
    torch.testing.assert_close(found.nodes.std(1, correction=0), torch.full((batch.num_nodes,), 0.1), atol=1e-3, rtol=0)
    torch.testing.assert_close((found.biases, found.pairs), (plain.biases, plain.pairs))
    assert (normalised.pair_channels, normalised.has_biases) == (encoder.pair_channels, True)
    biases_only = nn.Normalised(nn.RelativeWalkEncoder(HEADS, layers=1), WIDTH)
    walks = {name: encoding(graphs) for name, encoding in biases_only.encodings().items()}
    assert biases_only(mt.batch(graphs, **walks)).nodes is None


def test_positions_of_another_width_are_rejected():
    model = nn.DigraphTransformer(WIDTH, 1, nn.NodeHead(1), nn.WalkEncoder(2 * WIDTH))
    with pytest.raises(ValueError, match="the position encoder has width 32, the model 16: give both the same width"):
        model(generic_digraphs(0))


@pytest.mark.parametrize("name", ENCODERS)
def test_encoders_are_built_for_a_model(name):
    graphs, kind = generic_digraphs(0), ENCODERS[name]
    spectral, nodes = [mt.MagneticLaplacian(k=4), mt.Laplacian(k=4)], [mt.SVD(rank=4), mt.Sinusoidal(WIDTH), mt.Depth()]
    walks = [mt.RandomWalk(), mt.WalkSums(), mt.SparseRandomWalk(), mt.Relatives()]
    encodings = [each for each in (*spectral, *walks, *nodes) if isinstance(each, kind.reads)]
    assert bool(encodings) == bool(kind.reads)
    for encoding in encodings or [None]:
        position = kind.build(encoding, width=WIDTH, heads=HEADS, layers=2)
        head = nn.PairHead(pair_channels=position.pair_channels)
        attention = nn.SparseAttention(WIDTH, HEADS) if position.lists_pairs else None
        model = nn.DigraphTransformer(WIDTH, 2, head, position, heads=HEADS, attention=attention)
        assert model(graphs).isfinite().all()
        assert all(each == encoding for each in position.encodings().values())
