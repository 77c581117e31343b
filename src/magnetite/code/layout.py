"""Layouts of directed graphs: in layers, so that edges point down and rarely cross, or by graphviz.

Sugiyama's four steps: reverse the back edges; assign each node to the layer given by the longest path to it; order each
layer by the mean position of the neighbours; move nodes towards their neighbours as far as the order allows.
"""

import shutil
import subprocess
from bisect import bisect_right, insort
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from statistics import fmean

Pair = tuple[int, int]
Point = tuple[float, float]

LAYER_GAP = 34.0
"""Space between two layers."""
NODE_GAP = 14.0
"""Space between two neighbours in a layer."""
SWEEPS = 8
"""Number of passes over the layers, half of them downwards."""
MOST_BENDS = 20_000
"""Total number of bends above which edges are drawn straight from node to node."""
GRAPHVIZ_SECONDS = 60
"""Time limit for graphviz."""
INCH = 72.0


@dataclass(frozen=True)
class Layout:
    """The size of the picture, the centres of the nodes, and the points on the path of each edge."""

    width: float
    height: float
    nodes: tuple[Point, ...]
    edges: tuple[tuple[Point, ...], ...]


@dataclass(frozen=True)
class Columns:
    """The nodes and bends of each layer from left to right, and the neighbours of each above and below."""

    layers: list[list[int]]
    above: list[list[int]]
    below: list[list[int]]


def layered(edges: Sequence[Pair], sizes: Sequence[Point]) -> Layout:
    """Lay out a graph in layers.

    Args:
        edges: Source and target of each edge.
        sizes: Width and height of each node.

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
    centres = [(across[node], down[node]) for node in range(len(widths))]
    routes = [tuple(centres[node] for node in chain) for chain in chains]
    return Layout(
        width=max((x + width / 2 for (x, _), (width, _) in zip(centres, sizes, strict=False)), default=0.0),
        height=max((y + height / 2 for (_, y), (_, height) in zip(centres, sizes, strict=False)), default=0.0),
        nodes=tuple(centres[: len(sizes)]),
        edges=tuple(route[::-1] if closes else route for route, closes in zip(routes, closing, strict=True)),
    )


def back_edges(size: int, edges: Sequence[Pair]) -> list[bool]:
    """For each edge, whether it is a back edge of a depth-first search; without them the graph is acyclic.

    >>> back_edges(3, [(0, 1), (1, 2), (2, 0)])
    [False, False, True]
    """
    leaving: list[list[tuple[int, int]]] = [[] for _ in range(size)]
    for number, (source, target) in enumerate(edges):
        leaving[source].append((number, target))
    closing, state = [False] * len(edges), [0] * size  # 0: not seen, 1: on the stack, 2: finished
    for root in range(size):
        if state[root]:
            continue
        state[root], stack = 1, [(root, iter(leaving[root]))]
        while stack:
            node, rest = stack[-1]
            for number, target in rest:
                closing[number] = state[target] == 1
                if not state[target]:
                    state[target] = 1
                    stack.append((target, iter(leaving[target])))
                    break
            else:
                state[node] = 2
                stack.pop()
    return closing


def longest_path_layers(size: int, edges: Sequence[Pair]) -> list[int]:
    """The layer of each node of a graph that is acyclic up to self-loops: the length of the longest path to the node.

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
    """The number of edge crossings between two layers.

    >>> crossings([0, 1], [2, 3], [(0, 3), (1, 2)])
    1
    """
    above = {node: position for position, node in enumerate(upper)}
    below = {node: position for position, node in enumerate(lower)}
    ends = [(above[source], below[target]) for source, target in edges]
    passed: list[int] = []
    found = 0
    for _, end in sorted(ends):
        found += len(passed) - bisect_right(passed, end)
        insort(passed, end)
    return found


def _with_bends(edges: Sequence[Pair], layers: list[int]) -> list[list[int]]:
    """Each edge as a chain of nodes, one per layer; bends are new nodes, whose layers are appended to `layers`."""
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
    """All nodes in depth-first order from the sources, so that related nodes start next to each other."""
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
    """Order each layer by the mean position of the neighbours, alternating down and up; keep the best order."""
    best, fewest = [list(row) for row in columns.layers], _all_crossings(columns)
    for sweep in range(SWEEPS):
        downwards = sweep % 2 == 0
        neighbours = columns.above if downwards else columns.below
        position = {node: float(i) for row in columns.layers for i, node in enumerate(row)}
        for row in columns.layers if downwards else reversed(columns.layers):
            means = {node: fmean(position[other] for other in neighbours[node] or [node]) for node in row}
            row.sort(key=means.__getitem__)
            position.update((node, float(i)) for i, node in enumerate(row))
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
    """The horizontal centres: nodes move to the mean of their neighbours, but keep their order and distance."""
    centres = [0.0] * len(widths)
    offsets = [_offsets(row, widths) for row in columns.layers]
    for row, offset in zip(columns.layers, offsets, strict=True):
        for node, x in zip(row, offset, strict=True):
            centres[node] = x
    rows = list(zip(columns.layers, offsets, strict=True))
    for sweep in range(SWEEPS):
        neighbours = columns.above if sweep % 2 == 0 else columns.below
        for row, offset in rows if sweep % 2 == 0 else reversed(rows):
            means = [fmean(centres[other] for other in neighbours[node] or [node]) for node in row]
            free = _isotonic([mean - least for mean, least in zip(means, offset, strict=True)])
            for node, x, least in zip(row, free, offset, strict=True):
                centres[node] = x + least
    left = min((x - width / 2 for x, width in zip(centres, widths, strict=True)), default=0.0)
    return [x - left for x in centres]


