import io
import json

import networkx as nx
import pytest

from magnetite.code.export import to_graphml, to_json
from magnetite.graphs import read
from tests.code.test_drawing import small


def test_json_holds_everything_and_networkx_reads_it():
    graph = small()
    data = json.loads(to_json(graph))
    assert data["graph"] == {"kind": "dataflow", "name": "f"}
    assert data["nodes"][0] == {"id": 0, "type": "FunctionDef", "attribute": "f", "depth": 0, "line": 1}
    assert "attribute" not in data["nodes"][2]
    assert data["edges"][0] == {"source": 0, "target": 1, "type": "FIELD", "name": "body", "key": 0}
    read = nx.node_link_graph(data, edges="edges")
    assert sorted(read.edges(data="type")) == sorted((edge.source, edge.target, edge.type) for edge in graph.edges)


@pytest.mark.parametrize("ending", ["json", "graphml"])
def test_magnetite_reads_what_it_writes(tmp_path, ending):
    path = tmp_path / f"graph.{ending}"
    path.write_text({"json": to_json, "graphml": to_graphml}[ending](small()))
    graphs = read(path)
    assert sorted(graphs.edges.T.tolist()) == sorted([edge.source, edge.target] for edge in small().edges)


@pytest.mark.parametrize("attribute", ["None", "", "<&>", "\x00", "\ud800", "a\r\nb", "é\U0001f600"])
def test_any_attribute_can_be_written_and_read(attribute):
    assert json.loads(to_json(small(attribute)))["nodes"][1]["attribute"] == attribute
    read = nx.read_graphml(io.BytesIO(to_graphml(small(attribute)).encode()))
    expected = (
        attribute if attribute.isprintable() else attribute.encode("unicode_escape").decode().replace("\\n", "\n")
    )
    assert read.nodes["1"].get("attribute", "") == expected
    assert "attribute" not in read.nodes["2"]
