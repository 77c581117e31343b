"""The paper's twelve example graphs (appendix A) as lists of edges."""

from collections.abc import Callable

Edges = list[tuple[int, int]]


def _sequence(n: int) -> Edges:
    return [(v, v + 1) for v in range(n - 1)]


def _both_ways(edges: Edges) -> Edges:
    return edges + _reversed(edges)


def _reversed(edges: Edges) -> Edges:
    return [(v, u) for u, v in edges]


def _tree(n: int) -> Edges:
    return [((v - 1) // 2, v) for v in range(1, n)]


def _forward(first: int, last: int) -> Edges:
    """All pairs `u < v` of the nodes from `first` to `last`."""
    return [(u, v) for u in range(first, last + 1) for v in range(u + 1, last + 1)]


def _belly(n: int) -> tuple[int, int]:
    return 3 * n // 10, 7 * n // 10


def _mixed(n: int) -> Edges:
    loops = [(v, v) for v in range(n)]
    return loops + _forward(0, n - 1) + _reversed(_forward(n // 4, 3 * n // 4))


EXAMPLES: dict[str, Callable[[int], Edges]] = {
    "sequence": _sequence,
    "undirected sequence": lambda n: _both_ways(_sequence(n)),
    "balanced binary tree": _tree,
    "trumpet": lambda n: _sequence(n) + _reversed([_belly(n)]),
    "reversed sequence": lambda n: _reversed(_sequence(n)),
    "circle": lambda n: [*_sequence(n), (n - 1, 0)],
    "reversed binary tree": lambda n: _reversed(_tree(n)),
    "trumpet (DAG)": lambda n: list(dict.fromkeys(_sequence(n) + _forward(*_belly(n)))),
    "disconnected sequences": lambda n: [(u, v) for u, v in _sequence(n) if v != n // 2],
    "fully connected DAG": lambda n: _forward(0, n - 1),
    "mixed DAG and fully connected": _mixed,
    "trumpet (fully connected)": lambda n: list(dict.fromkeys(_sequence(n) + _both_ways(_forward(*_belly(n))))),
}
"""Edges of the twelve graphs, as functions of the number of nodes, in the order of the paper's figure."""
