"""Graphs of many sizes as dense batches of one size each, processed on all cores."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from magnetite.encodings.checks import check_graphs
from magnetite.graphs import Digraphs
from magnetite.linalg.eigen import SolverFailure
from magnetite.linalg.laplacian import dense_adjacency
from magnetite.linalg.scale import divided
from magnetite.linalg.threads import in_pool

BATCH_BYTES = {"cpu": 4 * 2**20, "cuda": 512 * 2**20}
"""Size of the adjacency matrices of one batch: small enough for a CPU's cache, large enough to fill a GPU."""

ONE_THREAD_BELOW = 512
"""Matrices up to this size are solved by one thread each, larger ones by all threads, one after the other."""


@dataclass(frozen=True)
class DenseBatch:
    """Some graphs of one size: their indices, and their adjacency matrices, divided by `2^exponent`."""

    ids: Int[Tensor, " g"]
    adjacency: Float[Tensor, "g n n"]
    exponent: Int[Tensor, " g"]


def for_each_batch(
    graphs: Digraphs, work: Callable[[DenseBatch], None], ids: Int[Tensor, " some"] | None = None
) -> None:
    """Call `work` on batches of graphs of equal size, in parallel on the CPU; `work` writes its results itself.

    Small matrices are solved by single-threaded BLAS in a pool, so that the bits do not depend on the number of threads
    (`torch.set_num_threads`).

    Args:
        graphs: Graphs of any sizes.
        work: Called once per batch.
        ids: Indices of the graphs to process; all if None.
    """
    check_graphs(graphs)
    if len(graphs) == 1 and (ids is None or len(ids) == 1):
        order, arranged = torch.zeros(1, dtype=torch.long, device=graphs.device), graphs
    else:
        order = torch.argsort(graphs.sizes, stable=True)
        order = order if ids is None else order[torch.isin(order, ids)]
        arranged = graphs.select(order)
    spans = list(_spans(arranged.sizes, BATCH_BYTES.get(graphs.device.type, BATCH_BYTES["cuda"])))

    def run(span: tuple[int, int]) -> None:
        batch = _dense(arranged.select(slice(*span)), order[slice(*span)])
        try:
            work(batch)
        except SolverFailure as error:
            graph = int(batch.ids[error.position])
            name = f"graph {graph} ({batch.adjacency.shape[-1]} nodes)"
            raise SolverFailure(name, graph, error.residual, error.unitarity) from error

    small = [span for span in spans if graphs.device.type == "cpu" and int(arranged.sizes[span[0]]) <= ONE_THREAD_BELOW]
    if small:
        in_pool(run, reversed(small))
    for span in spans[len(small) :]:
        run(span)


def _spans(sizes: Int[Tensor, " b"], limit: int) -> Iterator[tuple[int, int]]:
    """Half-open ranges of sorted sizes, each of one size and within the byte limit."""
    if len(sizes) == 1:
        yield 0, 1
        return
    values, counts = torch.unique_consecutive(sizes, return_counts=True)
    begin = 0
    for size, count in zip(values.tolist(), counts.tolist(), strict=True):
        step = max(1, limit // (8 * size * size))
        for offset in range(0, count, step):
            yield begin + offset, begin + min(offset + step, count)
        begin += count


def _dense(graphs: Digraphs, ids: Tensor) -> DenseBatch:
    size = int(graphs.sizes[0])
    weights, exponent = divided(graphs.weights, graphs.edge_ptr)
    return DenseBatch(ids, dense_adjacency(graphs.edges, graphs.edge_graph, weights, len(graphs), size), exponent)
