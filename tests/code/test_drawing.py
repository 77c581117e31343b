import os
import stat
import sys
from xml.etree import ElementTree

import pytest

from magnetite.code.drawing import COLOURS, shown, to_svg
from magnetite.code.graph import EDGE_TYPES, CodeGraph, Edge
from magnetite.code.layout import graphviz

SVG = "{http://www.w3.org/2000/svg}"


def small(attribute: str | None = "x", kind: str = "dataflow", edges: tuple[Edge, ...] = ()) -> CodeGraph:
    return CodeGraph(
        kind=kind,
        name="f",
        types=("FunctionDef", "Name", "Load"),
        attributes=("f", attribute, None),
        depths=(0, 1, 2),
        lines=(1, 2, 0),
        edges=edges or (Edge(0, 1, "FIELD", "body"), Edge(1, 2, "FIELD", "ctx"), Edge(2, 1, "LAST_WRITE")),
    )


def texts(picture: str) -> list[str]:
    return [element.text or "" for element in ElementTree.fromstring(picture).iter(f"{SVG}text")]


def test_a_picture_has_every_box_edge_and_legend_entry():
    root = ElementTree.fromstring(to_svg(small(), layout="layers"))
    assert len(list(root.iter(f"{SVG}rect"))) == 1 + 3  # paper and boxes
    arrows = [path for path in root.iter(f"{SVG}path") if path.get("marker-end")]
    assert [path.get("stroke") for path in arrows] == [COLOURS["FIELD"], COLOURS["FIELD"], COLOURS["LAST_WRITE"]]
    words = texts(to_svg(small(), layout="layers"))
    assert {"FIELD", "LAST_WRITE", "FunctionDef", "Name", "x", "Load", "body", "ctx", "dataflow: f"} <= set(words)
    assert "CALLS" not in words


def test_every_edge_type_has_a_colour_and_inverse_edges_are_not_drawn():
    assert set(COLOURS) == {kind for kind in EDGE_TYPES if not kind.endswith("_INVERSE")}
    edges = (Edge(0, 1, "NEXT_TOKEN"), Edge(1, 0, "NEXT_TOKEN_INVERSE"))
    assert to_svg(small(edges=edges), layout="layers").count("marker-end") == 1


@pytest.mark.parametrize("attribute", ["<b>&'\"", "\x00\x1b", "\ud800", "\u202e", "a\nb", "", "é", "]]>", "x" * 10_000])
def test_any_text_gives_a_readable_file(attribute):
    picture = to_svg(small(attribute), layout="layers")
    assert shown(attribute) in texts(picture.encode().decode())
    assert len(shown(attribute)) <= 28


def test_self_loops_and_parallel_edges_are_distinct():
    edges = (Edge(1, 1, "LAST_WRITE"), Edge(0, 1, "FIELD"), Edge(0, 1, "LAST_WRITE"), Edge(1, 0, "CFG_NEXT"))
    root = ElementTree.fromstring(to_svg(small(edges=edges), layout="layers"))
    curves = [path.get("d") for path in root.iter(f"{SVG}path") if path.get("marker-end")]
    assert len(set(curves)) == 4


def test_two_graphs_are_drawn_side_by_side():
    both = to_svg([small(), small(kind="ast")], layout="layers")
    assert {"dataflow: f", "ast: f"} <= set(texts(both))
    _legend, *panels = [group.get("transform") for group in ElementTree.fromstring(both).findall(f"{SVG}g")]
    places = [tuple(map(float, (place or "")[len("translate(") : -1].split(","))) for place in panels]
    assert places[0][0] + 80 < places[1][0]
    assert places[0][1] == places[1][1]


def test_unknown_layouts_are_rejected():
    with pytest.raises(ValueError, match="layout must be one of auto, layers, got 'spiral'"):
        to_svg(small(), layout="spiral")


PLAIN = """graph 1 3 4
node 0 1.5 3.5 1 0.5 "" solid box black lightgrey
node 1 1.5 2 1 0.5 "" solid box black lightgrey
node 2 1.5 0.5 1 0.5 "" solid box black lightgrey
edge 0 1 4 1.5 3.25 1.5 3 1.5 2.5 1.5 2.25 solid black
edge 1 2 4 1.5 1.75 1.5 1.5 1.5 1 1.5 0.75 solid black
edge 2 1 4 1.6 0.75 1.6 1 1.6 1.5 1.6 1.75 solid black
stop
"""


def pretend_graphviz(folder, monkeypatch, program: str) -> None:
    script = folder / "dot"
    script.write_text(f"#!{sys.executable}\nimport sys\nsys.stdin.read()\n{program}\n")
    script.chmod(script.stat().st_mode | stat.S_IEXEC)
    monkeypatch.setenv("PATH", str(folder) + os.pathsep + os.environ["PATH"])


def test_graphviz_places_the_nodes_where_it_is_installed(tmp_path, monkeypatch):
    pretend_graphviz(tmp_path, monkeypatch, f"print({PLAIN!r})")
    placed = graphviz([(0, 1), (1, 2), (2, 1)], [(72.0, 36.0)] * 3)
    assert placed is not None
    assert placed.nodes == ((108.0, 36.0), (108.0, 144.0), (108.0, 252.0))
    assert placed.edges[0] == ((108.0, 54.0), (108.0, 126.0))
    assert (placed.width, placed.height) == (216.0, 288.0)
    assert to_svg(small()) != to_svg(small(), layout="layers")


@pytest.mark.parametrize("program", ["sys.exit(1)", "print('graph 1 3 4')", "print('nonsense')"])
def test_the_built_in_layout_is_used_where_graphviz_fails(tmp_path, monkeypatch, program):
    pretend_graphviz(tmp_path, monkeypatch, program)
    assert to_svg(small()) == to_svg(small(), layout="layers")
