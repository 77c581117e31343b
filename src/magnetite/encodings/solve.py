"""Which engine solves which graph: the CPU's for small ones, dense batches, and an iterative one for large ones."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from jaxtyping import Int
from torch import Tensor

from magnetite.encodings.chunks import Chunk, for_each_chunk
from magnetite.encodings.results import Eigenpairs
from magnetite.graphs import Digraphs
from magnetite.linalg.eigen import SolverFailure, equal_groups, lowest_eigenpairs
from magnetite.linalg.eigen_cpu import ENGINE_UP_TO, lowest_of_graphs
from magnetite.linalg.eigen_sparse import Progress
from magnetite.linalg.laplacian import Operator
from magnetite.linalg.large import lowest_of_large
from magnetite.linalg.phase import normalise
from magnetite.packed import ragged_rows

LARGE_BY = 16
"""Graphs of more nodes than this times k gain from an iteration for k pairs, if they are large at all."""

SHOWN_FROM = 20_000
"""Graphs of so many nodes get a progress bar."""

DENSE_ON_GPU = 4096
"""On a GPU, dense matrices up to this size are faster than the iteration."""


def solve(
    graphs: Digraphs, operator: Operator, roots: Int[Tensor, " b"] | None, result: Eigenpairs, single: bool = False
) -> None:
    """Write the lowest eigenpairs of every graph into `result`; what one engine does not verify, the next one solves.

    `single` allows single precision in dense batches on a GPU.
    Laplacians are positive semi-definite: eigenvalues below zero are rounding, and become zero.
    """
    waiting = torch.arange(len(graphs), device=graphs.device)
    if graphs.device.type == "cpu":
        waiting = _by_engine(graphs, operator, roots, result)
    waiting = _by_iteration(graphs, waiting, operator, roots, result)
    if waiting.numel():
        _by_dense_batches(graphs, waiting, operator, roots, result, single and graphs.device.type != "cpu")


def _by_engine(
    graphs: Digraphs, operator: Operator, roots: Int[Tensor, " b"] | None, result: Eigenpairs
) -> Int[Tensor, " left"]:
    """Solve the small graphs from their edges; the ids of those that are left."""
    small = graphs.sizes <= ENGINE_UP_TO
    ids = small.nonzero().squeeze(1)
    chosen = graphs if len(ids) == len(graphs) else graphs.select(ids)
    dtype, k = result.vectors.dtype, result.values.shape[1]
    parts = chosen.edges, chosen.edge_ptr, chosen.sizes, chosen.weights
    solved = lowest_of_graphs(*parts, operator, k, None if roots is None else roots[ids], dtype)
    result.values[ids] = solved.values.clamp(min=0).to(result.values)
    result.group[ids] = equal_groups(solved.values, result.mask[ids])
    result.anchored[ids] = solved.anchored
    if chosen is graphs:
        result.vectors.copy_(solved.vectors)
    else:
        result.vectors[ragged_rows(graphs.node_ptr, ids)] = solved.vectors
    small[ids] = solved.passed
    return (~small).nonzero().squeeze(1)


def _by_iteration(
    graphs: Digraphs, ids: Int[Tensor, " some"], operator: Operator, roots: Int[Tensor, " b"] | None, result: Eigenpairs
) -> Int[Tensor, " left"]:
    """Solve the large ones of these graphs as sparse matrices, one after the other; the ids of those that are left."""
    k = result.values.shape[1]
    dense = ENGINE_UP_TO if graphs.device.type == "cpu" else DENSE_ON_GPU
    large = graphs.sizes[ids] > max(dense, LARGE_BY * k)
    for place in ids[large].tolist():
        graph = graphs.one(place).to("cpu")
        parts = graph.edges, graph.num_nodes, graph.weights, operator, k
        try:
            with _progress_bar(graph.num_nodes, k) as progress:
                values, vectors = lowest_of_large(*parts, progress, device=graphs.device)
        except SolverFailure as error:
            raise SolverFailure(
                f"graph {place} ({graph.num_nodes} nodes)", place, error.residual, error.unitarity
            ) from error
        vectors, anchored = normalise(vectors[None], None if roots is None else roots[place : place + 1].cpu())
        result.values[place] = values.clamp(min=0).to(result.values)
        result.vectors[int(graphs.node_ptr[place]) : int(graphs.node_ptr[place + 1])] = vectors[0].to(result.vectors)
        result.group[place] = equal_groups(values[None], torch.ones((1, k), dtype=torch.bool))[0]
        result.anchored[place] = anchored[0]
    return ids[~large]


@contextmanager
def _progress_bar(nodes: int, k: int) -> Iterator[Progress | None]:
    """A bar of the pairs found, where a graph takes long enough and somebody looks at a terminal."""
    if nodes < SHOWN_FROM or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress as Bar

    with Bar(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(f"eigenpairs of {nodes:,} nodes", total=k)
        yield lambda found, _worst: bar.update(task, completed=found)


def _by_dense_batches(
    graphs: Digraphs,
    ids: Int[Tensor, " some"],
    operator: Operator,
    roots: Int[Tensor, " b"] | None,
    result: Eigenpairs,
    single: bool,
) -> None:
    """Solve these graphs as dense matrices, by LAPACK or on the graphs' device."""
    k, dtype = result.values.shape[1], result.vectors.dtype

    def work(chunk: Chunk) -> None:
        values, vectors = lowest_eigenpairs(operator.dense(chunk.adjacency), k, single)
        vectors, anchored = normalise(vectors, None if roots is None else roots[chunk.ids])
        kept = values.shape[1]
        result.values[chunk.ids, :kept] = values.clamp(min=0).to(result.values)
        result.vectors[ragged_rows(graphs.node_ptr, chunk.ids), :kept] = vectors.flatten(0, 1).to(dtype)
        result.group[chunk.ids, :kept] = equal_groups(values, torch.ones_like(values, dtype=torch.bool))
        result.anchored[chunk.ids, :kept] = anchored

    for_each_chunk(graphs, work, ids)
