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


def test_dirgnn_is_its_formula_with_dense_matrices():
    torch.manual_seed(0)
    graphs = generic_digraphs(5, count=1)
    matrix = torch.from_numpy(graphs.to_scipy()[0].toarray()).float()
    out, into = (matrix.sum(side).clamp(min=1e-9).rsqrt() for side in (1, 0))
    matrix = out[:, None] * matrix * into
    network, states = nn.DirGNN(WIDTH, steps=2, alpha=0.3), torch.randn(graphs.num_nodes, WIDTH)
    found = [states]
    for step in network.steps:
        mixed = 0.3 * matrix @ step.after(found[-1]) + 0.7 * matrix.T @ step.before(found[-1])
        found.append(torch.nn.functional.gelu(step.own(found[-1]) + mixed))
    expected = network.out(network.norm(torch.cat(found, dim=-1)))
    torch.testing.assert_close(network(states, mt.batch(graphs)), expected, rtol=1e-4, atol=1e-5)


def test_alpha_chooses_between_successors_and_predecessors():
    states = torch.eye(3)
    for alpha, changed in ((1.0, [True, False]), (0.0, [False, True])):
        network = nn.DirGNN(3, steps=1, alpha=alpha)
        here = network(states, mt.batch(mt.Digraphs.from_edges([[0], [1]], num_nodes=3)))
        none = network(states, mt.batch(mt.Digraphs.from_edges(torch.empty(2, 0, dtype=torch.long), num_nodes=3)))
        assert [bool(row) for row in (here != none).any(1)[:2]] == changed
        assert torch.equal(here[2], none[2])


def test_normalised_states_stay_finite_at_nodes_of_high_degree():
    star = mt.batch(mt.Digraphs.from_edges([[0] * 500, list(range(1, 501))]))
    finite = []
    for normalised in (False, True):
        network = nn.GNN(WIDTH, normalised=normalised)
        with torch.no_grad():
            for step in network.network.steps:
                for layer in (step.ends, step.node):  # type: ignore[union-attr]
                    layer.weight.mul_(1e6)  # type: ignore[union-attr, operator]
        states = torch.ones(star.num_nodes, WIDTH, requires_grad=True)
        found = network(states, star)
        found.sum().backward()
        finite.append(bool(found.isfinite().all()) and bool(states.grad.isfinite().all()))  # type: ignore[union-attr]
    assert finite == [False, True]
