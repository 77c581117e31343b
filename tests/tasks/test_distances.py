from itertools import islice

import networkx as nx
import numpy as np
import pytest
import torch

import magnetite as mt
from magnetite.linalg.counter import derive
from magnetite.linalg.distances import dense
from magnetite.tasks import Distances, pair_targets
from magnetite.tasks.distances import (
    DEGREES,
    TARGETS,
    _dense_edges,
    _edges_dense,
    random_edges,
    random_sizes,
)


def generated(count: int, acyclic: bool, size: int | None = None, seed: int = 0):
    sizes = torch.tensor([size] if size else range(16, 64)).expand(count, -1)
    return random_sizes(derive(seed), torch.arange(count), sizes, DEGREES[acyclic])


def same(one: mt.Digraphs, two: mt.Digraphs) -> bool:
    return all(torch.equal(tensor, two.tensors()[name]) for name, tensor in one.tensors().items())


@pytest.mark.parametrize("acyclic", [False, True])
def test_kernels_and_tensor_operations_generate_the_same_graphs(acyclic):
    start = generated(500, acyclic)
    assert same(random_edges(start, acyclic), _edges_dense(start, acyclic, slice(0, 500)))


@pytest.mark.parametrize("acyclic", [False, True])
def test_the_largest_weak_component_is_kept(acyclic):
    start = generated(60, acyclic)
    matrices = _dense_edges(start.keys, start.sizes, start.thresholds, acyclic)
    for graph, matrix, size in zip(random_edges(start, acyclic), matrices, start.sizes.tolist(), strict=True):
        whole = nx.from_numpy_array(matrix[:size, :size].numpy(), create_using=nx.DiGraph)
        kept = sorted(max(nx.weakly_connected_components(whole), key=lambda nodes: (len(nodes), -min(nodes))))
        number = {node: place for place, node in enumerate(kept)}
        expected = sorted((number[u], number[v]) for u, v in whole.edges if u in number)
        assert [tuple(edge) for edge in graph.edges.T.tolist()] == expected
        assert graph.num_nodes == len(kept)
        assert nx.is_directed_acyclic_graph(whole) or not acyclic


@pytest.mark.parametrize("acyclic", [False, True])
def test_degrees_are_those_of_erdos_renyi(acyclic):
    """Edges of a graph of n nodes are binomial over the ordered pairs (DAG: half of them) with p = degree/(n − 1)."""
    size, count = 24, 6000
    start = generated(count, acyclic, size)
    edges = _dense_edges(start.keys, start.sizes, start.thresholds, acyclic).sum((1, 2)).double()
    pairs = size * (size - 1) / (2 if acyclic else 1)
    chosen = (start.thresholds.double() / 2**53 * (size - 1)).round(decimals=6)
    assert sorted(set(chosen.tolist())) == list(DEGREES[acyclic])
    for degree in DEGREES[acyclic]:
        own, p = edges[chosen == degree], degree / (size - 1)
        assert abs(len(own) / count - 1 / len(DEGREES[acyclic])) < 0.03
        error = (pairs * p * (1 - p) / len(own)) ** 0.5
        assert abs(float(own.mean()) - pairs * p) < 4 * error
        assert abs(float(own.var()) / (pairs * p * (1 - p)) - 1) < 0.2


def test_every_ordered_pair_is_equally_likely():
    start = generated(20_000, True, 16)
    share = _dense_edges(start.keys, start.sizes, start.thresholds, True).double().mean(0)
    off = share[~torch.eye(16, dtype=torch.bool)]
    expected = np.mean(DEGREES[True]) / 15 / 2
    assert float((off - expected).abs().max()) < 5 * (expected / 20_000) ** 0.5
    assert float(share.diagonal().max()) == 0


