"""Message passing: one step reaches neighbours, edge features matter, middle axes do not mix."""

import pytest
import torch

import magnetite as mt
from magnetite import nn
from magnetite.batching import Batch
from tests.nn.zoo import WIDTH, generic_digraphs


def states_of(batch: Batch, *middle: int) -> torch.Tensor:
    return torch.randn(batch.num_nodes, *middle, WIDTH, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("make", [nn.GNN, nn.GCN])
def test_one_step_reaches_neighbours_only(make):
    batch, network = mt.batch(mt.Digraphs.from_edges([[0, 1, 2], [1, 2, 3]])), make(WIDTH, steps=1)
    states = states_of(batch).requires_grad_()
    network(states, batch)[1].sum().backward()
    assert (states.grad.abs().sum(-1) > 0).tolist() == [True, True, True, False]


@pytest.mark.parametrize("directed", [True, False])
def test_middle_axes_do_not_mix(directed):
    batch, network = mt.batch(generic_digraphs(0)), nn.GNN(WIDTH, directed=directed).network
    states = states_of(batch, 2, 3)
    together = network(states, None, batch)
    for first in range(2):
        for second in range(3):
            torch.testing.assert_close(together[:, first, second], network(states[:, first, second], None, batch))


def labelled(kinds: torch.Tensor) -> mt.Digraphs:
    return mt.Digraphs.from_edges([[0, 1], [1, 2]]).replace(edge_features={"kind": kinds, "length": kinds.float()})


@pytest.mark.parametrize("make", [nn.GNN, nn.GCN])
@pytest.mark.parametrize("features", [nn.CategoryEdges({"kind": 5}), nn.LinearEdges("length")])
def test_edge_features_matter(make, features):
    network = make(WIDTH, edge_features=nn.rebuild(nn.describe(features)))
    one, other = (mt.batch(labelled(torch.tensor(kinds))) for kinds in ([1, 2], [1, 3]))
    states = states_of(one)
    assert (network(states, one) - network(states, other)).abs().max() > 1e-3


@pytest.mark.parametrize("make", [nn.GNN, nn.GCN])
def test_graph_tokens_exchange_no_messages(make):
    batch, network = mt.batch(generic_digraphs(0)), make(WIDTH, edge_features=nn.LinearEdges())
    states = states_of(batch)
    tokens = torch.randn(len(batch), WIDTH)
    with_tokens = network(torch.cat([states, tokens]), batch)
    torch.testing.assert_close(with_tokens[: batch.num_nodes], network(states, batch))
    assert with_tokens.shape == (batch.num_nodes + len(batch), WIDTH)


@pytest.mark.parametrize("make", [lambda head: nn.DigraphGNN(WIDTH, head), lambda head: nn.MagNet(WIDTH, 2, head)])
def test_a_graph_token_that_no_message_reaches_is_rejected(make):
    with pytest.raises(ValueError, match="readout='cls' needs attention: give the head readout='mean' or 'sum'"):
        make(nn.GraphHead(2, readout="cls"))
