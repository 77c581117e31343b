"""Batches hold the packed graphs and encodings, on any device, and padding adds nothing to them."""

from itertools import product

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import magnetite as mt
from magnetite.batching import BatchShape, Bucket, gather
from magnetite.batching.gather import take, whole_rows
from magnetite.encodings import TopPairs
from magnetite.testing import digraphs
from tests.batching.cases import fixed, forms, some_query, with_features

few = settings(max_examples=25)
GRAPHS = mt.Digraphs.from_edges([torch.tensor([[0, 1], [1, 2]]), torch.tensor([[0], [1]])])


def encoded(graphs: mt.Digraphs) -> dict[str, mt.packed.Packed]:
    """Eigenpairs, walks and depths: one encoding of each kind."""
    return {
        "eigenpairs": mt.MagneticLaplacian(k=3)(graphs),
        "pairs": mt.RandomWalk(steps=1)(graphs),
        "depth": mt.Depth()(graphs),
    }


@few
@given(digraphs(min_graphs=2))
def test_a_batch_holds_what_was_packed(graphs):
    graphs = with_features(graphs)
    parts = encoded(graphs)
    pairs, walks, depth = parts.values()
    for name, batch in forms(graphs, parts).items():
        nodes, edges = batch.node_mask, batch.edge_mask
        assert torch.equal(batch.sizes, graphs.sizes), name
        assert torch.equal(batch.node_graph[nodes], graphs.node_graph), name
        assert torch.equal(batch.edge_index[:, edges], graphs.edge_index), name
        assert torch.equal(batch.edge_weight[edges], graphs.edge_weight.float()), name
        assert torch.equal(batch.node_features["node"][nodes], graphs.node_features["node"]), name
        assert torch.equal(batch.edge_features["edge"][edges], graphs.edge_features["edge"]), name
        assert torch.equal(batch.graph_features["graph"], graphs.graph_features["graph"]), name
        assert torch.equal(batch.encoding("depth")[nodes], depth.values), name
        found = batch.encoding("eigenpairs")
        assert torch.equal(torch.view_as_complex(found.vectors.contiguous())[nodes], pairs.vectors), name
        assert torch.equal(found.values, pairs.values), name
        assert torch.equal(found.mask, pairs.mask), name
        everyone = batch.all_pairs()
        assert torch.equal(batch.at_query(batch.encoding("pairs"), everyone), walks.values), name


@few
@given(digraphs(min_graphs=2))
def test_padding_is_zero(graphs):
    graphs = with_features(graphs)
    batch = fixed(graphs, encoded(graphs), cuts=[1], extra=9, wider=8)
    nodes, edges = ~batch.node_mask, ~batch.edge_mask
    assert (int(nodes.sum()), int(edges.sum())) == (9, 9)
    assert not batch.node_features["node"][nodes].any()
    assert not batch.edge_features["edge"][edges].any()
    assert not batch.edge_weight[edges].any()
    assert not batch.encoding("depth")[nodes].any()
    assert not batch.encoding("eigenpairs").vectors[nodes].any()
    for walks, filled in zip(batch.encoding("pairs"), batch.filled(), strict=True):
        assert not walks[~(filled[:, :, None] & filled[:, None])].any()
    assert not any(filled[:, -1].any() for filled in batch.filled())  # the position of the graph token


@few
@given(digraphs(min_graphs=2), st.randoms(use_true_random=False))
def test_a_batch_of_chosen_graphs_is_that_of_these_graphs(graphs, random):
    graphs = with_features(graphs)
    ids = [random.randrange(-len(graphs), len(graphs)) for _ in range(3)]
    query, parts = some_query(graphs, 0), encoded(graphs)
    chosen = {name: part[ids] for name, part in parts.items()}
    expected = mt.batch(graphs[ids], query=query[ids], **chosen)
    for form in (ids, tuple(ids), np.array(ids), torch.tensor(ids), torch.tensor(ids, dtype=torch.int32)):
        batch = mt.batch(graphs, query=query, ids=form, **parts)
        for tensor, same in zip(batch.tensors(), expected.tensors(), strict=True):
            torch.testing.assert_close(tensor, same, rtol=0, atol=0)


ROWS = [
    *(
        (dtype, shape)
        for dtype in (torch.float16, torch.float32, torch.bool, torch.int64)
        for shape in ((), (4,), (8,), (3,))
    ),
    (torch.complex64, (2,)),
    (torch.float16, (2, 4)),
    (torch.uint8, (0,)),
]


