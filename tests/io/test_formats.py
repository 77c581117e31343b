"""What a format may hold beside its edges: the choice of weights, isolated nodes, features, separators, and GML."""

import json

import networkx as nx
import numpy as np
import pytest
import torch

import magnetite as mt

GRAPHML = """<graphml><key id="c" for="edge" attr.name="cost" attr.type="double"/>
<key id="w" for="edge" attr.name="weight" attr.type="double"/>
<key id="x" for="node" attr.name="load" attr.type="double"><default>7</default></key>
<key id="n" for="node" attr.name="count" attr.type="int"/><key id="t" for="node" attr.name="kind" attr.type="string"/>
<graph edgedefault="directed"><node id="a"><data key="n">1</data><data key="x">0.5</data><data key="t">p</data></node>
<node id="b"><data key="n">2</data><data key="t">q</data></node>
<edge source="a" target="b"><data key="c">3</data><data key="w">5</data></edge></graph></graphml>"""
GML = """graph [ directed 1 node [ id 0 label "a" load 0.5 count 1 ] node [ id 1 label "b" load 7.0 count 2 ]
edge [ source 0 target 1 cost 3 weight 5 ] ]"""
JSON = json.dumps(
    {
        "nodes": [
            {"id": "a", "load": 0.5, "count": 1, "kind": "p", "pair": [1, 2]},
            {"id": "b", "load": 7, "count": 2, "pair": [3, 4]},
        ],
        "links": [{"source": "a", "target": "b", "cost": 3, "weight": 5}],
    }
)
CSV = "source,target,cost,weight\na,b,3,5\n"


def written(tmp_path, name, content):
    path = tmp_path / name
    path.write_text(content, encoding="utf-8")
    return path


FILES = [("g.graphml", GRAPHML), ("g.gml", GML), ("g.json", JSON), ("g.csv", CSV), ("g.csv", CSV.replace(",", ";")),
         ("g.tsv", CSV.replace(",", "\t")), ("g.txt", CSV.replace(",", " "))]  # fmt: skip


@pytest.mark.parametrize(("name", "content"), FILES)
def test_the_weight_is_chosen_by_name(tmp_path, name, content):
    path = written(tmp_path, name, content)
    assert mt.read(path).weights.tolist() == [5]
    assert mt.read(path, weight="cost").weights.tolist() == mt.read(path, weight="Cost").weights.tolist() == [3]
    assert mt.read(path, weight=None).weights is None
    assert mt.read(path, weight="cost").names == ["a", "b"]
    with pytest.raises(ValueError, match=r"no edge attribute 'price': choose the weight from .*'cost'") as caught:
        mt.read(path, weight="price")
    assert "\n" not in str(caught.value)


def test_weights_of_arrays_and_saved_graphs(tmp_path):
    graphs = mt.Digraphs.from_edges([[0], [1]], edge_weight=[2.0]).replace(edge_features={"cost": torch.tensor([3])})
    graphs.save(tmp_path / "g.safetensors")
    assert mt.read(tmp_path / "g.safetensors", weight="cost").weights.tolist() == [3]
    assert mt.read(tmp_path / "g.safetensors", weight=None).weights is None
    np.savez(tmp_path / "g.npz", edge_index=[[0], [1]], edge_weight=[2.0])
    assert mt.read(tmp_path / "g.npz", weight="edge_weight").weights.tolist() == [2]
    assert mt.read(tmp_path / "g.npz", weight=None).weights is None
    for name in ("g.safetensors", "g.npz"):
        with pytest.raises(ValueError, match="price"):
            mt.read(tmp_path / name, weight="price")


def test_a_chosen_weight_needs_a_header(tmp_path):
    with pytest.raises(ValueError, match=r"does not name the columns source and target.*add a header"):
        mt.read(written(tmp_path, "g.csv", "a,b,2\n"), weight="cost")


@pytest.mark.parametrize(("name", "content"), FILES[:3])
def test_numbers_of_all_nodes_are_features(tmp_path, name, content):
    graphs = mt.read(written(tmp_path, name, content))
    features = {key: value.tolist() for key, value in graphs.node_features.items()}
    assert features.pop("pair", None) == ([[1, 2], [3, 4]] if name == "g.json" else None)
    assert features == {"load": [0.5, 7.0], "count": [1, 2]}
    assert graphs.node_features["load"].dtype == torch.float32
    assert graphs.node_features["count"].dtype == torch.int64


def test_a_declared_number_that_is_none_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"'count' of node 'a' must be of type int, got '1.5'"):
        mt.read(written(tmp_path, "g.graphml", GRAPHML.replace(">1<", ">1.5<")))


