"""Where the nodes of a directed graph go on paper: in layers, so that edges point down and cross little.

Sugiyama's four steps: turn the back edges round, give each node the length of the longest path to it as its layer,
order each layer by the mean place of the neighbours, move nodes towards their neighbours as far as the order allows.
"""

from bisect import bisect_right, insort
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from statistics import fmean

Pair = tuple[int, int]
Point = tuple[float, float]

LAYER_GAP = 34.0
"""Free height between two layers."""
NODE_GAP = 14.0
"""Free width between two neighbours of a layer."""
SWEEPS = 8
"""Walks over the layers, half of them downwards."""
MOST_BENDS = 20_000
"""Bends of all edges together; in graphs that need more, edges run straight from node to node."""


@dataclass(frozen=True)
class Layout:
    """Centres of the nodes, the points each edge passes, and the size of the whole."""

    width: float
    height: float
    nodes: tuple[Point, ...]
    edges: tuple[tuple[Point, ...], ...]


@dataclass(frozen=True)
class Columns:
    """The nodes and bends of each layer from left to right, and the neighbours of each."""

    layers: list[list[int]]
    above: list[list[int]]
    below: list[list[int]]


def layered(edges: Sequence[Pair], sizes: Sequence[Point]) -> Layout:
    """Lay nodes of the given sizes (width, height) out in layers.

    >>> layout = layered([(0, 1), (0, 2)], [(40, 20)] * 3)
    >>> layout.nodes
    ((47.0, 10.0), (20.0, 64.0), (74.0, 64.0))
    """
    closing = back_edges(len(sizes), edges)
    forward = [(v, u) if closes else (u, v) for (u, v), closes in zip(edges, closing, strict=True)]
    layers = longest_path_layers(len(sizes), forward)
    chains = _with_bends(forward, layers)
    columns = _columns(chains, layers)
    _reduce_crossings(columns)
    widths = [width for width, _ in sizes] + [0.0] * (len(columns.above) - len(sizes))
    across = _across(columns, widths)
    down = _down(columns.layers, sizes)
    places = [(across[node], down[node]) for node in range(len(widths))]
    routes = [tuple(places[node] for node in chain) for chain in chains]
    return Layout(
        width=max((x + width / 2 for (x, _), (width, _) in zip(places, sizes, strict=False)), default=0.0),
        height=max((y + height / 2 for (_, y), (_, height) in zip(places, sizes, strict=False)), default=0.0),
        nodes=tuple(places[: len(sizes)]),
        edges=tuple(route[::-1] if closes else route for route, closes in zip(routes, closing, strict=True)),
    )


def back_edges(size: int, edges: Sequence[Pair]) -> list[bool]:
    """For each edge whether it closes a cycle of a depth-first walk; without them the graph is acyclic.

    >>> back_edges(3, [(0, 1), (1, 2), (2, 0)])
    [False, False, True]
    """
    leaving: list[list[tuple[int, int]]] = [[] for _ in range(size)]
    for number, (source, target) in enumerate(edges):
        leaving[source].append((number, target))
    closing, state = [False] * len(edges), [0] * size  # 0 not seen, 1 on the way, 2 left behind
    for root in range(size):
        if state[root]:
            continue
        state[root], way = 1, [(root, iter(leaving[root]))]
        while way:
            node, rest = way[-1]
            for number, target in rest:
                closing[number] = state[target] == 1
                if not state[target]:
                    state[target] = 1
                    way.append((target, iter(leaving[target])))
                    break
            else:
                state[node] = 2
                way.pop()
    return closing


def longest_path_layers(size: int, edges: Sequence[Pair]) -> list[int]:
    """The layer of each node of a graph without cycles, loops apart: the length of the longest path that ends there.

    >>> longest_path_layers(4, [(0, 1), (1, 2), (0, 2)])
    [0, 1, 2, 0]
    """
    after: list[list[int]] = [[] for _ in range(size)]
    missing = [0] * size
    for source, target in edges:
        if source != target:
            after[source].append(target)
            missing[target] += 1
    layers, ready = [0] * size, [node for node in range(size) if not missing[node]]
    while ready:
        node = ready.pop()
        for target in after[node]:
            layers[target] = max(layers[target], layers[node] + 1)
            missing[target] -= 1
            if not missing[target]:
                ready.append(target)
    return layers


def crossings(upper: Sequence[int], lower: Sequence[int], edges: Sequence[Pair]) -> int:
    """How many pairs of edges cross between two layers.

    >>> crossings([0, 1], [2, 3], [(0, 3), (1, 2)])
    1
    """
    place_above = {node: place for place, node in enumerate(upper)}
    place_below = {node: place for place, node in enumerate(lower)}
    ends = [(place_above[source], place_below[target]) for source, target in edges]
    passed: list[int] = []
    found = 0
    for _, below in sorted(ends):
        found += len(passed) - bisect_right(passed, below)
        insort(passed, below)
    return found


