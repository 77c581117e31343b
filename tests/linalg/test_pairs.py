import numpy as np
import torch

from magnetite.linalg.pairs import pair_edges


def test_pairs_hold_both_ways_of_the_adjacency_matrix(odd_weighted):
    parts = odd_weighted.edges, odd_weighted.edge_ptr, odd_weighted.sizes, odd_weighted.weights
    pairs = pair_edges(*parts)
    for index, graph in enumerate(odd_weighted):
        adjacency = graph.to_scipy()[0].toarray()
        here = slice(int(pairs.start[index]), int(pairs.start[index] + pairs.count[index]))
        low, high = pairs.low[here].numpy(), pairs.high[here].numpy()
        np.testing.assert_allclose(pairs.forward[here].numpy(), adjacency[low, high])
        np.testing.assert_allclose(pairs.backward[here].numpy(), adjacency[high, low])
        touching = np.triu((adjacency + adjacency.T) > 0)
        assert pairs.count[index] == touching.sum()
        assert pairs.one_way[index] == ((adjacency > 0) & (adjacency.T == 0)).sum()
        assert (np.diff(low * graph.num_nodes + high) > 0).all()


def test_no_edges():
    pairs = pair_edges(torch.zeros((2, 0), dtype=torch.long), torch.tensor([0, 0]), torch.tensor([4]), None)
    assert pairs.count.tolist() == [0] and pairs.low.numel() == 0
