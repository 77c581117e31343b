import pytest
import torch

from magnetite.linalg.laplacian import dense_adjacency
from magnetite.linalg.walks import top_walks, walk_features


def unpacked(walks, size):
    result = torch.zeros((size, size, walks.values.shape[-1]))
    for start in range(size):
        real = walks.landing[start] >= 0
        result[start, walks.landing[start][real]] = walks.values[start][real]
    return result


@pytest.mark.parametrize("reverse", [True, False])
@pytest.mark.parametrize(
    ("restart", "tolerance"), [(None, 0.0), (0.05, 1e-12), (0.05, 1e-3), (None, 1e-2), (1.0, 1e-3)]
)
def test_values_are_below_the_exact_ones_by_what_was_lost_at_most(odd_weighted, restart, reverse, tolerance):
    for graph in odd_weighted[:40]:
        size = graph.num_nodes
        adjacency = dense_adjacency(graph.edges, graph.edge_graph, graph.weights, 1, size)[0]
        exact = walk_features(adjacency, 3, restart, reverse)
        walks = top_walks(graph.edges, size, graph.weights, 3, restart, reverse, size, tolerance)
        short = exact - unpacked(walks, size)
        assert short.min() > -1e-6
        assert (short <= walks.lost[:, None, :] + 1e-6).all()
        if tolerance < 1e-6:
            assert walks.lost.abs().max() < 1e-9


def test_the_largest_are_kept():
    edges = torch.randint(0, 50, (2, 200), generator=torch.Generator().manual_seed(0))
    every = top_walks(edges, 50, None, 2, 0.1, top=50, tolerance=1e-9)
    few = top_walks(edges, 50, None, 2, 0.1, top=5, tolerance=1e-9)
    assert torch.equal(few.landing, every.landing[:, :5])
    assert torch.equal(few.landing[:, 0], torch.arange(50))
    totals = every.values.sum(-1)[:, 1:]
    assert (totals.diff(dim=1) <= 1e-6).all()


def test_threads_change_nothing():
    edges = torch.randint(0, 400, (2, 1500), generator=torch.Generator().manual_seed(0))
    before = torch.get_num_threads()
    found = []
    for threads in (1, 3):
        torch.set_num_threads(threads)
        found.append(top_walks(edges, 400, None, 3, 0.05))
    torch.set_num_threads(before)
    assert torch.equal(found[0].landing, found[1].landing) and torch.equal(found[0].values, found[1].values)
