import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from magnetite.batching import MULTIPLE
from magnetite.buckets import batch_rows, chunk_shapes, epoch_order, evaluation_batches, profile, shapes_for

seeds = st.integers(0, 10_000)


def some_sizes(seed: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.integers(1, 90, count), rng.integers(0, 200, count)


@given(seeds, st.integers(1, 200), st.integers(1, 40))
def test_every_graph_comes_once_an_epoch_but_for_an_incomplete_batch(seed, count, batch):
    sizes, _ = some_sizes(seed, count)
    rows = batch_rows(epoch_order(count, seed, epoch=3), sizes, batch)
    assert rows.shape == (count // batch, batch)
    assert len(np.unique(rows)) == rows.size
    assert (np.diff(sizes[rows], axis=1) >= 0).all()


def test_the_order_is_a_function_of_seed_and_epoch():
    orders = [epoch_order(50, seed, epoch).tolist() for seed in range(3) for epoch in range(3)]
    assert len({tuple(order) for order in orders}) == 9
    assert orders == [epoch_order(50, seed, epoch).tolist() for seed in range(3) for epoch in range(3)]


@given(seeds, st.sampled_from([1, 2, 4]), st.integers(50, 4000))
def test_every_graph_fits_its_chunk(seed, processes, tokens):
    sizes, edges = some_sizes(seed, 300)
    rows = batch_rows(epoch_order(300, seed, 0), sizes, batch=48)
    shapes = chunk_shapes(profile(rows, sizes, edges), tokens, processes)
    assert sum(shape.graphs for shape in shapes) == 48
    start = 0
    for shape in shapes:
        part = rows[:, start : start + shape.graphs]
        start += shape.graphs
        assert sizes[part].max() < shape.nodes  # one slot stays empty
        assert edges[part].max() <= shape.edges
        assert shape.graphs % processes == 0
        assert shape.nodes % MULTIPLE == shape.edges % MULTIPLE == 0
        assert shape.graphs * shape.nodes <= tokens * processes or shape.graphs == processes


@given(seeds)
def test_cuts_cost_no_more_than_equal_ones(seed):
    sizes, edges = some_sizes(seed, 480)
    most = profile(batch_rows(epoch_order(480, seed, 0), sizes, batch=96), sizes, edges)
    shapes = chunk_shapes(most, tokens=10**9)
    count = len(shapes)
    assert count < 96
    whole = -(-(int(most[0].max()) + 1) // MULTIPLE) * MULTIPLE * 96
    assert sum(shape.graphs * shape.nodes for shape in shapes) <= whole


def test_later_rows_make_shapes_grow_and_never_shrink():
    first, later = np.array([[5, 9], [4, 4]]), np.array([[3, 20], [30, 2]])
    shapes = chunk_shapes(first, tokens=16)
    grown = shapes_for(shapes, later)
    assert [(shape.graphs, shape.nodes, shape.edges) for shape in grown] == [(1, 8, 32), (1, 24, 8)]
    assert shapes_for(grown, first) == grown


def test_a_batch_that_processes_cannot_share_is_refused():
    with pytest.raises(ValueError, match=r"a batch of 3 cannot be shared by 2 processes"):
        chunk_shapes(np.ones((2, 3), dtype=int), tokens=100, processes=2)


@given(seeds, st.integers(1, 300), st.integers(1, 3000))
def test_an_evaluation_sees_every_graph_once_in_few_shapes(seed, count, tokens):
    sizes, edges = some_sizes(seed, count)
    batches = evaluation_batches(sizes, edges, tokens)
    assert sorted(np.concatenate([batch.ids for batch in batches])) == list(range(count))
    assert len({batch.shape for batch in batches}) <= 4
    for batch in batches:
        assert len(batch.ids) <= batch.shape.graphs
        assert sizes[batch.ids].max() < batch.shape.nodes
        assert edges[batch.ids].max() <= batch.shape.edges
        assert batch.shape.graphs * batch.shape.nodes <= tokens or batch.shape.graphs == 1
