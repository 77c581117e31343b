"""GraphML: `<node>` and `<edge>` with `<data>`."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from magnetite.io.interop import EdgeList
from magnetite.io.readers.attributes import (
    WEIGHTS,
    Weight,
    edge_list,
    is_number,
    node_features,
    plain_name,
    positions,
    weight_name,
)

DATA = "write weights as <data> of a <key> for edges with the attr.name weight"

PARENTS = {
    "graph": ("graphml",),
    "key": ("graphml",),
    "node": ("graph",),
    "edge": ("graph",),
    "hyperedge": ("graph",),
}
"""Where the elements of GraphML that make the graph may be."""

Keys = dict[str, ElementTree.Element]


class _Tree(ElementTree.TreeBuilder):
    """A tree of elements without namespaces. Document types are refused, because their entities can be bombs."""

    def start(self, tag: str, attrs: dict[str, str]) -> ElementTree.Element:
        return super().start(tag.rpartition("}")[2], attrs)

    def end(self, tag: str) -> ElementTree.Element:
        return super().end(tag.rpartition("}")[2])

    def doctype(self, name: str, pubid: str | None, system: str | None) -> None:  # noqa: ARG002
        raise ValueError("it has a document type declaration (<!DOCTYPE …>), which is not read: remove it")


def read_graphml(path: Path, weight: Weight) -> EdgeList:
    """One graph, with the ids of its nodes as names."""
    root = ElementTree.parse(path, ElementTree.XMLParser(target=_Tree())).getroot()
    graphs = root.findall("graph")
    if root.tag != "graphml" or len(graphs) != 1:
        raise ValueError(f"it contains {len(graphs)} graphs in <{root.tag:.60}>: write one graph in <graphml> per file")
    [graph] = graphs
    for part in ("node//graph", "edge//graph"):
        if graph.find(part) is not None:
            raise ValueError("it contains a graph within a node or an edge, which has no flat form: ungroup it first")
    if graph.find("hyperedge") is not None:
        raise ValueError("it contains hyperedges: replace each by edges")
    _check_structure(root)
    nodes = graph.findall("node")
    names = [_attribute(node, "id") for node in nodes]
    position = positions(names)
    keys = _keys(root, "edge")
    titles = {own: key.get("attr.name") or own for own, key in keys.items()}
    chosen = weight_name(weight, titles.values())
    matching = [own for own, title in titles.items() if title == chosen]
    default = _default([keys[own] for own in matching])
    directed = _directed(graph.get("edgedefault"), "edgedefault of the graph", ("directed", "undirected"))
    edges, weights, both = [], [], []
    for element in graph.findall("edge"):
        ends = [_attribute(element, end) for end in ("source", "target")]
        where = f"edge {ends[0]!r} → {ends[1]!r}"
        for end in ends:
            if end not in position:
                raise ValueError(f"{where} refers to node {end!r}, which is not declared")
        for name in element.keys():  # noqa: SIM118 (an element is a sequence of elements)
            if weight and plain_name(name.rpartition("}")[2]) in WEIGHTS:
                raise ValueError(f"{where} has an attribute {name!r:.60}, which GraphML does not have: {DATA}")
        data = _data(element, keys, where)
        own = _only(matching, data, keys, where)
        text = default if own is None else data[own]
        edges.append([position[end] for end in ends])
        weights.append(None if text is None else _parsed(text, where))
        flag = element.get("directed")
        both.append(not (directed if flag is None else _directed(flag, f"directed of {where}", ("true", "false"))))
    return edge_list(edges, weights, both, names, _node_features(nodes, _keys(root, "node")))


def _check_structure(root: ElementTree.Element) -> None:
    """Refuse elements in a place where they would be ignored although they are a part of the graph."""
    for parent in root.iter():
        for child in parent:
            if parent.tag not in PARENTS.get(child.tag, (parent.tag,)):
                raise ValueError(f"it contains a <{child.tag}> within a <{parent.tag:.60}>, which is not GraphML")
            if parent.tag == "edge" and plain_name(child.tag) in WEIGHTS:
                raise ValueError(f"it contains a <{child.tag:.60}> within an <edge>, which is not GraphML: {DATA}")


def _keys(root: ElementTree.Element, kind: str) -> Keys:
    """The keys of data of edges or of nodes by their ids."""
    keys: Keys = {}
    for key in root.findall("key"):
        if key.get("for", "all") in (kind, "all"):
            own = _attribute(key, "id")
            if own in keys:
                raise ValueError(f"it declares several keys with the id {own!r:.60}: keep one")
            keys[own] = key
    return keys


def _default(keys: list[ElementTree.Element]) -> str | None:
    """The default of the keys of one name: networkx declares one per type of the values."""
    found = [None if (default := key.find("default")) is None else (default.text or "").strip() for key in keys]
    if len(set(found)) > 1:
        name = keys[0].get("attr.name") or keys[0].get("id")
        raise ValueError(f"it declares several keys with the name {name!r:.60} and different defaults: keep one")
    return found[0] if found else None


def _only(owns: list[str], data: Mapping[str, str], keys: Keys, where: str) -> str | None:
    """Which of the keys of one name an element has data of, or None if of none."""
    found = [own for own in owns if own in data]
    if len(found) > 1:
        raise ValueError(f"{where} has several {_titled(keys[found[0]])}")
    return found[0] if found else None


def _titled(key: ElementTree.Element) -> str:
    name = key.get("attr.name") or key.get("id", "")
    return "weights" if plain_name(name) in WEIGHTS else f"data {name!r:.60}"


def _data(element: ElementTree.Element, keys: Keys, where: str) -> dict[str, str]:
    """The data of an edge by the ids of their keys."""
    given: dict[str, str] = {}
    for data in element.findall("data"):
        own = _attribute(data, "key")
        if own not in keys:
            raise ValueError(f"{where} has data with the key {own!r:.60}, which is not declared for edges: {DATA}")
        if own in given:
            raise ValueError(f"{where} has several {_titled(keys[own])}")
        given[own] = (data.text or "").strip()
    return given


def _node_features(nodes: list[ElementTree.Element], keys: Keys) -> dict[str, Any]:
    """Data of the nodes whose key declares numbers or truth values; a value that is neither is an error."""
    readers = {"int": int, "long": int, "float": float, "double": float, "boolean": _truth}
    typed = {own: key for own, key in keys.items() if key.get("attr.type") in readers}
    named: dict[str, list[str]] = {}
    for own, key in typed.items():
        named.setdefault(key.get("attr.name") or own, []).append(own)
    defaults = {title: _default([typed[own] for own in owns]) for title, owns in named.items()}
    rows: list[dict[str, Any]] = []
    for node in nodes:
        where = f"node {node.get('id')!r:.60}"
        data = {_attribute(given, "key"): (given.text or "").strip() for given in node.findall("data")}
        row: dict[str, Any] = {}
        for title, owns in named.items():
            own = _only(owns, data, typed, where)
            text = defaults[title] if own is None else data[own]
            if text is None:
                continue
            kind = typed[owns[0] if own is None else own].get("attr.type", "")
            try:
                row[title] = readers[kind](text.replace("_", "x"))
            except ValueError:
                raise ValueError(f"{title!r:.60} of {where} must be of type {kind}, got {text!r:.60}") from None
        rows.append(row)
    return node_features(rows)


def _truth(text: str) -> bool:
    if text.lower() not in ("true", "false", "1", "0"):
        raise ValueError(text)
    return text.lower() in ("true", "1")


def _attribute(element: ElementTree.Element, name: str) -> str:
    value = element.get(name)
    if value is None:
        raise ValueError(f"a <{element.tag}> has no attribute {name}")
    return value


def _directed(text: str | None, where: str, words: tuple[str, str]) -> bool:
    if text not in words:
        raise ValueError(f"{where} must be {words[0]} or {words[1]}, got {text!r:.60}")
    return text == words[0]


def _parsed(text: str, where: str) -> float:
    if not is_number(text) or "_" in text:
        raise ValueError(f"the weight of {where} must be a number, got {text!r:.60}")
    return float(text)
