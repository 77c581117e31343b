"""Samples of large graphs: bounded, reproducible, with true edges, and with the positions of the whole graph."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import magnetite as mt
from magnetite import nn
from magnetite.batching import Neighbourhoods, sampled_batch
from magnetite.testing import digraphs
from tests.batching.cases import with_features


def seeds_of(graphs: mt.Digraphs, seed: int) -> torch.Tensor:
    order = torch.randperm(graphs.num_nodes, generator=torch.Generator().manual_seed(seed))
    return order[: max(1, graphs.num_nodes // 3)]


@settings(max_examples=30)
@given(digraphs(max_nodes=12), st.integers(0, 99), st.sampled_from([(), (1,), (2, 1), (3, 3, 3)]))
def test_samples_have_the_seeds_and_all_true_edges_between_their_nodes(graphs, seed, fanouts):
    seeds = seeds_of(graphs, seed)
    sample = Neighbourhoods(graphs, fanouts).sample(seeds, key=seed)
    assert torch.equal(sample.nodes[sample.seeds], seeds)
    assert sample.nodes.unique().numel() == len(sample.nodes)
    source, target = graphs.edge_index
    inside = torch.zeros(graphs.num_nodes, dtype=torch.bool).index_fill(0, sample.nodes, True)
    assert sample.edges.sort().values.tolist() == (inside[source] & inside[target]).nonzero().flatten().tolist()
    graph = torch.repeat_interleave(sample.edge_ptr.diff())
    first = sample.node_ptr[graph]
    assert torch.equal(sample.nodes[first + sample.ends[0]], source[sample.edges])
    assert torch.equal(sample.nodes[first + sample.ends[1]], target[sample.edges])
    most = len(seeds)
    bound = most
    for fanout in fanouts:
        most *= 2 * fanout
        bound += most
    assert len(sample.nodes) <= bound


@settings(max_examples=15)
@given(digraphs(max_nodes=10), st.integers(0, 99))
def test_large_fanouts_reach_all_neighbours_in_both_directions(graphs, seed):
    seeds = seeds_of(graphs, seed)
    source, target = graphs.edge_index
    expected = set(seeds.tolist())
    for node in seeds.tolist():
        expected |= set(target[source == node].tolist()) | set(source[target == node].tolist())
    assert set(Neighbourhoods(graphs, (100,)).sample(seeds, key=0).nodes.tolist()) == expected


def test_samples_depend_on_their_key_alone():
    graphs = mt.Digraphs.from_edges(torch.stack([torch.zeros(500, dtype=torch.long), torch.arange(1, 501)]))
    hoods = Neighbourhoods(graphs, (5,))
    one, again, other = (hoods.sample(torch.tensor([0]), key).nodes.tolist() for key in (1, 1, 2))
    assert one == again != other
    assert len(set(one)) == 6
    counts = torch.zeros(501)
    for key in range(2000):
        counts[hoods.sample(torch.tensor([0]), key).nodes[1:]] += 1
    assert counts[1:].min() > 2  # expected 20
    assert counts[1:].max() < 60


@pytest.mark.parametrize("encoder", [nn.MagLapNet(4, 32), nn.SVDEncoder(4, 32), nn.DepthEncoder(32)])
def test_positions_and_features_are_those_of_the_whole_graphs(encoder):
    random = torch.Generator().manual_seed(3)
    edges = [torch.randint(40, (2, 90), generator=random) for _ in range(3)]
    graphs = with_features(mt.Digraphs.from_edges(edges, [40] * 3, [torch.rand(90) + 0.5 for _ in edges]))
    encodings = {name: encoding(graphs) for name, encoding in encoder.encodings().items()}
    sample = Neighbourhoods(graphs, (2,)).sample(torch.tensor([100, 3, 8, 119]), key=5)
    batch = sampled_batch(graphs, sample, encodings)
    assert sample.graphs.tolist() == [0, 2]
    assert batch.node_features["node"].tolist() == (sample.nodes + 1).tolist()
    assert batch.edge_features["edge"].tolist() == (sample.edges + 1).tolist()
    assert batch.graph_features["graph"].tolist() == [1, 3]
    torch.testing.assert_close(batch.edge_weight, graphs.weights[sample.edges].float())
    assert batch.whole_sizes.tolist() == [40, 40]
    whole = encoder.eval()(mt.batch(graphs, **encodings)).nodes[sample.nodes]
    torch.testing.assert_close(encoder(batch).nodes, whole, rtol=1e-5, atol=1e-6)


def test_features_of_all_pairs_and_wrong_fanouts_are_refused():
    graphs = mt.Digraphs.from_edges([[0, 1], [1, 2]])
    sample = Neighbourhoods(graphs, (1,)).sample(torch.tensor([1]), key=0)
    with pytest.raises(ValueError, match="features of all node pairs"):
        sampled_batch(graphs, sample, {"pairs": mt.RandomWalk()(graphs)})
    with pytest.raises(ValueError, match="must be positive integers"):
        Neighbourhoods(graphs, (0,))
