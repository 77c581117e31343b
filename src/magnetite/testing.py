"""The symmetries as test helpers, and a hypothesis strategy for odd directed graphs."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from hypothesis import strategies as st
from torch import Tensor

from magnetite.encodings import Eigenpairs, NodeEncoding, PairEncoding
from magnetite.graphs import Digraphs
from magnetite.packed import Packed, ragged_rows


def permute(graphs: Digraphs, seed: int) -> tuple[Digraphs, Tensor]:
    """Renumber the nodes of every graph at random: the permuted graphs, and each node's new number within its graph.

    >>> permuted, number = permute(Digraphs.from_edges([[0, 1], [1, 2]]), seed=0)
    >>> source, target = permuted.edges
    >>> bool((source == number[:2]).all() and (target == number[1:]).all())
    True
    """
    generator = torch.Generator().manual_seed(seed)
    number = torch.cat([torch.randperm(size, generator=generator) for size in graphs.sizes.tolist()])
    source, target = graphs.edge_index
    features = {name: _scatter(tensor, graphs, number) for name, tensor in graphs.node_features.items()}
    moved = torch.stack([number[source], number[target]]).to(graphs.edges)
    return graphs.replace(edges=moved, node_features=features), number


def assert_permutation_equivariant(
    function: Callable[[Digraphs], Any], graphs: Digraphs, seed: int = 0, tolerance: float = 1e-5
) -> None:
    """Check that renumbering the nodes renumbers the result: `f(PG) = P f(G)`.

    `function` returns an encoding, or a tensor with one row a node (or a graph, which then must not change).
    Eigenvectors are compared where theory fixes them: their eigenvalue is simple, the graph alone decides their phase.

    >>> from magnetite.encodings import MagneticLaplacian
    >>> assert_permutation_equivariant(MagneticLaplacian(k=2), Digraphs.from_edges([[0, 1], [1, 2]]))
    """
    permuted, number = permute(graphs, seed)
    before, after = function(graphs), function(permuted)
    if isinstance(before, Eigenpairs):
        _close(before.values, after.values, tolerance, "eigenvalues")
        determined = before.determined() & after.determined()
        mask = determined[graphs.node_graph]
        moved = _scatter(before.vectors, graphs, number)
        _close(moved * mask, after.vectors * mask, tolerance, "eigenvectors")
    elif isinstance(before, PairEncoding):
        _close(_scatter_pairs(before, number), after.values, tolerance, "pair encodings")
    else:
        before, after = (item.values if isinstance(item, NodeEncoding) else item for item in (before, after))
        per_node = before.shape[0] == graphs.num_nodes
        _close(_scatter(before, graphs, number) if per_node else before, after, tolerance, "results")


def assert_phase_invariant(
    function: Callable[[Eigenpairs], Tensor], pairs: Eigenpairs, seed: int = 0, tolerance: float = 1e-5
) -> None:
    """Check that turning every eigenvector by a phase of its own (real ones by a sign) changes nothing: `f(ΓS) = f(Γ)`.

    >>> from magnetite.encodings import MagneticLaplacian
    >>> pairs = MagneticLaplacian(k=2)(Digraphs.from_edges([[0, 1], [1, 2]]))
    >>> assert_phase_invariant(lambda pairs: pairs.vectors.abs(), pairs)
    """
    generator = torch.Generator().manual_seed(seed)
    angle = torch.rand(pairs.values.shape, generator=generator) * 2 * torch.pi
    unit = torch.polar(torch.ones_like(angle), angle)
    phase = unit if pairs.vectors.is_complex() else unit.real.sgn()
    per_node = phase if pairs.values.ndim < pairs.vectors.ndim else phase[pairs.node_graph]
    parts = {**pairs.tensors(), "vectors": pairs.vectors * per_node.to(pairs.vectors)}
    _close(function(pairs), function(Eigenpairs.from_tensors(parts)), tolerance, "results")


@st.composite
def digraphs(
    draw: st.DrawFn, min_graphs: int = 1, max_graphs: int = 4, max_nodes: int = 12, weighted: bool | None = None
) -> Digraphs:
    """Hypothesis strategy: a few directed graphs, odd ones included.

    Isolated nodes, self-loops, antiparallel pairs, repeated edges, several components and single nodes all occur;
    `weighted=None` draws both kinds.

    >>> isinstance(digraphs(max_nodes=3), st.SearchStrategy)
    True
    """
    edges, sizes = [], []
    for _ in range(draw(st.integers(min_graphs, max_graphs))):
        size = draw(st.integers(1, max_nodes))
        node = st.integers(0, size - 1)
        pairs = draw(st.lists(st.tuples(node, node), max_size=3 * size))
        edges.append(np.array(pairs, dtype=np.int64).reshape(-1, 2).T)
        sizes.append(size)
    weights = None
    if draw(st.booleans()) if weighted is None else weighted:
        number = st.floats(0.125, 8, width=32)
        weights = [np.array(draw(st.lists(number, min_size=e.shape[1], max_size=e.shape[1]))) for e in edges]
    return Digraphs.from_edges(edges, num_nodes=sizes, edge_weight=weights)


def _scatter(rows: Tensor, graphs: Packed, number: Tensor) -> Tensor:
    """Move each node's row to its new place."""
    moved = torch.empty_like(rows)
    moved[number + graphs.node_ptr[:-1][graphs.node_graph]] = rows
    return moved


def _scatter_pairs(pairs: PairEncoding, number: Tensor) -> Tensor:
    size = torch.repeat_interleave(pairs.sizes, pairs.sizes**2)
    first = torch.repeat_interleave(pairs.node_ptr[:-1], pairs.sizes**2)
    within = ragged_rows(pairs.pair_ptr, torch.arange(len(pairs))) - torch.repeat_interleave(
        pairs.pair_ptr[:-1], pairs.sizes**2
    )
    start, landing = number[first + within // size], number[first + within % size]
    moved = torch.empty_like(pairs.values)
    moved[torch.repeat_interleave(pairs.pair_ptr[:-1], pairs.sizes**2) + start * size + landing] = pairs.values
    return moved


def _close(expected: Tensor, actual: Tensor, tolerance: float, what: str) -> None:
    torch.testing.assert_close(
        actual, expected, rtol=tolerance, atol=tolerance, msg=lambda message: f"{what} differ. {message}"
    )
