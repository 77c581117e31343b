import numpy as np
import pytest
import torch
from hypothesis import given, settings

import magnetite as mt
from magnetite.linalg import walks as linalg_walks
from magnetite.testing import assert_permutation_equivariant, digraphs


def reference(matrix: np.ndarray, steps: int, restart: float) -> np.ndarray:
    """The features by their definition, one graph at a time."""

    def one_way(adjacency):
        degree = adjacency.sum(1)
        step = np.array(
            [row / d if d else np.eye(len(row))[i] for i, (row, d) in enumerate(zip(adjacency, degree, strict=True))]
        )
        powers = [np.linalg.matrix_power(step, i + 1) for i in range(steps)]
        return [*powers, restart * np.linalg.inv(np.eye(len(step)) - (1 - restart) * step)]

    return np.stack([*one_way(matrix.T)[::-1], *one_way(matrix)], axis=-1)


@given(digraphs())
def test_against_the_definition(graphs):
    walks = mt.RandomWalk(steps=3, restart=0.05)(graphs)
    for graph, features in zip(graphs.to_scipy(), walks, strict=True):
        np.testing.assert_allclose(features.numpy(), reference(graph.toarray(), 3, 0.05), atol=1e-5)


@given(digraphs())
def test_laws(graphs):
    encoding = mt.RandomWalk(steps=2, dtype=torch.float64)
    walks = encoding(graphs)
    for features in walks:
        assert (features >= -1e-12).all()
        torch.testing.assert_close(features.sum(1), torch.ones_like(features[:, 0]))
    torch.testing.assert_close(encoding(graphs.reverse()).values, walks.values.flip(1))
    assert_permutation_equivariant(encoding, graphs)


def test_shape_and_variants(odd):
    assert mt.RandomWalk()(odd)[5].shape == (int(odd.sizes[5]), int(odd.sizes[5]), 8)
    full = mt.RandomWalk(steps=2)(odd)
    assert torch.equal(mt.RandomWalk(steps=2, reverse=False)(odd).values, full.values[:, 3:])
    assert torch.equal(mt.RandomWalk(steps=2, restart=None)(odd).values, full.values[:, 1:5])
    assert torch.equal(full[2:4].values, torch.cat([full[2].flatten(0, 1), full[3].flatten(0, 1)]))


def test_half_precision_is_rounded_once(odd):
    half, double = (mt.RandomWalk(dtype=dtype)(odd).values for dtype in (torch.float16, torch.float64))
    assert torch.equal(half, double.half())


@pytest.mark.parametrize("bad", [{"steps": 0}, {"restart": 0.0}, {"restart": 1.5}, {"dtype": torch.bfloat16}])
def test_bad_parameters(bad):
    with pytest.raises(ValueError, match=next(iter(bad))):
        mt.RandomWalk(**bad)


@settings(max_examples=10)
@given(digraphs(max_nodes=8))
def test_walk_sums_are_those_of_the_likeliest_pairs_and_of_all_pairs(graphs):
    found = mt.WalkSums(steps=2, restart=None, top=5, tolerance=0.0)(graphs)
    pairs = mt.SparseRandomWalk(steps=2, restart=None, top=5, tolerance=0.0)(graphs)
    kept = pairs.landing >= 0
    target = (pairs.landing + pairs.node_ptr[pairs.node_graph][:, None])[kept]
    summed = torch.cat([pairs.values[kept], pairs.values[kept].square()], dim=1)
    expected = torch.zeros(found.values.shape).index_add(0, target, summed)
    torch.testing.assert_close(found.values, expected)
    every = mt.WalkSums(steps=2, restart=None, top=8, tolerance=0.0)(graphs)
    walks = mt.RandomWalk(steps=2, restart=None)(graphs)
    expected = torch.cat([torch.cat([each.sum(0), each.square().sum(0)], dim=1) for each in walks])
    torch.testing.assert_close(every.values, expected, rtol=1e-4, atol=1e-5)


def test_walk_sums_are_added_up_part_by_part(monkeypatch):
    graphs = mt.Digraphs.from_edges(torch.randint(50, (2, 200), generator=torch.Generator().manual_seed(0)))
    whole = mt.WalkSums(steps=2, top=6)(graphs).values
    monkeypatch.setattr(linalg_walks, "SUMMED_AT_ONCE", 7)
    torch.testing.assert_close(mt.WalkSums(steps=2, top=6)(graphs).values, whole)
    with pytest.raises(ValueError, match="tolerance must be above 0"):
        mt.WalkSums(tolerance=0.0)
