import json
from xml.etree import ElementTree

import networkx as nx
import pytest

import magnetite as mt
from magnetite.code import build
from tests.cli.test_app import call

SOURCE = """
def f(a, b):
    x = a + b
    return f(x, b)

class C:
    def g(self):
        return self.g()
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "source.py"
    path.write_text(SOURCE)
    return path


def test_a_picture(file, tmp_path, monkeypatch, capsys):
    out = tmp_path / "graph.svg"
    code, stdout, stderr = call(monkeypatch, capsys, "graph", f"{file}::f", "--kind", "dataflow", "--out", out)
    assert code == 0, stderr
    assert "CodeGraph(f, dataflow, " in stdout
    assert str(out) in stdout
    assert "LAST_WRITE" in out.read_text()
    assert ElementTree.parse(out).getroot().tag.endswith("svg")


def test_a_method_as_json(file, tmp_path, monkeypatch, capsys):
    out = tmp_path / "graph.json"
    code, *_ = call(monkeypatch, capsys, "graph", f"{file}::C.g", "--kind", "ast", "--out", out)
    assert code == 0
    data = json.loads(out.read_text())
    assert data["graph"] == {"kind": "ast", "name": "C.g"}
    assert "g" not in [node.get("attribute") for node in data["nodes"]]


@pytest.mark.parametrize(("mask", "names"), [("strict", 0), ("paper", 1), ("none", 2)])
def test_masks(file, tmp_path, monkeypatch, capsys, mask, names):
    out = tmp_path / "graph.json"
    call(monkeypatch, capsys, "graph", f"{file}::C.g", "--mask", mask, "--out", out)
    attributes = [node.get("attribute") for node in json.loads(out.read_text())["nodes"]]
    assert attributes.count("g") == names


def test_graphml(file, tmp_path, monkeypatch, capsys):
    out = tmp_path / "graph.graphml"
    code, *_ = call(monkeypatch, capsys, "graph", f"{file}::f", "--out", out)
    assert code == 0
    read = nx.read_graphml(out)
    graph = build(SOURCE, name="f")
    assert read.number_of_nodes() == len(graph)
    assert read.number_of_edges() == len(graph.edges)


def test_both_kinds_side_by_side(file, tmp_path, monkeypatch, capsys):
    out = tmp_path / "both.svg"
    code, stdout, _ = call(monkeypatch, capsys, "graph", f"{file}::f", "--compare", "--layout", "layers", "--out", out)
    assert code == 0
    assert "dataflow" in stdout
    assert "ast" in stdout
    words = {element.text for element in ElementTree.parse(out).iter("{http://www.w3.org/2000/svg}text")}
    assert {"dataflow: f", "ast: f", "CFG_NEXT", "NEXT_TOKEN"} <= words


def test_a_file_with_one_function_needs_no_name(tmp_path, monkeypatch, capsys):
    (tmp_path / "one.py").write_text("def only(a):\n    return a\n")
    code, stdout, _ = call(monkeypatch, capsys, "graph", tmp_path / "one.py", "--out", tmp_path / "g.svg")
    assert code == 0
    assert "only" in stdout


def test_the_source_is_never_the_output(tmp_path, monkeypatch, capsys):
    source = tmp_path / "one.py"
    source.write_text("def only(a):\n    return a\n")
    (tmp_path / "link.svg").symlink_to(source)
    code, _, stderr = call(monkeypatch, capsys, "graph", source, "--out", tmp_path / "link.svg")
    assert code == 2
    assert "is also an input" in stderr
    assert source.read_text() == "def only(a):\n    return a\n"


def test_written_graphs_can_be_read(file, tmp_path, monkeypatch, capsys):
    graph = build(SOURCE, name="f")
    for out in (tmp_path / "graph.graphml", tmp_path / "graph.json"):
        assert call(monkeypatch, capsys, "graph", f"{file}::f", "--out", out)[0] == 0
        assert mt.read(out).num_edges == len(graph.edges)
