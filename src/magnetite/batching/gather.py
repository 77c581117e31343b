"""Batches gathered from packed graphs and encodings; those of fixed shapes without synchronising with the device."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor

from magnetite.batching.batch import Batch, BatchedEigenpairs, BatchedTopPairs, Places
from magnetite.batching.buckets import BatchShape, Layout, split_sizes
from magnetite.batching.query import Query, QueryPairs
from magnetite.encodings.results import Eigenpairs, NodeEncoding, PairEncoding, TopPairs
from magnetite.graphs import Digraphs
from magnetite.kernels._compat import assert_async
from magnetite.packed import Packed, counts_of

NAMES: dict[type[Packed], str] = {
    Eigenpairs: "eigenpairs",
    NodeEncoding: "nodes",
    PairEncoding: "pairs",
    TopPairs: "top_pairs",
}
"""Default names of encodings, by the type of the result."""

Ids = Sequence[int] | np.ndarray | Tensor


def batch(
    graphs: Digraphs,
    *encodings: Packed,
    ids: Ids | None = None,
    device: torch.device | str | None = None,
    query: QueryPairs | None = None,
    **named: Packed,
) -> Batch:
    """Make a batch of graphs and their encodings.

    Args:
        graphs: The graphs.
        encodings: Results of encodings, named by their kind: eigenpairs, nodes or pairs.
        ids: Which graphs to take, in this order; all by default.
        device: Device of the batch; by default that of the graphs. Arguments may be on any device.
        query: Query pairs for which a `PairHead` predicts; all node pairs by default.
        named: Results of encodings, by name.

    >>> from magnetite.encodings import MagneticLaplacian
    >>> graphs = Digraphs.from_edges([torch.tensor([[0, 1], [1, 2]]), torch.tensor([[0], [1]])])
    >>> made = batch(graphs, MagneticLaplacian(k=2)(graphs), ids=[1, 0])
    >>> made, made.sizes.tolist(), made.encoding("eigenpairs").vectors.shape
    (Batch(2 graphs, 5 nodes, 3 edges, eigenpairs), [2, 3], torch.Size([5, 2, 2]))
    """
    parts: dict[str, Packed] = {name: _packed(part) for name, part in {**_by_kind(encodings), **named}.items()}
    _check_same_graphs(graphs, parts if query is None else {**parts, "query": query})
    target = graphs.device if device is None else torch.empty(0, device=device).device
    chosen = _checked_ids(ids, len(graphs))
    if any(item.device != target for item in (graphs, *parts.values(), *([] if query is None else [query]))):
        # Select on the device of each argument, so that only the chosen graphs are moved.
        graphs, parts = (
            _moved(graphs, chosen, target),
            {name: _moved(part, chosen, target) for name, part in parts.items()},
        )
        query, chosen = None if query is None else _moved(query, chosen, target), torch.arange(len(chosen))
    if target.type != "cpu" and graphs.weights is not None:
        # A failed check on a GPU would have no message.
        _single_precision(graphs.weights.detach().cpu(), torch.ones(graphs.num_edges, dtype=torch.bool), False)
    sizes, edges = (counts[chosen.to(counts.device)] for counts in (graphs.sizes, graphs.edge_ptr.diff()))
    queries = 0 if query is None else query.counts[chosen.to(query.device)].sum()
    buckets, order = split_sizes(sizes.cpu().numpy())
    shape = BatchShape(buckets, int(sizes.sum()), int(edges.sum()), int(queries))
    return gather(graphs, chosen.to(target), shape, parts, query, order)


def gather(
    graphs: Digraphs,
    ids: Int[Tensor, " chosen"],
    shape: BatchShape,
    encodings: Mapping[str, Packed],
    query: QueryPairs | None = None,
    order: Int[np.ndarray, " chosen"] | None = None,
    whole_sizes: Int[Tensor, " chosen"] | None = None,
) -> Batch:
    """Make a batch of a given shape, from arguments on one device, without synchronising with a GPU.

    Args:
        graphs: The graphs.
        ids: Which graphs to take, in this order.
        shape: Buckets, and total numbers of nodes, edges and query pairs; unused entries are padding.
        encodings: Results of encodings, by name.
        query: Query pairs for which a `PairHead` predicts.
        order: `order[i]` is the i-th graph in the buckets; None if the graphs fill the buckets in their own order.
        whole_sizes: Number of nodes of the graphs that the chosen ones were sampled from.
    """
    device = graphs.device
    layout = Layout.of(shape.buckets, device) if order is None else Layout.sorted_by(shape.buckets, order, device)
    sizes = counts_of(graphs.node_ptr, ids)
    nodes, edges = _Ragged(graphs.node_ptr, ids, shape.nodes), _Ragged(graphs.edge_ptr, ids, shape.edges)
    _check_fit(sizes, layout, nodes, edges, shape)
    ends = graphs.edges.index_select(1, edges.row) if graphs.num_edges else graphs.edges.new_zeros((2, shape.edges))
    # Padding edges are spread over many nodes: atomic additions to a single node would be slow on a GPU.
    anywhere = torch.arange(shape.edges, device=device) % max(shape.nodes, 1)
    given = edges.mask if graphs.weights is None else edges.take(graphs.weights)
    weight = given.float() if graphs.weights is None else _single_precision(given, edges.mask)
    return Batch(
        sizes=sizes,
        whole_sizes=sizes if whole_sizes is None else whole_sizes,
        node_graph=nodes.graph,
        node_mask=nodes.mask,
        edge_index=torch.where(edges.mask, ends.long() + nodes.start[edges.graph], anywhere),
        edge_mask=edges.mask,
        edge_weight=weight,
        node_features={name: nodes.take(rows) for name, rows in graphs.node_features.items()},
        edge_features={name: edges.take(rows) for name, rows in graphs.edge_features.items()},
        graph_features={name: rows.index_select(0, ids) for name, rows in graphs.graph_features.items()},
        encodings={name: _encoding(part, ids, nodes, layout, shape) for name, part in encodings.items()},
        query=None if query is None else _query(query, ids, nodes, shape),
        buckets=shape.buckets,
        places=_places(layout, sizes, nodes),
    )


def _single_precision(
    weights: Shaped[Tensor, " edges"], mask: Bool[Tensor, " edges"], summed: bool = True
) -> Float[Tensor, " edges"]:
    """Weights as a network reads them; refused if they or their sum are beyond float32, or below its normal numbers."""
    single = weights.float()
    limit = torch.finfo(torch.float32)
    assert_async(
        (single.sum() if summed else single).isfinite().all() & ((single >= limit.tiny) | ~mask).all(),
        lambda: (
            f"weights from {float(weights[mask].min()):.3g} to {float(weights.max()):.3g} do not fit into float32, in "
            "which networks compute: divide them by a constant (their logarithm is an edge feature)"
        ),
    )
    return single


class _Ragged:
    """A fixed number of entries of a packed tensor: those of the chosen graphs, then padding.

    For each entry, `row` is its index in the packed tensor, `graph` the number of its graph among the chosen ones,
    `inside` its number within the graph, and `mask` whether it is real. `start` says where each graph begins.
    """

    def __init__(self, pointer: Int[Tensor, " starts"], ids: Int[Tensor, " chosen"], count: int):
        counts = counts_of(pointer, ids)
        end = counts.cumsum(0)
        number = torch.arange(count, device=pointer.device)
        self.start, self.total = end - counts, end[-1]
        self.mask = number < self.total
        self.graph = torch.searchsorted(end, number, right=True).clamp(max=ids.numel() - 1)
        self.inside = number - self.start[self.graph]
        self.row = torch.where(self.mask, pointer[ids][self.graph] + self.inside, 0)

    def take(self, rows: Shaped[Tensor, "all ..."]) -> Shaped[Tensor, "count ..."]:
        """The entries of a packed tensor, zero in padding."""
        return take(rows, self.row, self.mask)


def _places(layout: Layout, sizes: Int[Tensor, " chosen"], nodes: _Ragged) -> Places:
    count, graph = nodes.mask.numel(), layout.place_graph
    held, last = layout.place_node < sizes[graph], layout.place_node == layout.width[graph] - 1
    token = torch.where(held, nodes.start[graph] + layout.place_node, torch.where(last, count + graph, 0))
    place = layout.first[nodes.graph] + torch.where(nodes.mask, nodes.inside, 0)  # padding: any valid position
    return Places(
        token=token,
        filled=held | last,
        place=torch.cat([place, layout.first + layout.width - 1]),
        real=torch.cat([nodes.mask, torch.ones_like(sizes, dtype=torch.bool)]),
        layout=layout,
    )


def _query(query: QueryPairs, ids: Int[Tensor, " chosen"], nodes: _Ragged, shape: BatchShape) -> Query:
    pairs = _Ragged(query.query_ptr, ids, shape.queries)
    assert_async(
        pairs.total <= shape.queries,
        lambda: f"{int(pairs.total)} query pairs do not fit into a shape with {shape.queries}: give a larger shape",
    )
    anywhere = torch.arange(shape.queries, device=ids.device) % shape.nodes
    ends = query.nodes.index_select(1, pairs.row) if len(query.labels) else query.nodes.new_zeros((2, shape.queries))
    source, target = torch.where(pairs.mask, ends.long() + nodes.start[pairs.graph], anywhere)
    return Query(source, target, pairs.take(query.labels), pairs.mask)


def _encoding(part: Any, ids: Int[Tensor, " chosen"], nodes: _Ragged, layout: Layout, shape: BatchShape) -> Any:
    if isinstance(part, Eigenpairs):
        vectors = torch.view_as_real(part.vectors) if part.vectors.is_complex() else part.vectors[..., None]
        values, mask = part.values.index_select(0, ids), part.mask.index_select(0, ids)
        assert_async(
            values.float().isfinite().all(),
            lambda: (
                f"eigenvalues up to {float(values.max()):.3g} do not fit into float32, in which networks compute: "
                "divide the weights by a constant, or use normalised=True"
            ),
        )
        return BatchedEigenpairs(values.float(), nodes.take(vectors).float(), mask)
    if isinstance(part, TopPairs):
        return _top_pairs(part, nodes)
    axis, _ = part.axes.get("values", (None, 0))
    if axis == "pair":
        return _padded_pairs(part, ids, layout, shape)
    if axis == "node" and len(part.axes) == 1:
        return nodes.take(part.values)
    raise TypeError(f"{type(part).__name__} cannot be batched: give eigenpairs, node or pair encodings")


def _top_pairs(part: TopPairs, nodes: _Ragged) -> BatchedTopPairs:
    """The landing nodes as packed nodes of the batch; each node has itself in the last column, if it lists none."""
    landing, own = nodes.take(part.landing).long(), torch.arange(nodes.mask.numel(), device=nodes.mask.device)
    mask = (landing >= 0) & nodes.mask[:, None]
    alone = ~mask.any(1)
    mask = torch.cat([mask[:, :-1], mask[:, -1:] | alone[:, None]], dim=1)
    listed = mask & ~alone[:, None]
    landing = torch.where(listed, landing + nodes.start[nodes.graph][:, None], own[:, None])
    return BatchedTopPairs(landing, mask, torch.where(listed[..., None], nodes.take(part.values).float(), 0.0))


def _padded_pairs(
    part: Any, ids: Int[Tensor, " chosen"], layout: Layout, shape: BatchShape
) -> list[Shaped[Tensor, "_ _ _ ..."]]:
    """One `[b, n, n, …]` tensor per bucket, zero beyond each graph's nodes."""
    order = ids if layout.bucket_position is None else ids[layout.bucket_position.argsort()]
    padded = []
    for chosen, bucket in zip(order.split([bucket.graphs for bucket in shape.buckets]), shape.buckets, strict=True):
        size, node = counts_of(part.node_ptr, chosen)[:, None], torch.arange(bucket.nodes, device=ids.device)
        row = (part.pair_ptr[chosen][:, None] + node * size)[..., None] + node
        held = node < size
        mask = held[:, :, None] & held[:, None]
        padded.append(take(part.values, torch.where(mask, row, 0), mask))
    return padded


