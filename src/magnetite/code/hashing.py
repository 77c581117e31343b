"""Canonical hash: equal for graphs that differ only in the numbering of their nodes, and for no others.

Canonical order: a numbering that such graphs share, so that a model gets the same numbers in the same places.

Node colours are refined until the colour classes are stable (Weisfeiler and Leman):

    c'(v) = h( c(v), Σ_{u→v} h(c(u), label, in), Σ_{v→w} h(c(w), label, out) )

with a 64-bit mixing function h. The sorted colours identify the graph if the nodes of classes with several members
induce a forest: the colours determine all edges to nodes with a unique colour, and refinement identifies forests.
Otherwise each member of such a class is individualised in turn, and the smallest result is the hash.

Different graphs have the same hash only if 64-bit colours collide; if refinement confuses them and their symmetry needs
more than `MOST_LEAVES` choices; or if they agree within `MOST_ROUNDS` steps of every node (in functions with longer
chains of dependences). Equal graphs always have the same hash.

Positions above `graph.POSITIONS` share an edge name; the hash distinguishes them by the order of the node numbers.
"""

from dataclasses import replace
from functools import lru_cache
from hashlib import blake2b
from typing import NamedTuple

import numpy as np

from magnetite.code.graph import EDGE_NAME_NUMBER, EDGE_TYPE_NUMBER, POSITIONS, CodeGraph, Edge

MOST_ROUNDS = 128
MOST_LEAVES = 64

_LAST_POSITION = f":{POSITIONS}"
_IN, _OUT, _CHOSEN = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F), np.uint64(0x165667B19E3779F9)


class _Arrays(NamedTuple):
    """Every edge in both directions: a message from `sender` to `receiver`, with the number of its label."""

    sender: np.ndarray
    receiver: np.ndarray
    labels: np.ndarray


def canonical_hash(graph: CodeGraph) -> str:
    """The hash as 32 hexadecimal digits.

    Args:
        graph: The graph.

    >>> from magnetite import code
    >>> one, other = (code.build(f"def f(a, b):\\n    return {text}") for text in ("a + b", "b + a"))
    >>> canonical_hash(one) == canonical_hash(other)
    True
    """
    arrays = _arrays(graph)
    colours, stable = _refine(_labels(graph), arrays)
    leaves = _leaves(colours, arrays) if stable else None
    digests = [_digest(graph, leaf) for leaf in leaves or [colours]]
    return min(digests)


def canonical(graph: CodeGraph) -> CodeGraph:
    """The same graph with nodes and edges in canonical order: graphs of equal hash become equal, column by column.

    A model's result does not depend on the numbering of the nodes, but its rounding does, and so does the basis of
    eigenvectors that share an eigenvalue. The syntax tree is numbered depth first; what decides between children whose
    order has no meaning is their colour. Graphs whose symmetry needs more than `MOST_LEAVES` choices may keep traces of
    the numbering that they had. Lines follow their nodes; they are not part of the graph and may differ.

    Args:
        graph: The graph.

    >>> from magnetite import code
    >>> one, other = (code.build(f"def f(a, b):\\n    return {text}") for text in ("a + b", "b + a"))
    >>> one.attributes == other.attributes, canonical(one).attributes == canonical(other).attributes
    (False, True)
    """
    order = _depth_first(graph, _distinct_colours(graph))
    place = np.empty(len(graph), dtype=np.int64)
    place[order] = np.arange(len(graph))
    number = place.tolist()
    edges = [Edge(number[source], number[target], kind, name) for source, target, kind, name in graph.edges]
    columns = {
        name: tuple(column[node] for node in order)
        for name, column in (
            ("types", graph.types),
            ("attributes", graph.attributes),
            ("depths", graph.depths),
            ("lines", graph.lines),
        )
    }
    return replace(graph, edges=tuple(sorted(edges, key=_edge_place)), **columns)


def _edge_place(edge: Edge) -> tuple[int, int, int, str]:
    return EDGE_TYPE_NUMBER[edge.type], edge.source, edge.target, edge.name


def _distinct_colours(graph: CodeGraph) -> np.ndarray:
    """A colour for each node that only the graph decides, the smallest of equivalent choices.

    Classes with several members that are left when the hash is known consist of equivalent nodes, because they induce
    a forest. So it does not matter which of them is chosen to be the first.
    """
    arrays = _arrays(graph)
    colours = _stable(_labels(graph), arrays)
    colours = min(_leaves(colours, arrays) or [colours], key=lambda leaf: _digest(graph, leaf))
    while True:
        values, first, counts = np.unique(colours, return_index=True, return_counts=True)
        if values.size == colours.size:
            return colours
        colours = colours.copy()
        colours[first[np.argmax(counts > 1)]] ^= _CHOSEN
        colours = _stable(colours, arrays)


def _stable(colours: np.ndarray, arrays: _Arrays) -> np.ndarray:
    """The colours refined until they are stable, in any number of rounds."""
    stable = False
    while not stable:
        colours, stable = _refine(colours, arrays)
    return colours


