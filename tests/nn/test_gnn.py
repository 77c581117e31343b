"""Message passing: the sums are those over edges, features of edges matter, middle axes do not mix."""

import pytest
import torch

import magnetite as mt
from magnetite import nn
from magnetite.batching import Batch
from magnetite.nn.edges import gathered
from tests.nn.zoo import WIDTH, generic_digraphs


def states_of(batch: Batch, *middle: int) -> torch.Tensor:
    return torch.randn(*batch.mask.shape, *middle, WIDTH, generator=torch.Generator().manual_seed(0))


def test_messages_are_summed_over_real_edges_only():
    graphs = generic_digraphs(0)
    batch = mt.pad(graphs)
    ones = gathered(torch.ones(batch.edge_mask.numel(), 1), batch.edges[1], batch).view(batch.mask.shape)
    into = torch.zeros(graphs.num_nodes).index_add(0, graphs.edge_index[1], torch.ones(graphs.num_edges))
    torch.testing.assert_close(ones[batch.mask], into)
    assert ones[~batch.mask].sum() == 0


@pytest.mark.parametrize("make", [nn.GNN, nn.GCN])
def test_one_step_reaches_neighbours_only(make):
    path = mt.Digraphs.from_edges([[0, 1, 2], [1, 2, 3]])
    batch, network = mt.pad(path), make(WIDTH, steps=1)
    states = states_of(batch).requires_grad_()
    network(states, batch)[0, 1].sum().backward()
    reached = states.grad[0].abs().sum(-1) > 0
    assert reached.tolist() == [True, True, True, False, False, False, False, False]


@pytest.mark.parametrize("directed", [True, False])
def test_middle_axes_do_not_mix(directed):
    graphs = generic_digraphs(0)
    batch, network = mt.pad(graphs), nn.GNN(WIDTH, directed=directed)
    states = states_of(batch, 2, 3)
    together = network(states, batch)
    for first in range(2):
        for second in range(3):
            torch.testing.assert_close(together[:, :, first, second], network(states[:, :, first, second], batch))


def labelled(kinds: torch.Tensor) -> mt.Digraphs:
    return mt.Digraphs.from_edges([[0, 1], [1, 2]]).replace(edge_features={"kind": kinds, "length": kinds.float()})


@pytest.mark.parametrize("make", [nn.GNN, nn.GCN])
@pytest.mark.parametrize("features", [nn.CategoryEdges({"kind": 5}), nn.LinearEdges("length")])
def test_features_of_edges_matter(make, features):
    network = make(WIDTH, edge_features=nn.rebuild(nn.describe(features)))
    one, other = (mt.pad(labelled(torch.tensor(kinds))) for kinds in ([1, 2], [1, 3]))
    states = states_of(one)
    assert (network(states, one) - network(states, other)).abs().max() > 1e-3


def test_features_that_are_missing_are_named():
    network = nn.GNN(WIDTH, edge_features=nn.CategoryEdges({"colour": 5}))
    batch = mt.pad(labelled(torch.tensor([0, 1])))
    with pytest.raises(ValueError, match="no edge feature 'colour' \\(they have kind, length\\)"):
        network(states_of(batch), batch)


@pytest.mark.parametrize("make", [lambda head: nn.DigraphGNN(WIDTH, head), lambda head: nn.MagNet(WIDTH, 2, head)])
def test_a_token_that_no_message_reaches_is_refused(make):
    with pytest.raises(ValueError, match="give readout='mean' or 'sum'"):
        make(nn.GraphHead(2, readout="cls"))