def take(
    rows: Shaped[Tensor, "all ..."], row: Int[Tensor, "*places"], mask: Bool[Tensor, "*places"]
) -> Shaped[Tensor, "..."]:
    """`rows[row]` where the mask is true, else zero; `row` must be a valid index everywhere."""
    if not rows.shape[0]:
        return rows.new_zeros((*row.shape, *rows.shape[1:]))
    whole = whole_rows(rows)
    chosen = whole[row]
    mask = mask.view(*mask.shape, *[1] * (chosen.ndim - mask.ndim))
    chosen = torch.where(mask, chosen, whole.new_zeros(()))
    return chosen if whole is rows else chosen.view(rows.dtype).view(*row.shape, *rows.shape[1:])


def whole_rows(rows: Shaped[Tensor, "all ..."]) -> Shaped[Tensor, "all ..."]:
    """View each short row as one number of the same size, such as eight float16 as one complex128.

    A GPU gathers a number with one thread, but a row with one block; on the CPU, numbers are faster, too.
    """
    length, start = rows.shape[1:].numel() * rows.itemsize, rows.storage_offset() * rows.itemsize
    dtype = {4: torch.int32, 8: torch.int64, 16: torch.complex128}.get(length) if rows.ndim > 1 else None
    if dtype is None or rows.requires_grad or not rows.is_contiguous() or start % length or rows.data_ptr() % length:
        return rows
    return rows.view(len(rows), -1).view(dtype).view(-1)