@pytest.mark.parametrize(
    ("name", "content", "features"),
    [
        ("nodes.csv", "node\nc\nb\na\n", {}),
        ("nodes.csv", "c\nb\na\n", {}),
        ("nodes.csv", "id;size;kind\nc;1;x\nb;2;y\na;3;z\n", {"size": [1, 2, 3]}),
        ("nodes.tsv", "kind\tName\nx\tc\n1\tb\n2\ta\n", {}),
        ("nodes.json", '[{"node": "c", "size": 1.5}, {"node": "b", "size": 2}, {"node": "a", "size": 3}]',
         {"size": [1.5, 2, 3]}),
    ],
)  # fmt: skip
def test_isolated_nodes_come_from_a_table(tmp_path, name, content, features):
    nodes = written(tmp_path, name, content)
    for edges in (written(tmp_path, "e.csv", "a,b\n"), written(tmp_path, "e.txt", "a b\n")):
        graphs = mt.read(edges, nodes=nodes)
        assert graphs.names == ["c", "b", "a"]
        assert graphs.edges.tolist() == [[2], [1]]
        assert {key: value.tolist() for key, value in graphs.node_features.items()} == features


def test_a_table_of_nodes_without_edges_is_a_graph(tmp_path):
    nodes = written(tmp_path, "nodes.csv", "node\n10\n9\n")
    for content in ("", "source,target\n"):
        assert mt.read(written(tmp_path, "e.csv", content), nodes=nodes).names == ["10", "9"]


@pytest.mark.parametrize(
    ("edges", "nodes", "message"),
    [
        ("a,b\nb,z\n", "node\na\nb\n", "line 2 has the node 'z', which is not in .*nodes.csv: add it there"),
        ("a,b\n", "node\na\nb\na\n", "nodes.csv has the node 'a' twice"),
        ("a,b\n", "node\na\n\"\"\nb\n", "line 3 has an empty cell"),
        ("a,id\n", "id\na\n", "line 1 has the node 'id', which may be a node or the header"),
        ("a,b\n", "size,kind\n1,a\n", "no column 'node' with the name of each node, only 'size', 'kind'"),
    ],
)  # fmt: skip
def test_wrong_tables_of_nodes_are_refused(tmp_path, edges, nodes, message):
    path, table = written(tmp_path, "e.csv", edges), written(tmp_path, "nodes.csv", nodes)
    with pytest.raises(ValueError, match=message) as caught:
        mt.read(path, nodes=table)
    assert "\n" not in str(caught.value)


def test_nodes_are_for_lists_of_edges(tmp_path):
    nodes = written(tmp_path, "nodes.csv", "node\na\n")
    with pytest.raises(ValueError, match="is for lists of edges"):
        mt.read(written(tmp_path, "g.json", JSON), nodes=nodes)
    with pytest.raises(ValueError, match=r"table of nodes .*none.csv does not exist"):
        mt.read(written(tmp_path, "e.csv", "a,b"), nodes=tmp_path / "none.csv")


@pytest.mark.parametrize(
    ("name", "content", "edges"),
    [
        ("a.csv", "a;b\nb;c", [("a", "b"), ("b", "c")]),
        ("a.csv", "a\tb", [("a", "b")]),
        ("a.csv", 'a,"x;y"', [("a", "x;y")]),
        ("a.csv", '"a";"x,y"\n"b";"z,w"', [("a", "x,y"), ("b", "z,w")]),
        ("a.csv", "source;target;weight\na,b;c;2", [("a,b", "c")]),
        ("a.csv", "a;x,b\nb,c", [("a;x", "b"), ("b", "c")]),
        ("a.tsv", "a,b\tb;c", [("a,b", "b;c")]),
        ("a.tsv", 'Source\tTarget\n"a\tb"\tc', [("a\tb", "c")]),
    ],
)
def test_separators_are_recognised(tmp_path, name, content, edges):
    graphs = mt.read(written(tmp_path, name, content))
    names, (source, target) = graphs.names, graphs.edges.tolist()
    assert [(names[u], names[v]) for u, v in zip(source, target, strict=True)] == edges


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", "a;b,c\nd;e,f", "may be separated by commas or by semicolons: write names .* in quotes"),
        ("a.csv", "source;target;weight\na;b;1,5\n", "weight in line 2 must be a number, got '1,5'"),
        ("a.csv", "a;b\nc;d;e", "line 2 has 3 columns, but line 1 has 2"),
        ("a.tsv", "a,b\nb,c", "1 columns, expected 2 or 3"),
    ],
)
def test_doubtful_separators_are_refused(tmp_path, name, content, message):
    with pytest.raises(ValueError, match=message):
        mt.read(written(tmp_path, name, content))