def _offsets(row: list[int], widths: list[float]) -> list[float]:
    """Centres of the nodes of a layer, packed to the left."""
    steps = [(widths[one] + widths[two]) / 2 + NODE_GAP for one, two in pairwise(row)]
    return list(accumulate(steps, initial=0.0)) if row else []


def _isotonic(values: list[float]) -> list[float]:
    """Isotonic regression: the increasing sequence with the least squared distance, by pooling adjacent violators.

    >>> _isotonic([1.0, 3.0, 2.0])
    [1.0, 2.5, 2.5]
    """
    pools: list[tuple[float, int]] = []
    for value in values:
        mean, count = value, 1
        while pools and pools[-1][0] > mean:
            other, many = pools.pop()
            mean, count = (mean * count + other * many) / (count + many), count + many
        pools.append((mean, count))
    return [mean for mean, count in pools for _ in range(count)]


def _down(rows: list[list[int]], sizes: Sequence[Point]) -> list[float]:
    """The vertical centres: each layer is as high as its highest node."""
    centres, top = [0.0] * sum(map(len, rows)), 0.0
    for row in rows:
        height = max((sizes[node][1] for node in row if node < len(sizes)), default=0.0)
        for node in row:
            centres[node] = top + height / 2
        top += height + LAYER_GAP
    return centres


def graphviz(edges: Sequence[Pair], sizes: Sequence[Point]) -> Layout | None:
    """Lay out a graph with graphviz's `dot`; None if it is not installed, fails or takes too long.

    Args:
        edges: Source and target of each edge.
        sizes: Width and height of each node.
    """
    if shutil.which("dot") is None:
        return None
    try:
        done = subprocess.run(
            ["dot", "-Tplain"], input=_dot(edges, sizes), capture_output=True, text=True, timeout=GRAPHVIZ_SECONDS
        )
        return None if done.returncode else _read_plain(done.stdout, edges, len(sizes))
    except (OSError, subprocess.TimeoutExpired, ValueError, LookupError):
        return None


def _dot(edges: Sequence[Pair], sizes: Sequence[Point]) -> str:
    nodes = [f"{i} [width={width / INCH:.4f} height={height / INCH:.4f}]" for i, (width, height) in enumerate(sizes)]
    arrows = [f"{source} -> {target}" for source, target in edges]
    return "\n".join(["digraph {", 'node [shape=box fixedsize=true label=""]', *nodes, *arrows, "}"])


def _read_plain(plain: str, edges: Sequence[Pair], size: int) -> Layout:
    """Read graphviz's plain format: in inches, y pointing up, an edge given by the control points of a Bézier curve."""
    rows = [line.split() for line in plain.splitlines() if line.strip()]
    width, height = (float(number) for number in rows[0][2:4])

    def points(numbers: list[str]) -> tuple[Point, ...]:
        values = [float(number) for number in numbers]
        return tuple((INCH * x, INCH * (height - y)) for x, y in zip(values[::2], values[1::2], strict=True))

    nodes = {int(row[1]): points(row[2:4])[0] for row in rows if row[0] == "node"}
    routes: dict[Pair, list[tuple[Point, ...]]] = defaultdict(list)
    for row in rows:
        if row[0] == "edge":
            ends, count = (int(row[1]), int(row[2])), int(row[3])
            routes[ends].append(points(row[4 : 4 + 2 * count])[::3])  # every third control point lies on the curve
    return Layout(
        width=INCH * width,
        height=INCH * height,
        nodes=tuple(nodes[node] for node in range(size)),
        edges=tuple(routes[edge].pop() for edge in edges),
    )


LAYOUTS: dict[str, Callable[[Sequence[Pair], Sequence[Point]], Layout]] = {
    "auto": lambda edges, sizes: graphviz(edges, sizes) or layered(edges, sizes),
    "layers": layered,
}
"""Layouts by name: graphviz where it is installed, or always our own."""
