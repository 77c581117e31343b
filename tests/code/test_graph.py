import io
import json

import networkx as nx
import pytest
import torch

from magnetite import code
from magnetite.code.graph import EDGE_NAMES, EDGE_TYPES, NODE_TYPES
from magnetite.graphs import read_graphs
from tests.code.test_drawing import small

SOURCE = "def f(a, b):\n    c = a + b\n    return f(c, None, 1, 2, 3, 4, 5, 6, 7, 8)"


@pytest.mark.parametrize("kind", ["dataflow", "ast"])
def test_columns_and_tree(kind):
    graph = code.build(SOURCE, kind)
    assert len(graph) == len(graph.types) == len(graph.attributes) == len(graph.depths) == len(graph.lines)
    tree = nx.DiGraph([edge[:2] for edge in graph.edges if edge.type == "FIELD"])
    assert nx.is_arborescence(tree) and set(tree) == set(range(len(graph)))
    assert dict(nx.single_source_shortest_path_length(tree, 0)) == dict(enumerate(graph.depths))


def test_the_constant_none_is_an_attribute():
    graph = code.build(SOURCE)
    attributes = dict(zip(graph.types, graph.attributes, strict=True))
    assert attributes["Return"] is None and "None" in graph.attributes


def test_positions_are_capped():
    names = {edge.name for edge in code.build(SOURCE).edges}
    assert {"args", "args:2", "args:8"} <= names and "args:9" not in names


def test_digraphs_have_the_numbers_of_the_vocabularies():
    graph = code.build(SOURCE)
    found = graph.digraphs
    assert (len(found), found.num_nodes, found.num_edges) == (1, len(graph), len(graph.edges))
    assert [NODE_TYPES[number] for number in found.node_features["node_type"]] == list(graph.types)
    assert [EDGE_TYPES[number] for number in found.edge_features["edge_type"]] == [edge.type for edge in graph.edges]
    assert [EDGE_NAMES[number] for number in found.edge_features["edge_name"]] == [edge.name for edge in graph.edges]
    assert found.node_features["depth"].tolist() == list(graph.depths)


def test_networkx_and_pyg():
    graph = code.build(SOURCE)
    found = graph.to_networkx()
    assert isinstance(found, nx.MultiDiGraph) and found.number_of_edges() == len(graph.edges)
    assert found.nodes[0] == {"type": "FunctionDef", "attribute": "_mask_", "depth": 0, "line": 1}
    data = graph.to_pyg()
    assert data.num_nodes == len(graph) and torch.equal(data.edge_index, graph.digraphs.edge_index)


def test_vocabularies_have_no_duplicates():
    for names in (NODE_TYPES, EDGE_TYPES, EDGE_NAMES):
        assert len(set(names)) == len(names)


def test_json_holds_everything_and_networkx_reads_it():
    graph = small()
    data = json.loads(graph.to_json())
    assert data["graph"] == {"kind": "dataflow", "name": "f"}
    assert data["nodes"][0] == {"id": 0, "type": "FunctionDef", "attribute": "f", "depth": 0, "line": 1}
    assert "attribute" not in data["nodes"][2]
    assert data["edges"][0] == {"source": 0, "target": 1, "type": "FIELD", "name": "body", "key": 0}
    read = nx.node_link_graph(data, edges="edges")
    assert sorted(read.edges(data="type")) == sorted((edge.source, edge.target, edge.type) for edge in graph.edges)


@pytest.mark.parametrize("ending", ["json", "graphml"])
def test_magnetite_reads_what_it_writes(tmp_path, ending):
    path = tmp_path / f"graph.{ending}"
    path.write_text(getattr(small(), f"to_{ending}")())
    graphs = read_graphs(path)
    assert sorted(graphs.edges.T.tolist()) == sorted([edge.source, edge.target] for edge in small().edges)


@pytest.mark.parametrize("attribute", ["None", "", "<&>", "\x00", "\ud800", "a\r\nb", "é\U0001f600"])
def test_any_attribute_can_be_written_and_read(attribute):
    assert json.loads(small(attribute).to_json())["nodes"][1]["attribute"] == attribute
    read = nx.read_graphml(io.BytesIO(small(attribute).to_graphml().encode()))
    expected = (
        attribute if attribute.isprintable() else attribute.encode("unicode_escape").decode().replace("\\n", "\n")
    )
    assert read.nodes["1"].get("attribute", "") == expected
    assert "attribute" not in read.nodes["2"]
