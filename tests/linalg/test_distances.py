import networkx as nx
import numpy as np
import pytest
import torch

import magnetite as mt
from magnetite.linalg import distances
from magnetite.linalg.distances import dense, hop_distances, matrix_distances


def random_graphs(count: int, seed: int, largest: int = 40) -> mt.Digraphs:
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, largest, count).tolist()
    matrices = [rng.random((size, size)) < rng.choice([0.02, 0.08, 0.3]) for size in sizes]
    return mt.Digraphs.from_edges([np.stack(matrix.nonzero()) for matrix in matrices], sizes)


def by_networkx(graph: nx.DiGraph) -> list[list[int]]:
    found = dict(nx.all_pairs_shortest_path_length(graph))
    return [[found[u].get(v, -1) for v in graph] for u in graph]


@pytest.mark.parametrize("undirected", [False, True])
def test_agrees_with_networkx(undirected):
    graphs = random_graphs(60, seed=0)
    flat = hop_distances(graphs.edges, graphs.node_ptr, graphs.edge_ptr, undirected)
    parts = flat.split((graphs.sizes**2).tolist())
    for graph, size, part in zip(graphs.to_networkx(), graphs.sizes.tolist(), parts, strict=True):
        assert part.view(size, size).tolist() == by_networkx(graph.to_undirected() if undirected else graph)


def test_bit_sets_and_queues_agree_at_their_border():
    rng = np.random.default_rng(4)
    for size in (63, 64, 65, 128, 255, 256, 257, 300):
        edges = np.stack((rng.random((size, size)) < 1.5 / size).nonzero())
        graph = mt.Digraphs.from_edges(edges, num_nodes=size)
        found = hop_distances(graph.edges, graph.node_ptr, graph.edge_ptr).view(1, size, size)
        assert torch.equal(found, matrix_distances(dense(graph.edges, graph.edge_ptr, size)))


def test_products_of_matrices_agree_with_the_search():
    graphs = random_graphs(80, seed=1)
    flat = hop_distances(graphs.edges, graphs.node_ptr, graphs.edge_ptr)
    size = int(graphs.sizes.max())
    batch = matrix_distances(dense(graphs.edges, graphs.edge_ptr, size))
    real = torch.arange(size) < graphs.sizes[:, None]
    assert torch.equal(batch[real[:, :, None] & real[:, None, :]], flat)


def test_laws():
    graphs = random_graphs(40, seed=2)
    ahead = hop_distances(graphs.edges, graphs.node_ptr, graphs.edge_ptr)
    back = hop_distances(graphs.reverse().edges, graphs.node_ptr, graphs.edge_ptr)
    either = hop_distances(graphs.edges, graphs.node_ptr, graphs.edge_ptr, undirected=True)
    sizes = graphs.sizes.tolist()
    for size, *parts in zip(
        sizes, *(flat.split([s * s for s in sizes]) for flat in (ahead, back, either)), strict=True
    ):
        forward, backward, both = (part.view(size, size) for part in parts)
        assert torch.equal(forward, backward.T)  # reversal transposes
        assert torch.equal(both, both.T)
        assert bool((both[forward >= 0] <= forward[forward >= 0]).all())
        assert bool((forward.diagonal() == 0).all())


def test_a_path_and_a_circle():
    path = mt.Digraphs.from_networkx(nx.path_graph(200, nx.DiGraph))
    assert int(hop_distances(path.edges, path.node_ptr, path.edge_ptr).max()) == 199
    circle = mt.Digraphs.from_networkx(nx.cycle_graph(50, nx.DiGraph))
    assert int(hop_distances(circle.edges, circle.node_ptr, circle.edge_ptr).max()) == 49
    assert int(hop_distances(circle.edges, circle.node_ptr, circle.edge_ptr, undirected=True).max()) == 25


def test_slices_and_other_types_of_ids():
    graphs = random_graphs(20, seed=5)
    whole = hop_distances(graphs.edges, graphs.node_ptr, graphs.edge_ptr)
    part = graphs[5:9]
    bounds = torch.nn.functional.pad((graphs.sizes**2).cumsum(0), (1, 0))
    for edges in (part.edges, part.edges.long()):
        assert torch.equal(hop_distances(edges, part.node_ptr, part.edge_ptr), whole[bounds[5] : bounds[9]])


def test_too_large_graphs_are_named():
    pointer = torch.tensor([0, 40_000])
    with pytest.raises(ValueError, match="got 40000"):
        hop_distances(torch.zeros(2, 0, dtype=torch.int32), pointer, torch.tensor([0, 0]))


@pytest.mark.gpu
@pytest.mark.parametrize("undirected", [False, True])
def test_cuda_agrees_with_the_cpu(undirected, monkeypatch):
    monkeypatch.setattr(distances, "DENSE_ENTRIES", 2**14)
    graphs = random_graphs(300, seed=3)
    there = graphs.to("cuda")
    expected = hop_distances(graphs.edges, graphs.node_ptr, graphs.edge_ptr, undirected)
    assert torch.equal(hop_distances(there.edges, there.node_ptr, there.edge_ptr, undirected).cpu(), expected)
