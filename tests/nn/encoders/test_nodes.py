"""Encoders of node encodings: random signs of singular pairs, sinusoids unchanged, depths looked up."""

import pytest
import torch

import magnetite as mt
from magnetite import nn
from magnetite.nn.encoders.nodes import signs_of_graphs
from magnetite.testing import assert_permutation_equivariant
from tests.batching.cases import forms, real_nodes
from tests.nn.zoo import WIDTH, generic_digraphs

RANK = 3


def test_singular_pairs_are_flipped_together_in_training_only():
    torch.manual_seed(0)
    graphs = generic_digraphs(0)
    values = mt.SVD(rank=RANK)(graphs)
    batch = mt.batch(graphs, svd=values)
    encoder = nn.SVDEncoder(RANK, 2 * RANK)
    torch.nn.init.eye_(encoder.linear.weight)
    torch.nn.init.zeros_(encoder.linear.bias)
    torch.testing.assert_close(encoder.eval()(batch).nodes, batch.encoding("svd"), rtol=0, atol=0)
    first = batch.node_graph == 0
    left, right = batch.encoding("svd")[first].chunk(2, dim=-1)
    signs = set()
    for _ in range(20):
        flipped_left, flipped_right = encoder.train()(batch).nodes[first].detach().chunk(2, dim=-1)
        torch.testing.assert_close(flipped_left.abs(), left.abs())
        torch.testing.assert_close(flipped_left @ flipped_right.T, left @ right.T)  # the signs of a pair cancel
        signs.add(tuple((flipped_left * left).sum(0).sign().tolist()))
    assert len(signs) > 2


def test_sinusoids_are_added_unchanged():
    graphs = generic_digraphs(0)
    expected = mt.Sinusoidal(width=WIDTH)(graphs).values
    for batch in forms(graphs).values():
        found = real_nodes(batch, nn.SinusoidalEncoder(WIDTH)(batch).nodes)
        torch.testing.assert_close(found, expected, rtol=0, atol=0)


def test_depths_beyond_the_cap_share_a_vector():
    path = mt.Digraphs.from_edges([[0, 1, 2, 3], [1, 2, 3, 4]])
    nodes = nn.DepthEncoder(WIDTH, cap=2)(mt.batch(path, depth=mt.Depth(cap=9)(path))).nodes
    torch.testing.assert_close(nodes[2], nodes[4])
    assert (nodes[1] - nodes[2]).abs().max() > 0.01


def test_other_widths_are_rejected():
    graphs = generic_digraphs(0)
    with pytest.raises(ValueError, match="expected 6 columns per node: encode with SVD"):
        nn.SVDEncoder(RANK, WIDTH)(mt.batch(graphs, svd=mt.SVD(rank=2)(graphs)))


def test_independent_signs_leave_each_side_as_it_is_and_depend_on_the_graph_alone():
    torch.manual_seed(0)
    graphs = generic_digraphs(0)
    encoder = nn.SVDEncoder(RANK, 2 * RANK, signs="independent")
    torch.nn.init.eye_(encoder.linear.weight)
    torch.nn.init.zeros_(encoder.linear.bias)
    batch = mt.batch(graphs, svd=mt.SVD(rank=RANK)(graphs))
    values, first = batch.encoding("svd"), batch.node_graph == 0
    cancelled = set()
    for _ in range(20):
        found = encoder.train()(batch).nodes.detach()
        torch.testing.assert_close(found.abs(), values.abs())
        left, right = (found * values)[first].sum(0).sign().chunk(2)
        cancelled.add(tuple((left * right).tolist()))
    assert len(cancelled) > 2  # `u_j` and `v_j` are not flipped together
    evaluated = encoder.eval()(batch).nodes
    assert not torch.equal(evaluated, values)
    for number, one in enumerate(graphs):  # alone, in another batch, or with its nodes in another order
        alone = mt.batch(one, svd=mt.SVD(rank=RANK)(one))
        torch.testing.assert_close(encoder(alone).nodes, evaluated[batch.node_graph == number])
    assert_permutation_equivariant(encoder_of_signs, graphs)


def encoder_of_signs(graphs: mt.Digraphs) -> torch.Tensor:
    batch = mt.batch(graphs)
    return batch.per_node(signs_of_graphs(batch, 8)).float()
