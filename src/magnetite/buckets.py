"""Which graphs go together into which slots: an epoch as batches of a few fixed shapes, so that kernels compile once.

Everything here is a pure function of sizes, in NumPy, for a whole epoch at once.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int

from magnetite.batching import MULTIPLE, Shape

Counts = Int[np.ndarray, " graphs"]
Rows = Int[np.ndarray, "steps batch"]


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


def chunk_shapes(rows: Rows, sizes: Counts, edges: Counts, chunks: int) -> tuple[Shape, ...]:
    """Cut every row into `chunks` equal parts: the shapes that hold the first parts of all rows, the second, …

    >>> chunk_shapes(np.array([[3, 0], [1, 2]]), np.array([9, 5, 7, 6]), np.array([4, 4, 9, 4]), chunks=2)
    (Shape(graphs=1, nodes=8, edges=8), Shape(graphs=1, nodes=16, edges=16))
    """
    parts = rows.reshape(rows.shape[0], chunks, -1)
    nodes, most_edges = sizes[parts].max((0, 2)), edges[parts].max((0, 2))
    return tuple(_shape(parts.shape[2], *most) for most in zip(nodes, most_edges, strict=True))


def chunks_within(rows: Rows, sizes: Counts, edges: Counts, tokens: int, processes: int = 1) -> tuple[Shape, ...]:
    """Cut the rows into as few chunks as keep each within `tokens` slots, or else into the smallest there are.

    A chunk is shared by `processes`, each of which holds its part, so it is a multiple of them.

    >>> rows, sizes = np.arange(8).reshape(2, 4), np.array([7] * 4 + [15] * 4)
    >>> chunks_within(rows, sizes, sizes, tokens=32)
    (Shape(graphs=2, nodes=16, edges=16), Shape(graphs=2, nodes=16, edges=16))
    """
    batch = rows.shape[1]
    if batch % processes:
        raise ValueError(f"a batch of {batch} cannot be shared by {processes} processes: give a multiple of them")
    each = batch // processes
    for chunks in (chunks for chunks in range(1, each) if each % chunks == 0):
        shapes = chunk_shapes(rows, sizes, edges, chunks)
        if max(shape.graphs // processes * shape.nodes for shape in shapes) <= tokens:
            return shapes
    return chunk_shapes(rows, sizes, edges, each)


def largest(first: Sequence[Shape], second: Sequence[Shape]) -> tuple[Shape, ...]:
    """Shapes that hold what either holds, chunk by chunk.

    >>> largest([Shape(2, 8, 32)], [Shape(2, 16, 24)])
    (Shape(graphs=2, nodes=16, edges=32),)
    """
    return tuple(
        Shape(one.graphs, max(one.nodes, two.nodes), max(one.edges, two.edges))
        for one, two in zip(first, second, strict=True)
    )


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
        shape = _shape(part.size, sizes[part].max(), edges[part].max())
        graphs = min(part.size, max(1, tokens // shape.nodes))
        fixed = Shape(graphs, shape.nodes, shape.edges)
        batches += [EvaluationBatch(part[start : start + graphs], fixed) for start in range(0, part.size, graphs)]
    return batches


def _shape(graphs: int, nodes: int, edges: int) -> Shape:
    """Rounded up; one slot of the nodes stays empty."""
    return Shape(graphs, *(-(-int(count) // MULTIPLE) * MULTIPLE for count in (nodes + 1, max(edges, 1))))
