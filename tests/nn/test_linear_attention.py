"""Linear attention: its formula over all node pairs, one node alone, and what it refuses."""

import pytest
import torch
from hypothesis import given, settings

import magnetite as mt
from magnetite import nn
from magnetite.testing import digraphs
from tests.nn.zoo import HEADS, WIDTH


def pairwise(attention: nn.LinearAttention, states: torch.Tensor) -> torch.Tensor:
    """The formula with a matrix of all node pairs of one graph."""
    query_key = attention.query_key(states).unflatten(-1, (2, HEADS, -1))
    query, key = torch.nn.functional.normalize(query_key, dim=-1).unbind(1)
    value = attention.value(states).unflatten(-1, (HEADS, -1))
    weight = torch.einsum("ihc,jhc->hij", query, key) / (2 * len(states)) + torch.eye(len(states))
    weight = weight / weight.sum(-1, keepdim=True)
    return attention.out(torch.einsum("hij,jhc->ihc", weight, value).flatten(1))


@settings(max_examples=10)
@given(digraphs(min_graphs=2, max_nodes=9))
def test_every_graph_gets_the_weighted_mean_over_its_nodes(graphs):
    torch.manual_seed(0)
    attention, batch = nn.LinearAttention(WIDTH, HEADS), mt.batch(graphs)
    states = torch.randn(graphs.num_nodes, WIDTH)
    expected = torch.cat([pairwise(attention, part) for part in states.split(graphs.sizes.tolist())])
    torch.testing.assert_close(attention(states, states, batch, None), expected, rtol=1e-4, atol=1e-5)


def test_a_single_node_keeps_its_value():
    torch.manual_seed(0)
    attention, states = nn.LinearAttention(WIDTH), torch.randn(1, WIDTH)
    single = mt.batch(mt.Digraphs.from_edges(torch.empty(2, 0, dtype=torch.long), num_nodes=1))
    expected = attention.out(attention.value(states))
    torch.testing.assert_close(attention(states, states, single, None), expected)


def test_opposite_queries_and_keys_have_finite_answers_and_gradients():
    attention, states = nn.LinearAttention(WIDTH), torch.ones(5, WIDTH, requires_grad=True)
    with torch.no_grad():
        attention.query_key.weight[WIDTH:] = -attention.query_key.weight[:WIDTH]
        attention.query_key.bias[WIDTH:] = -attention.query_key.bias[:WIDTH]
    answer = attention(states, states, mt.batch(mt.Digraphs.from_edges([[0, 1], [1, 4]])), None)
    answer.sum().backward()
    assert answer.isfinite().all()
    assert states.grad is not None
    assert states.grad.isfinite().all()


def test_biases_and_options_of_full_attention_are_refused():
    head, attention = nn.NodeHead(1), nn.LinearAttention(WIDTH)
    walks = [nn.MagLapNet(4, WIDTH), nn.RelativeWalkEncoder(4, 2)]
    with pytest.raises(ValueError, match="LinearAttention cannot add"):
        nn.DigraphTransformer(WIDTH, 2, head, walks, attention=attention)
    with pytest.raises(ValueError, match="belong to full attention"):
        nn.DigraphTransformer(WIDTH, 2, nn.NodeHead(1), attention=attention, reach="relatives")
    with pytest.raises(ValueError, match="multiple of heads"):
        nn.LinearAttention(10, heads=4)