@pytest.mark.parametrize(("dtype", "shape"), ROWS)
@pytest.mark.parametrize("first", [0, 1])
def test_rows_are_gathered_bit_by_bit(dtype, shape, first):
    generator = torch.Generator().manual_seed(0)
    rows = (torch.randn(7, *shape, generator=generator) * 3).to(dtype)
    if dtype.is_floating_point:
        rows[2] = torch.nan
    rows = rows.flatten()[first * rows[0].numel() :].view(7 - first, *shape)  # a view that does not start at 0
    row, mask = torch.tensor([[0, 2, 5], [1, 1, 0]]), torch.tensor([[True, True, True], [True, False, False]])
    expected = torch.zeros((2, 3, *shape), dtype=dtype)
    expected[mask] = rows[row[mask]]
    found = take(rows, row, mask)
    assert found.dtype == dtype
    torch.testing.assert_close(found, expected, rtol=0, atol=0, equal_nan=True)


def test_no_rows_give_zeros():
    assert not take(torch.empty(0, 3), torch.zeros(2, dtype=torch.long), torch.zeros(2, dtype=torch.bool)).any()


def test_only_short_contiguous_rows_become_numbers():
    halves = torch.randn(5, 8).half()
    assert whole_rows(halves).shape == (5,)
    assert whole_rows(halves[2:]).shape == (3,)
    for kept in (
        torch.randn(5),
        halves.flatten()[1:33].view(4, 8),
        halves.T,
        halves.float(),
        halves[:, :3],
        torch.randn(2, 4).requires_grad_(),
    ):
        assert whole_rows(kept) is kept


def test_gradients_go_through_a_gather():
    rows = torch.randn(4, 4, requires_grad=True)
    chosen = take(rows, torch.tensor([1, 1, 0]), torch.tensor([True, True, False]))
    (gradient,) = torch.autograd.grad(chosen.sum(), rows)
    assert gradient.sum(1).tolist() == [0.0, 8.0, 0.0, 0.0]


def shape(nodes: int = 5, edges: int = 3, width: int = 8, graphs: int = 2) -> BatchShape:
    return BatchShape((Bucket(graphs, width),), nodes, edges)


def gathered(shape: BatchShape) -> mt.batching.Batch:
    return gather(GRAPHS, torch.arange(2), shape, {})


@pytest.mark.parametrize(
    ("attempt", "message"),
    [
        (lambda: gathered(shape(graphs=1)), "2 graphs for a batch of 1: give as many graphs as its buckets hold"),
        (lambda: gathered(shape(graphs=3)), "2 graphs for a batch of 3"),
        (lambda: gathered(shape(width=3)), r"5 nodes \(at most 3 per graph\) and 3 edges do not fit into BatchShape"),
        (lambda: gathered(shape(nodes=4)), "do not fit into BatchShape.*: give a larger shape"),
        (lambda: gathered(shape(edges=2)), "do not fit into BatchShape.*: give a larger shape"),
        (lambda: Bucket(0, 8), "graphs must be at least 1, nodes at least 2"),
        (lambda: Bucket(1, 1), "graphs must be at least 1, nodes at least 2"),
        (lambda: mt.batch(GRAPHS, mt.Laplacian(k=2)(GRAPHS[:1])), "eigenpairs belongs to other graphs"),
        (lambda: mt.batch(GRAPHS, *[mt.Laplacian(k=2)(GRAPHS)] * 2), "two encodings are named 'eigenpairs'"),
        (lambda: mt.batch(GRAPHS, ids=[]), "ids is empty: a batch needs at least one graph"),
        (lambda: mt.batch(GRAPHS, ids=torch.tensor([], dtype=torch.long)), "ids is empty"),
        (lambda: mt.batch(GRAPHS[:0]), "ids is empty"),
    ],
)
def test_what_does_not_fit_is_rejected(attempt, message):
    with pytest.raises(ValueError, match=message):
        attempt()


@pytest.mark.parametrize("ids", [[2], torch.tensor([0, -3])])
def test_graphs_that_do_not_exist_are_rejected(ids):
    with pytest.raises(IndexError, match=r"graph (2|-3) does not exist: ids go from 0 to 1, or from -2 to -1"):
        mt.batch(GRAPHS, ids=ids)


