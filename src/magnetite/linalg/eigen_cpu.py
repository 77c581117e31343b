"""The k lowest eigenpairs of many small graphs on the CPU: only those k, directly from the edges, on all cores."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

import numpy as np
import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor

from magnetite.linalg.eigen import TOLERANCE
from magnetite.linalg.laplacian import Operator
from magnetite.linalg.pairs import PairArrays, pair_arrays
from magnetite.linalg.scale import SQUARES_FROM, divided, times_power
from magnetite.linalg.threads import in_pool

ENGINE_UP_TO = 768
"""Largest number of nodes of a graph that is solved here, by one core."""

SPANS_PER_CORE = 8
"""Number of tasks per core, so that no core waits long for another at the end."""

SPAN_GRAPHS = 1024
"""Largest number of graphs per task, which keeps its work arrays small."""


@dataclass(frozen=True)
class Solved:
    """Values `[b, k]` (zero beyond `n`), normalised vectors `[nodes, k]`, and which graphs passed verification."""

    values: Float[Tensor, "b k"]
    vectors: Shaped[Tensor, "nodes k"]
    anchored: Bool[Tensor, "b k"]
    passed: Bool[Tensor, " b"]


def lowest_of_graphs(
    edges: Int[Tensor, "2 m"],
    edge_ptr: Int[Tensor, " starts"],
    sizes: Int[Tensor, " b"],
    weights: Shaped[Tensor, " m"] | None,
    operator: Operator,
    k: int,
    roots: Int[Tensor, " b"] | None = None,
    dtype: torch.dtype = torch.complex128,
) -> Solved:
    """Eigenpairs `L γ_j = λ_j γ_j`, `j < k`, of each graph, in double precision, normalised and verified.

    Each graph is solved by one core: Householder reduction to tridiagonal form (in real arithmetic if a gauge
    transformation removes the phases), bisection, inverse iteration, and the transformation of k vectors back. The bits
    depend on the graph alone. Residual and unitarity are measured; the caller handles graphs that did not pass.

    Args:
        edges: Source and target of each edge, as node numbers within the graph.
        edge_ptr: Where the edges of each graph begin, and their total.
        sizes: Number of nodes per graph.
        weights: Edge weights; all 1 if None.
        operator: Which Laplacian.
        k: Number of eigenpairs.
        roots: Root node of each graph; if None, the foremost source.
        dtype: Type of the vectors.

    >>> path = torch.tensor([[0, 1], [1, 2]]), torch.tensor([0, 2]), torch.tensor([3]), None
    >>> lowest_of_graphs(*path, Operator(q=0.25), k=2).values.round(decimals=6).abs().tolist()
    [[0.0, 1.0]]
    """
    count, bounds, lengths, ends = len(sizes), edge_ptr.numpy(), sizes.numpy(), edges.numpy()
    node_ptr = np.zeros(count + 1, np.int64)
    lengths.cumsum(out=node_ptr[1:])
    values, anchored, passed = np.zeros((count, k)), np.zeros((count, k), np.bool_), np.zeros(count, np.bool_)
    vectors = np.empty((int(node_ptr[-1]), k), _numpy_type(dtype))
    heavy, exponent = (None, None) if weights is None else divided(weights, edge_ptr)

    def run(span: slice) -> None:
        here = slice(int(node_ptr[span.start]), int(node_ptr[span.stop]))
        first, last = int(bounds[span.start]), int(bounds[span.stop])
        start = bounds[span.start : span.stop + 1] - first
        own = (None, None)
        if heavy is not None and exponent is not None:
            own = heavy[first:last].numpy(), exponent[span].numpy()
        pairs = pair_arrays(ends[:, first:last], start, lengths[span], *own)
        found = np.zeros((here.stop - here.start, k), np.complex128)
        given = None if roots is None else roots[span].numpy()
        passed[span] = _solve(pairs, operator.of(span), k, given, values[span], found, anchored[span])
        vectors[here] = found if dtype.is_complex else found.real

    in_pool(run, list(_spans(sizes, torch.get_num_threads())))
    solved = Solved(*map(torch.from_numpy, (values, vectors, anchored, passed)))
    if heavy is not None:
        # The kernels square the entries.
        tiny = (heavy < SQUARES_FROM).nonzero().squeeze(1)
        solved.passed[torch.searchsorted(edge_ptr - edge_ptr[0], tiny, right=True) - 1] = False
    if exponent is not None and not operator.normalised:
        solved.values.copy_(times_power(solved.values, exponent[:, None]))
    return solved


@cache
def _numpy_type(dtype: torch.dtype) -> np.dtype:
    return torch.empty(0, dtype=dtype).numpy().dtype


def _solve(
    pairs: PairArrays,
    operator: Operator,
    k: int,
    roots: np.ndarray | None,
    values: np.ndarray,
    vectors: np.ndarray,
    anchored: np.ndarray,
) -> np.ndarray:
    """Write the eigenpairs of some graphs into arrays of zeros; return which graphs passed verification."""
    from magnetite.kernels.cpu.dense import solve_all

    entries, weights = operator.entry_arrays(pairs)
    count = len(pairs.sizes)
    residual, unitarity = np.empty(count), np.empty(count)
    solve_all(
        pairs.low, pairs.high, entries, weights, pairs.start, pairs.count, pairs.sizes,
        np.full(count, -1) if roots is None else roots,
        k, operator.normalised, operator.rule.isolated, operator.real,
        values, vectors, anchored, residual, unitarity,
    )  # fmt: skip
    return (residual < TOLERANCE) & (unitarity < TOLERANCE)


def _spans(sizes: Int[Tensor, " b"], workers: int) -> Iterator[slice]:
    """Ranges of consecutive graphs of about equal work, `Σ n³`."""
    if len(sizes) == 1:
        yield slice(0, 1)
        return
    work = (sizes.double() + 16).pow(3).cumsum(0)
    parts = max(workers * SPANS_PER_CORE, -(-len(sizes) // SPAN_GRAPHS)) if len(sizes) else 0
    cuts = torch.searchsorted(work, work[-1] * torch.arange(1, parts, dtype=torch.float64) / parts) if parts else []
    bounds = sorted({0, len(sizes), *(int(cut) + 1 for cut in cuts)})
    for begin, end in pairwise(bounds):
        yield slice(begin, end)
