"""Copies of graphs by the source of their query pairs, against copies of the graphs themselves."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import magnetite as mt
from magnetite.batching import by_source
from tests.batching.cases import fixed, queried_digraphs, query_of, with_features


@settings(max_examples=40)
@given(queried_digraphs(), st.integers(0, 5))
def test_each_source_has_a_copy_of_its_graph(case, extra):
    graphs, queries = case
    graphs = with_features(graphs)
    batch = fixed(graphs, query=query_of(graphs, queries), extra=extra)
    copies = by_source(batch)
    wanted = [(number, u) for number, own in enumerate(queries) for u in sorted({query[0] for query in own})]
    wanted = wanted or [(0, 0)]
    ids = torch.tensor([number for number, _ in wanted])
    expected = mt.batch(graphs, ids=ids)
    assert torch.equal(copies.batch.edge_index, expected.edge_index)
    assert torch.equal(copies.batch.edge_weight, expected.edge_weight)
    for name in ("node_features", "edge_features", "graph_features"):
        for feature, rows in getattr(expected, name).items():
            assert torch.equal(getattr(copies.batch, name)[feature], rows)
    assert torch.equal(batch.node_features["node"][copies.nodes], expected.node_features["node"])
    starts = (expected.sizes.cumsum(0) - expected.sizes).tolist()
    assert copies.sources.tolist() == [start + u for start, (_, u) in zip(starts, wanted, strict=True)]
    first = dict(zip(wanted, starts, strict=True))
    asked = [(first[number, u] + u, first[number, u] + v, label)
             for number, own in enumerate(queries) for u, v, label in own]  # fmt: skip
    query = copies.batch.query
    assert query.mask.tolist() == [True] * len(asked) + [False] * extra
    found = zip(query.source.tolist(), query.target.tolist(), query.labels.tolist(), strict=True)
    assert list(found)[: len(asked)] == asked
