"""Graphs of source code as files: SVG, JSON and GraphML."""

import json
from collections.abc import Callable
from io import BytesIO

import networkx as nx

from magnetite.code.drawing import svg
from magnetite.code.graph import CodeGraph


def to_json(graph: CodeGraph) -> str:
    """Node-link data as networkx reads it; a node without an attribute has none, which is not the attribute `None`."""
    nodes = [_known(id=node, **features) for node, features in enumerate(_nodes(graph))]
    edges = [
        {"source": edge.source, "target": edge.target, "key": key, "type": edge.type, "name": edge.name}
        for key, edge in enumerate(graph.edges)
    ]
    about = _known(kind=graph.kind, name=graph.name)
    data = {"directed": True, "multigraph": True, "graph": about, "nodes": nodes, "edges": edges}
    return json.dumps(data, indent=1) + "\n"


def to_graphml(graph: CodeGraph) -> str:
    """GraphML, for Gephi, yEd, Cytoscape and networkx; characters that XML cannot hold are written as escapes."""
    picture = nx.MultiDiGraph(**_known(kind=graph.kind, name=graph.name))
    for node, features in enumerate(_nodes(graph)):
        picture.add_node(node, **_known(**features))
    for edge in graph.edges:
        picture.add_edge(edge.source, edge.target, type=edge.type, name=edge.name)
    file = BytesIO()
    nx.write_graphml_xml(picture, file)
    return file.getvalue().decode()
