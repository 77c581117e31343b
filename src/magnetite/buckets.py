"""Which graphs go together into which slots: an epoch as batches of a few fixed shapes, so that kernels compile once.

Everything here is a pure function of sizes, in NumPy, for a whole epoch at once.
"""

from collections.abc import Sequence
from dataclasses import astuple, dataclass, replace
from itertools import pairwise

import numpy as np
from jaxtyping import Int

from magnetite.batching import MULTIPLE, Batch, Shape
from magnetite.shapes import rounded

Counts = Int[np.ndarray, " graphs"]
Rows = Int[np.ndarray, "steps batch"]

CHUNK = 2048
"""What another chunk costs, in slots for nodes: kernels of its own for positions, attention and head."""

PLACES = 96
"""Places of a row that are tried as ends of a chunk."""

TOGETHER = 256
"""Nodes and asked pairs of all graphs together are multiples of this, so that a few more need no new shape."""


@dataclass(frozen=True, eq=False)
class Sizes:
    """Nodes, edges and asked pairs of every graph."""

    nodes: Counts
    edges: Counts
    pairs: Counts


@dataclass(frozen=True, eq=False)
class Profile:
    """What some rows need: the most nodes and edges at each place of any, and pairs and nodes of every graph of each.

    Processes take turns at the places of a row, so `pairs` and `sizes` have one row for every step and process.
    """

    nodes: Int[np.ndarray, " batch"]
    edges: Int[np.ndarray, " batch"]
    pairs: Int[np.ndarray, "rows share"]
    sizes: Int[np.ndarray, "rows share"]

    @classmethod
    def join(cls, profiles: Sequence["Profile"]) -> "Profile":
        """What the rows of all of them need."""
        nodes, edges = (np.max([getattr(one, name) for one in profiles], 0) for name in ("nodes", "edges"))
        pairs, sizes = (np.concatenate([getattr(one, name) for one in profiles]) for name in ("pairs", "sizes"))
        return cls(nodes, edges, pairs, sizes)

    @property
    def processes(self) -> int:
        """How many share a row."""
        return self.nodes.size // self.pairs.shape[1]

    def with_room(self) -> "Profile":
        """Some more of everything, for rows that are not known yet."""
        more = self.pairs + self.pairs // 16, self.sizes + self.sizes // 16
        return Profile(self.nodes + MULTIPLE, self.edges + MULTIPLE, *more)

    def shape(self, begin: int, end: int) -> Shape:
        """The shape for the places from `begin` to `end` of any row; every process has an equal part of it."""
        processes = self.processes
        mine = slice(begin // processes, end // processes)
        pairs, total = (rounded(each[:, mine].sum(1).max(), TOGETHER) for each in (self.pairs, self.sizes))
        shape = Shape.holding(end - begin, self.nodes[begin:end].max(), self.edges[begin:end].max())
        return replace(shape, pairs=processes * pairs, total=min(processes * total, shape.graphs * shape.nodes))


def epoch_order(count: int, seed: int, epoch: int) -> Int[np.ndarray, " count"]:
    """The graphs of an epoch in random order, a function of seed and epoch alone.

    >>> epoch_order(5, seed=0, epoch=1).tolist() == epoch_order(5, seed=0, epoch=1).tolist()
    True
    """
    return np.random.default_rng([seed, epoch]).permutation(count)


def batch_rows(order: Int[np.ndarray, " count"], sizes: Counts, batch: int) -> Rows:
    """One row a step: `batch` graphs that follow each other in `order`, smallest first; the rest is left out.

    >>> batch_rows(np.array([3, 0, 2, 1, 4]), np.array([9, 5, 7, 6, 8]), batch=2).tolist()
    [[3, 0], [1, 2]]
    """
    steps = order.size // batch
    rows = order[: steps * batch].reshape(steps, batch)
    return np.take_along_axis(rows, np.argsort(sizes[rows], axis=1, kind="stable"), axis=1)


def profile(rows: Rows, sizes: Sizes, processes: int = 1) -> Profile:
    """What these rows need, shared by so many processes.

    >>> sizes = Sizes(nodes=np.array([9, 5, 7, 6]), edges=np.array([4, 8, 9, 3]), pairs=np.array([40, 10, 20, 30]))
    >>> found = profile(np.array([[3, 0], [1, 2]]), sizes)
    >>> found.nodes.tolist(), found.edges.tolist(), found.pairs.tolist(), found.sizes.tolist()
    ([6, 9], [8, 9], [[30, 40], [10, 20]], [[6, 9], [5, 7]])
    """
    steps, batch = rows.shape
    if batch % processes:
        raise ValueError(f"a batch of {batch} cannot be shared by {processes} processes: give a multiple of them")

    def shared(counts: Counts) -> Int[np.ndarray, "rows share"]:
        places = counts[rows].reshape(steps, batch // processes, processes)
        return places.swapaxes(1, 2).reshape(-1, batch // processes)

    most = sizes.nodes[rows].max(0), sizes.edges[rows].max(0)
    return Profile(*most, shared(sizes.pairs), shared(sizes.nodes))


def chunk_shapes(most: Profile, tokens: int) -> tuple[Shape, ...]:
    """Cut rows with this profile into chunks of fixed shapes, so that they cost the least together.

    A chunk costs `graphs · nodes` slots, and `CHUNK` for being one. None has more than `tokens` slots in a process,
    unless a single graph has; all processes take an equal part of it.

    >>> nodes = np.array([7] * 24 + [15] * 8)
    >>> most = Profile(nodes, np.array([9] * 32), np.full((1, 32), 20), nodes[None])
    >>> [(shape.graphs, shape.nodes, shape.pairs) for shape in chunk_shapes(most, tokens=128)]
    [(8, 8, 256), (16, 8, 512), (8, 16, 256)]
    """
    batch, processes = most.nodes.size, most.processes
    unit = processes * max(1, batch // (PLACES * processes))
    places = [*range(0, batch, unit), batch]
    cheapest: list[tuple[float, int]] = [(0.0, 0)]  # cost of the rows up to a place, and where their last chunk begins
    for end in range(1, len(places)):
        nodes = rounded(most.nodes[: places[end]].max() + 1)
        choices = []
        for begin in range(end):
            slots = (places[end] - places[begin]) * nodes
            allowed = slots <= tokens * processes or begin == end - 1
            choices.append((cheapest[begin][0] + CHUNK * processes + slots if allowed else np.inf, begin))
        cheapest.append(min(choices))
    cuts = [len(places) - 1]
    while cuts[0]:
        cuts.insert(0, cheapest[cuts[0]][1])
    spans = [(places[begin], places[end]) for begin, end in pairwise(cuts)]
    return tuple(most.shape(begin, end) for begin, end in spans)


def portions(batches: Sequence[Batch], tokens: int) -> list[list[Batch]]:
    """Batches that go through a model together: as many in a row as have at most `tokens` slots, at least one.

    >>> from magnetite import Digraphs, pad
    >>> small, large = (pad(Digraphs.from_edges([[0], [size]])) for size in (1, 20))
    >>> portions([small, small, large], tokens=16)
    [[Batch(1 graphs, 8 slots, ...), Batch(1 graphs, 8 slots, ...)], [Batch(1 graphs, 24 slots, ...)]]
    """
    found: list[list[Batch]] = []
    room = 0
    for batch in batches:
        slots = batch.mask.numel()
        if slots > room:
            found.append([])
            room = tokens
        found[-1].append(batch)
        room -= slots
    return found


def shapes_for(shapes: Sequence[Shape], most: Profile) -> tuple[Shape, ...]:
    """The same cuts, grown where rows of this profile would not fit.

    >>> most = Profile(np.array([7, 8]), np.array([3, 3]), np.array([[40, 50]]), np.array([[7, 8]]))
    >>> [(shape.nodes, shape.pairs, shape.total) for shape in shapes_for([Shape(1, 8, 8), Shape(1, 8, 8, 512)], most)]
    [(8, 256, 8), (16, 512, 16)]
    """
    ends = np.cumsum([shape.graphs for shape in shapes]).tolist()
    needed = [most.shape(end - shape.graphs, end) for shape, end in zip(shapes, ends, strict=True)]
    return tuple(Shape(*map(max, astuple(old), astuple(new))) for old, new in zip(shapes, needed, strict=True))


@dataclass(frozen=True)
class EvaluationBatch:
    """Some of the graphs, and the shape that they are put into; it may have room for more."""

    ids: Int[np.ndarray, " chosen"]
    shape: Shape


def evaluation_batches(sizes: Sizes, tokens: int, pairs: int, shapes: int = 4) -> list[EvaluationBatch]:
    """All graphs, each once, sorted by size, in batches of at most `shapes` shapes.

    None has more than `tokens` slots or asks about more than `pairs` pairs, unless it is a single graph.

    >>> sizes = Sizes(nodes=np.array([3, 30, 4, 5]), edges=np.array([2, 60, 3, 4]), pairs=np.array([6, 800, 12, 20]))
    >>> [(batch.ids.tolist(), batch.shape.nodes) for batch in evaluation_batches(sizes, tokens=16, pairs=24, shapes=2)]
    [([0, 2], 8), ([3], 32), ([1], 32)]
    """
    order = np.argsort(sizes.nodes, kind="stable")
    batches = []
    for part in np.array_split(order, min(shapes, order.size)):
        shape = Shape.holding(part.size, sizes.nodes[part].max(), sizes.edges[part].max())
        graphs = max(1, min(part.size, tokens // shape.nodes, pairs // max(1, int(sizes.pairs[part].max()))))
        chosen = [part[start : start + graphs] for start in range(0, part.size, graphs)]
        asked, total = (max(int(each[ids].sum()) for ids in chosen) for each in (sizes.pairs, sizes.nodes))
        fixed = Shape(graphs, shape.nodes, shape.edges, asked, total)
        batches += [EvaluationBatch(ids, fixed) for ids in chosen]
    return batches
