"""The k lowest eigenpairs of one large graph: each component by the solver for its size."""

from dataclasses import replace
from functools import partial

import numpy as np
import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor

from magnetite.linalg.eigen import SolverFailure, lowest_eigenpairs
from magnetite.linalg.eigen_cpu import ENGINE_UP_TO, lowest_of_graphs
from magnetite.linalg.eigen_sparse import Invert, Progress, lowest_sparse, tolerance_for
from magnetite.linalg.elimination import lowest_by_elimination
from magnetite.linalg.inverse import Eliminator, Inverse
from magnetite.linalg.laplacian import Operator, dense_adjacency
from magnetite.linalg.pairs import NodePairs, pair_edges
from magnetite.linalg.pointers import starts
from magnetite.linalg.scale import divided, exponents, times_power
from magnetite.linalg.sparse import SparseHermitian, gauged_laplacian, inner, lengths, sparse_laplacian
from magnetite.linalg.threads import single_threaded

WIDE = 1e3
"""Weights this many times their median make the iteration slow, and its errors large: elimination first."""

RESOLVED = 1e-5
"""Residuals of the iteration above this, relative to the largest eigenvalue asked for, lead to elimination."""

DISTINCT = 1e-2
"""So does a search for missed eigenvalues that overlooks those that are closer to it than this, relative to it."""

UNRESOLVED = 0.1
"""Residuals above this, relative to the largest eigenvalue asked for, are never accepted."""

DENSE_UP_TO = 4096
"""Size up to which a dense matrix is the last resort; its errors are relative to `‖L‖`."""


def lowest_of_large(
    edges: Int[Tensor, "2 m"],
    size: int,
    weights: Shaped[Tensor, " m"] | None,
    operator: Operator,
    k: int,
    progress: Progress | None = None,
    tolerance: float | None = None,
    device: torch.device | str = "cpu",
) -> tuple[Float[Tensor, " k"], Shaped[Tensor, "n k"]]:
    """Eigenvalues and orthonormal eigenvectors of one graph, verified: `‖Lγ − λγ‖ < 1e-6 ‖L‖`, and below `λ_k`.

    `L` is block diagonal with one block per weak component, and its spectrum is the union of theirs, so no zero
    eigenvalue of any component is lost. Small components are solved by `lowest_of_graphs`, large ones by
    `lowest_sparse`, in real arithmetic if a gauge transformation removes their phases. If a few weights are so large
    that this cannot resolve the lowest eigenvalues, `lowest_by_elimination` does. The result is on the CPU.

    Args:
        edges: Source and target of each edge.
        size: Number of nodes.
        weights: Edge weights; all 1 if None.
        operator: Which Laplacian.
        k: Number of eigenpairs.
        progress: Called after each cycle of the iteration.
        tolerance: Largest residual of the iteration; by default `tolerance_for` the size.
        device: Where large components are solved.

    >>> edges = torch.arange(2000).view(2, 1000)
    >>> lowest_of_large(edges, 2000, None, Operator(0.25), k=3)[0].abs().round(decimals=9).tolist()
    [0.0, 0.0, 0.0]
    """
    ends = torch.tensor([0, edges.shape[1]])
    weights, exponent = divided(weights, ends)
    pairs = pair_edges(edges, ends, torch.tensor([size]), weights, exponent)
    operator, pairs = operator.settled(pairs), replace(pairs, exponent=None)
    component, local, sizes = _components(pairs)
    values, vectors = [torch.empty(0, dtype=torch.float64)], []
    for number in (sizes > ENGINE_UP_TO).nonzero().squeeze(1).tolist():
        inside = _component_pairs(pairs, component, local, number, int(sizes[number]))
        found = _solve_large(inside, operator, k, progress, tolerance, device)
        values.append(found[0])
        nodes = (component == number).nonzero().squeeze(1)
        vectors.extend((nodes, row) for row in found[1])
    small_vectors = None
    if bool((sizes <= ENGINE_UP_TO).any()):
        small_values, small_vectors = _solve_small(edges, weights, component, local, sizes, operator, k)
        values.append(small_values)
    values = torch.cat(values)
    lowest = torch.sort(values, stable=True).indices[:k]
    result = torch.zeros((size, len(lowest)), dtype=torch.float64 if operator.real else torch.complex128)
    for column, place in enumerate(lowest.tolist()):
        if small_vectors is not None and place >= len(vectors):
            nodes, row = small_vectors(place - len(vectors))
        else:
            nodes, row = vectors[place]
        result[nodes, column] = row if result.is_complex() else row.real
    _verify(pairs, operator, values[lowest], result)
    return values[lowest] if operator.normalised else times_power(values[lowest], exponent), result