def _check_fit(
    sizes: Int[Tensor, " chosen"], layout: Layout, nodes: _Ragged, edges: _Ragged, shape: BatchShape
) -> None:
    if sizes.numel() != shape.graphs:
        raise ValueError(
            f"got {sizes.numel()} graphs for a batch of {shape.graphs}: give as many graphs as its buckets hold"
        )
    fits = (sizes < layout.width).all() & (nodes.total <= shape.nodes) & (edges.total <= shape.edges)
    assert_async(
        fits,
        lambda: (
            f"{int(nodes.total)} nodes (at most {int(sizes.max())} per graph) and {int(edges.total)} edges do not fit "
            f"into {shape}: give a larger shape"
        ),
    )


def _by_kind(encodings: tuple[Packed, ...]) -> dict[str, Packed]:
    parts: dict[str, Packed] = {}
    for part in encodings:
        if not isinstance(part, Packed):
            raise TypeError(
                f"{part!r} is not the result of an encoding: give encoding(graphs), not the encoding itself"
            )
        name = NAMES.get(type(part))
        if name is None:
            raise TypeError(f"{type(part).__name__} has no default name: give it by keyword, mt.batch(graphs, name=…)")
        if name in parts:
            raise ValueError(
                f"two encodings are named {name!r}: pass them by keyword, mt.batch(graphs, first=…, second=…)"
            )
        parts[name] = part
    return parts


