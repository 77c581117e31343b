"""Potentials of many graphs: adaptive ones are computed once per call, and invisible ones give a warning."""

import warnings
from collections.abc import Sequence
from functools import cache
from math import pi

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from magnetite.graphs import Digraphs
from magnetite.linalg.adaptive import SMALL, adaptive_potentials, span_of_heights
from magnetite.linalg.pairs import NodePairs, pair_edges
from magnetite.linalg.potential import Adaptive, Potential, PotentialWarning, Relative
from magnetite.linalg.scale import divided
from magnetite.packed import plain

VISIBLE = 2.0**-6
"""Phases of a graph that span less than this, in rad, are hardly visible in single precision after a few layers."""

HALF_TURN = 0.5
"""The largest potential: q and 1 − q are the same up to conjugation."""

EXAMINED = 8
"""Graphs whose heights are computed for a warning, at most: those of the smallest potentials."""


def settled(graphs: Digraphs, potentials: Sequence[Potential]) -> list[Potential | Tensor]:
    """The potentials, with the absolute ones of every graph in place of `Adaptive`; warns if one is too small to see.

    >>> settled(Digraphs.from_edges([[0, 1], [1, 2]]), [0.1, Adaptive(0.5)])
    [0.1, Relative(q=0.5)]
    """
    largest = int(plain(graphs.sizes).max()) if len(graphs) else 0
    any(_warned(graphs, q, largest) for q in potentials if not isinstance(q, Adaptive))
    any(_warned_of_mirrored(graphs, q) for q in potentials if isinstance(q, Relative))
    adaptive = [q for q in potentials if isinstance(q, Adaptive) and q.q]
    if adaptive and largest >= SMALL:
        pairs = node_pairs(graphs)
        quarter = adaptive_potentials(pairs, graphs.device)
        return [q.of_pairs(pairs, quarter) if isinstance(q, Adaptive) and q.q else q for q in potentials]
    return [_relative(q) if isinstance(q, Adaptive) else q for q in potentials]


@cache
def _relative(q: Adaptive) -> Relative:
    return Relative(q.q)


def node_pairs(graphs: Digraphs) -> NodePairs:
    """The connected node pairs of all graphs, on the CPU."""
    parts = graphs.edges.cpu(), graphs.edge_ptr.cpu(), graphs.sizes.cpu()
    weights, exponent = divided(None if graphs.weights is None else graphs.weights.cpu(), parts[1])
    return pair_edges(*parts, weights, exponent)


def _warned(graphs: Digraphs, q: float | int | Relative, largest: int) -> bool:
    """Warn if the phases of a graph span less than `VISIBLE`; an O(1) check finds that nearly all potentials do not."""
    least = q.q / max(largest, 1) if isinstance(q, Relative) else q
    if not 0 < 2 * pi * least < VISIBLE:
        return False
    pairs = node_pairs(graphs)
    potential = (
        q.scaled(pairs.one_way, pairs.sizes)
        if isinstance(q, Relative)
        else torch.full_like(pairs.sizes, float(q), dtype=torch.float64)
    )
    for graph in _smallest(potential, pairs.one_way > 0):
        span, own = span_of_heights(pairs, graph), float(potential[graph])
        if span is not None and 2 * pi * own * max(span, 1) < VISIBLE:
            degrees = 360 * own * max(span, 1)
            warnings.warn(
                f"q={own:.2g} turns the phases of graph {graph} by at most {degrees:.2g}° in all: direction is hardly "
                f"visible in single precision; omit q for Adaptive(), or try q={0.25 / max(span, 1):.2g}",
                PotentialWarning,
                stacklevel=5,
            )
            return True
    return False


def _warned_of_mirrored(graphs: Digraphs, q: Relative) -> bool:
    """Warn if an edge of some graph turns by more than half a turn; without small graphs, `q'` may well exceed 1/2."""
    if q.q <= HALF_TURN:
        return False
    pairs = node_pairs(graphs)
    potential = torch.where(pairs.one_way > 0, q.scaled(pairs.one_way, pairs.sizes), 0)
    if not len(potential) or potential.max() <= HALF_TURN:
        return False
    graph = int(potential.argmax())
    size, one_way = int(pairs.sizes[graph]), int(pairs.one_way[graph])
    warnings.warn(
        f"Relative({q.q:g}) is q={float(potential[graph]):.3g} in graph {graph} with {size} nodes and {one_way} "
        "one-way edges: above 0.5 phases point the other way, and at 1 they vanish; try Relative(0.25)",
        PotentialWarning,
        stacklevel=5,
    )
    return True


def _smallest(potential: Float[Tensor, " g"], one_way: Bool[Tensor, " g"]) -> list[int]:
    """Graphs with one-way edges that turn by less than `VISIBLE`, the smallest potentials first."""
    small = ((2 * pi * potential < VISIBLE) & one_way).nonzero().squeeze(1)
    return small[torch.argsort(potential[small], stable=True)][:EXAMINED].tolist()