def _components(pairs: NodePairs) -> tuple[Tensor, Tensor, Tensor]:
    """The weak component of each node and its number there; and the sizes of the components."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    size, count = int(pairs.sizes[0]), int(pairs.count[0])
    ends = pairs.low[:count].numpy(), pairs.high[:count].numpy()
    _, labels = connected_components(coo_array((np.ones(count, np.int8), ends), shape=(size, size)), directed=False)
    component = torch.from_numpy(labels).long()
    sizes = torch.bincount(component)
    order = torch.argsort(component, stable=True)
    local = torch.empty_like(order)
    local[order] = torch.arange(size) - (sizes.cumsum(0) - sizes)[component[order]]
    return component, local, sizes


def _component_pairs(pairs: NodePairs, component: Tensor, local: Tensor, number: int, size: int) -> NodePairs:
    """The node pairs of one component, with nodes numbered from 0."""
    count = int(pairs.count[0])
    low, high, forward, backward = (part[:count] for part in (pairs.low, pairs.high, pairs.forward, pairs.backward))
    if size < int(pairs.sizes[0]):
        inside = component[low] == number
        low, high, forward, backward = local[low[inside]], local[high[inside]], forward[inside], backward[inside]
    held, ends = torch.tensor([len(low)]), torch.tensor([0, len(low)])
    exponent = exponents(torch.maximum(forward, backward), ends)
    forward, backward = times_power(forward, -exponent), times_power(backward, -exponent)
    return NodePairs(low, high, forward, backward, ends, held, held, torch.tensor([size]), exponent)


def _solve_large(
    pairs: NodePairs,
    operator: Operator,
    k: int,
    progress: Progress | None,
    tolerance: float | None,
    device: torch.device | str,
) -> tuple[Tensor, Tensor]:
    """Eigenpairs of one component, by the first solver that resolves its k lowest eigenvalues."""
    matrix, turn = gauged_laplacian(pairs, operator)
    tolerance = tolerance or tolerance_for(matrix.size)
    iterated, worst = None, float("inf")
    total = pairs.forward + pairs.backward
    wide = float(total.max()) > WIDE * float(total.median())
    invert = partial(_inverse, pairs, operator) if torch.device(device).type == "cpu" else None
    iterate = partial(_iterate, matrix, turn, k, tolerance, device, progress, invert)
    if not wide:
        iterated, worst, resolved = iterate()
        if resolved:
            return _undivided(iterated, pairs, operator)
    found = lowest_by_elimination(pairs, operator, k)
    if found is None and iterated is None:
        iterated, worst, resolved = iterate()
        found = iterated if resolved else None
    if found is None and matrix.size <= DENSE_UP_TO:
        whole = torch.from_numpy(sparse_laplacian(pairs, operator).to_scipy().toarray())
        values, vectors = lowest_eigenpairs(whole[None], k)
        found = values[0], vectors[0].mT
    if found is None:
        if iterated is None or not worst <= UNRESOLVED:
            raise SolverFailure(f"a component of {matrix.size} nodes", 0, worst, 0.0)
        found = iterated
    return _undivided(found, pairs, operator)


def _inverse(pairs: NodePairs, operator: Operator, shift: float, budget: int) -> Inverse | None:
    return Eliminator(pairs, operator).inverse(shift, budget)


def _iterate(
    matrix: SparseHermitian,
    turn: Tensor | None,
    k: int,
    tolerance: float,
    device: torch.device | str,
    progress: Progress | None,
    invert: Invert | None,
) -> tuple[tuple[Tensor, Tensor], float, bool]:
    """Eigenpairs by iteration, their largest residual relative to the largest of their eigenvalues, and whether both
    this and the resolution are good enough.
    """
    values, vectors, residuals, resolution = lowest_sparse(
        matrix.to(device), k, tolerance, progress=progress, invert=invert
    )
    values, vectors = values.cpu(), vectors.cpu()
    asked = float(values[-1])
    # A single eigenvalue may well be zero, and tells nothing about the next.
    tells = k > 1 and asked
    worst = float(residuals.max()) * matrix.top / max(asked, 1e-300) if tells else 0.0
    resolved = worst <= max(RESOLVED, tolerance) and (not tells or resolution <= max(DISTINCT, tolerance))
    return (values, vectors if turn is None else vectors * turn), worst, resolved


def _undivided(found: tuple[Tensor, Tensor], pairs: NodePairs, operator: Operator) -> tuple[Tensor, Tensor]:
    """The eigenvalues of the weights before they were divided."""
    values, vectors = found
    return (values if operator.normalised else times_power(values, pairs.exponent)), vectors  # pyright: ignore[reportArgumentType]


def _solve_small(edges, weights, component, local, sizes, operator: Operator, k: int):
    """The values of all small components, and a function from an index into them to the nodes and the vector."""
    chosen = (sizes <= ENGINE_UP_TO).nonzero().squeeze(1)
    place = torch.full_like(sizes, -1)
    place[chosen] = torch.arange(len(chosen))
    home = place[component[edges[0].long()]]
    order = torch.argsort(home, stable=True)[int((home < 0).sum()) :]
    inside = local[edges[:, order].long()]
    heavy = None if weights is None else weights[order]
    edge_ptr = starts(torch.bincount(home[order], minlength=len(chosen)))
    nodes = torch.argsort(place[component], stable=True)[int((place[component] < 0).sum()) :]
    node_ptr = starts(sizes[chosen])
    k = min(k, int(sizes[chosen].max())) if len(chosen) else k
    solved = lowest_of_graphs(inside, edge_ptr, sizes[chosen], heavy, operator, k)
    for graph in (~solved.passed).nonzero().squeeze(1).tolist():
        ends = slice(int(edge_ptr[graph]), int(edge_ptr[graph + 1]))
        part = inside[:, ends], torch.zeros(ends.stop - ends.start, dtype=torch.long)
        light, exponent = divided(None if heavy is None else heavy[ends], torch.tensor([0, ends.stop - ends.start]))
        matrix = operator.dense(dense_adjacency(*part, light, 1, int(sizes[chosen[graph]])), exponent)
        values, vectors = lowest_eigenpairs(matrix, k)
        values = values if operator.normalised else times_power(values, exponent)
        solved.values[graph, : values.shape[1]] = values[0]
        solved.vectors[int(node_ptr[graph]) : int(node_ptr[graph + 1]), : values.shape[1]] = vectors[0].to(
            solved.vectors
        )
    graphs, columns = (torch.arange(k) < sizes[chosen, None]).nonzero(as_tuple=True)

    def vector(position: int) -> tuple[Tensor, Tensor]:
        rows = slice(int(node_ptr[graphs[position]]), int(node_ptr[graphs[position] + 1]))
        return nodes[rows], solved.vectors[rows, columns[position]]

    return solved.values[graphs, columns], vector


def _verify(pairs: NodePairs, operator: Operator, values: Tensor, vectors: Tensor) -> None:
    matrix = sparse_laplacian(pairs, operator)
    rows = vectors.T.contiguous()
    with single_threaded():
        residual = lengths(matrix.times(rows) - values[:, None] * rows).max() / matrix.top
        gram = inner(rows, rows)
    unitarity = (gram - torch.eye(len(rows))).abs().max()
    if not (residual < 1e-6 and unitarity < 1e-8):
        raise SolverFailure(f"a graph of {matrix.size} nodes", 0, float(residual), float(unitarity))