def test_sizes_are_equally_likely_and_as_the_paper_has_them():
    counts = torch.bincount(generated(48_000, False).sizes)[16:].double()
    assert counts.numel() == 48
    assert float(((counts - 1000) ** 2 / 1000).sum()) < 82.7  # 99.9 % of chi-square with 47 degrees of freedom
    sizes = {name: [Distances(name).split(split).sizes for split in ("train", "valid", "test")] for name in TARGETS}
    assert sizes["adjacency"] == sizes["reachability"] == [range(16, 18), range(18, 20), range(20, 28)]
    assert sizes["directed-distance"] == sizes["undirected-distance"] == [range(16, 64), range(64, 72), range(72, 84)]
    assert [Distances().split(split).count for split in ("train", "valid", "test")] == [400_000, 20_000, 30_000]


def test_validation_has_as_many_graphs_of_every_size():
    task = Distances(per_size=30, shard_size=100)
    graphs = mt.Digraphs.concat(task.shard("valid", number).graphs for number in range(3))
    assert len(graphs) == 240
    largest = graphs.sizes.view(8, 30).amax(1)
    assert bool((largest <= torch.arange(64, 72)).all()) and bool((largest > torch.arange(64, 72) - 12).all())


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("acyclic", [False, True])
def test_targets(target, acyclic):
    examples = Distances(target=target, acyclic=acyclic, train=30).shard("train", 0)
    targets = examples.targets
    masks = targets.mask.split((targets.sizes**2).tolist())
    for number, graph in enumerate(examples.graphs.to_networkx()):
        found = dict(nx.all_pairs_shortest_path_length(graph.to_undirected() if "undirected" in target else graph))
        target_of = {
            "adjacency": lambda u, v, graph=graph: int(graph.has_edge(u, v)),
            "reachability": lambda u, v, found=found: int(v in found[u]),
        }.get(target, lambda u, v, found=found: found[u].get(v, -1))
        expected = torch.tensor([[target_of(u, v) for v in graph] for u in graph])
        assert torch.equal(targets[number].long(), expected)
        assert torch.equal(masks[number].view_as(expected), (expected >= 0) & ~torch.eye(len(graph), dtype=torch.bool))
    if target == "undirected-distance":
        assert int(targets.values.min()) == 0  # a weak component is connected


def test_class_balance():
    for acyclic in (False, True):
        for target, (low, high) in {"adjacency": (0.05, 0.25), "reachability": (0.1, 0.7)}.items():
            targets = Distances(target=target, acyclic=acyclic, train=2000).shard("train", 0).targets
            assert low < float(targets.values[targets.mask].double().mean()) < high


def test_same_bytes_on_any_number_of_threads():
    before, results = torch.get_num_threads(), []
    try:
        for threads in (1, 2, 2):
            torch.set_num_threads(threads)
            results.append(Distances(train=3000).shard("train", 0).tensors())
    finally:
        torch.set_num_threads(before)
    for other in results[1:]:
        assert all(torch.equal(tensor, other[name]) for name, tensor in results[0].items())


def test_shards_are_parts_of_one_whole():
    whole = Distances(train=1000, shard_size=1000).shard("train", 0).graphs
    parts = [Distances(train=1000, shard_size=300).shard("train", number).graphs for number in range(4)]
    assert same(whole, mt.Digraphs.concat(parts))


def test_the_stream_is_endless_seeded_and_apart_from_the_splits():
    task = Distances(train=64)
    first, second = islice(task.stream(seed=0, batch=64), 2)
    again = next(task.stream(seed=0, batch=64))
    assert same(first.graphs, again.graphs)
    others = [second, next(task.stream(seed=1, batch=64)), task.shard("train", 0)]
    assert not any(torch.equal(first.graphs.node_ptr, other.graphs.node_ptr) for other in others)


def test_these_bytes_never_change():
    examples = Distances(train=1000).shard("train", 0)
    assert (examples.graphs.num_nodes, examples.graphs.num_edges) == (35_698, 58_431)
    assert int(examples.targets.values.long().sum()) == 1_950_403


