"""Node-link JSON, as networkx and D3 write it."""

import json
from collections.abc import Iterable, Mapping
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
from magnetite.io.storage import distinct_keys


def read_node_link(path: Path, weight: Weight) -> EdgeList:
    """One graph, with the ids of its nodes as names."""
    try:
        content = json.loads(text_of(path), object_pairs_hook=distinct_keys)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if not isinstance(content, dict) or "nodes" not in content:
        raise ValueError("it has no nodes")
    lists = [key for key in ("links", "edges") if key in content]
    if len(lists) != 1:
        raise ValueError(f"it must have either links or edges, got {' and '.join(lists) or 'neither'}")
    nodes = _objects(content, "nodes", ("id",))
    ids = [_identity(node["id"]) for node in nodes]
    position, names = positions(ids), [str(own) for own in ids]
    positions(names)  # 1 and "1" are different ids with the same name
    directed, multigraph = _flag(content, "directed"), _flag(content, "multigraph")
    edges, links, wheres = [], [], []
    for link in _objects(content, lists[0], ("source", "target")):
        ends = [_identity(link[end]) for end in ("source", "target")]
        for end in ends:
            if end not in position:
                raise ValueError(f"an edge refers to node {end!r:.60}, which is not in nodes")
        edges.append([position[end] for end in ends])
        links.append({key: value for key, value in link.items() if key not in ("source", "target")})
        wheres.append(f"edge {ends[0]!r:.60} → {ends[1]!r:.60}")
        check_direction(link, directed is not False, wheres[-1])
    weights = edge_weights(links, wheres, weight)
    undirected = directed is False
    seen = {tuple(sorted(edge)) if undirected else tuple(edge) for edge in edges}
    if multigraph is False and len(seen) < len(edges):
        raise ValueError("it has repeated edges, but multigraph is false: remove them, or set multigraph to true")
    return edge_list(edges, weights, [undirected] * len(edges), names, node_features(nodes, without=("id",)))


def _objects(content: Mapping[str, Any], key: str, needed: Iterable[str]) -> list[dict[str, Any]]:
    values = content[key]
    if not isinstance(values, list):
        raise ValueError(f"{key} must be a list, got {type(values).__name__}")
    for number, value in enumerate(values):
        for name in needed:
            if not isinstance(value, dict) or name not in value:
                raise ValueError(f"entry {number} of {key} must be an object with {name!r}, got {value!r:.60}")
    return values


def _flag(content: Mapping[str, Any], key: str) -> bool | None:
    value = content.get(key)
    other = next((name for name in content if name != key and plain_name(name) == key), None)
    if other is not None:
        raise ValueError(f"it has {other!r:.60}, which is not read: write it {key!r}")
    if key in content and not isinstance(value, bool):
        raise ValueError(f"{key} must be true or false, got {value!r:.60}")
    return value


def _identity(value: Any) -> Any:
    """The id of a node: a string, a number, or a tuple of them, which JSON has as a list."""
    if isinstance(value, list):
        return tuple(map(_identity, value))
    if isinstance(value, bool) or not isinstance(value, str | int | float) or value != value:
        raise ValueError(f"the id of a node must be a string or a number, got {value!r:.60}")
    return value
