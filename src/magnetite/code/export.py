"""Graphs of source code as files: SVG, JSON and GraphML."""

import json
from io import BytesIO
from typing import Any

from magnetite.code.graph import CodeGraph


def to_json(graph: CodeGraph) -> str:
    """Node-link data, as networkx and `magnetite encode` read it; a node without an attribute has no such key."""
    edges = [edge._asdict() | {"key": key} for key, edge in enumerate(graph.edges)]
    about = {"kind": graph.kind, "name": graph.name}
    nodes = [{"id": node} | features for node, features in enumerate(_features(graph))]
    return json.dumps({"directed": True, "multigraph": True, "graph": about, "nodes": nodes, "edges": edges}) + "\n"


def to_graphml(graph: CodeGraph) -> str:
    """GraphML, for networkx, Gephi, yEd and Cytoscape; letters that XML cannot hold are written as escapes."""
    import networkx as nx

    picture = nx.MultiDiGraph(kind=graph.kind, name=graph.name)
    for node, features in enumerate(_features(graph)):
        words = {key: _writable(value) if isinstance(value, str) else value for key, value in features.items()}
        picture.add_node(node, **words)
    for source, target, kind, name in graph.edges:
        picture.add_edge(source, target, type=kind, name=name)
    file = BytesIO()
    nx.write_graphml_xml(picture, file)
    return file.getvalue().decode()


def _features(graph: CodeGraph) -> list[dict[str, Any]]:
    columns = zip(graph.types, graph.attributes, graph.depths, graph.lines, strict=True)
    rows = (dict(zip(("type", "attribute", "depth", "line"), column, strict=True)) for column in columns)
    return [{key: value for key, value in row.items() if value is not None} for row in rows]


def _writable(text: str) -> str:
    """Control characters and halves of surrogate pairs have no place in XML.

    >>> _writable("a\\x00b")
    'a\\\\x00b'
    """
    return "".join(letter if letter.isprintable() or letter in "\t\n" else repr(letter)[1:-1] for letter in text)
