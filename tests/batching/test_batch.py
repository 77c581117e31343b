"""Batch: padding and back, sums and matrices, whatever the shape of the batch."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import magnetite as mt
from magnetite.batching import Batch, buckets
from magnetite.testing import digraphs
from tests.batching.cases import fixed, forms, real_nodes, some_query, with_features

few = settings(max_examples=25)


@few
@given(digraphs(min_graphs=2, max_nodes=9), st.booleans())
def test_unpadding_gives_the_packed_states_back(graphs, graph_tokens):
    for name, batch in forms(graphs).items():
        count = batch.num_nodes + graph_tokens * len(batch)
        states = torch.randn(count, 2, generator=torch.Generator().manual_seed(0))
        padded = batch.pad(states)
        assert [part.shape[:2] for part in padded] == [(each.graphs, each.nodes) for each in batch.buckets], name
        back = batch.unpad(padded, graph_tokens)
        assert torch.equal(real_nodes(batch, back), real_nodes(batch, states)), name
        assert torch.equal(back[batch.num_nodes :], states[batch.num_nodes :]), name
        assert not back[: batch.num_nodes][~batch.node_mask].any(), name
        filled = batch.filled(graph_tokens)
        assert sum(int(mask.sum()) for mask in filled) == graphs.num_nodes + graph_tokens * len(graphs), name
        assert not any(part[~mask].any() for part, mask in zip(padded, filled, strict=True)), name


@few
@given(digraphs(min_graphs=2, max_nodes=9))
def test_nodes_come_first_and_the_graph_token_last(graphs):
    batch = fixed(graphs, order=range(len(graphs))[::-1], cuts=[1], extra=3)
    states = torch.arange(batch.num_nodes + len(batch))
    graph = iter(range(len(graphs))[::-1])
    for padded in batch.pad(states):
        for row in padded.tolist():
            number = next(graph)
            first, size = int(graphs.node_ptr[number]), int(graphs.sizes[number])
            assert row[:size] == list(range(first, first + size))
            assert row[-1] == batch.num_nodes + number
            assert not any(row[size:-1])


@pytest.mark.parametrize("graph_tokens", [False, True])
def test_gradients_go_through_padding_and_back(graph_tokens):
    graphs = mt.Digraphs.from_edges([torch.tensor([[0, 1], [1, 2]]), torch.tensor([[0], [1]])])
    for batch in forms(graphs).values():
        count = batch.num_nodes + graph_tokens * len(batch)
        states = torch.randn(count, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))

        def there(given, batch=batch):
            return [part.sin() for part in batch.pad(given)]

        assert torch.autograd.gradcheck(lambda given, there=there: tuple(there(given)), states.requires_grad_())
        assert torch.autograd.gradcheck(
            lambda given, there=there, batch=batch: batch.unpad(there(given), graph_tokens), states
        )


@few
@given(digraphs(min_graphs=2, max_nodes=9))
def test_sums_over_nodes_are_those_of_each_graph(graphs):
    for name, batch in forms(graphs).items():
        states = torch.randn(batch.num_nodes, 3, generator=torch.Generator().manual_seed(0))
        own = real_nodes(batch, states).split(graphs.sizes.tolist())
        torch.testing.assert_close(batch.sum_nodes(states), torch.stack([rows.sum(0) for rows in own]), msg=name)
        torch.testing.assert_close(batch.mean_nodes(states), torch.stack([rows.mean(0) for rows in own]), msg=name)
        assert torch.equal(batch.max_nodes(states), torch.stack([rows.amax(0) for rows in own])), name


def test_sums_of_half_precision_are_single_precision():
    batch = mt.batch(mt.Digraphs.from_edges([list(range(999)), list(range(1, 1000))]))
    assert batch.sum_nodes(torch.ones(1000, 1).bfloat16()).tolist() == [[1000.0]]
    ends = torch.zeros_like(batch.edge_index[0])
    assert batch.sum_edges(torch.ones(999, 1).bfloat16(), ends, 1).tolist() == [[999.0]]


@few
@given(digraphs(min_graphs=2, max_nodes=9))
def test_values_of_graphs_reach_their_nodes_and_buckets(graphs):
    numbers = torch.arange(len(graphs))
    for name, batch in forms(graphs).items():
        assert torch.equal(real_nodes(batch, batch.per_node(numbers)), graphs.node_graph), name
        expected = torch.arange(graphs.num_nodes) - graphs.node_ptr[graphs.node_graph]
        assert torch.equal(real_nodes(batch, batch.node_numbers()), expected), name
        assert (batch.node_numbers() >= 0).all(), name
        for sizes, filled in zip(batch.by_bucket(batch.sizes), batch.filled(), strict=True):
            assert torch.equal(filled.sum(1), sizes), name


@few
@given(digraphs(min_graphs=2, max_nodes=9))
def test_messages_are_summed_over_real_edges_only(graphs):
    source, target = graphs.edge_index
    degrees = torch.bincount(torch.cat([source, target]), minlength=graphs.num_nodes)
    into = torch.bincount(target, minlength=graphs.num_nodes)
    for name, batch in forms(graphs).items():
        sums = batch.sum_edges(torch.ones(batch.num_edges, 2), batch.edge_index[1], batch.num_nodes)
        assert torch.equal(real_nodes(batch, sums), into[:, None].expand(-1, 2).float()), name
        assert int(sums.sum()) == 2 * graphs.num_edges, name
        assert torch.equal(real_nodes(batch, batch.degrees()), degrees.float()), name


@few
@given(digraphs(min_graphs=2, max_nodes=9))
def test_adjacency_matrices_are_those_of_the_graphs(graphs):
    matrices = graphs.to_scipy()
    for name, batch in forms(graphs).items():
        found = [matrix for part in batch.adjacency() for matrix in part]
        order = torch.cat(batch.by_bucket(torch.arange(len(graphs)))).tolist()
        for matrix, number in zip(found, order, strict=True):
            size = matrices[number].shape[0]
            np.testing.assert_allclose(matrix[:size, :size], matrices[number].toarray(), rtol=1e-6, err_msg=name)
            assert not matrix[size:].any(), name
            assert not matrix[:, size:].any(), name


@few
@given(digraphs(min_graphs=2, max_nodes=9), st.integers(0, 1000))
def test_pairs_are_found_in_the_matrices_of_all_pairs(graphs, seed):
    query, walks = some_query(graphs, seed), mt.RandomWalk(steps=1)(graphs)
    graph = torch.repeat_interleave(query.counts)
    source, target = query.nodes.long()
    expected = walks.values[walks.pair_ptr[graph] + source * graphs.sizes[graph] + target]
    for name, batch in forms(graphs, {"pairs": walks}, query).items():
        assert torch.equal(batch.at_query(batch.encoding("pairs"), batch.query)[batch.query.mask], expected), name
        assert torch.equal(batch.query.source[batch.query.mask], graphs.node_ptr[graph] + source), name


@few
@given(digraphs(min_graphs=2, max_nodes=6))
def test_all_pairs_are_listed_source_by_source(graphs):
    walks = mt.RandomWalk(steps=1)(graphs)
    for name, batch in forms(graphs, {"pairs": walks}).items():
        every = batch.all_pairs()
        assert batch.query is None
        assert every.mask.all(), name
        assert torch.equal(batch.at_query(batch.encoding("pairs"), every), walks.values), name


def test_graphs_of_very_different_sizes_get_several_buckets(monkeypatch):
    monkeypatch.setattr(buckets, "BUCKET_COST", 16)
    sizes = [40, 3, 5, 39, 2, 4]
    graphs = with_features(mt.Digraphs.from_edges([torch.zeros(2, 1, dtype=torch.long)] * 6, sizes))
    batch = mt.batch(graphs, mt.RandomWalk(steps=1)(graphs))
    assert [(bucket.graphs, bucket.nodes) for bucket in batch.buckets] == [(4, 8), (2, 48)]
    assert batch.sizes.tolist() == sizes
    assert torch.equal(batch.node_features["node"], graphs.node_features["node"])
    order = torch.cat(batch.by_bucket(torch.arange(6))).tolist()
    assert order == [4, 1, 5, 2, 3, 0]
    assert [part.shape[:3] for part in batch.encoding("pairs")] == [(4, 8, 8), (2, 48, 48)]


def everything() -> Batch:
    graphs = with_features(mt.Digraphs.from_edges([torch.tensor([[0, 1], [1, 2]]), torch.tensor([[0], [1]])]))
    parts = {"eigenpairs": mt.MagneticLaplacian(k=2)(graphs), "walks": mt.RandomWalk()(graphs)}
    return fixed(graphs, parts, some_query(graphs, 0), order=[1, 0], cuts=[1], extra=2)


def test_moving_a_batch_moves_every_tensor():
    batch = everything()
    moved = batch.to("meta")
    assert {tensor.device.type for tensor in moved.tensors()} == {"meta"}
    held = [moved.query.labels, moved.places.layout.first, moved.encoding("walks")[1], moved.edge_features["edge"]]
    assert {tensor.device.type for tensor in held} == {"meta"}
    assert moved.device.type == "meta"
    assert len(moved.tensors()) == len(batch.tensors()) > 25
    assert moved.buckets == batch.buckets


def test_a_batch_says_what_it_holds():
    batch = everything()
    assert repr(batch) == f"Batch(2 graphs, 7 nodes, {batch.num_edges} edges, eigenpairs, walks)"
    with pytest.raises(
        ValueError, match=r"no encoding 'svd' \(it has eigenpairs, walks\): call mt.batch\(graphs, svd="
    ):
        batch.encoding("svd")


def test_eigenpairs_of_one_graph_keep_all_values():
    graphs = mt.Digraphs.from_edges([torch.tensor([[0, 1], [1, 2]]), torch.tensor([[0], [1]])])
    for encoding in (mt.MagneticLaplacian(k=2), mt.MagneticLaplacian(k=2, q=(0.1, 0.2))):
        pairs = encoding(graphs)
        found, expected = mt.batch(graphs[1], pairs[1]), mt.batch(graphs, pairs, ids=[1])
        for name in ("values", "vectors", "mask"):
            one, other = (getattr(batch.encoding("eigenpairs"), name) for batch in (found, expected))
            assert torch.equal(one, other), name
