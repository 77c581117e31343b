"""Canonical hash: equal for graphs that differ only in the numbering of their nodes, and for no others.

Colours are refined until the classes of equally coloured nodes are stable (Weisfeiler and Leman):

    c'(v) = h( c(v), Σ_{u→v} h(c(u), label, in), Σ_{v→w} h(c(w), label, out) )

with a 64-bit mixing function h. The sorted colours name the graph exactly where the nodes of classes with several
members span a forest: all edges to single nodes are told by the colour, and refinement identifies forests. Elsewhere
each member of such a class is singled out in turn, and the smallest result counts.

Not told apart are only: graphs with a chance collision of 64-bit colours; graphs that refinement confuses and whose
symmetry needs more than `MOST_LEAVES` choices; and graphs that differ in nothing within `MOST_ROUNDS` steps of any node
(in functions with longer chains of dependences than that). Two equal graphs never have different hashes.

Positions above `vocabulary.POSITIONS` share an edge name; the hash tells them apart by the order of the nodes' numbers.
"""

from functools import lru_cache
from hashlib import blake2b
from typing import NamedTuple

import numpy as np

from magnetite.code.graph import CodeGraph
from magnetite.code.vocabulary import POSITIONS

MOST_ROUNDS = 128
MOST_LEAVES = 64

_LAST_POSITION = f":{POSITIONS}"
_IN, _OUT, _CHOSEN = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F), np.uint64(0x165667B19E3779F9)


class _Arrays(NamedTuple):
    """Every edge twice: what its end hears (`heard`) from its other end (`said`), with the label's number."""

    said: np.ndarray
    heard: np.ndarray
    labels: np.ndarray


def canonical_hash(graph: CodeGraph) -> str:
    """The hash as 32 hexadecimal digits.

    >>> from magnetite import code
    >>> one, other = (code.build(f"def f(a, b):\\n    return {text}") for text in ("a + b", "b + a"))
    >>> canonical_hash(one) == canonical_hash(other)
    True
    """
    arrays = _arrays(graph)
    labels = zip(graph.types, graph.attributes, graph.depths, strict=True)
    colours = np.array([_number(*label) for label in labels], dtype=np.uint64)
    colours, stable = _refine(colours, arrays)
    leaves = _leaves(colours, arrays) if stable else None
    digests = [_digest(graph, leaf) for leaf in leaves or [colours]]
    return min(digests)


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
    """Type and name, and a count among those whose name is that of all last positions."""
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
    """64 bits for a label, the same in every process."""
    text = repr(label).encode("utf-8", "backslashreplace")
    return int.from_bytes(blake2b(text, digest_size=8).digest(), "little")


def _mix(numbers: np.ndarray) -> np.ndarray:
    """The finaliser of SplitMix64: every bit of the result depends on every bit given."""
    numbers = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    numbers = (numbers ^ (numbers >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return numbers ^ (numbers >> np.uint64(31))


def _refine(colours: np.ndarray, arrays: _Arrays) -> tuple[np.ndarray, bool]:
    """Refine until the number of colours does not grow; whether it came to that."""
    count = 0
    for _ in range(MOST_ROUNDS):
        found = np.unique(colours).size
        if found == count:
            return colours, True
        count = found
        heard = np.zeros_like(colours)
        np.add.at(heard, arrays.heard, _mix(colours[arrays.said] + arrays.labels))
        colours = _mix(_mix(colours + _CHOSEN) + heard)
    return colours, False


def _leaves(colours: np.ndarray, arrays: _Arrays) -> list[np.ndarray] | None:
    """Colourings that name the graph exactly, one for each way of singling nodes out; None for too many ways."""
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
    """The nodes of some class with several members that lies on a circle of such classes; None if there is no circle.

    Leaves of the graph between such nodes are taken off until none is left.
    """
    _, classes, sizes = np.unique(colours, return_inverse=True, return_counts=True)
    shared = sizes[classes] > 1
    inside = shared[arrays.said] & shared[arrays.heard] & (arrays.said != arrays.heard)
    pairs = np.unique(np.stack([arrays.said[inside], arrays.heard[inside]]), axis=1)
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
    circle = [node for node, around in neighbours.items() if around]
    if not circle:
        return None
    smallest = min(colours[circle].tolist())
    return np.flatnonzero(colours == np.uint64(smallest))


def _digest(graph: CodeGraph, colours: np.ndarray) -> str:
    content = blake2b(f"{graph.kind} {len(graph)} {len(graph.edges)} ".encode(), digest_size=16)
    content.update(np.sort(colours).astype("<u8").tobytes())
    return content.hexdigest()
