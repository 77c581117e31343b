"""Which graphs go together into which slots: an epoch as batches of a few fixed shapes, so that kernels compile once.

Everything here is a pure function of sizes, in NumPy, for a whole epoch at once.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from jaxtyping import Int

from magnetite.batching import MULTIPLE, Batch, Shape

Counts = Int[np.ndarray, " graphs"]
Rows = Int[np.ndarray, "steps batch"]
Profile = Int[np.ndarray, "2 batch"]

CHUNK = 2048
"""What another chunk costs, in slots for nodes: kernels of its own for positions, attention and head."""

PLACES = 96
"""Places of a row that are tried as ends of a chunk."""


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


def profile(rows: Rows, sizes: Counts, edges: Counts) -> Profile:
    """The most nodes and edges at each place of any row.

    >>> profile(np.array([[3, 0], [1, 2]]), np.array([9, 5, 7, 6]), np.array([4, 8, 9, 3])).tolist()
    [[6, 9], [8, 9]]
    """
    return np.stack([sizes[rows].max(0), edges[rows].max(0)])


def chunk_shapes(most: Profile, tokens: int, processes: int = 1) -> tuple[Shape, ...]:
    """Cut rows with this profile into chunks of fixed shapes, so that they cost the least together.

    A chunk costs `graphs · nodes` slots, and `CHUNK` for being one. None has more than `tokens` slots in a process,
    unless a single graph has; all processes take an equal part of it.

    >>> most = np.array([[7] * 24 + [15] * 8, [9] * 32])
    >>> chunk_shapes(most, tokens=128)
    (Shape(graphs=8, nodes=8, edges=16), Shape(graphs=16, nodes=8, edges=16), Shape(graphs=8, nodes=16, edges=16))
    """
    batch = most.shape[1]
    if batch % processes:
        raise ValueError(f"a batch of {batch} cannot be shared by {processes} processes: give a multiple of them")
    unit = processes * max(1, batch // (PLACES * processes))
    places = [*range(0, batch, unit), batch]
    cheapest: list[tuple[float, int]] = [(0.0, 0)]  # cost of the rows up to a place, and where their last chunk begins
    for end in range(1, len(places)):
        nodes = _rounded(most[0, : places[end]].max() + 1)
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
    return tuple(shape_of(end - begin, *most[:, begin:end].max(1)) for begin, end in spans)


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

    >>> shapes_for([Shape(1, 8, 8), Shape(1, 8, 8)], np.array([[7, 8], [3, 3]]))
    (Shape(graphs=1, nodes=8, edges=8), Shape(graphs=1, nodes=16, edges=8))
    """
    ends = np.cumsum([shape.graphs for shape in shapes])
    grown = []
    for shape, end in zip(shapes, ends, strict=True):
        needed = shape_of(shape.graphs, *most[:, end - shape.graphs : end].max(1))
        grown.append(Shape(shape.graphs, max(shape.nodes, needed.nodes), max(shape.edges, needed.edges)))
    return tuple(grown)


@dataclass(frozen=True)
class EvaluationBatch:
    """Some of the graphs, and the shape that they are put into; it may have room for more."""

    ids: Int[np.ndarray, " chosen"]
    shape: Shape


def evaluation_batches(sizes: Counts, edges: Counts, tokens: int, shapes: int = 4) -> list[EvaluationBatch]:
    """All graphs, each once, sorted by size, in batches of at most `shapes` shapes of at most `tokens` slots.

    >>> batches = evaluation_batches(np.array([3, 30, 4, 5]), np.array([2, 60, 3, 4]), tokens=16, shapes=2)
    >>> [(batch.ids.tolist(), batch.shape.nodes) for batch in batches]
    [([0, 2], 8), ([3], 32), ([1], 32)]
    """
    order = np.argsort(sizes, kind="stable")
    batches = []
    for part in np.array_split(order, min(shapes, order.size)):
        shape = shape_of(part.size, sizes[part].max(), edges[part].max())
        graphs = min(part.size, max(1, tokens // shape.nodes))
        fixed = Shape(graphs, shape.nodes, shape.edges)
        batches += [EvaluationBatch(part[start : start + graphs], fixed) for start in range(0, part.size, graphs)]
    return batches


def shape_of(graphs: int, nodes: int, edges: int) -> Shape:
    """The shape for so many graphs of at most so many nodes and edges, rounded up; one slot of the nodes stays empty.

    >>> shape_of(2, 16, 0)
    Shape(graphs=2, nodes=24, edges=8)
    """
    return Shape(graphs, _rounded(nodes + 1), _rounded(max(edges, 1)))


def _rounded(count: int) -> int:
    return -(-int(count) // MULTIPLE) * MULTIPLE
