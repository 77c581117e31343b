"""Heads: the factorised pair layer is the plain one, answers follow the nodes, words are lowered at evaluation."""

import pytest
import torch

import magnetite as mt
from magnetite import nn
from magnetite.nn.positions import Positions
from magnetite.testing import permute
from tests.nn.zoo import WIDTH, K, generic_digraphs


def model(head):
    torch.manual_seed(0)
    return nn.DigraphTransformer(WIDTH, 1, head, nn.MagLapNet(K, WIDTH)).eval()


def test_the_first_pair_layer_is_a_linear_one_of_both_ends_and_the_whole():
    graphs = generic_digraphs(0)
    batch, head = mt.pad(graphs), nn.PairHead(2, hidden=8)
    head.setup(WIDTH)
    states = torch.randn(*batch.mask.shape, WIDTH)
    answers = head(states, batch, Positions())
    matrix = torch.cat([*head.ends.weight.chunk(2), head.whole.weight], dim=1)
    bias = head.ends.bias.chunk(2)[0] + head.ends.bias.chunk(2)[1]
    for graph, size in enumerate(graphs.sizes.tolist()):
        whole = torch.cat([states[graph, :size].sum(0), torch.tensor([float(size)])])
        for source in range(size):
            for target in range(size):
                row = torch.cat([states[graph, source], states[graph, target], whole])
                hidden = torch.nn.functional.gelu(head.first_norm(matrix @ row + bias))
                hidden = torch.nn.functional.gelu(head.second_norm(head.second(hidden)))
                torch.testing.assert_close(answers[graph, source, target], head.last(hidden), rtol=1e-4, atol=1e-5)


def test_pairs_follow_their_nodes():
    graphs = generic_digraphs(5, count=1)
    permuted, number = permute(graphs, seed=1)
    network = model(nn.PairHead(positive=True))
    size = graphs.num_nodes
    before, after = (network(item)[0, :size, :size] for item in (graphs, permuted))
    torch.testing.assert_close(after[number][:, number], before, rtol=2e-5, atol=2e-5)
    assert (before > 0).all()


@pytest.mark.parametrize("readout", nn.heads.READOUTS)
def test_answers_about_graphs_know_no_numbers(readout):
    graphs = generic_digraphs(5)
    permuted, _ = permute(graphs, seed=1)
    network = model(nn.GraphHead(3, readout))
    torch.testing.assert_close(network(permuted), network(graphs), rtol=2e-5, atol=2e-5)


def test_words_are_lowered_at_evaluation_only():
    graphs = generic_digraphs(0)
    network = model(nn.SequenceHead(7, length=2, lowered={5: 0.75, 6: 0.45}))
    states, batch = torch.randn(3, 8, WIDTH), mt.pad(graphs)
    evaluated, trained = network.head(states, batch, Positions()), network.train().head(states, batch, Positions())
    expected = torch.tensor([0.0] * 5 + [0.75, 0.45]).expand(3, 2, 7)
    torch.testing.assert_close(trained - evaluated, expected)


@pytest.mark.parametrize("pair_layer", [True, False])
@torch.no_grad()
def test_features_of_pairs_join_after_the_first_layer_or_within_it(pair_layer):
    torch.manual_seed(0)
    graphs, gelu = generic_digraphs(0), torch.nn.functional.gelu
    head = nn.PairHead(2, hidden=8, pair_channels=4, pair_layer=pair_layer)
    head.setup(WIDTH)
    batch = mt.pad(graphs)
    states, features = torch.randn(*batch.mask.shape, WIDTH), torch.randn(*batch.mask.shape, batch.mask.shape[1], 4)
    source, target = head.ends(states).chunk(2, dim=-1)
    read = torch.cat([(states * batch.mask[..., None]).sum(1), batch.sizes[:, None]], dim=-1)
    ends, between = (source[:, :, None] + target[:, None]) + head.whole(read)[:, None, None], head.between(features)
    if pair_layer:
        first = gelu(head.first_norm(ends)) + gelu(head.between_norm(between))
    else:
        first = gelu(head.first_norm(ends + between))
    expected = head.last(gelu(head.second_norm(head.second(first))))
    torch.testing.assert_close(head(states, batch, Positions(pairs=features)), expected, rtol=1e-4, atol=1e-5)


def test_what_is_missing_is_named():
    graphs = generic_digraphs(0)
    with pytest.raises(ValueError, match="positions give 0 channels a pair, this PairHead takes 4"):
        model(nn.PairHead(pair_channels=4))(graphs)
    with pytest.raises(ValueError, match="readout='first' is not known"):
        nn.GraphHead(2, readout="first")
