import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from magnetite.batching import MULTIPLE, Shape
from magnetite.buckets import (
    TOGETHER,
    Profile,
    Sizes,
    batch_rows,
    chunk_shapes,
    epoch_order,
    evaluation_batches,
    profile,
    shapes_for,
)

seeds = st.integers(0, 10_000)


def some_sizes(seed: int, count: int) -> Sizes:
    rng = np.random.default_rng(seed)
    return Sizes(nodes=rng.integers(1, 90, count), edges=rng.integers(0, 200, count), pairs=rng.integers(0, 500, count))


@given(seeds, st.integers(1, 200), st.integers(1, 40))
def test_every_graph_comes_once_an_epoch_but_for_an_incomplete_batch(seed, count, batch):
    sizes = some_sizes(seed, count).nodes
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
    sizes = some_sizes(seed, 300)
    epochs = [batch_rows(epoch_order(300, seed, epoch), sizes.nodes, batch=48) for epoch in range(3)]
    shapes = chunk_shapes(Profile.join([profile(rows, sizes, processes) for rows in epochs]), tokens)
    assert sum(shape.graphs for shape in shapes) == 48
    rows, start = np.concatenate(epochs), 0
    for shape in shapes:
        part = rows[:, start : start + shape.graphs]
        start += shape.graphs
        assert sizes.nodes[part].max() < shape.nodes  # one slot stays empty
        assert sizes.edges[part].max() <= shape.edges
        most = max(sizes.pairs[part[:, process::processes]].sum(1).max() for process in range(processes))
        assert most <= shape.pairs / processes < most + TOGETHER
        assert shape.pairs % (TOGETHER * processes) == 0
        most = max(sizes.nodes[part[:, process::processes]].sum(1).max() for process in range(processes))
        assert most <= shape.total / processes < most + TOGETHER
        assert shape.graphs % processes == 0
        assert shape.nodes % MULTIPLE == shape.edges % MULTIPLE == 0
        assert shape.graphs * shape.nodes <= tokens * processes or shape.graphs == processes


@given(seeds)
def test_cuts_cost_no_more_than_equal_ones(seed):
    sizes = some_sizes(seed, 480)
    most = profile(batch_rows(epoch_order(480, seed, 0), sizes.nodes, batch=96), sizes)
    shapes = chunk_shapes(most, tokens=10**9)
    count = len(shapes)
    assert count < 96
    whole = -(-(int(most.nodes.max()) + 1) // MULTIPLE) * MULTIPLE * 96
    assert sum(shape.graphs * shape.nodes for shape in shapes) <= whole


def test_later_rows_make_shapes_grow_and_never_shrink():
    first = Profile(np.array([5, 9]), np.array([4, 4]), np.array([[20, 300], [10, 72]]), np.array([[5, 9], [2, 6]]))
    later = Profile(np.array([3, 20]), np.array([30, 2]), np.array([[600, 100]]), np.array([[3, 20]]))
    shapes = chunk_shapes(first, tokens=16)
    grown = shapes_for(shapes, later)
    assert shapes == (Shape(1, 8, 8, 256, 8), Shape(1, 16, 8, 512, 16))
    assert grown == (Shape(1, 8, 32, 768, 8), Shape(1, 24, 8, 512, 24))
    assert shapes_for(grown, first) == grown


def test_without_asked_pairs_there_are_no_slots_for_them():
    most = Profile(np.array([5, 9]), np.array([4, 4]), np.zeros((3, 2), dtype=int), np.full((3, 2), 5))
    assert {shape.pairs for shape in shapes_for(chunk_shapes(most, tokens=16), most)} == {0}


def test_a_batch_that_processes_cannot_share_is_refused():
    with pytest.raises(ValueError, match=r"a batch of 3 cannot be shared by 2 processes"):
        profile(np.array([[0, 1, 2]]), some_sizes(0, 3), processes=2)


@given(seeds, st.integers(1, 300), st.integers(1, 3000), st.integers(1, 3000))
def test_an_evaluation_sees_every_graph_once_in_few_shapes(seed, count, tokens, pairs):
    sizes = some_sizes(seed, count)
    batches = evaluation_batches(sizes, tokens, pairs)
    assert sorted(np.concatenate([batch.ids for batch in batches])) == list(range(count))
    assert len({batch.shape for batch in batches}) <= 4
    for batch in batches:
        assert len(batch.ids) <= batch.shape.graphs
        assert sizes.nodes[batch.ids].max() < batch.shape.nodes
        assert sizes.edges[batch.ids].max() <= batch.shape.edges
        assert sizes.pairs[batch.ids].sum() <= batch.shape.pairs
        assert sizes.nodes[batch.ids].sum() <= batch.shape.total
        assert batch.shape.graphs * batch.shape.nodes <= tokens or batch.shape.graphs == 1
        assert sizes.pairs[batch.ids].sum() <= pairs or batch.shape.graphs == 1