@pytest.mark.parametrize("ids", [torch.tensor([0.0, 1.0]), torch.tensor([True, False]), torch.tensor([[0, 1]])])
def test_ids_of_another_kind_are_rejected(ids):
    with pytest.raises(TypeError, match="ids must be a list or 1-d tensor of integers"):
        mt.batch(GRAPHS, ids=ids)


def test_top_pairs_become_packed_nodes_and_every_node_has_one():
    graphs = mt.Digraphs.from_edges([np.array([[0], [1]]), np.array([[0, 1], [1, 2]])])
    listed = torch.tensor([[0, 1], [-1, -1], [1, -1], [2, 0], [-1, 1]])
    values = torch.arange(1.0, 11.0).view(5, 2, 1)
    pairs = TopPairs(node_ptr=graphs.node_ptr, landing=listed, values=values, lost=torch.zeros(5, 1))
    found = mt.batch(graphs, pairs, ids=[1, 0]).encoding("top_pairs")
    assert found.landing.tolist() == [[1, 0], [2, 0], [2, 1], [3, 4], [4, 4]]
    assert found.mask.tolist() == [[True, False], [True, True], [False, True], [True, True], [False, True]]
    assert found.values.squeeze(-1).tolist() == [[5, 0], [7, 8], [0, 10], [1, 2], [0, 0]]


@pytest.mark.gpu
@pytest.mark.parametrize("target", [None, "cpu", "cuda"])
@pytest.mark.parametrize(("graphs", "encodings", "ids", "query"), list(product(["cpu", "cuda"], repeat=4)))
def test_arguments_may_be_on_any_device(graphs, encodings, ids, query, target):
    given = with_features(GRAPHS)
    parts, pairs = encoded(given), some_query(given, 0)
    expected = mt.batch(given, ids=[1, 0, 1], query=pairs, **parts)
    moved = {name: part.to(encodings) for name, part in parts.items()}
    numbers = torch.tensor([1, 0, -1], device=ids)
    batch = mt.batch(given.to(graphs), ids=numbers, query=pairs.to(query), device=target, **moved)
    assert {tensor.device.type for tensor in batch.tensors()} == {target or graphs}
    for tensor, same in zip(batch.tensors(), expected.tensors(), strict=True):
        assert torch.equal(tensor.cpu(), same)


@pytest.mark.gpu
@pytest.mark.filterwarnings("ignore:Synchronization debug mode")
@pytest.mark.parametrize("cuts", [(), (16,), (8, 24)])
def test_gathering_does_not_synchronise(cuts):
    sizes = torch.arange(64) % 20 + 2
    edges = [torch.stack([torch.arange(size - 1), torch.arange(1, size)]) for size in sizes.tolist()]
    graphs = with_features(mt.Digraphs.from_edges(edges))
    query, parts, ids = some_query(graphs, 0), encoded(graphs), sizes[::2].argsort(stable=True) * 2
    groups = torch.tensor_split(ids, list(cuts))
    buckets = tuple(Bucket.holding(len(group), int(sizes[group].max())) for group in groups)
    shape = BatchShape(buckets, int(sizes[ids].sum()) + 5, 1000, int(query.counts[ids].sum()) + 5)
    there = (
        graphs.to("cuda"),
        ids.cuda(),
        shape,
        {name: part.to("cuda") for name, part in parts.items()},
        query.to("cuda"),
    )
    gather(*there)  # the layout of a shape is made once
    torch.cuda.set_sync_debug_mode("error")
    try:
        batch = gather(*there)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    expected = gather(graphs, ids, shape, parts, query)
    for tensor, same in zip(batch.tensors(), expected.tensors(), strict=True):
        assert torch.equal(tensor.cpu(), same)


@pytest.mark.parametrize("weight", [1e39, 1e-46, 1e-40, 2e38])
def test_weights_beyond_single_precision_are_refused(weight):
    graphs = mt.Digraphs.from_edges([[0, 1], [1, 2]], edge_weight=[weight, weight])
    with pytest.raises(ValueError, match="do not fit into float32, in which networks compute"):
        mt.batch(graphs)


def test_eigenvalues_beyond_single_precision_are_refused():
    graphs = mt.Digraphs.from_edges([[0, 1], [1, 2]], edge_weight=[1e39, 1e39])
    pairs = mt.MagneticLaplacian(k=2, normalised=False, dtype=torch.float64)(graphs)
    with pytest.raises(ValueError, match=r"eigenvalues up to 1e.39 do not fit into float32"):
        mt.batch(graphs.replace(weights=None), pairs)