def _with_bends(edges: Sequence[Pair], layers: list[int]) -> list[list[int]]:
    """Each edge as a chain of nodes, one a layer; new nodes for the layers it only passes are added to `layers`."""
    if sum(max(layers[target] - layers[source] - 1, 0) for source, target in edges) > MOST_BENDS:
        return [[source, target] for source, target in edges]
    chains = []
    for source, target in edges:
        passed = range(layers[source] + 1, layers[target])
        first = len(layers)
        layers.extend(passed)
        chains.append([source, *range(first, first + len(passed)), target])
    return chains


def _columns(chains: list[list[int]], layers: list[int]) -> Columns:
    above: list[list[int]] = [[] for _ in layers]
    below: list[list[int]] = [[] for _ in layers]
    for chain in chains:
        for upper, lower in pairwise(chain):
            if upper != lower:
                below[upper].append(lower)
                above[lower].append(upper)
    rows: list[list[int]] = [[] for _ in range(max(layers, default=-1) + 1)]
    for node in _walk(len(layers), above, below):
        rows[layers[node]].append(node)
    return Columns(rows, above, below)


def _walk(size: int, above: list[list[int]], below: list[list[int]]) -> list[int]:
    """All nodes in depth-first order from the sources: what belongs together starts side by side."""
    seen, found = [False] * size, []
    stack = [node for node in reversed(range(size)) if not above[node]]
    while stack:
        node = stack.pop()
        if not seen[node]:
            seen[node] = True
            found.append(node)
            stack.extend(reversed(below[node]))
    return found


def _reduce_crossings(columns: Columns) -> None:
    """Order each layer by the mean place of the neighbours, down and up in turns; the best order seen stays."""
    best, fewest = [list(row) for row in columns.layers], _all_crossings(columns)
    for sweep in range(SWEEPS):
        downwards = sweep % 2 == 0
        neighbours = columns.above if downwards else columns.below
        place = {node: float(i) for row in columns.layers for i, node in enumerate(row)}
        for row in columns.layers if downwards else reversed(columns.layers):
            means = {node: fmean(place[other] for other in neighbours[node] or [node]) for node in row}
            row.sort(key=means.__getitem__)
            place.update((node, float(i)) for i, node in enumerate(row))
        found = _all_crossings(columns)
        if found < fewest:
            best, fewest = [list(row) for row in columns.layers], found
    columns.layers[:] = best


def _all_crossings(columns: Columns) -> int:
    total = 0
    for upper, lower in pairwise(columns.layers):
        inside = set(lower)
        pairs = [(source, target) for source in upper for target in columns.below[source] if target in inside]
        total += crossings(upper, lower, pairs)
    return total


def _across(columns: Columns, widths: list[float]) -> list[float]:
    """The horizontal centres: nodes of a layer keep order and distance, and come close to their neighbours' mean."""
    centres = [0.0] * len(widths)
    offsets = [_offsets(row, widths) for row in columns.layers]
    for row, offset in zip(columns.layers, offsets, strict=True):
        for node, x in zip(row, offset, strict=True):
            centres[node] = x
    rows = list(zip(columns.layers, offsets, strict=True))
    for sweep in range(SWEEPS):
        neighbours = columns.above if sweep % 2 == 0 else columns.below
        for row, offset in rows if sweep % 2 == 0 else reversed(rows):
            wanted = [fmean(centres[other] for other in neighbours[node] or [node]) for node in row]
            free = _isotonic([want - least for want, least in zip(wanted, offset, strict=True)])
            for node, x, least in zip(row, free, offset, strict=True):
                centres[node] = x + least
    left = min((x - width / 2 for x, width in zip(centres, widths, strict=True)), default=0.0)
    return [x - left for x in centres]


def _offsets(row: list[int], widths: list[float]) -> list[float]:
    """Centres of the nodes of a layer packed from the left."""
    steps = [(widths[one] + widths[two]) / 2 + NODE_GAP for one, two in pairwise(row)]
    return list(accumulate(steps, initial=0.0)) if row else []


def _isotonic(wanted: list[float]) -> list[float]:
    """The increasing sequence nearest to `wanted` in squares: neighbours out of order are pooled at their mean.

    >>> _isotonic([1.0, 3.0, 2.0])
    [1.0, 2.5, 2.5]
    """
    pools: list[tuple[float, int]] = []
    for value in wanted:
        mean, count = value, 1
        while pools and pools[-1][0] > mean:
            other, many = pools.pop()
            mean, count = (mean * count + other * many) / (count + many), count + many
        pools.append((mean, count))
    return [mean for mean, count in pools for _ in range(count)]


def _down(rows: list[list[int]], sizes: Sequence[Point]) -> list[float]:
    """The vertical centres: layers as high as their highest node, one below the other."""
    centres, top = [0.0] * sum(map(len, rows)), 0.0
    for row in rows:
        height = max((sizes[node][1] for node in row if node < len(sizes)), default=0.0)
        for node in row:
            centres[node] = top + height / 2
        top += height + LAYER_GAP
    return centres
