"""Planning of fixed shapes: every graph fits, nothing is larger than needed, and cuts pay off."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import magnetite as mt
from magnetite.batching import BatchShape, Bucket, buckets, gather
from magnetite.batching.buckets import (
    CAPACITY_MULTIPLE,
    CUTS,
    MULTIPLE,
    Extent,
    Layout,
    Sizes,
    batch_rows,
    epoch_order,
    evaluation_batches,
    grow,
    plan,
    split_sizes,
)
from tests.batching.cases import query_of

seeds = st.integers(0, 10_000)


def some_sizes(seed: int, count: int) -> Sizes:
    rng = np.random.default_rng(seed)
    return Sizes(
        nodes=rng.integers(1, 90, count), edges=rng.integers(0, 200, count), queries=rng.integers(0, 500, count)
    )


def cost(shapes: tuple[BatchShape, ...]) -> int:
    """The cost that `plan` minimises: padded nodes, and a constant per bucket."""
    return sum(shape.tokens + buckets.BUCKET_COST * len(shape.buckets) for shape in shapes)


@given(seeds, st.integers(1, 200), st.integers(1, 40))
def test_every_graph_occurs_once_per_epoch_except_in_an_incomplete_batch(seed, count, batch):
    sizes = some_sizes(seed, count).nodes
    rows = batch_rows(epoch_order(count, seed, epoch=3), sizes, batch)
    assert rows.shape == (count // batch, batch)
    assert len(np.unique(rows)) == rows.size
    assert (np.diff(sizes[rows], axis=1) >= 0).all()


def test_the_order_depends_on_seed_and_epoch_alone():
    orders = [epoch_order(50, seed, epoch).tolist() for seed in range(3) for epoch in range(3)]
    assert len({tuple(order) for order in orders}) == 9
    assert orders == [epoch_order(50, seed, epoch).tolist() for seed in range(3) for epoch in range(3)]


@given(
    seeds, st.sampled_from([1, 2, 4]), st.sampled_from([48, 256]), st.integers(50, 4000), st.sampled_from([16, 2048])
)
def test_every_graph_fits_and_capacities_are_tight(seed, processes, batch, tokens, bucket_cost):
    sizes = some_sizes(seed, 600)
    epochs = [batch_rows(epoch_order(600, seed, epoch), sizes.nodes, batch) for epoch in range(3)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(buckets, "BUCKET_COST", bucket_cost)
        shapes = plan(Extent.join([Extent.of(rows, sizes, processes) for rows in epochs]), tokens)
    share = batch // processes
    assert sum(shape.graphs for shape in shapes) == share
    rows = np.concatenate(epochs)
    rows = np.concatenate([rows[:, process::processes] for process in range(processes)])
    start = 0
    for shape in shapes:
        micro_batch = rows[:, start : start + shape.graphs]
        assert shape.tokens <= tokens or len(shape.buckets) == 1
        for bucket in shape.buckets:
            largest = sizes.nodes[rows[:, start : start + bucket.graphs]].max()
            assert largest < bucket.nodes <= largest + MULTIPLE  # the last position is reserved for the graph token
            assert bucket.nodes % MULTIPLE == 0
            assert bucket.graphs * bucket.nodes <= tokens or bucket.graphs <= max(1, share // CUTS)
            start += bucket.graphs
        for counts, capacity in zip(
            (sizes.nodes, sizes.edges, sizes.queries), (shape.nodes, shape.edges, shape.queries), strict=True
        ):
            most = counts[micro_batch].sum(1).max()
            assert most <= capacity < most + CAPACITY_MULTIPLE
            assert capacity % CAPACITY_MULTIPLE == 0


@given(seeds, st.sampled_from([0, 16, 2048]))
def test_cuts_cost_no_more_than_one_bucket_or_equal_ones(seed, bucket_cost):
    sizes = some_sizes(seed, 480)
    extent = Extent.of(batch_rows(epoch_order(480, seed, 0), sizes.nodes, batch=96), sizes)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(buckets, "BUCKET_COST", bucket_cost)
        planned = cost(plan(extent, tokens=10**9))
        for count in (1, 2, 3, 8):
            ends = np.linspace(0, 96, count + 1).astype(int).tolist()
            assert planned <= cost((extent.shape(list(pairwise(ends))),))


def test_buckets_are_filled_up_to_the_tokens_of_a_micro_batch():
    nodes = np.array([7] * 4 + [15] * 4 + [31] * 4)
    extent = Extent.of(np.arange(12)[None], Sizes(nodes, nodes, nodes))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(buckets, "BUCKET_COST", 1)
        shapes = plan(extent, tokens=100)
    found = [[(bucket.graphs, bucket.nodes) for bucket in shape.buckets] for shape in shapes]
    assert found == [[(4, 8), (4, 16)], [(1, 32)], [(3, 32)]]


def test_later_batches_make_shapes_grow_and_never_shrink():
    first = Extent((0, 1, 2), np.array([5, 9]), np.array([[[5, 4, 20], [9, 4, 300]], [[2, 1, 10], [6, 3, 72]]]))
    later = Extent((0, 1, 2), np.array([3, 20]), np.array([[[3, 300, 600], [20, 2, 100]]]))
    shapes = plan(first, tokens=16)
    grown = grow(shapes, later)
    assert shapes == (BatchShape((Bucket(1, 8),), 256, 256, 256), BatchShape((Bucket(1, 16),), 256, 256, 512))
    assert grown == (BatchShape((Bucket(1, 8),), 256, 512, 768), BatchShape((Bucket(1, 24),), 256, 256, 512))
    assert grow(grown, first) == grown


@given(seeds, st.integers(100, 4000))
def test_grown_shapes_hold_old_and_new_batches(seed, tokens):
    sizes = some_sizes(seed, 256)
    extents = [Extent.of(batch_rows(epoch_order(256, seed, epoch), sizes.nodes, 64), sizes) for epoch in range(2)]
    shapes = plan(extents[0], tokens)
    grown = grow(shapes, extents[1])
    assert grow(grown, extents[0]) == grow(grown, extents[1]) == grow(grown, Extent.join(extents)) == grown
    for old, new in zip(shapes, grown, strict=True):
        assert [bucket.graphs for bucket in new.buckets] == [bucket.graphs for bucket in old.buckets]
        assert all(after.nodes >= before.nodes for before, after in zip(old.buckets, new.buckets, strict=True))
        assert new.nodes >= old.nodes
        assert new.edges >= old.edges
        assert new.queries >= old.queries


def test_a_margin_leaves_room_for_more_of_everything():
    sizes = some_sizes(0, 64)
    extent = Extent.of(np.arange(64)[None], sizes)
    wide = extent.with_margin()
    assert (wide.nodes > extent.nodes).all()
    assert (wide.totals >= extent.totals).all()
    assert wide.cuts == extent.cuts


def test_without_query_pairs_there_is_no_room_for_them():
    sizes = some_sizes(0, 64)
    extent = Extent.of(np.arange(64)[None], Sizes(sizes.nodes, sizes.edges, np.zeros(64, dtype=int)))
    assert {shape.queries for shape in grow(plan(extent, tokens=500), extent)} == {0}


def test_a_batch_that_processes_cannot_divide_is_rejected():
    with pytest.raises(ValueError, match="a batch of 3 graphs must be a multiple of the number of processes, 2"):
        Extent.of(np.array([[0, 1, 2]]), some_sizes(0, 3), processes=2)


@given(seeds, st.integers(1, 300), st.integers(1, 3000), st.integers(1, 3000))
def test_an_evaluation_sees_every_graph_once(seed, count, tokens, queries):
    sizes = some_sizes(seed, count)
    batches = evaluation_batches(sizes, tokens, queries)
    assert sorted(np.concatenate(batches)) == list(range(count))
    assert (np.diff(sizes.nodes[np.concatenate(batches)]) >= 0).all()
    for number, ids in enumerate(batches):
        shape = sizes.shape(ids)
        assert (shape.nodes, shape.edges, shape.queries) == tuple(
            int(counts[ids].sum()) for counts in (sizes.nodes, sizes.edges, sizes.queries)
        )
        (bucket,) = shape.buckets
        assert bucket.graphs == len(ids)
        assert sizes.nodes[ids].max() < bucket.nodes <= sizes.nodes[ids].max() + MULTIPLE
        assert len(ids) == 1 or (shape.tokens <= tokens and shape.queries <= queries)
        if number + 1 < len(batches):  # the next graph would have been too much
            more = sizes.shape(np.append(ids, batches[number + 1][0]))
            assert more.tokens > tokens or more.queries > queries


@given(seeds, st.integers(1, 400), st.sampled_from([1, 64, 2048]))
def test_a_batch_is_split_only_where_that_is_cheaper(seed, count, bucket_cost):
    sizes = np.random.default_rng(seed).choice([3, 9, 70, 200], size=count)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(buckets, "BUCKET_COST", bucket_cost)
        found, order = split_sizes(sizes)
    single = Bucket.holding(count, sizes.max())
    padded = sum(bucket.graphs * bucket.nodes + bucket_cost for bucket in found)
    assert padded <= single.graphs * single.nodes + bucket_cost
    assert (order is None) == (len(found) == 1)
    ordered = sizes if order is None else sizes[order]
    width = np.repeat([bucket.nodes for bucket in found], [bucket.graphs for bucket in found])
    assert (ordered < width).all()


def test_layouts_of_the_same_buckets_are_shared():
    shape = (Bucket(2, 8), Bucket(1, 16))
    layout = Layout.of(shape, torch.device("cpu"))
    assert Layout.of(shape, torch.device("cpu")) is layout
    assert layout.first.tolist() == [0, 8, 16]
    assert layout.width.tolist() == [8, 8, 16]
    assert layout.first_pair.tolist() == [0, 64, 128]
    turned = Layout.sorted_by(shape, np.array([2, 0, 1]), torch.device("cpu"))
    assert turned.first.tolist() == [8, 16, 0]
    assert turned.width.tolist() == [8, 16, 8]
    assert turned.bucket_position.tolist() == [1, 2, 0]
    assert turned.place_graph.tolist() == [2] * 8 + [0] * 8 + [1] * 16


@pytest.mark.parametrize("processes", [1, 2])
def test_planned_shapes_hold_the_graphs_of_every_step(processes):
    rng = np.random.default_rng(0)
    nodes = rng.integers(1, 60, size=40)
    graphs = mt.Digraphs.from_edges([rng.integers(0, size, (2, size)) for size in nodes], nodes.tolist())
    query = query_of(graphs, [[(0, size - 1, 1)] * 3 for size in nodes.tolist()])
    sizes = Sizes(nodes, graphs.edge_ptr.diff().numpy(), query.counts.numpy())
    rows = batch_rows(epoch_order(40, seed=0, epoch=0), nodes, batch=12)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(buckets, "BUCKET_COST", 16)
        shapes = plan(Extent.of(rows, sizes, processes), tokens=150)
    assert len(shapes) > 1
    for row in rows:
        for process in range(processes):
            ids = torch.from_numpy(row[process::processes]).split([shape.graphs for shape in shapes])
            batches = [gather(graphs, part, shape, {}, query) for part, shape in zip(ids, shapes, strict=True)]
            assert sum(int(batch.node_mask.sum()) for batch in batches) == nodes[row[process::processes]].sum()


def test_shapes_for_another_number_of_processes_are_rejected():
    sizes = some_sizes(0, 40)
    rows = batch_rows(epoch_order(40, 0, 0), sizes.nodes, batch=20)
    shapes = plan(Extent.of(rows, sizes), tokens=10**9)
    with pytest.raises(ValueError, match="the shapes hold 20 graphs per process, the batches have 10: use the same"):
        grow(shapes, Extent.of(rows, sizes, processes=2))
