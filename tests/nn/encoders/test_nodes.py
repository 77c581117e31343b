"""Encoders of rows that are there already: signs of singular pairs, sinusoids as they are, depths looked up."""

import pytest
import torch

import magnetite as mt
from magnetite import nn
from tests.nn.zoo import WIDTH, generic_digraphs

RANK = 3


def test_singular_pairs_are_flipped_together_in_training_only():
    torch.manual_seed(0)
    graphs = generic_digraphs(0)
    values = mt.SVD(rank=RANK)(graphs)
    batch = mt.pad(graphs, svd=values)
    encoder = nn.SVDEncoder(RANK, 2 * RANK)
    torch.nn.init.eye_(encoder.linear.weight)
    torch.nn.init.zeros_(encoder.linear.bias)
    torch.testing.assert_close(encoder.eval()(batch).nodes, batch.encoding("svd"), rtol=0, atol=0)
    left, right = batch.encoding("svd")[0].chunk(2, dim=-1)
    signs = set()
    for _ in range(20):
        drawn_left, drawn_right = encoder.train()(batch).nodes[0].detach().chunk(2, dim=-1)
        torch.testing.assert_close(drawn_left.abs(), left.abs())
        torch.testing.assert_close(drawn_left @ drawn_right.T, left @ right.T)  # a pair's signs cancel
        signs.add(tuple((drawn_left * left).sum(0).sign().tolist()))
    assert len(signs) > 2


def test_sinusoids_are_added_as_they_are():
    graphs = generic_digraphs(0)
    sinusoids = mt.Sinusoidal(width=WIDTH)(graphs)
    batch = mt.pad(graphs)
    torch.testing.assert_close(nn.SinusoidalEncoder(WIDTH)(batch).nodes[batch.mask], sinusoids.values, rtol=0, atol=0)


def test_depths_beyond_the_cap_share_a_vector():
    path = mt.Digraphs.from_edges([[0, 1, 2, 3], [1, 2, 3, 4]])
    nodes = nn.DepthEncoder(WIDTH, cap=2)(mt.pad(path, depth=mt.Depth(cap=9)(path))).nodes[0]
    torch.testing.assert_close(nodes[2], nodes[4])
    assert (nodes[1] - nodes[2]).abs().max() > 0.01


def test_other_widths_are_refused():
    graphs = generic_digraphs(0)
    with pytest.raises(ValueError, match="takes 6 columns a node: encode with SVD"):
        nn.SVDEncoder(RANK, WIDTH)(mt.pad(graphs, svd=mt.SVD(rank=2)(graphs)))
