"""One copy of each graph of a batch per source of its query pairs, for networks that are asked about one at a time."""

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from magnetite.batching.batch import Batch
from magnetite.batching.gather import batch as batch_of
from magnetite.batching.query import Query
from magnetite.graphs import Digraphs
from magnetite.kernels._compat import not_compiled
from magnetite.packed import starts


@dataclass(frozen=True, eq=False)
class Copies:
    """Copies of the graphs of a batch.

    Args:
        batch: The copies, without encodings; the query pairs of the batch, in the same order, are pairs of a copy.
        nodes: For each node of the copies, the node of the batch.
        sources: For each copy, the packed number of its source.
    """

    batch: Batch
    nodes: Int[Tensor, " nodes"]
    sources: Int[Tensor, " copies"]


@not_compiled
def by_source(batch: Batch) -> Copies:
    """Copy each graph once per distinct source of its query pairs; those without query pairs are left out.

    Without any query pair there is one copy, since a batch has at least one graph.

    Args:
        batch: The graphs, and their query pairs; all node pairs by default.

    >>> import magnetite as mt
    >>> copies = by_source(mt.batch(mt.Digraphs.from_edges([[0, 1], [1, 2]])))
    >>> copies.nodes.tolist(), copies.sources.tolist()
    ([0, 1, 2, 0, 1, 2, 0, 1, 2], [0, 4, 8])
    """
    query = batch.all_pairs() if batch.query is None else batch.query
    node = query.source[query.mask].unique()
    node = node if len(node) else node.new_zeros(1)
    graph = batch.node_graph[node]
    nodes, sizes = _repeated(batch.sizes, graph)
    edge_counts = torch.bincount(batch.node_graph[batch.edge_index[0, batch.edge_mask]], minlength=len(batch))
    edges, counts = _repeated(edge_counts, graph)
    first = (batch.sizes.cumsum(0) - batch.sizes)[graph]  # of the graph, in the batch
    ends = batch.edge_index[:, edges] - first.repeat_interleave(counts)
    named: dict[str, Any] = {
        "node_ptr": starts(sizes),
        "edge_ptr": starts(counts),
        "edges": ends,
        "weights": batch.edge_weight[edges],
        **{f"node_features/{name}": rows[nodes] for name, rows in batch.node_features.items()},
        **{f"edge_features/{name}": rows[edges] for name, rows in batch.edge_features.items()},
        **{f"graph_features/{name}": rows[graph] for name, rows in batch.graph_features.items()},
    }
    copies = batch_of(Digraphs.from_tensors(named, validate=False))
    copies.whole_sizes = batch.whole_sizes[graph]
    # Padding at the end of the query pairs asks about any node.
    copy = torch.searchsorted(node, query.source).clamp(max=len(node) - 1)
    moved = (sizes.cumsum(0) - sizes - first)[copy]
    source, target = ((end + moved).clamp(0, len(nodes) - 1) for end in (query.source, query.target))
    copies.query = Query(source, target, query.labels, query.mask)
    return Copies(copies, nodes, node + sizes.cumsum(0) - sizes - first)


def _repeated(
    counts: Int[Tensor, " graphs"], graph: Int[Tensor, " copies"]
) -> tuple[Int[Tensor, " rows"], Int[Tensor, " copies"]]:
    """The rows of each copy of a graph, where graph `i` has `counts[i]` consecutive rows, and their number."""
    chosen = counts[graph]
    shift = (counts.cumsum(0) - counts)[graph] - (chosen.cumsum(0) - chosen)
    return torch.arange(int(chosen.sum()), device=counts.device) + shift.repeat_interleave(chosen), chosen
