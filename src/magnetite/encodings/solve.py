"""Which solver computes the eigenpairs of which graph: kernels for small graphs, dense batches, or an iteration."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from magnetite.encodings.dense import DenseBatch, for_each_batch
from magnetite.encodings.fit import check_fit
from magnetite.encodings.results import Eigenpairs
from magnetite.graphs import Digraphs
from magnetite.linalg.eigen import EQUAL, ROUNDING, SolverFailure, equal_groups, lowest_eigenpairs
from magnetite.linalg.eigen_cpu import ENGINE_UP_TO, lowest_of_graphs
from magnetite.linalg.eigen_sparse import Progress
from magnetite.linalg.laplacian import Operator
from magnetite.linalg.large import lowest_of_large
from magnetite.linalg.phase import normalise
from magnetite.linalg.scale import times_power
from magnetite.packed import plain, ragged_rows

LARGE_BY = 16
"""Large graphs with more than this times k nodes are solved by iteration."""

SHOWN_FROM = 20_000
"""Number of nodes from which a progress bar is shown."""

TURNS_UP_TO = 2.0**53
"""Largest weight whose phase, in a convention that multiplies by the weight, has meaning in double precision."""

DENSE_ON_GPU = 4096
"""Size up to which dense matrices are faster than the iteration on a GPU."""


def solve(
    graphs: Digraphs,
    operator: Operator,
    roots: Int[Tensor, " b"] | None,
    k: int,
    dtype: torch.dtype,
    single: bool = False,
) -> Eigenpairs:
    """The lowest eigenpairs of every graph; those that fail verification go to the next solver.

    Laplacians are positive semi-definite: negative eigenvalues are rounding errors and become zero.

    Args:
        graphs: Graphs to encode.
        operator: Which Laplacian.
        roots: Root node of each graph; if None, the foremost source.
        k: Number of eigenpairs.
        dtype: Type of the vectors.
        single: Whether to allow single precision in dense batches on a GPU.
    """
    _check_phases(graphs, operator)
    store = _Store(graphs, operator, k, dtype)
    if graphs.device.type == "cpu":
        waiting = _by_kernels(graphs, operator, roots, store)
    else:
        waiting = torch.arange(len(graphs), device=graphs.device)
    if waiting.numel():
        waiting = _by_iteration(graphs, waiting, operator, roots, store)
    if waiting.numel():
        _by_dense_batches(graphs, waiting, operator, roots, store, single and graphs.device.type != "cpu")
    return store.result


def _check_phases(graphs: Digraphs, operator: Operator) -> None:
    """Refuse weights whose phases are beyond double precision, where the convention multiplies them by the weights."""
    if graphs.weights is None or operator.real or not operator.rule.by_weight:
        return
    wrong = (graphs.weights.double() > TURNS_UP_TO).nonzero()
    if wrong.numel():
        edge = int(wrong[0])
        raise ValueError(
            f"edge {edge - int(graphs.edge_ptr[graphs.edge_graph[edge]])} of graph {int(graphs.edge_graph[edge])} has "
            f"weight {float(graphs.weights[edge]):.3g}, and convention {operator.convention!r} makes it a phase of as "
            "many turns, which double precision cannot tell apart: divide the weights, or use convention='paper'"
        )


class _Store:
    """Where solvers put the eigenpairs of some graphs: values that fit, their groups, and normalised vectors."""

    def __init__(self, graphs: Digraphs, operator: Operator, k: int, dtype: torch.dtype):
        self.graphs, self.k, self.dtype = graphs, k, dtype
        self.floor = None if operator.normalised else _floor(graphs)

    @cached_property
    def result(self) -> Eigenpairs:
        """The eigenpairs of all graphs; zeros where nothing was stored yet."""
        shape, device = (len(self.graphs), self.k), self.graphs.device
        return Eigenpairs(
            node_ptr=self.graphs.node_ptr,
            values=torch.zeros(shape, dtype=self.dtype.to_real(), device=device),
            vectors=torch.zeros((self.graphs.num_nodes, self.k), dtype=self.dtype, device=device),
            mask=self._mask(),
            group=torch.full(shape, -1, device=device),
            anchored=torch.zeros(shape, dtype=torch.bool, device=device),
        )

    def put_all(self, values: Float[Tensor, "b k"], vectors: Tensor, anchored: Tensor) -> None:
        """Store all eigenpairs of all graphs at once, in place of a result; the vectors are of its type."""
        check_fit("eigenvalues", values, self.dtype.to_real(), None, self.floor)
        values, mask = values.clamp_(min=0), self._mask()
        self.__dict__["result"] = Eigenpairs(
            node_ptr=self.graphs.node_ptr,
            values=values.to(self.dtype.to_real()),
            vectors=vectors,
            mask=mask,
            group=equal_groups(values, mask, self.floor),
            anchored=anchored,
        )

    def put(
        self, ids: Int[Tensor, " some"], values: Float[Tensor, "some kept"], vectors: Tensor, anchored: Tensor
    ) -> None:
        """Store the `kept ≤ k` lowest eigenpairs of some graphs; the vectors are those of all their nodes."""
        result, kept, device = self.result, values.shape[1], self.graphs.device
        values, ids = values.to(device), ids.to(device)
        floor = None if self.floor is None else self.floor[ids]
        check_fit("eigenvalues", values, result.values.dtype, ids, floor)
        result.values[ids, :kept] = values.clamp(min=0).to(result.values)
        result.group[ids, :kept] = equal_groups(values, result.mask[ids, :kept], floor)
        result.anchored[ids, :kept] = anchored.to(device)
        result.vectors[ragged_rows(result.node_ptr, ids), :kept] = vectors.to(result.vectors)

    def _mask(self) -> Bool[Tensor, "b k"]:
        """Which eigenpairs exist."""
        if self.graphs.device.type == "cpu":
            return torch.from_numpy(np.arange(self.k) < self.graphs.sizes.numpy()[:, None])
        return torch.arange(self.k, device=self.graphs.device) < self.graphs.sizes[:, None]


def _floor(graphs: Digraphs) -> Float[Tensor, " b"]:
    """Differences of eigenvalues of `L_U` that count as none: 1e-6 of the smallest weight, or rounding errors."""
    floor = torch.full((len(graphs),), EQUAL, dtype=torch.float64, device=graphs.device)
    if graphs.weights is None:
        return floor
    weights, graph = graphs.weights.detach().double(), graphs.edge_graph
    smallest = torch.full_like(floor, torch.inf).scatter_reduce_(0, graph, weights, "amin")
    # Rounding errors of the degrees: the degrees themselves may overflow.
    ends = (graphs.edges.long() + graphs.node_ptr[graph]).flatten()
    degrees = weights.new_zeros(graphs.num_nodes).index_add_(0, ends, (2 * ROUNDING * weights).repeat(2))
    node_graph = torch.repeat_interleave(graphs.sizes, output_size=graphs.num_nodes)
    largest = torch.zeros_like(floor).scatter_reduce_(0, node_graph, degrees, "amax")
    return torch.maximum(EQUAL * smallest.nan_to_num(posinf=0.0), largest)


def _by_kernels(
    graphs: Digraphs, operator: Operator, roots: Int[Tensor, " b"] | None, store: _Store
) -> Int[Tensor, " left"]:
    """Solve the small graphs from their edges; return the ids of the others."""
    if not len(graphs) or plain(graphs.sizes).max() <= ENGINE_UP_TO:
        ids, chosen = None, graphs
    else:
        ids = (graphs.sizes <= ENGINE_UP_TO).nonzero().squeeze(1)
        if not len(ids):
            return torch.arange(len(graphs))
        chosen = graphs.select(ids)
        roots = None if roots is None else roots[ids]
        operator = operator.of(ids)
    parts = chosen.edges, chosen.edge_ptr, chosen.sizes, chosen.weights
    solved = lowest_of_graphs(*parts, operator, store.k, roots, store.dtype)
    passed = plain(solved.passed)
    # What did not pass may be NaN; it is overwritten.
    values = solved.values if passed.all() else torch.where(solved.passed[:, None], solved.values, 0.0)
    if ids is None:
        store.put_all(values, solved.vectors, solved.anchored)
        return torch.from_numpy(np.flatnonzero(~passed))
    store.put(ids, values, solved.vectors, solved.anchored)
    left = torch.ones(len(graphs), dtype=torch.bool)
    left[ids] = ~solved.passed
    return left.nonzero().squeeze(1)


def _by_iteration(
    graphs: Digraphs, ids: Int[Tensor, " some"], operator: Operator, roots: Int[Tensor, " b"] | None, store: _Store
) -> Int[Tensor, " left"]:
    """Solve the large graphs as sparse matrices, one after the other; return the ids of the others."""
    k = store.k
    dense = ENGINE_UP_TO if graphs.device.type == "cpu" else DENSE_ON_GPU
    large = graphs.sizes[ids] > max(dense, LARGE_BY * k)
    for place in ids[large].tolist():
        graph = graphs.one(place).to("cpu")
        parts = graph.edges, graph.num_nodes, graph.weights, operator.of(torch.tensor([place])), k
        try:
            with _progress_bar(graph.num_nodes, k) as progress:
                values, vectors = lowest_of_large(*parts, progress, device=graphs.device)
        except SolverFailure as error:
            raise SolverFailure(
                f"graph {place} ({graph.num_nodes} nodes)", place, error.residual, error.unitarity
            ) from error
        vectors, anchored = normalise(vectors[None], None if roots is None else roots[place : place + 1].cpu())
        store.put(torch.tensor([place]), values[None], vectors[0], anchored)
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
    store: _Store,
    single: bool,
) -> None:
    """Solve these graphs as dense matrices on their device."""

    def work(batch: DenseBatch) -> None:
        values, vectors = lowest_eigenpairs(
            operator.of(batch.ids.cpu()).dense(batch.adjacency, batch.exponent), store.k, single
        )
        vectors, anchored = normalise(vectors, None if roots is None else roots[batch.ids])
        if not operator.normalised:
            values = times_power(values, batch.exponent[:, None])
        store.put(batch.ids, values, vectors.flatten(0, 1), anchored)

    for_each_batch(graphs, work, ids)