def _packed(part: Any) -> Packed:
    """Eigenpairs of one graph, as `pairs[1]` gives them, with their axis of graphs again."""
    if not isinstance(part, Eigenpairs) or part.values.ndim == part.vectors.ndim:
        return part
    named = {name: getattr(part, name) for name in ("values", "mask", "group", "anchored")}
    return replace(part, **{name: tensor[None] for name, tensor in named.items()})


def _check_same_graphs(graphs: Digraphs, parts: Mapping[str, Packed]) -> None:
    for name, part in parts.items():
        if part.node_ptr is graphs.node_ptr:
            continue
        if len(part) != len(graphs) or not torch.equal(part.node_ptr.cpu(), graphs.node_ptr.cpu()):
            raise ValueError(f"{name} belongs to other graphs ({part}, not {graphs}): encode these graphs")


def _checked_ids(ids: Ids | None, count: int) -> Int[Tensor, " chosen"]:
    """The chosen graphs, on their own device, counted from 0."""
    if ids is None:
        chosen = torch.arange(count)
    else:
        chosen = torch.as_tensor(np.ascontiguousarray(ids) if isinstance(ids, np.ndarray) else ids)
    if not chosen.numel():
        raise ValueError("ids is empty: a batch needs at least one graph")
    if chosen.dtype == torch.bool or chosen.is_floating_point() or chosen.is_complex() or chosen.ndim != 1:
        raise TypeError(
            f"ids must be a list or 1-d tensor of integers, got {chosen.dtype} of shape {tuple(chosen.shape)}"
        )
    chosen = chosen.long()
    wrong = chosen[(chosen < -count) | (chosen >= count)]
    if wrong.numel():
        raise IndexError(f"graph {int(wrong[0])} does not exist: ids go from 0 to {count - 1}, or from -{count} to -1")
    return chosen % count


def _moved(item: Any, ids: Int[Tensor, " chosen"], device: torch.device) -> Any:
    return item.select(ids.to(item.device)).to(device)
