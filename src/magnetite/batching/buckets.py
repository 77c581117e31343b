"""Which graphs share a padded shape: buckets, and the fixed shapes of all batches of a training run.

Planning is a pure function of the sizes, in NumPy, for a whole training run at once.
"""

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

MULTIPLE = 8
"""Padded sizes are multiples of this, which fused attention kernels prefer."""

CAPACITY_MULTIPLE = 256
"""Capacities of a fixed shape are multiples of this, so that a few more nodes need no new shape."""

BUCKET_COST = 2048
"""The cost of one more bucket, in padded nodes: it needs its own attention kernels."""

CUTS = 96
"""How many positions of a batch are considered as the end of a bucket."""

Rows = Int[np.ndarray, "steps batch"]


def rounded(count: int | np.integer, multiple: int = MULTIPLE) -> int:
    """Round up to a multiple.

    Args:
        count: The number to round.
        multiple: The result is a multiple of this.

    >>> rounded(17)
    24
    """
    return -(-int(count) // multiple) * multiple


@dataclass(frozen=True)
class Bucket:
    """Graphs of similar size that share one padded shape `[graphs, nodes]`.

    The last of the `nodes` padded positions is reserved for the graph token.

    Args:
        graphs: Number of graphs.
        nodes: Padded positions per graph.
    """

    graphs: int
    nodes: int

    def __post_init__(self) -> None:
        if self.graphs < 1 or self.nodes < 2:
            raise ValueError(f"{self} is empty: graphs must be at least 1, nodes at least 2")

    @classmethod
    def holding(cls, graphs: int, nodes: int | np.integer) -> "Bucket":
        """The bucket for this many graphs of at most `nodes` nodes.

        >>> Bucket.holding(2, nodes=16)
        Bucket(graphs=2, nodes=24)
        """
        return cls(graphs, rounded(nodes + 1))


@dataclass(frozen=True)
class BatchShape:
    """The shape of a batch: its buckets, and how many nodes, edges and query pairs it holds in total.

    Args:
        buckets: Padded shapes; the graphs of a batch fill them in order.
        nodes: Packed nodes of all graphs together.
        edges: Edges of all graphs together.
        queries: Query pairs of all graphs together.
    """

    buckets: tuple[Bucket, ...]
    nodes: int
    edges: int
    queries: int = 0

    @property
    def graphs(self) -> int:
        """Number of graphs."""
        return sum(bucket.graphs for bucket in self.buckets)

    @property
    def tokens(self) -> int:
        """Number of padded positions of all buckets."""
        return sum(bucket.graphs * bucket.nodes for bucket in self.buckets)


@dataclass(frozen=True, eq=False)
class Layout:
    """The padded positions of each graph, numbered across all buckets, one bucket after the other.

    Args:
        first: The padded position of each graph's first node.
        width: Padded positions per graph in each graph's bucket.
        first_pair: The index of each graph's first node pair in flattened `[b, n, n]` tensors.
        place_graph: The graph of each padded position.
        place_node: The number of each padded position within its graph.
        bucket_position: The index of each graph among the graphs of all buckets; None if it equals the graph's number.
    """

    first: Int[Tensor, " graphs"]
    width: Int[Tensor, " graphs"]
    first_pair: Int[Tensor, " graphs"]
    place_graph: Int[Tensor, " places"]
    place_node: Int[Tensor, " places"]
    bucket_position: Int[Tensor, " graphs"] | None = None

    @staticmethod
    @functools.lru_cache(maxsize=64)
    def of(buckets: tuple[Bucket, ...], device: torch.device) -> "Layout":
        """The layout of graphs that fill the buckets in order."""
        return Layout.sorted_by(buckets, None, device)

    @staticmethod
    def sorted_by(
        buckets: tuple[Bucket, ...], order: Int[np.ndarray, " graphs"] | None, device: torch.device
    ) -> "Layout":
        """The layout where graph `order[i]` is the i-th of all buckets."""
        width = np.repeat([bucket.nodes for bucket in buckets], [bucket.graphs for bucket in buckets])
        position = np.arange(width.size) if order is None else np.argsort(order)
        graph = np.arange(width.size) if order is None else order
        first, first_pair = np.cumsum(width) - width, np.cumsum(width**2) - width**2
        inside = np.concatenate([np.arange(size) for size in width])
        arrays = first[position], width[position], first_pair[position], np.repeat(graph, width), inside
        tensors = [torch.from_numpy(array).to(device) for array in arrays]
        return Layout(*tensors, bucket_position=None if order is None else torch.from_numpy(position).to(device))


@dataclass(frozen=True, eq=False)
class Sizes:
    """Nodes, edges and query pairs of every graph.

    Args:
        nodes: Nodes per graph.
        edges: Edges per graph.
        queries: Query pairs per graph.
    """

    nodes: Int[np.ndarray, " graphs"]
    edges: Int[np.ndarray, " graphs"]
    queries: Int[np.ndarray, " graphs"]

    def shape(self, ids: Int[np.ndarray, " chosen"]) -> BatchShape:
        """The shape of these graphs in one bucket.

        >>> Sizes(np.array([9, 5]), np.array([4, 8]), np.array([0, 0])).shape(np.array([1]))
        BatchShape(buckets=(Bucket(graphs=1, nodes=8),), nodes=5, edges=8, queries=0)
        """
        totals = [int(counts[ids].sum()) for counts in (self.nodes, self.edges, self.queries)]
        return BatchShape((Bucket.holding(ids.size, self.nodes[ids].max()),), *totals)


@dataclass(frozen=True, eq=False)
class Extent:
    """The shapes that some batches need: their graphs are sorted by size, and buckets may end at fixed cuts only.

    Args:
        cuts: Numbers of graphs after which a bucket may end, from 0 to the number of graphs of a batch.
        nodes: Largest number of nodes of a graph between two cuts, over all batches.
        totals: Total number of nodes, edges and query pairs between two cuts, for each batch.
    """

    cuts: tuple[int, ...]
    nodes: Int[np.ndarray, " cells"]
    totals: Int[np.ndarray, "batches cells 3"]

    @classmethod
    def of(cls, rows: Rows, sizes: Sizes, processes: int = 1) -> "Extent":
        """The extent of batches that are divided among processes, each of which takes every `processes`-th graph.

        >>> sizes = Sizes(nodes=np.array([9, 5, 7, 6]), edges=np.array([4, 8, 9, 3]), queries=np.array([4, 1, 2, 3]))
        >>> extent = Extent.of(np.array([[3, 0], [1, 2]]), sizes)
        >>> extent.cuts, extent.nodes.tolist(), extent.totals.tolist()
        ((0, 1, 2), [6, 9], [[[6, 3, 3], [9, 4, 4]], [[5, 8, 1], [7, 9, 2]]])
        """
        steps, batch = rows.shape
        if batch % processes:
            raise ValueError(f"a batch of {batch} graphs must be a multiple of the number of processes, {processes}")
        share = batch // processes
        mine = rows.reshape(steps, share, processes).swapaxes(1, 2).reshape(-1, share)
        cuts = (*range(0, share, max(1, share // CUTS)), share)
        each = (counts[mine] for counts in (sizes.nodes, sizes.edges, sizes.queries))
        totals = np.stack([np.add.reduceat(counts, cuts[:-1], axis=1) for counts in each], axis=-1)
        return cls(cuts, np.maximum.reduceat(sizes.nodes[mine].max(0), cuts[:-1]), totals)

    @classmethod
    def join(cls, extents: Sequence["Extent"]) -> "Extent":
        """The extent of all batches of several extents."""
        nodes, totals = np.max([each.nodes for each in extents], 0), np.concatenate([each.totals for each in extents])
        return cls(extents[0].cuts, nodes, totals)

    def with_margin(self) -> "Extent":
        """A larger extent, for batches that are not known yet."""
        return Extent(self.cuts, self.nodes + MULTIPLE, self.totals + self.totals // 16)

    def bucket(self, begin: int, end: int) -> Bucket:
        """The bucket for the graphs between two cuts, given by their numbers."""
        return Bucket.holding(self.cuts[end] - self.cuts[begin], self.nodes[begin:end].max())

    def shape(self, spans: Sequence[tuple[int, int]]) -> BatchShape:
        """The shape with one bucket per span of cuts; the spans follow each other."""
        totals = self.totals[:, spans[0][0] : spans[-1][1]].sum(1).max(0)
        capacities = (rounded(total, CAPACITY_MULTIPLE) for total in totals)
        return BatchShape(tuple(self.bucket(*span) for span in spans), *capacities)


def epoch_order(count: int, seed: int, epoch: int) -> Int[np.ndarray, " count"]:
    """The graphs of an epoch in random order, a function of seed and epoch alone.

    Args:
        count: Number of graphs.
        seed: Seed of the order.
        epoch: Number of the epoch.

    >>> epoch_order(5, seed=0, epoch=1).tolist() == epoch_order(5, seed=0, epoch=1).tolist()
    True
    """
    return np.random.default_rng([seed, epoch]).permutation(count)


def batch_rows(
    order: Int[np.ndarray, " count"], sizes: Int[np.ndarray, " graphs"], batch: int, stratified: bool = False
) -> Rows:
    """The graphs of each step, one row per step, sorted by size within the row; an incomplete last batch is dropped.

    Args:
        order: The graphs of the epoch, in order.
        sizes: Number of nodes of each graph.
        batch: Number of graphs per step.
        stratified: Whether the graphs of the epoch are divided by size into `batch` classes, and each step has one of
            each class, so that all steps have nearly the same sizes; otherwise steps are random.

    >>> batch_rows(np.array([3, 0, 2, 1, 4]), np.array([9, 5, 7, 6, 8]), batch=2).tolist()
    [[3, 0], [1, 2]]
    >>> batch_rows(np.array([3, 0, 2, 1, 4]), np.array([9, 5, 7, 6, 8]), batch=2, stratified=True).tolist()
    [[3, 0], [1, 2]]
    """
    steps = order.size // batch
    if stratified:
        chosen = order[: steps * batch]
        position = np.empty(sizes.size, dtype=np.int64)
        position[order] = np.arange(order.size)  # a random number for each graph
        classes = chosen[np.argsort(sizes[chosen], kind="stable")].reshape(batch, steps)
        return np.take_along_axis(classes, np.argsort(position[classes], axis=1), axis=1).T.copy()
    rows = order[: steps * batch].reshape(steps, batch)
    return np.take_along_axis(rows, np.argsort(sizes[rows], axis=1, kind="stable"), axis=1)


def plan(extent: Extent, tokens: int, pairs: int = 2**62) -> tuple[BatchShape, ...]:
    """The shapes of the micro-batches of a step, into which all batches fit at the lowest cost of padding.

    A bucket costs its `graphs · nodes` padded nodes, plus `BUCKET_COST`. A micro-batch has at most `tokens` padded
    nodes and `pairs` padded node pairs, unless it is a single bucket that cannot be divided.

    Args:
        extent: The extent of all batches.
        tokens: Largest number of padded nodes per micro-batch.
        pairs: Largest number of padded node pairs per micro-batch.

    >>> nodes = np.array([7] * 24 + [15] * 8)
    >>> extent = Extent.of(np.arange(32)[None], Sizes(nodes, nodes, nodes))
    >>> [[(bucket.graphs, bucket.nodes) for bucket in shape.buckets] for shape in plan(extent, tokens=256)]
    [[(24, 8)], [(8, 16)]]
    """
    cuts = extent.cuts
    # Cost of the graphs up to a cut, and the cut where their bucket begins.
    cheapest: list[tuple[float, int]] = [(0.0, 0)]
    for end in range(1, len(cuts)):
        nodes = rounded(extent.nodes[:end].max() + 1)
        choices = []
        for begin in range(end):
            padded = (cuts[end] - cuts[begin]) * nodes
            allowed = (padded <= tokens and padded * nodes <= pairs) or begin == end - 1
            choices.append((cheapest[begin][0] + BUCKET_COST + padded if allowed else np.inf, begin))
        cheapest.append(min(choices))
    ends = [len(cuts) - 1]
    while ends[0]:
        ends.insert(0, cheapest[ends[0]][1])
    groups: list[list[tuple[int, int]]] = []
    room = room_for_pairs = 0
    for span in pairwise(ends):
        bucket = extent.bucket(*span)
        padded = bucket.graphs * bucket.nodes
        if padded > room or padded * bucket.nodes > room_for_pairs:
            groups.append([])
            room, room_for_pairs = tokens, pairs
        groups[-1].append(span)
        room -= padded
        room_for_pairs -= padded * bucket.nodes
    return tuple(extent.shape(spans) for spans in groups)


def grow(shapes: Sequence[BatchShape], extent: Extent) -> tuple[BatchShape, ...]:
    """The same buckets, enlarged where necessary to fit more batches.

    Args:
        shapes: The shapes of the micro-batches.
        extent: The extent of the batches that must fit.
    """
    counts = [bucket.graphs for shape in shapes for bucket in shape.buckets]
    if sum(counts) != extent.cuts[-1]:
        raise ValueError(
            f"the shapes hold {sum(counts)} graphs per process, the batches have {extent.cuts[-1]}: "
            "use the same batch size and number of processes as before"
        )
    ends = [extent.cuts.index(position) for position in accumulate(counts, initial=0)]
    spans = list(pairwise(ends))
    grown = []
    for shape in shapes:
        mine, spans = spans[: len(shape.buckets)], spans[len(shape.buckets) :]
        needed = extent.shape(mine)
        both = zip(shape.buckets, needed.buckets, strict=True)
        buckets = tuple(Bucket(old.graphs, max(old.nodes, new.nodes)) for old, new in both)
        old, new = (shape.nodes, shape.edges, shape.queries), (needed.nodes, needed.edges, needed.queries)
        grown.append(BatchShape(buckets, *map(max, old, new)))
    return tuple(grown)


def split_sizes(sizes: Int[np.ndarray, " graphs"]) -> tuple[tuple[Bucket, ...], Int[np.ndarray, " graphs"] | None]:
    """Buckets for graphs of these sizes, and the order of the graphs by size if there is more than one bucket.

    Args:
        sizes: Number of nodes of each graph.

    >>> split_sizes(np.array([3, 5]))
    ((Bucket(graphs=2, nodes=8),), None)
    """
    single = Bucket.holding(sizes.size, sizes.max())
    if single.graphs * single.nodes <= 2 * BUCKET_COST:
        return (single,), None
    order = np.argsort(sizes, kind="stable")
    (shape,) = plan(Extent.of(order[None], Sizes(sizes, sizes, sizes)), tokens=2**62)
    return (shape.buckets, order) if len(shape.buckets) > 1 else ((single,), None)


def evaluation_batches(sizes: Sizes, tokens: int, queries: int, pairs: int = 2**62) -> list[Int[np.ndarray, " chosen"]]:
    """All graphs, each once, sorted by size, in batches of one bucket each.

    No batch has more than `tokens` padded nodes, `queries` query pairs or `pairs` padded node pairs unless it is a
    single graph.

    Args:
        sizes: Nodes, edges and query pairs of every graph.
        tokens: Largest number of padded nodes per batch.
        queries: Largest number of query pairs per batch.
        pairs: Largest number of padded node pairs per batch.

    >>> sizes = Sizes(nodes=np.array([3, 30, 4, 5]), edges=np.array([2, 60, 3, 4]), queries=np.array([6, 800, 12, 20]))
    >>> [ids.tolist() for ids in evaluation_batches(sizes, tokens=16, queries=24)]
    [[0, 2], [3], [1]]
    """
    batches: list[list[int]] = []
    asked = 0
    for graph in np.argsort(sizes.nodes, kind="stable").tolist():
        asked += int(sizes.queries[graph])
        nodes = rounded(int(sizes.nodes[graph]) + 1)
        padded = nodes * (len(batches[-1]) + 1 if batches else 1)
        if not batches or padded > tokens or asked > queries or padded * nodes > pairs:
            batches.append([])
            asked = int(sizes.queries[graph])
        batches[-1].append(graph)
    return [np.array(ids) for ids in batches]
