"""Which solver computes the eigenpairs of which graph: kernels for small graphs, dense batches, or an iteration."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from jaxtyping import Int
from torch import Tensor

from magnetite.encodings.dense import DenseBatch, for_each_batch
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
"""Large graphs with more than this times k nodes are solved by iteration."""

SHOWN_FROM = 20_000
"""Number of nodes from which a progress bar is shown."""

DENSE_ON_GPU = 4096
"""Size up to which dense matrices are faster than the iteration on a GPU."""


def solve(
    graphs: Digraphs, operator: Operator, roots: Int[Tensor, " b"] | None, result: Eigenpairs, single: bool = False
) -> None:
    """Write the lowest eigenpairs of every graph into `result`; those that fail verification go to the next solver.

    Laplacians are positive semi-definite: negative eigenvalues are rounding errors and become zero.

    Args:
        graphs: Graphs to encode.
        operator: Which Laplacian.
        roots: Root node of each graph; if None, the foremost source.
        result: Eigenpairs to fill.
        single: Whether to allow single precision in dense batches on a GPU.
    """
    waiting = torch.arange(len(graphs), device=graphs.device)
    if graphs.device.type == "cpu":
        waiting = _by_kernels(graphs, operator, roots, result)
    waiting = _by_iteration(graphs, waiting, operator, roots, result)
    if waiting.numel():
        _by_dense_batches(graphs, waiting, operator, roots, result, single and graphs.device.type != "cpu")


def _by_kernels(
    graphs: Digraphs, operator: Operator, roots: Int[Tensor, " b"] | None, result: Eigenpairs
) -> Int[Tensor, " left"]:
    """Solve the small graphs from their edges; return the ids of the others."""
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
    """Solve the large graphs as sparse matrices, one after the other; return the ids of the others."""
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
    """A bar of converged eigenpairs, if the graph is large and stderr is a terminal."""
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
    """Solve these graphs as dense matrices on their device."""
    k, dtype = result.values.shape[1], result.vectors.dtype

    def work(batch: DenseBatch) -> None:
        values, vectors = lowest_eigenpairs(operator.dense(batch.adjacency), k, single)
        vectors, anchored = normalise(vectors, None if roots is None else roots[batch.ids])
        kept = values.shape[1]
        result.values[batch.ids, :kept] = values.clamp(min=0).to(result.values)
        result.vectors[ragged_rows(graphs.node_ptr, batch.ids), :kept] = vectors.flatten(0, 1).to(dtype)
        result.group[batch.ids, :kept] = equal_groups(values, torch.ones_like(values, dtype=torch.bool))
        result.anchored[batch.ids, :kept] = anchored

    for_each_batch(graphs, work, ids)
