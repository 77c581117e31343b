"""Test helpers: symmetries as assertions, and a hypothesis strategy that generates directed graphs."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from magnetite.encodings import Eigenpairs, NodeEncoding, PairEncoding
from magnetite.graphs import Digraphs
from magnetite.packed import Packed, ragged_rows

if TYPE_CHECKING:  # hypothesis is a dependency of tests only
    from hypothesis.strategies import DrawFn, SearchStrategy


def permute(graphs: Digraphs, seed: int) -> tuple[Digraphs, Tensor]:
    """Renumber the nodes of every graph at random.

    Returns the permuted graphs, and the new number of each node within its graph.

    Args:
        graphs: The graphs.
        seed: Seed of the permutations.

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
    names = graphs.names
    if names is not None:
        order = _scatter(torch.arange(graphs.num_nodes), graphs, number)
        names = [names[node] for node in order.tolist()]
    return graphs.replace(edges=moved, node_features=features, names=names), number


def assert_permutation_equivariant(
    function: Callable[[Digraphs], Any], graphs: Digraphs, seed: int = 0, tolerance: float = 1e-5
) -> None:
    """Check that renumbering the nodes permutes the result in the same way: `f(PG) = P f(G)`.

    Eigenvectors are compared only where they are unique: the eigenvalue is simple and the graph determines the phase.

    Args:
        function: Function of graphs that returns an encoding, or a tensor with one row per node or one row per graph
            (which must not change).
        graphs: The graphs to test with.
        seed: Seed of the permutations.
        tolerance: Absolute and relative tolerance.

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
    """Check that the result does not depend on the phase of any eigenvector (the sign if it is real): `f(ΓS) = f(Γ)`.

    Args:
        function: Function of eigenpairs.
        pairs: The eigenpairs to test with.
        seed: Seed of the phases.
        tolerance: Absolute and relative tolerance.

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


def digraphs(
    min_graphs: int = 1, max_graphs: int = 4, max_nodes: int = 12, weighted: bool | None = None
) -> "SearchStrategy[Digraphs]":
    """Hypothesis strategy that generates a few directed graphs, including unusual ones.

    Isolated nodes, self-loops, antiparallel edges, repeated edges, several components and single nodes all occur.

    Args:
        min_graphs: Smallest number of graphs.
        max_graphs: Largest number of graphs.
        max_nodes: Largest number of nodes per graph.
        weighted: Whether the graphs have weights; None generates both.

    >>> from hypothesis import strategies as st
    >>> isinstance(digraphs(max_nodes=3), st.SearchStrategy)
    True
    """
    from hypothesis import strategies as st

    @st.composite
    def generate(draw: "DrawFn") -> Digraphs:
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

    return generate()


def _scatter(rows: Tensor, graphs: Packed, number: Tensor) -> Tensor:
    """Move the row of each node to its new position."""
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