class TestGML:
    def test_what_networkx_writes_is_read(self, tmp_path):
        for kind in (nx.DiGraph, nx.MultiDiGraph, nx.Graph):
            graph = nx.gnp_random_graph(9, 0.3, seed=3, directed=kind is not nx.Graph)
            graph = nx.relabel_nodes(kind(graph), {i: f"v {i} ü&" for i in graph})
            for i, (u, v) in enumerate(list(graph.edges())):
                graph.add_edge(u, v, weight=1e-5 + i)
            nx.write_gml(graph, tmp_path / "g.gml")
            graphs = mt.read(tmp_path / "g.gml")
            assert graphs.names == list(graph)
            np.testing.assert_allclose(graphs.to_scipy()[0].toarray(), nx.to_numpy_array(graph))

    @pytest.mark.parametrize(
        ("content", "names", "edges", "weights"),
        [
            ("graph [ node [ id 5 ] node [ id 3 ] edge [ source 5 target 3 ] ]", ["5", "3"], [[0, 1], [1, 0]], None),
            ("graph [ directed 0 node [ id 0 ] edge [ source 0 target 0 ] ]", ["0"], [[0], [0]], None),
            ('Creator "x"\n# [\ngraph [ directed 1 node [ id 0 label "a\nb ]" ] node [ id 1 label "日" ] '
             "edge [ source 0 target 1 value 1e-3 ] edge [ source 0 target 1 ] ]",
             ["a\nb ]", "日"], [[0, 0], [1, 1]], [1e-3, 1]),
            ('graph [ directed 1 node [ id 0 label "x" ] node [ id 1 label "x" graphics [ x 1 y 2 ] ] ]',
             ["0", "1"], [[], []], None),
            (f"graph [ node [ id {10**30} ] ]", [str(10**30)], [[], []], None),
        ],
    )  # fmt: skip
    def test_it_is_read_as_meant(self, tmp_path, content, names, edges, weights):
        graphs = mt.read(written(tmp_path, "g.gml", content))
        assert (graphs.names, graphs.edges.tolist()) == (names, edges)
        assert (graphs.weights if weights is None else graphs.weights.tolist()) == weights

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            ("", "0 graphs"),
            ("graph [ ] graph [ ]", "2 graphs"),
            ("graph [ node [ id 0 ] node [ id 0 ] ]", "two nodes have the id 0"),
            ('graph [ node [ id 0 ] node [ id "0" ] ]', "two nodes have the id '0'"),
            ("graph [\nnode [ id 0 ]\nedge [ source 0 target 1 ] ]", "edge in line 3 refers to node 1"),
            ("graph [\nnode [ name 0 ] ]", "line 2 must have an integer 'id', got None"),
            ("graph [ node [ id 0 id 1 ] ]", "second 'id'"),
            ("graph [ Node [ id 0 ] ]", "'Node', which is not read: write it 'node'"),
            ("graph [ directed 2 ]", "directed must be 0 or 1"),
            ("graph [ directed 1 directed 0 ]", "directed must be 0 or 1"),
            ("graph [ node [ id 0 graph [ node [ id 1 ] ] ] ]", "ungroup it"),
            ("graph [ node [ id 0 ]", "ends within the list 'graph' of line 1"),
            ("graph [ node 5 ]", "node must be a list"),
            ("graph [ ] ]", "closes nothing"),
            ("graph [ 5 ]", "where a key must be"),
            ("graph [ node [ id ] ]", "closes nothing"),
            ("graph [ node [ id 0x ] ]", "line 1 cannot be read"),
            ("a [ " * 10_000, "nested too deeply"),
            ("graph [ directed 1 node [ id 0 ] edge [ source 0 target 0 weight \"2\" ] ]", "must be a number, got '2'"),
            ("graph [ directed 1 node [ id 0 ] edge [ source 0 target 0 weight 2 weight 3 ] ]", r"got \[2, 3\]"),
            ("graph [ directed 1 node [ id 0 ] edge [ source 0 target 0 directed 0 ] ]", "graph that is directed"),
            ("graph [ directed 1 node [ id 0 ] edge [ source 0 target 0 weight -1 ] ]", "weight -1.0"),
            (f"graph [ node [ id {'1' * 5000} ] ]", "limit"),
        ],
    )  # fmt: skip
    def test_what_is_wrong_is_named(self, tmp_path, content, message):
        with pytest.raises(ValueError, match=message) as caught:
            mt.read(written(tmp_path, "g.gml", content))
        assert "\n" not in str(caught.value)
