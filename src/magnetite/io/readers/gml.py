"""GML: `graph [ node [ id 0 ] edge [ source 0 target 0 ] ]`.

networkx reads GML, too, but joins the lines of a name, and does not read UTF-8 or numbers such as `1e-5`.
"""

import html
import re
from pathlib import Path
from typing import Any

from magnetite.io.delimited import text_of
from magnetite.io.interop import EdgeList
from magnetite.io.readers.attributes import (
    Weight,
    check_direction,
    edge_list,
    edge_weights,
    node_features,
    plain_name,
    positions,
)

TOKEN = re.compile(
    r"(?P<space>\s+|\#[^\n]*)"
    r"|(?P<real>[+-]?(?:\d+\.\d*|\.\d+|\d+(?=[eE]))(?:[eE][+-]?\d+)?(?![\w.])|[+-]?(?:INF|NAN)\b)"
    r"|(?P<integer>[+-]?\d+(?![\w.]))"
    r"|(?P<key>[A-Za-z]\w*)"
    r'|(?P<text>"[^"]*")'
    r"|(?P<begin>\[)|(?P<end>\])",
    re.ASCII,
)

DEEPEST = 100
"""Lists within lists beyond this depth are refused."""

Pairs = list[tuple[str, Any, int]]
"""Keys, their values, which may be such lists again, and their lines."""


def read_gml(path: Path, weight: Weight) -> EdgeList:
    """One graph. Names are the labels of the nodes if all have different ones, otherwise their ids."""
    top = _parsed(text_of(path))
    graphs = [value for key, value, _ in top if key == "graph"]
    if len(graphs) != 1 or not isinstance(graphs[0], list):
        raise ValueError(f"it contains {len(graphs)} graphs: write one graph [ … ] per file")
    [graph] = graphs
    for key, value, line in graph:
        if key not in ("node", "edge", "directed", "multigraph") and plain_name(key) in ("node", "edge", "directed"):
            raise ValueError(f"line {line} has {key!r:.60}, which is not read: write it {plain_name(key)!r}")
        if key in ("node", "edge") and not isinstance(value, list):
            raise ValueError(f"line {line}: {key} must be a list [ … ], got {value!r:.60}")
    directed = _flag(graph, "directed") is True  # an undirected graph if it says nothing, as GML defines
    nodes = [_attributes(value, line) for key, value, line in graph if key == "node"]
    ids = [_identity(node, "id", line) for node, line in nodes]
    position = positions(ids)
    positions([str(own) for own in ids])  # 1 and "1" are different ids with the same name
    edges, links, wheres = [], [], []
    for link, line in (_attributes(value, line) for key, value, line in graph if key == "edge"):
        ends = [_identity(link, end, line) for end in ("source", "target")]
        for end in ends:
            if end not in position:
                raise ValueError(f"the edge in line {line} refers to node {end!r:.60}, which is not declared")
        edges.append([position[end] for end in ends])
        links.append({key: value for key, value in link.items() if key not in ("source", "target")})
        wheres.append(f"the edge in line {line}")
        check_direction(links[-1], directed, wheres[-1])
    labels = [node.get("label") for node, _ in nodes]
    named = [str(label) for label in labels if isinstance(label, str | int | float)]
    names = named if len(set(named)) == len(nodes) else [str(own) for own in ids]
    features = node_features([node for node, _ in nodes], without=("id", "label"))
    weights = edge_weights(links, wheres, weight)
    return edge_list(edges, weights, [not directed] * len(edges), names, features)


def _parsed(text: str) -> Pairs:
    """The pairs of keys and values of a file, without recursion."""
    stack: list[Pairs] = [[]]
    opened: list[tuple[str, int]] = []
    place, line, key = 0, 1, None
    while place < len(text):
        found = TOKEN.match(text, place)
        if found is None:
            rest = text[place : place + 20].split("\n")[0]
            raise ValueError(f"line {line} cannot be read from {rest!r} on: it is not GML")
        kind, token = found.lastgroup, found.group()
        if kind == "end":
            if key is not None or not opened:
                raise ValueError(f"line {line} has a ] that closes nothing")
            inner, (name, first) = stack.pop(), opened.pop()
            stack[-1].append((name, inner, first))
        elif kind == "key" and key is None:
            key = token
        elif kind != "space":
            if key is None or kind == "key":
                raise ValueError(f"line {line} has {token!r:.60} where {'a key' if key is None else 'a value'} must be")
            if kind == "begin":
                if len(stack) > DEEPEST:
                    raise ValueError(f"line {line} is nested too deeply")
                stack.append([])
                opened.append((key, line))
            else:
                stack[-1].append((key, _value(kind, token), line))
            key = None
        line += token.count("\n")
        place = found.end()
    if opened or key is not None:
        what = f"the list {opened[-1][0]!r:.60} of line {opened[-1][1]}" if opened else f"the key {key!r:.60}"
        raise ValueError(f"it ends within {what}: it may be cut off")
    return stack[0]


def _value(kind: str | None, token: str) -> int | float | str:
    if kind == "text":
        return html.unescape(token[1:-1])
    return int(token) if kind == "integer" else float(token)


def _attributes(pairs: Pairs, line: int) -> tuple[dict[str, Any], int]:
    """The attributes of a node or an edge; repeated numbers are a list, and nested lists are dropped."""
    found: dict[str, Any] = {}
    for key, value, own in pairs:
        if isinstance(value, list):
            if plain_name(key) in ("graph", "node", "edge"):
                raise ValueError(f"line {own} has a {key!r:.60} within a node or an edge: ungroup it first")
            continue
        if key not in found:
            found[key] = value
        elif key in ("id", "source", "target", "label"):
            raise ValueError(f"line {own} has a second {key!r}: keep one")
        else:
            found[key] = [*(found[key] if isinstance(found[key], list) else [found[key]]), value]
    return found, line


def _identity(attributes: dict[str, Any], key: str, line: int) -> int | str:
    value = attributes.get(key)
    if not isinstance(value, int | str):
        raise ValueError(f"the entry in line {line} must have an integer {key!r}, got {value!r:.60}")
    return value


def _flag(graph: Pairs, key: str) -> bool | None:
    values = [value for name, value, _ in graph if name == key]
    if len(values) > 1 or any(value not in (0, 1) for value in values):
        raise ValueError(f"{key} must be 0 or 1, got {', '.join(map(repr, values)):.60}")
    return bool(values[0]) if values else None
