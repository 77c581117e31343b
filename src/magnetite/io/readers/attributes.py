"""What the formats of graphs share: the attribute of the weights, features of the nodes, ids and directions."""

import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from magnetite.io.interop import EdgeList, number_of
from magnetite.io.tables import narrowed

Weight = str | bool
"""The name of an edge attribute; True for one of `WEIGHTS` if there is one; False for no weights."""

WEIGHTS = ("weight", "w", "edgeweight", "value")
"""Names of weights in any format, compared by `plain_name`."""

DIRECTED, UNDIRECTED = ("directed", "isdirected"), ("undirected", "isundirected")
"""Names of columns and attributes that say whether an edge is directed."""


@lru_cache(4096)
def plain_name(name: str) -> str:
    """A name in lower case without spaces, `_` and `-`.

    >>> plain_name("Edge_Weight")
    'edgeweight'
    """
    return re.sub(r"[\s_-]+", "", name.lower())


def weight_name(weight: Weight, names: Iterable[str]) -> str | None:
    """Which of the names of attributes is that of the weights; None if there are no weights.

    >>> weight_name(True, ["cost", "Weight"]), weight_name("cost", ["cost", "Weight"]), weight_name(False, ["weight"])
    ('Weight', 'cost', None)
    >>> weight_name("price", ["cost", "Weight"])
    Traceback (most recent call last):
    ValueError: it has no edge attribute 'price': choose the weight from 'cost', 'Weight'
    """
    names = list(dict.fromkeys(names))
    if isinstance(weight, str):
        if weight in names:
            return weight
        found = [name for name in names if plain_name(name) == plain_name(weight)]
        if not found:
            listed = ", ".join(map(repr, names[:20]))
            advice = f"choose the weight from {listed:.300}" if names else "its edges have no attributes"
            raise ValueError(f"it has no edge attribute {weight!r:.60}: {advice}")
    else:
        found = [name for name in names if weight and plain_name(name) in WEIGHTS]
    if len(found) > 1:
        raise ValueError(f"it has several weights ({shown(found)}): choose one with weight={found[0]!r:.60}")
    return found[0] if found else None


def shown(cells: Sequence[str]) -> str:
    """Cells for a message, not too long."""
    return f"{', '.join(cells)!r:.60}"


def is_number(text: str) -> bool:
    """Whether a text is a number, as Python writes it."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def positions(ids: Sequence[Any]) -> dict[Any, int]:
    """The number of each node by its id; an error if two have the same."""
    position = {own: i for i, own in enumerate(ids)}
    if len(position) < len(ids):
        twice = next(own for i, own in enumerate(ids) if position[own] != i)
        raise ValueError(f"two nodes have the id {twice!r:.60}")
    return position


def check_direction(link: Mapping[str, Any], directed: bool, where: str) -> None:
    """Refuse an edge that says otherwise than the graph whether it is directed."""
    for key, value in link.items():
        name = plain_name(key)
        wrong = (name in DIRECTED and value != directed) or (name in UNDIRECTED and value != (not directed))
        if wrong or (directed and isinstance(value, str) and value.lower() == "undirected"):
            raise ValueError(
                f"{where} has {key!r:.60} {value!r:.60} in a graph that is {'' if directed else 'un'}directed: "
                "write an undirected edge as two directed edges"
            )


def edge_weights(links: Sequence[Mapping[str, Any]], wheres: Sequence[str], weight: Weight) -> list[float | None]:
    """The weights of edges with attributes; None where an edge has none."""
    if weight is False:
        return [None] * len(links)
    names = [weight_name(weight, (key for link in links for key in link))] if isinstance(weight, str) else None
    weights: list[float | None] = []
    for link, where in zip(links, wheres, strict=True):
        named = [key for key in link if (key in names if names else plain_name(key) in WEIGHTS)]
        if len(named) > 1:
            raise ValueError(f"{where} has several weights ({shown(named)}): choose one with weight={named[0]!r:.60}")
        weights.append(number_of(link[named[0]], where) if named else None)
    return weights


def edge_list(
    edges: Sequence[Sequence[int]],
    weights: Sequence[float | None],
    both: Sequence[bool],
    names: list[str],
    features: Mapping[str, np.ndarray],
) -> EdgeList:
    """Edges of which some stand for both directions; a missing weight is 1, as in networkx."""
    rows: list[tuple[int, int, float]] = []
    for (source, target), weight, undirected in zip(edges, weights, both, strict=True):
        weight = 1.0 if weight is None else weight
        rows.append((source, target, weight))
        if undirected and source != target:
            rows.append((target, source, weight))
    columns = list(zip(*rows, strict=True)) or [(), (), ()]
    weighted = any(weight is not None for weight in weights)
    return EdgeList(np.array(columns[:2], int), len(names), np.array(columns[2]) if weighted else None, names, features)


def node_features(nodes: Sequence[Mapping[str, Any]], without: Iterable[str] = ()) -> dict[str, np.ndarray]:
    """Attributes that are a number, a truth value or a list of numbers of one length at every node.

    Floating-point numbers become float32, as the features of models are, unless one is too large for it; integers keep
    their values. Other attributes are not read: text, nested data, and attributes that some nodes do not have.

    >>> node_features([{"x": 1, "y": 0.5, "z": "a"}, {"x": 2, "y": 1, "z": "b"}])
    {'x': array([1, 2]), 'y': array([0.5, 1. ], dtype=float32)}
    """
    features: dict[str, np.ndarray] = {}
    for name in nodes[0] if nodes else ():
        if name in without or not name or "/" in name or not all(name in node for node in nodes):
            continue
        values = [node[name] for node in nodes]
        cells = values
        if all(isinstance(value, list) and value for value in values):
            if len({len(value) for value in values}) > 1:
                continue
            cells = [cell for value in values for cell in value]
        kinds = {type(cell) for cell in cells}
        if kinds == {bool}:
            features[name] = np.array(values, dtype=bool)
        elif kinds == {int} and all(-(2**63) <= cell < 2**63 for cell in cells):
            features[name] = np.array(values, dtype=np.int64)
        elif kinds <= {int, float} and all(abs(cell) <= sys.float_info.max for cell in cells):
            features[name] = narrowed(np.array(values, dtype=np.float64))  # infinity and NaN are not features
    return features