def _depth_first(graph: CodeGraph, colours: np.ndarray) -> list[int]:
    """The nodes in depth-first order of the syntax tree, children by field, position and colour."""
    colour = colours.tolist()
    children: dict[int, list[tuple[int, int, int, int]]] = {}
    roots = set(range(len(graph)))
    for (source, target, kind, name), (_, _, rank) in zip(graph.edges, _edge_labels(graph), strict=True):
        if kind == "FIELD":
            children.setdefault(source, []).append((EDGE_NAME_NUMBER.get(name, 0), rank, colour[target], target))
            roots.discard(target)
    # A node that no root leads to lies on a cycle, which a syntax tree does not have.
    order: list[int] = []
    seen = [False] * len(graph)
    stack = sorted(range(len(graph)), key=lambda node: (node in roots, colour[node]))
    while stack:
        node = stack.pop()
        if not seen[node]:
            seen[node] = True
            order.append(node)
            stack += [child for *_, child in sorted(children.get(node, ()), reverse=True)]
    return order


def _labels(graph: CodeGraph) -> np.ndarray:
    labels = zip(graph.types, graph.attributes, graph.depths, strict=True)
    return np.array([_number(*label) for label in labels], dtype=np.uint64)


def _arrays(graph: CodeGraph) -> _Arrays:
    labels = np.array([_number(*label) for label in _edge_labels(graph)], dtype=np.uint64)
    columns = list(zip(*graph.edges, strict=True)) or [(), ()]
    source, target = np.array(columns[0], dtype=np.int64), np.array(columns[1], dtype=np.int64)
    return _Arrays(
        np.concatenate([source, target]),
        np.concatenate([target, source]),
        np.concatenate([labels ^ _IN, labels ^ _OUT]),
    )


def _edge_labels(graph: CodeGraph) -> list[tuple[str, str, int]]:
    """Type, name, and a rank among the edges that share the name of the last position."""
    seen: dict[tuple[int, str], int] = {}
    labels = []
    for source, _, kind, name in graph.edges:
        rank = 0
        if name.endswith(_LAST_POSITION):
            rank = seen[(source, name)] = seen.get((source, name), 0) + 1
        labels.append((kind, name, rank))
    return labels


@lru_cache(maxsize=1 << 16)
def _number(*label: object) -> int:
    """A 64-bit number for a label, the same in every process."""
    text = repr(label).encode("utf-8", "backslashreplace")
    return int.from_bytes(blake2b(text, digest_size=8).digest(), "little")


def _mix(numbers: np.ndarray) -> np.ndarray:
    """The finaliser of SplitMix64: every output bit depends on every input bit."""
    numbers = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    numbers = (numbers ^ (numbers >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return numbers ^ (numbers >> np.uint64(31))


def _refine(colours: np.ndarray, arrays: _Arrays) -> tuple[np.ndarray, bool]:
    """Refine until the number of colours stops growing; return the colours and whether they are stable."""
    count = 0
    for _ in range(MOST_ROUNDS):
        found = np.unique(colours).size
        if found == count:
            return colours, True
        count = found
        received = np.zeros_like(colours)
        np.add.at(received, arrays.receiver, _mix(colours[arrays.sender] + arrays.labels))
        colours = _mix(_mix(colours + _CHOSEN) + received)
    return colours, False


def _leaves(colours: np.ndarray, arrays: _Arrays) -> list[np.ndarray] | None:
    """Colourings that identify the graph, one per choice of individualised nodes; None for too many choices."""
    pending, leaves = [colours], []
    while pending:
        colours = pending.pop()
        members = _ambiguous_class(colours, arrays)
        if members is None:
            leaves.append(colours)
            continue
        if len(pending) + len(leaves) + len(members) > MOST_LEAVES:
            return None
        for node in members:
            chosen = colours.copy()
            chosen[node] ^= _CHOSEN
            pending.append(_refine(chosen, arrays)[0])
    return leaves


def _ambiguous_class(colours: np.ndarray, arrays: _Arrays) -> np.ndarray | None:
    """The nodes of a class with several members on a cycle between such nodes; None if there is no cycle.

    Leaves of the graph between such nodes are removed until none is left.
    """
    _, classes, sizes = np.unique(colours, return_inverse=True, return_counts=True)
    shared = sizes[classes] > 1
    inside = shared[arrays.sender] & shared[arrays.receiver] & (arrays.sender != arrays.receiver)
    pairs = np.unique(np.stack([arrays.sender[inside], arrays.receiver[inside]]), axis=1)
    neighbours: dict[int, set[int]] = {}
    for one, other in pairs.T.tolist():
        neighbours.setdefault(one, set()).add(other)
    ends = [node for node, around in neighbours.items() if len(around) == 1]
    while ends:
        node = ends.pop()
        if len(neighbours[node]) != 1:
            continue
        (other,) = neighbours.pop(node)
        neighbours[other].discard(node)
        if len(neighbours[other]) == 1:
            ends.append(other)
        neighbours[node] = set()
    cycle = [node for node, around in neighbours.items() if around]
    if not cycle:
        return None
    smallest = min(colours[cycle].tolist())
    return np.flatnonzero(colours == np.uint64(smallest))


def _digest(graph: CodeGraph, colours: np.ndarray) -> str:
    content = blake2b(f"{graph.kind} {len(graph)} {len(graph.edges)} ".encode(), digest_size=16)
    content.update(np.sort(colours).astype("<u8").tobytes())
    return content.hexdigest()
