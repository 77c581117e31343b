"""Padding: what is in the slots is what was packed, and nothing else is."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import magnetite as mt
from magnetite.batching import Shape, pad_several
from magnetite.encodings import TopPairs
from magnetite.slots import gather, whole_rows
from magnetite.tasks import Playground
from magnetite.testing import digraphs

few = settings(max_examples=25)


def with_features(graphs: mt.Digraphs) -> mt.Digraphs:
    """Every node, edge and graph gets a number of its own, none of them 0."""
    return graphs.replace(
        node_features={"node": torch.arange(graphs.num_nodes) + 1},
        edge_features={"edge": torch.arange(graphs.num_edges) + 1},
        graph_features={"graph": torch.arange(len(graphs)) + 1},
    )


@few
@given(digraphs())
def test_unpadding_gives_the_packed_rows_back(graphs):
    graphs = with_features(graphs)
    pairs, walks, depth = mt.MagneticLaplacian(k=3)(graphs), mt.RandomWalk(steps=1)(graphs), mt.Depth()(graphs)
    batch = mt.pad(graphs, pairs, walks, depth=depth)
    assert torch.equal(batch.sizes, graphs.sizes)
    assert torch.equal(batch.node_features["node"][batch.mask], graphs.node_features["node"])
    assert torch.equal(batch.edge_features["edge"][batch.edge_mask], graphs.edge_features["edge"])
    assert torch.equal(batch.graph_features["graph"], graphs.graph_features["graph"])
    assert torch.equal(batch.edge_weight[batch.edge_mask], graphs.edge_weight.float())
    assert torch.equal(batch.encoding("depth")[batch.mask], depth.values)
    assert torch.equal(batch.encoding("pairs")[batch.mask[:, :, None] & batch.mask[:, None]], walks.values)
    vectors = torch.view_as_complex(batch.encoding("eigenpairs").vectors.contiguous())
    assert torch.equal(vectors[batch.mask], pairs.vectors)
    assert torch.equal(batch.encoding("eigenpairs").mask, pairs.mask)


@few
@given(digraphs())
def test_empty_slots_are_empty(graphs):
    batch = mt.pad(with_features(graphs), mt.MagneticLaplacian(k=3)(graphs))
    assert not batch.mask[:, -1].any()
    assert not batch.node_features["node"][~batch.mask].any()
    assert not batch.edge_features["edge"][~batch.edge_mask].any()
    assert not batch.edge_weight[~batch.edge_mask].any()
    assert not batch.encoding("eigenpairs").vectors[~batch.mask].any()


@few
@given(digraphs())
def test_edges_are_rows_of_the_flattened_slots(graphs):
    graphs = with_features(graphs)
    batch = mt.pad(graphs)
    numbers = batch.node_features["node"].flatten() - 1
    assert torch.equal(numbers[batch.edges[:, batch.edge_mask]], graphs.edge_index)
    source, target = graphs.edge_index
    degrees = torch.bincount(torch.cat([source, target]), minlength=graphs.num_nodes)
    assert torch.equal(batch.degrees()[batch.mask], degrees.float())


@few
@given(digraphs())
def test_matrices_are_those_of_the_graphs(graphs):
    found = mt.pad(graphs, shape=Shape(len(graphs) + 1, 16, 80)).adjacency()
    for number, matrix in enumerate(graphs.to_scipy()):
        size = matrix.shape[0]
        np.testing.assert_allclose(found[number, :size, :size].numpy(), matrix.toarray(), rtol=1e-6)
        assert not found[number, size:].any()
        assert not found[number, :, size:].any()
    assert not found[-1].any()


@few
@given(digraphs(min_graphs=2), st.randoms(use_true_random=False))
def test_chosen_graphs_in_a_given_shape_are_those_graphs(graphs, random):
    graphs = with_features(graphs)
    ids = torch.tensor([random.randrange(len(graphs)) for _ in range(3)])
    pairs = mt.MagneticLaplacian(k=3)(graphs)
    shape = Shape(graphs=5, nodes=24, edges=48)
    batch, expected = mt.pad(graphs, pairs, ids=ids, shape=shape), mt.pad(graphs[ids], pairs[ids], shape=shape)
    assert len(batch) == 5
    assert batch.graph_mask.tolist() == [True] * 3 + [False] * 2
    for name in ("sizes", "mask", "edges", "edge_mask", "edge_weight"):
        assert torch.equal(getattr(batch, name), getattr(expected, name)), name
    assert torch.equal(batch.graph_features["graph"][:3], graphs.graph_features["graph"][ids])
    assert torch.equal(batch.encoding("eigenpairs").vectors, expected.encoding("eigenpairs").vectors)


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
    rows = rows.flatten()[first * rows[0].numel() :].view(7 - first, *shape)  # a view that starts further on
    place, mask = torch.tensor([[0, 2, 5], [1, 1, 0]]), torch.tensor([[True, True, True], [True, False, False]])
    for empty in (0, 1):
        expected = torch.full((2, 3, *shape), empty, dtype=dtype)
        expected[mask] = rows[place[mask]]
        found = gather(rows, place, mask, empty)
        assert found.dtype == dtype
        torch.testing.assert_close(found, expected, rtol=0, atol=0, equal_nan=True)


def test_only_short_rows_in_one_piece_become_numbers():
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


def test_slopes_go_through_a_gather():
    rows = torch.randn(4, 4, requires_grad=True)
    chosen = gather(rows, torch.tensor([1, 1, 0]), torch.tensor([True, True, False]))
    (slope,) = torch.autograd.grad(chosen.sum(), rows)
    assert slope.sum(1).tolist() == [0.0, 8.0, 0.0, 0.0]


def test_targets_are_filled_with_what_counts_as_none():
    examples = next(Playground("adjacency").stream(seed=0, batch=2))
    batch = mt.pad(examples.graphs, targets=examples.targets)
    inside = batch.mask[:, :, None] & batch.mask[:, None]
    assert torch.equal(batch.encoding("targets")[inside], examples.targets.values)
    assert (batch.encoding("targets")[~inside] == -1).all()


def test_moving_a_batch_moves_everything():
    graphs = with_features(mt.Digraphs.from_edges([[0, 1], [1, 2]]))
    batch = mt.pad(graphs, mt.MagneticLaplacian(k=2)(graphs)).to("meta")
    held = [batch.mask, batch.edges, *batch.node_features.values(), batch.encoding("eigenpairs").vectors]
    assert {tensor.device.type for tensor in held} == {"meta"}


GRAPHS = mt.Digraphs.from_edges([torch.tensor([[0, 1], [1, 2]]), torch.tensor([[0], [1]])])


@pytest.mark.parametrize(
    ("attempt", "message"),
    [
        (lambda: mt.pad(GRAPHS, shape=Shape(1, 8, 8)), "2 graphs do not fit into Shape"),
        (lambda: mt.pad(GRAPHS, shape=Shape(2, 3, 8)), "3 nodes and 2 edges at most does not fit"),
        (lambda: mt.pad(GRAPHS, shape=Shape(2, 8, 1)), "3 nodes and 2 edges at most does not fit"),
        (lambda: mt.pad(GRAPHS, shape=Shape(2, 8, 8, total=4)), "5 nodes do not fit into .*: give at least total=5"),
        (lambda: Shape(0, 8, 8), "holds nothing: give graphs, nodes and edges from 1"),
        (lambda: mt.pad(GRAPHS, mt.Laplacian(k=2)(GRAPHS[:1])), "eigenpairs belongs to other graphs"),
        (lambda: mt.pad(GRAPHS, *[mt.Laplacian(k=2)(GRAPHS)] * 2), "two encodings are both known as 'eigenpairs'"),
        (lambda: mt.pad(GRAPHS, ids=torch.tensor([], dtype=torch.long)), "none of 2 graphs is chosen"),
        (lambda: mt.pad(GRAPHS[:0]), "none of 0 graphs is chosen"),
        (lambda: mt.pad(GRAPHS).encoding("walks"), "holds no encoding 'walks' \\(it holds none\\)"),
    ],
)
def test_what_does_not_fit_is_refused(attempt, message):
    with pytest.raises(ValueError, match=message):
        attempt()


def test_encodings_without_a_place_are_refused():
    rows = GRAPHS.num_nodes
    walks = TopPairs(
        node_ptr=GRAPHS.node_ptr,
        landing=torch.zeros(rows, 2, dtype=torch.long),
        values=torch.zeros(rows, 2, 8),
        lost=torch.zeros(rows, 8),
    )
    with pytest.raises(TypeError, match="has no name of its own"):
        mt.pad(GRAPHS, walks)
    with pytest.raises(TypeError, match="TopPairs cannot be padded"):
        mt.pad(GRAPHS, walks=walks)


def test_graphs_can_be_counted_from_the_end():
    graphs = mt.Digraphs.from_edges([torch.tensor([[0, 1], [1, 2]]), torch.tensor([[0], [1]])])
    assert mt.pad(graphs, ids=torch.tensor([-1, -2, 0])).sizes.tolist() == [2, 3, 3]
    with pytest.raises(IndexError, match="there is no graph 2: ids go from 0 to 1, or from -2 to -1"):
        mt.pad(graphs, ids=torch.tensor([2]))


@given(digraphs(min_graphs=2, max_nodes=8), st.integers(1, 3))
def test_batches_of_several_shapes_are_what_each_would_be_alone(graphs, first):
    numbered = with_features(graphs)
    parts = {"eigenpairs": mt.MagneticLaplacian(k=3)(graphs), "pairs": mt.RandomWalk(steps=1)(graphs)}
    ids = torch.arange(len(graphs)).repeat(2)
    shapes = [Shape(first, 16, 64), Shape(ids.numel() - first + 2, 24, 72)]
    together = pad_several(numbered, ids, shapes, parts)
    for batch, own, shape in zip(together, (ids[:first], ids[first:]), shapes, strict=True):
        alone = mt.pad(numbered, ids=own, shape=shape, **parts)
        for tensor, expected in zip(batch.tensors(), alone.tensors(), strict=True):
            torch.testing.assert_close(tensor, expected, rtol=0, atol=0)
