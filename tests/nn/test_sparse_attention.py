"""Sparse attention: equal to full attention over ancestors and descendants, and with biases of walks."""

import networkx as nx
import pytest
import torch
from hypothesis import given, settings

import magnetite as mt
from magnetite import nn
from magnetite.testing import digraphs
from tests.nn.zoo import HEADS, WIDTH, generic_digraphs


def pair(seed: int = 0) -> tuple[nn.DigraphTransformer, nn.DigraphTransformer]:
    """Full attention to relatives, and the sparse form with the same parameters and without biases."""
    torch.manual_seed(seed)
    full = nn.DigraphTransformer(WIDTH, 2, nn.NodeHead(3), nn.DepthEncoder(WIDTH), heads=HEADS, reach="relatives")
    position = [nn.DepthEncoder(WIDTH), nn.SparseBiasEncoder(HEADS, 2, mt.Relatives(reach=99, top=99))]
    sparse = nn.DigraphTransformer(WIDTH, 2, nn.NodeHead(3), position, attention=nn.SparseAttention(WIDTH, HEADS))
    names = {name: value for name, value in full.state_dict().items() if not name.startswith("position")}
    sparse.load_state_dict(names, strict=False)
    sparse.position.parts[0].load_state_dict(full.position.state_dict())
    sparse.position.parts[1].weight.data.zero_()
    return full.eval(), sparse.eval()


@settings(max_examples=8)
@given(digraphs(max_nodes=9))
def test_attention_to_all_relatives_is_that_of_the_dense_form(graphs):
    full, sparse = pair()
    torch.testing.assert_close(sparse(graphs), full(graphs), rtol=1e-4, atol=1e-5)


def test_relatives_are_those_within_reach_and_nearest_first():
    graph = nx.DiGraph([(0, 1), (1, 2), (2, 3), (0, 4), (4, 3)])
    found = mt.Relatives(reach=2, top=8)(mt.Digraphs.from_networkx([graph.subgraph(range(5))]))
    for node in range(5):
        listed = {int(v): i for i, v in enumerate(found.landing[node]) if v >= 0}
        after = nx.single_source_shortest_path_length(graph, node, cutoff=2)
        before = nx.single_source_shortest_path_length(graph.reverse(), node, cutoff=2)
        assert set(listed) == set(after) | set(before)
        for other, place in listed.items():
            expected = [1 / side[other] if side.get(other) else 0.0 for side in (after, before)]
            assert found.values[node, place].tolist() == expected
    few = mt.Relatives(reach=2, top=3)(mt.Digraphs.from_networkx([graph]))
    assert (few.values.amax(-1)[few.landing >= 0] < 1).sum() <= 5 + 2  # nodes themselves, and hardly any at distance 2
    assert (few.landing[:, 0] == torch.arange(5)).all()


def test_wrong_combinations_are_refused():
    graphs, sparse = generic_digraphs(0), nn.SparseAttention(WIDTH, HEADS)
    pairs = nn.SparseBiasEncoder(HEADS, 2)
    with pytest.raises(ValueError, match="no graph token"):
        nn.DigraphTransformer(WIDTH, 2, nn.GraphHead(1), pairs, attention=sparse)
    with pytest.raises(ValueError, match="needs a position encoder that lists node pairs"):
        nn.DigraphTransformer(WIDTH, 2, nn.NodeHead(1), nn.DepthEncoder(WIDTH), attention=sparse)
    with pytest.raises(ValueError, match="give both the same layers and heads"):
        nn.DigraphTransformer(WIDTH, 3, nn.NodeHead(1), nn.SparseBiasEncoder(HEADS, 2), attention=sparse)(graphs)
    for attention in (None, nn.LinearAttention(WIDTH)):
        with pytest.raises(ValueError, match=r"SparseAttention|LinearAttention cannot add"):
            nn.DigraphTransformer(WIDTH, 2, nn.NodeHead(1), nn.SparseBiasEncoder(HEADS, 2), attention=attention)
    both = [nn.SparseBiasEncoder(HEADS, 2), nn.RelativeWalkEncoder(HEADS, 2)]
    with pytest.raises(ValueError, match="not of all"):
        nn.DigraphTransformer(WIDTH, 2, nn.NodeHead(1), both, attention=sparse)(graphs)
    with pytest.raises(ValueError, match="no attention"):
        nn.DigraphGNN(WIDTH, nn.NodeHead(1), position=nn.SparseBiasEncoder(HEADS, 2))
