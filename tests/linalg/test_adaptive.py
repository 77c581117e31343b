"""The choice of a potential: laws, equality with `Relative` where nothing hides in noise, and what it finds."""

import warnings

import numpy as np
import pytest
import torch

import magnetite as mt
from magnetite.encodings.potentials import node_pairs, settled
from magnetite.linalg.potential import Adaptive, Relative


def blocks(n, kind, seed, share=0.5, classes=5, degree=10):
    """A directed block model; a share of the edges runs along a cycle or a chain of classes, the rest is random."""
    random = np.random.default_rng(seed)
    label = random.integers(0, classes, n)
    source, target = random.integers(0, n, (2, degree * n))
    flow = np.flatnonzero(random.random(source.size) < share)
    after = (label[source[flow]] + 1) % classes
    for each in range(classes):
        chosen = flow[after == each]
        if kind == "cycle" or each:
            target[chosen] = random.choice(np.flatnonzero(label == each), chosen.size)
    number = np.unique(source[source != target] * n + target[source != target])
    return torch.from_numpy(np.stack([number // n, number % n])), torch.from_numpy(label)


def potential(edges, n, weights=None, q=0.25):
    graphs = mt.Digraphs.from_edges(edges, num_nodes=n, edge_weight=weights)
    return float(Adaptive(q).of_pairs(node_pairs(graphs))[0])


def same_as_relative(graphs, q=0.25):
    pairs = node_pairs(graphs)
    return torch.equal(Adaptive(q).of_pairs(pairs), Relative(q).scaled(pairs.one_way, pairs.sizes))


@pytest.mark.parametrize("q", [0.1, 0.25, 0.75])
def test_sparse_graphs_have_the_potential_of_relative(q):
    path = mt.Digraphs.from_edges(torch.stack([torch.arange(2999), torch.arange(1, 3000)]))
    random = np.random.default_rng(0)
    dags = [np.sort(random.choice(n, (2, 2 * n)), axis=0) for n in (30, 80, 150)]
    dags = mt.Digraphs.from_edges(
        [torch.from_numpy(each[:, each[0] < each[1]]) for each in dags], num_nodes=[30, 80, 150]
    )
    networks = mt.sorting.batcher(16).to_digraphs()
    for graphs in (path, dags, networks):
        assert same_as_relative(graphs, q)


def test_small_and_undirected_and_empty_graphs_have_the_potential_of_relative(odd, odd_weighted):
    assert same_as_relative(odd)
    assert same_as_relative(odd_weighted)
    edges, _ = blocks(300, "cycle", 0)
    assert same_as_relative(mt.Digraphs.from_edges(torch.cat([edges, edges.flip(0)], dim=1), num_nodes=300))
    assert same_as_relative(mt.Digraphs.from_edges([[], []], num_nodes=100))


@pytest.mark.parametrize(("kind", "seed"), [("cycle", 4), ("chain", 5)])
def test_the_potential_depends_on_the_graph_alone(kind, seed):
    n = 200
    edges, _ = blocks(n, kind, seed)
    found = potential(edges, n)
    assert found > 0.02
    order = torch.randperm(n, generator=torch.Generator().manual_seed(seed))
    assert potential(order[edges[:, torch.randperm(edges.shape[1])]], n) == pytest.approx(found, rel=1e-6)
    assert potential(edges.flip(0), n) == pytest.approx(found, rel=1e-6)
    assert potential(edges, n, torch.full((edges.shape[1],), 7.0)) == pytest.approx(found, rel=1e-6)
    both = mt.Digraphs.from_edges([edges, edges[:, :50], edges], num_nodes=[n] * 3)
    packed = Adaptive().of_pairs(node_pairs(both))
    assert packed[0] == packed[2] == found


def test_dense_batches_have_the_same_potentials():
    edges, _ = blocks(128, "cycle", 3)
    matrix = torch.zeros(2, 128, 128).index_put_((torch.tensor(0), *edges), torch.tensor(1.0))
    matrix[1, torch.arange(127), torch.arange(1, 128)] = 1
    found = Adaptive().absolute(matrix)
    assert found.tolist() == pytest.approx([potential(edges, 128), 0.25 / 127])


def test_no_potential_is_invisible_itself():
    """Random graphs of any density have nothing to find, but their edges have a direction."""
    random = np.random.default_rng(0)
    edges = [torch.from_numpy(random.integers(0, 600, (2, 600 * degree))) for degree in (1, 3, 8)]
    for each in edges:
        q = potential(each, 600)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            settled(mt.Digraphs.from_edges(each, num_nodes=600), [q])


def test_other_values_multiply_and_mirror():
    edges, _ = blocks(300, "cycle", 6, share=0.8)
    found = potential(edges, 300)
    assert potential(edges, 300, q=0.125) == pytest.approx(found / 2)
    assert 0 <= potential(edges, 300, q=1.25) <= 0.5
    assert potential(edges, 300, q=0) == 0


def test_classes_around_a_cycle_are_seen_with_the_default_only():
    """At 300 nodes `Relative(0.25)` is at chance, 0.2, for any classifier; a linear one shows the difference."""
    n = 300
    edges, label = blocks(n, "cycle", 21, share=0.6)
    graphs = mt.Digraphs.from_edges(edges, num_nodes=n)
    wanted = torch.nn.functional.one_hot(label, 5).double()

    def accuracy(encoding):
        vectors = encoding(graphs).vectors * n**0.5
        x = torch.cat([vectors.real, vectors.imag, torch.ones(n, 1)], dim=1).double()
        train, test = x[: n // 2], x[n // 2 :]
        fit = torch.linalg.solve(train.T @ train + torch.eye(x.shape[1]), train.T @ wanted[: n // 2])
        return float(((test @ fit).argmax(1) == label[n // 2 :]).double().mean())

    with pytest.warns(mt.PotentialWarning):
        assert accuracy(mt.MagneticLaplacian(8, q=Relative(0.25))) < 0.45
    assert accuracy(mt.MagneticLaplacian(8)) > 0.75


def test_one_solve_per_graph_gives_the_eigenvectors_of_its_potential():
    """In every solver: kernels, dense batches (k close to n) and the iteration."""
    edges, _ = blocks(200, "cycle", 8)
    wide, _ = blocks(1100, "cycle", 9, share=0.8, degree=6)
    path = torch.tensor([[0, 1, 2], [1, 2, 3]])
    graphs = mt.Digraphs.from_edges([path, edges, wide], num_nodes=[4, 200, 1100])
    for q in (mt.Adaptive(), (mt.Adaptive(), mt.Adaptive(0.5))):
        found = mt.MagneticLaplacian(4, q=q)(graphs)
        for number in range(3):
            one = graphs[number : number + 1]
            pairs = node_pairs(one)
            same = tuple(float(each.of_pairs(pairs)[0]) for each in (q if isinstance(q, tuple) else (q,)))
            expected = mt.MagneticLaplacian(4, q=same if isinstance(q, tuple) else same[0])(one)
            assert torch.allclose(found[number].values, expected.values[0], atol=1e-5)


@pytest.mark.parametrize("given", [-1, float("nan"), 2.0**1023])
def test_bad_values_are_refused(given):
    with pytest.raises(ValueError, match="an adaptive potential must be a finite number ≥ 0"):
        Adaptive(given)
