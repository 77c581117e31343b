"""The recurrence along the topological order: node by node, over paths of any length, and on graphs with cycles."""

import pytest
import torch
from hypothesis import given, settings

import magnetite as mt
from magnetite import nn
from magnetite.nn.recurrent import levels_of
from magnetite.testing import digraphs
from tests.nn.zoo import WIDTH, generic_digraphs


def node_by_node(cell: torch.nn.Module, states: torch.Tensor, edges: torch.Tensor, features=None) -> torch.Tensor:
    """The recurrence of an acyclic graph with a list of states."""
    hidden: dict[int, torch.Tensor] = {}
    source, target = edges.tolist()
    while len(hidden) < len(states):
        for node in range(len(states)):
            entering = [edge for edge, v in enumerate(target) if v == node]
            if node in hidden or any(source[edge] not in hidden for edge in entering):
                continue
            message = torch.zeros(1, states.shape[1])
            if entering:
                heard = torch.stack([hidden[source[edge]] for edge in entering])
                if features is not None:
                    heard = (cell.message(heard) + features[entering]).tanh()
                message = (cell.score(heard).softmax(0) * heard).sum(0, keepdim=True)
            hidden[node] = cell.unit(states[node : node + 1], message)[0]
    return torch.stack([hidden[node] for node in range(len(states))])


@pytest.mark.parametrize("typed", [False, True])
def test_answers_and_gradients_are_those_of_a_loop_over_the_nodes(typed):
    torch.manual_seed(0)
    graphs = generic_digraphs(3)
    graphs = graphs.replace(edge_features={"kind": torch.arange(graphs.num_edges) % 3})
    features = nn.CategoryEdges({"kind": 3}) if typed else None
    network = nn.TopologicalGRU(WIDTH, steps=2, edge_features=features)
    states, edges = torch.randn(graphs.num_nodes, WIDTH, requires_grad=True), graphs.edge_index
    own = network.embedding(mt.batch(graphs)) if typed else None
    sides, given = [], states
    for each in network.passes:
        both = node_by_node(each.along, given, edges, own), node_by_node(each.against, given, edges.flip(0), own)
        sides.append(torch.cat(both, dim=-1))
        given = network.between[0](sides[0])
    expected = network.out(torch.cat(sides, dim=-1))
    found = network(states, mt.batch(graphs))
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
    wanted, given = (
        torch.autograd.grad(each.square().sum(), [states, *network.parameters()]) for each in (expected, found)
    )
    for one, other in zip(given, wanted, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-4)


def test_messages_reach_the_end_of_a_long_path():
    edges = torch.stack([torch.arange(199), torch.arange(1, 200)])
    batch, states = mt.batch(mt.Digraphs.from_edges(edges)), torch.zeros(200, 4, requires_grad=True)
    network = nn.TopologicalGRU(4)
    assert len(levels_of(edges, 200)) == 200
    gradient = torch.autograd.grad(network(states, batch)[20].sum(), states)[0]
    assert gradient[0].abs().max() > 0
    assert gradient[40].abs().max() > 0


@settings(max_examples=15)
@given(digraphs(max_nodes=8))
def test_every_edge_between_components_goes_to_a_later_level(graphs):
    edges, size = graphs.edge_index, graphs.num_nodes
    levels = levels_of(edges, size)
    assert levels.nodes.sort().values.tolist() == list(range(size))
    depth = torch.repeat_interleave(torch.tensor(levels.node_ptr).diff())
    assert (depth[levels.sources] < depth[levels.targets]).all()
    assert torch.equal(depth[levels.targets], torch.repeat_interleave(torch.tensor(levels.edge_ptr).diff()))
    assert torch.equal(levels.nodes[torch.stack([levels.sources, levels.targets])], edges[:, levels.edges])
    kept = len(levels.edges)
    reach = torch.eye(size)
    for _ in range(size):
        reach = ((reach + reach @ torch.zeros(size, size).index_put((edges[0], edges[1]), torch.ones(()))) > 0).float()
    together = (reach > 0) & (reach.T > 0)
    assert kept == int((~together[edges[0], edges[1]]).sum())
