"""Graphs with features, query pairs and batches of fixed shape, for the tests of batches and models."""

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from hypothesis import strategies as st
from torch import Tensor

import magnetite as mt
from magnetite.batching import Batch, BatchShape, Bucket, QueryPairs, gather
from magnetite.batching.buckets import rounded
from magnetite.packed import Packed, starts
from magnetite.testing import digraphs

QueryList = list[tuple[int, int, int]]
"""Source, target and label of each query pair of a graph."""


def with_features(graphs: mt.Digraphs) -> mt.Digraphs:
    """Every node, edge and graph gets a number of its own, none of them 0."""
    return graphs.replace(
        node_features={"node": torch.arange(graphs.num_nodes) + 1},
        edge_features={"edge": torch.arange(graphs.num_edges) + 1},
        graph_features={"graph": torch.arange(len(graphs)) + 1},
    )


def query_of(graphs: mt.Digraphs, queries: Sequence[QueryList]) -> QueryPairs:
    """The container of (source, target, label) triples, graph by graph."""
    columns = torch.tensor([query for own in queries for query in own], dtype=torch.int16).reshape(-1, 3).T
    counts = torch.tensor([len(own) for own in queries])
    return QueryPairs(node_ptr=graphs.node_ptr, query_ptr=starts(counts), nodes=columns[:2], labels=columns[2])


def some_query(graphs: mt.Digraphs, seed: int) -> QueryPairs:
    """Any number of the pairs of each graph in random order, among them pairs of a node with itself."""
    rng = np.random.default_rng(seed)
    sizes = graphs.sizes.tolist()
    chosen = [rng.permutation(size * size)[: rng.integers(size * size + 1)] for size in sizes]
    nodes = [np.stack(np.divmod(own, size)) for own, size in zip(chosen, sizes, strict=True)]
    listed = torch.from_numpy(np.concatenate(nodes, axis=1)).short()
    counts = torch.tensor([len(own) for own in chosen])
    return QueryPairs(
        node_ptr=graphs.node_ptr, query_ptr=starts(counts), nodes=listed, labels=torch.arange(listed.shape[1]).short()
    )


@st.composite
def queried_digraphs(draw: st.DrawFn, max_nodes: int = 6) -> tuple[mt.Digraphs, list[QueryList]]:
    """Graphs, single nodes among them, with any query pairs: none, repeated ones, a node with itself."""
    graphs = draw(digraphs(max_nodes=max_nodes))
    queries = []
    for size in graphs.sizes.tolist():
        node = st.integers(0, size - 1)
        queries.append(draw(st.lists(st.tuples(node, node, st.integers(0, 300)), max_size=6)))
    return graphs, queries


def fixed(
    graphs: mt.Digraphs,
    parts: Mapping[str, Packed] | None = None,
    query: QueryPairs | None = None,
    order: Sequence[int] | None = None,
    cuts: Sequence[int] = (),
    extra: int = 0,
    wider: int = 0,
) -> Batch:
    """All graphs in a batch of fixed shape.

    Buckets end at `cuts` of the graphs in `order`; there is room for `extra` more nodes, edges and query pairs, and
    buckets are `wider` than needed.
    """
    sizes = graphs.sizes.numpy()
    filled = np.arange(len(graphs)) if order is None else np.asarray(order)
    groups = np.split(filled, list(cuts))
    buckets = tuple(Bucket(len(group), rounded(sizes[group].max() + 1) + wider) for group in groups)
    queries = 0 if query is None else query.labels.numel() + extra
    shape = BatchShape(buckets, graphs.num_nodes + extra, graphs.num_edges + extra, queries)
    return gather(graphs, torch.arange(len(graphs)), shape, parts or {}, query, None if order is None else filled)


def forms(
    graphs: mt.Digraphs, parts: Mapping[str, Packed] | None = None, query: QueryPairs | None = None
) -> dict[str, Batch]:
    """All graphs in batches of several shapes, which no result may depend on; there are two graphs or more."""
    backwards, middle = range(len(graphs))[::-1], (len(graphs) + 1) // 2
    return {
        "exact": mt.batch(graphs, query=query, **(parts or {})),
        "padded": fixed(graphs, parts, query, extra=7, wider=8),
        "two buckets": fixed(graphs, parts, query, cuts=[middle]),
        "padded buckets": fixed(graphs, parts, query, cuts=[1], extra=40, wider=8),
        "sorted buckets": fixed(graphs, parts, query, order=backwards, cuts=[middle], extra=3),
    }


def real_nodes(batch: Batch, values: Tensor) -> Tensor:
    """The entries of the real nodes."""
    return values[: batch.num_nodes][batch.node_mask]