def test_bad_input_is_named():
    with pytest.raises(ValueError, match="unknown target 'distance': choose one of adjacency"):
        Distances(target="distance")
    with pytest.raises(ValueError, match="unknown target"):
        pair_targets(mt.Digraphs.from_edges([[0], [1]]), "distance")
    with pytest.raises(ValueError, match="unknown split 'training'"):
        Distances().split("training")
    with pytest.raises(ValueError, match="train has shards 0 to 0, got 3"):
        Distances(train=10).shard("train", 3)
    with pytest.raises(ValueError, match="train must be a positive integer, got 0"):
        Distances(train=0)


def test_any_graphs_have_targets():
    weighted = mt.Digraphs.from_edges([[0, 1, 0], [1, 2, 1]], num_nodes=4, edge_weight=[5.0, 0.1, 2.0])
    assert pair_targets(weighted, "directed-distance")[0][0].tolist() == [0, 1, 2, -1]
    assert pair_targets(weighted, "adjacency")[0].sum().item() == 2
    assert dense(weighted.edges, weighted.edge_ptr, 4).sum().item() == 2


@pytest.mark.gpu
@pytest.mark.parametrize("acyclic", [False, True])
@pytest.mark.parametrize("target", TARGETS)
def test_cuda_gives_the_same_bytes(acyclic, target):
    task = Distances(target=target, acyclic=acyclic, train=5000)
    here, there = task.shard("train", 0), task.shard("train", 0, device="cuda")
    for name, tensor in here.tensors().items():
        assert torch.equal(tensor, there.tensors()[name].cpu()), name


def test_self_loops_have_the_probability_of_other_edges_and_change_no_target():
    start = generated(4000, False, size=16)
    with_loops = random_edges(start, False, self_loops=True)
    assert same(with_loops[:500], _edges_dense(start, False, slice(0, 500), self_loops=True))
    loops = with_loops.edges[0] == with_loops.edges[1]
    rest = with_loops.replace(
        edges=with_loops.edges[:, ~loops],
        edge_ptr=torch.searchsorted((~loops).nonzero()[:, 0], with_loops.edge_ptr),
    )
    assert same(rest, random_edges(start, False))  # a self-loop never joins components
    matrices = _dense_edges(start.keys, start.sizes, start.thresholds, False, self_loops=True).double()
    assert float(matrices.diagonal(dim1=1, dim2=2).mean()) == pytest.approx(float(matrices.mean()), abs=0.003)
    for target in TARGETS:
        one, two = (pair_targets(graphs[:50], target) for graphs in (with_loops, rest))
        assert torch.equal(one.mask, two.mask)
        assert torch.equal(one.values[one.mask], two.values[two.mask])
    acyclic = generated(50, True)
    assert same(random_edges(acyclic, True, self_loops=True), random_edges(acyclic, True))


def test_training_asks_about_some_sources_only_and_tests_about_all():
    every, some = (Distances(acyclic=True, train=300, per_size=2, sources=sources) for sources in (0, 3))
    for one, other in ((every.shard("train", 0), some.shard("train", 0)),
                       (every.shard("valid", 0), some.shard("valid", 0)),
                       (next(every.stream(5, 200)), next(some.stream(5, 200)))):  # fmt: skip
        assert same(one.graphs, other.graphs)
        counts = []
        for number in range(len(one.graphs)):
            asked, known = other.targets[number], one.targets[number]
            rows = (asked >= 0).any(1)
            assert torch.equal(asked[rows], known[rows])
            counts.append(int(rows.sum()))
        assert max(counts) == 3
        assert sum(counts) > len(counts)  # sources that reach nothing have no targets
    first, second = (torch.cat([(t >= 0).any(1) for t in each.targets]) for each in islice(some.stream(5, 200), 2))
    assert not torch.equal(first[:400], second[:400])
    assert torch.equal(every.shard("test", 0).targets.values, some.shard("test", 0).targets.values)
