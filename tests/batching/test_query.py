"""Query pairs: selected, joined and packed with their graphs, against lists of pairs."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import magnetite as mt
from magnetite.batching import BatchShape, Bucket, QueryPairs, gather
from tests.batching.cases import queried_digraphs, query_of, some_query

few = settings(max_examples=25)
GRAPHS = mt.Digraphs.from_edges([torch.tensor([[0, 1], [1, 2]]), torch.tensor([[0], [1]])])


@few
@given(queried_digraphs(), st.integers(0, 5), st.randoms(use_true_random=False))
def test_pairs_of_chosen_graphs_follow_each_other(case, extra, random):
    graphs, queries = case
    ids = [random.randrange(len(graphs)) for _ in range(3)]
    sizes = [int(graphs.sizes[graph]) for graph in ids]
    first = [sum(sizes[:number]) for number in range(3)]
    expected = [(first[number] + u, first[number] + v, label)
                for number, graph in enumerate(ids) for u, v, label in queries[graph]]  # fmt: skip
    shape = BatchShape((Bucket(3, 8),), nodes=sum(sizes) + 2, edges=60, queries=len(expected) + extra)
    batch = gather(graphs, torch.tensor(ids), shape, {}, query_of(graphs, queries))
    query, count = batch.query, len(expected)
    assert query.mask.tolist() == [True] * count + [False] * extra
    assert query.source.tolist()[:count] == [source for source, _, _ in expected]
    assert query.target.tolist()[:count] == [target for _, target, _ in expected]
    assert query.labels.tolist() == [label for _, _, label in expected] + [0] * extra
    assert ((query.source >= 0) & (query.source < batch.num_nodes)).all()
    assert torch.equal(query.source[count:], query.target[count:])
    assert query.source[count:].unique().numel() == min(extra, batch.num_nodes)  # not all at one node
    values = torch.rand(count + extra) + 1
    torch.testing.assert_close(query.sum(values), values[:count].sum())


@few
@given(queried_digraphs())
def test_an_exact_batch_has_exactly_the_pairs_of_its_graphs(case):
    graphs, queries = case
    batch = mt.batch(graphs, query=query_of(graphs, queries))
    assert batch.query.mask.all()
    assert batch.query.labels.tolist() == [label for own in queries for _, _, label in own]
    assert mt.batch(graphs).query is None


@few
@given(queried_digraphs())
def test_selecting_and_joining_keep_the_pairs_of_each_graph(case):
    graphs, queries = case
    query = query_of(graphs, queries)
    order = list(reversed(range(len(graphs))))
    for chosen in (query[order], QueryPairs.concat([query[number : number + 1] for number in order])):
        expected = [queries[number] for number in order]
        assert chosen.counts.tolist() == [len(own) for own in expected]
        assert chosen.nodes.T.tolist() == [list(each[:2]) for own in expected for each in own]
        assert chosen.labels.tolist() == [each[2] for own in expected for each in own]


def test_nan_of_padding_does_not_reach_a_sum():
    query = mt.batch(GRAPHS, query=some_query(GRAPHS, 0)).query
    values = torch.ones(query.mask.numel(), requires_grad=True)
    half = type(query)(query.source, query.target, query.labels, torch.arange(query.mask.numel()) < 2)
    total = half.sum(torch.where(half.mask, values, torch.nan))
    assert total == 2
    assert torch.autograd.grad(total, values)[0].tolist() == half.mask.float().tolist()


def test_query_pairs_are_saved_and_loaded(tmp_path):
    query = some_query(GRAPHS, 1)
    query.save(tmp_path / "query.safetensors")
    again = QueryPairs.load(tmp_path / "query.safetensors")
    assert {name: tensor.tolist() for name, tensor in again.tensors().items()} == {
        name: tensor.tolist() for name, tensor in query.tensors().items()
    }


def test_pairs_that_do_not_fit_or_belong_to_other_graphs_are_rejected():
    query = query_of(GRAPHS, [[(0, 1, 1)] * 6, [(0, 1, 1)] * 2])
    shape = BatchShape((Bucket(2, 8),), nodes=5, edges=3, queries=7)
    with pytest.raises(ValueError, match="8 query pairs do not fit into a shape with 7: give a larger shape"):
        gather(GRAPHS, torch.arange(2), shape, {}, query)
    with pytest.raises(ValueError, match="query belongs to other graphs"):
        mt.batch(GRAPHS, query=query[:1])


@pytest.mark.parametrize(
    ("nodes", "query_ptr", "message"),
    [
        ([[0, 5, 0], [3, 0, 2]], [0, 2, 3], r"query pair 1 is \(5, 0\), but its graph has nodes 0 to 3"),
        ([[0, -1, 0], [3, 0, 2]], [0, 2, 3], r"query pair 1 is \(-1, 0\)"),
        ([[0, 1, 0], [3, 0, 2]], [1, 2, 3], "query_ptr must have 3 entries that start at 0"),
        ([[0, 1, 0], [3, 0, 2]], [0, 2, 4], "query_ptr ends at 4, but nodes have shape"),
        ([[0, 1, 0], [3, 0, 2]], [0, 3, 2], "never decrease"),
    ],
)
def test_query_pairs_that_do_not_fit_their_graphs_are_refused(nodes, query_ptr, message):
    labels = torch.zeros(3, dtype=torch.int16)
    with pytest.raises(ValueError, match=message):
        QueryPairs(
            node_ptr=torch.tensor([0, 4, 7]),
            query_ptr=torch.tensor(query_ptr),
            nodes=torch.tensor(nodes),
            labels=labels,
        )
