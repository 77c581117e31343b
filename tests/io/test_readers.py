import io
import json
import zipfile

import networkx as nx
import numpy as np
import pytest
import torch
from scipy.sparse import eye_array, save_npz

import magnetite as mt


@pytest.fixture
def graph():
    drawn = nx.gnp_random_graph(9, 0.3, seed=3, directed=True)
    for i, (u, v) in enumerate(drawn.edges):
        drawn[u][v]["weight"] = 0.5 + i
    return drawn


def write(graph, path):
    if path.suffix == ".graphml":
        nx.write_graphml(graph, path)
    elif path.suffix == ".json":
        path.write_text(json.dumps(nx.node_link_data(graph, edges="links" if "links" in path.stem else "edges")))
    elif path.suffix == ".csv":
        rows = [f"{u}, {v}, {w}" for u, v, w in graph.edges(data="weight")]
        path.write_text("\n".join(["Source,Target,Weight", *rows]) if "header" in path.stem else "\n".join(rows))
    elif path.suffix in (".txt", ".edges", ".edgelist"):
        path.write_text("# a comment\n\n" + "\n".join(f"{u} {v} {w} # x" for u, v, w in graph.edges(data="weight")))
    elif path.suffix == ".safetensors":
        mt.Digraphs.from_networkx(graph).save(path)
    elif "scipy" in path.stem:
        save_npz(path, nx.to_scipy_sparse_array(graph))
    else:
        edges = mt.Digraphs.from_networkx(graph)
        np.savez(path, edge_index=edges.edges.numpy(), edge_weight=edges.weights.numpy(), num_nodes=9)


@pytest.mark.parametrize(
    "name",
    ["a.txt", "a.edges", "a.edgelist", "a.csv", "header.csv", "a.graphml", "a.json", "links.json", "scipy.npz", "a.npz",
     "a.safetensors"],
)  # fmt: skip
def test_every_format_gives_the_same_graph(graph, tmp_path, name):
    path = tmp_path / name
    write(graph, path)
    graphs = mt.read(path)
    unnamed = path.suffix in (".npz", ".safetensors")
    assert graphs.names == (None if unnamed else [str(v) for v in range(9)])
    np.testing.assert_allclose(graphs.to_scipy()[0].toarray(), nx.to_numpy_array(graph))


@pytest.mark.parametrize(
    ("content", "edges"),
    [
        ("source,target\na,b", [("a", "b", 1)]),
        ("Target,Source\na,b", [("b", "a", 1)]),
        ("weight,from,to\n2,a,b", [("a", "b", 2)]),
        ("a,b\nb,c", [("a", "b", 1), ("b", "c", 1)]),
        ("\ufefftarget,source,weight\na,b,2", [("b", "a", 2)]),
        ("\ufeffa,b\nb,c", [("a", "b", 1), ("b", "c", 1)]),
        ("# Source , Target\r\na,b\r\n", [("a", "b", 1)]),
        ("Source,Target,Type,Id,Weight\na,b,Directed,0,2", [("a", "b", 2)]),
        ("source,target,label\na,b,", [("a", "b", 1)]),
        ("u,v\n0,1", [("0", "1", 1)]),
        ("u,v,w\na,b,3", [("a", "b", 3)]),
        ("source,target\nsource,a", [("source", "a", 1)]),
        ('"a, b", "say ""hi"""\n"c\nd",e', [("a, b", 'say "hi"', 1), ("c\nd", "e", 1)]),
        ("007,7", [("007", "7", 1)]),
        ("²,٣\n٣,a", [("²", "٣", 1), ("٣", "a", 1)]),
        ('"#a",#b\n"#b","#c"', [("#a", "#b", 1), ("#b", "#c", 1)]),
        ("from_id,to_id\nalice,bob", [("alice", "bob", 1)]),
        ("Target Node, Source-Node\na,b", [("b", "a", 1)]),
        ("node_1,node_2\n0,1", [("0", "1", 1)]),
        ("callee,caller,w\na,b,3", [("b", "a", 3)]),
        ("citing,cited\np,q", [("p", "q", 1)]),
        ("parent,child\np,q", [("p", "q", 1)]),
        ("i,j,value\na,b,3", [("a", "b", 3)]),
        ("source,target,weight,start,end\na,b,2,0,9", [("a", "b", 2)]),
        ("node1,node5\nnode5,node2", [("node1", "node5", 1), ("node5", "node2", 1)]),
        ("node1,node1\nnode5,x", [("node1", "node1", 1), ("node5", "x", 1)]),
        ("node1,node2,2\nnode2,node3,4", [("node1", "node2", 2), ("node2", "node3", 4)]),
        ("source,target,\na,b,\nb,c,", [("a", "b", 1), ("b", "c", 1)]),
        ("source,target,type,directed\na,b,Directed,TRUE", [("a", "b", 1)]),
        ("source,target,weight,kind\na,b,2,5", [("a", "b", 2)]),
    ],
)
def test_csv_is_read_as_meant(tmp_path, content, edges):
    (tmp_path / "a.csv").write_text(content)
    graphs = mt.read(tmp_path / "a.csv")
    names, (source, target) = graphs.names, graphs.edges.tolist()
    found = [(names[u], names[v], w) for u, v, w in zip(source, target, graphs.edge_weight.tolist(), strict=True)]
    assert found == edges


def test_edge_lists_have_comments_and_any_line_end(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes("\ufeff% nodes edges\r\nb  a 2 # b to a\r# c d\r\n\na\tc 3".encode())
    graphs = mt.read(path)
    assert graphs.names == ["b", "a", "c"]
    assert graphs.edges.tolist() == [[0, 1], [1, 2]]
    assert graphs.weights.tolist() == [2, 3]


def test_integers_of_any_length_are_sorted_as_numbers(tmp_path):
    long = "1" * 5000
    (tmp_path / "a.txt").write_text(f"{long} 9\n9 010\n")
    assert mt.read(tmp_path / "a.txt").names == ["9", "010", long]


def test_names_keep_their_order_of_appearance_and_numbers_theirs(tmp_path):
    (tmp_path / "a.txt").write_text("b a\na c\n")
    assert mt.read(tmp_path / "a.txt").names == ["b", "a", "c"]
    (tmp_path / "b.txt").write_text("10 9\n9 2\n")
    assert mt.read(tmp_path / "b.txt").names == ["2", "9", "10"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.txt", "0 1 x", "weight in line 1 must be a number, got 'x'"),
        ("a.txt", "0 1\n1", "line 2 has 1 columns"),
        ("a.txt", "# nothing", "no edges"),
        ("a.txt", "0 1 -2", "weight -2.0"),
        ("a.txt", "0 1 nan", "weight nan"),
        ("a.txt", "0 1 2\n1 2", "line 2 has 2 columns, but line 1 has 3"),
        ("a.txt", "a b\nC F#", "line 2 has a # within 'F#'"),
        ("a.txt", "a, b", "line 1 is separated by ',', not by spaces"),
        ("a.txt", "source target\n", "no edges below the header"),
        ("a.csv", "0,1,2,3", "4 columns"),
        ("a.csv", "knoten,ziel\n0,1\n1,2", "line 1 .* may be a header or an edge: name the columns source, target"),
        ("a.csv", "x,y,calls\na,b,3", "weight in line 1 must be a number, got 'calls'; if the line is a"),
        (
            "a.csv",
            "caller,callee,calls\na,b,3",
            "column 'calls' in line 1 is not read: name it weight",
        ),
        ("a.csv", "from_id,dest_id\na,b", "line 1 may be a header, but only 'from_id' is the name of a column"),
        ("a.csv", "node1,node2\nnode3,node4", r"line 1 \('node1, node2'\) may be a header or an edge"),
        ("a.csv", "start,end\nend,x", "may be a header or an edge"),
        ("a.csv", "start,end,2\nend,x,3", "may be a header or an edge"),
        ("a.csv", "i,j\na,b", "may be a header or an edge"),
        ("a.csv", "parent,start,child\na,b,c", "names a column twice"),
        ("a.csv", "source,dest\na,b", "line 1 may be a header, but only 'source' is the name of a column"),
        ("a.csv", "u,v\nv,w", r"line 1 \('u, v'\) may be a header or an edge"),
        ("a.csv", "from,to\nto,x", "may be a header or an edge"),
        ("a.csv", "source,src,target\na,b,c", "names a column twice"),
        (
            "a.csv",
            "source,target,cost\na,b,2.5",
            "column 'cost' in line 1 is not read: name it weight",
        ),
        ("a.csv", "source,target,strength\na,b,2\nb,c,", "column 'strength' in line 1 is not read"),
        ("a.csv", 'source,target,strength\na,b,"2,5"', "column 'strength' in line 1 is not read"),
        ("a.csv", "source,target,label\na,b,x", "column 'label' in line 1 is not read"),
        ("a.txt", "source target strength\na b strong", "column 'strength' in line 1 is not read"),
        ("a.csv", 'source,target,weight\na,b,"2,5"', "weight in line 2 must be a number, got '2,5'"),
        ("a.csv", "source,target,value,weight\na,b,2,3", "names a column twice"),
        ("a.csv", "source,target,type\na,b,Undirected", "line 2 is not directed by its column 'type'"),
        ("a.csv", "source,target,weight,Directed\na,b,2,true\na,c,2,False", "line 3 is not directed by its column"),
        ("a.csv", "source,target,directed\na,b,", "line 2 is not directed by its column 'directed'"),
        ("a.csv", "source,target,is_undirected\na,b,1", "line 2 is not directed by its column 'is_undirected'"),
        ("a.csv", "a,b,2\nb,c", "line 2 has 2 columns, but line 1 has 3"),
        ("a.csv", "source,target,weight\na,b,2\nb,3", "line 3 has 2 columns, but line 1 has 3"),
        ("a.csv", "a,b\nc,", "line 2 has an empty cell in column 2"),
        ("a.csv", "a,b,1\nb,c,", "line 2 has an empty cell in column 3"),
        ("a.csv", "a,b,1_0", "weight in line 1 must be a number, got '1_0'"),
        ("a.csv", "a;b;1,5\nb;c;2,5", "may be separated by commas or by semicolons"),
        ("a.csv", 'a,b\nx,"c\nd,e', "line 3 is not valid CSV"),
        ("a.csv", "a,b\n# c,d", "line 2 starts with '#', but CSV has no comments"),
        ("a.csv", "a,b,1\n\n#c,d,2", "line 3 starts with '#'"),
        ("a.csv", '"a\nb",c\n\n #c,d', "line 4 starts with '#'"),
        ("a.csv", "#a,b\nc,d", "line 1 starts with '#'"),
        ("a.csv", "source,target\n#a,b", "line 2 starts with '#'"),
        ("a.csv", "a,b\n\ufeffc,d", "line 2 contains a byte order mark"),
        ("a.csv", "a,b\nc\0,d", "line 2 contains a NUL byte"),
        ("a.csv", "a," + "x" * 200_000, "line 1 is not valid CSV: field larger than field limit"),
        ("a.json", '{"nodes": [{"id": 0}, {"id": 0}], "links": []}', "two nodes have the id 0"),
        ("a.json", '{"nodes": [{"id": 0}, {"id": "0"}], "links": []}', "two nodes have the id '0'"),
        ("a.json", '{"nodes": [{"id": true}], "links": []}', "must be a string or a number, got True"),
        ("a.json", '{"nodes": [{"id": 0}], "links": [], "edges": []}', "either links or edges, got links and edges"),
        ("a.json", '{"nodes": [{"id": 0}]}', "either links or edges, got neither"),
        ("a.json", '{"nodes": [{"id": 0}], "links": [], "directed": "no"}', "directed must be true or false, got 'no'"),
        ("a.json", '{"nodes": [{"id": 0, "id": 1}], "links": []}', "has the key 'id' twice"),
        ("a.json", '{"nodes": [{"id": 0}], "links": [{"source": 0, "target": 0, "weight": "2"}]}', "number, got '2'"),
        ("a.json", '{"nodes": [{"id": 0}], "links": [{"source": 0, "target": 0, "weight": true}]}', "number, got True"),
        ("a.json", '{"nodes": [{"id": 0}], "links": [{"source": 0, "target": 0, "weight": null}]}', "number, got None"),
        (
            "a.json",
            '{"nodes": [{"id": 0}], "links": [{"source": 0, "target": 0}, {"source": 0, "target": 0}], '
            '"multigraph": false}',
            "repeated edges, but multigraph is false",
        ),
        ("a.json", '{"nodes": ' + "[" * 100_000, "nested too deeply"),
        ("a.json", '{"nodes": [{"id": ' + "1" * 10_000 + '}], "links": []}', "limit"),
        ("a.json", '{"nodes": [{"id": 0}], "links": [{"source": 0, "target": 7}]}', "node 7"),
        ("a.json", '{"nodes": [', "cannot be read"),
        ("a.json", '{"edges": []}', "no nodes"),
        ("a.json", "", "node-link data"),
        ("a.json", '{"nodes": [], "edges": []}', "empty"),
        ("a.graphml", "<graphml", "cannot be read"),
        ("a.npz", "not a zip", "not a complete .npz archive"),
        ("a.npz", "", "not a complete .npz archive"),
        ("a.graphml", "", "expected a GraphML graph"),
        ("a.safetensors", "short", "not a complete safetensors file"),
        ("a.pt", "", "runs code when it is loaded"),
        ("a.pkl", "", "pickle"),
        ("a.docx", "", "unknown file extension"),
    ],
)
def test_bad_files_are_named_with_the_reason(tmp_path, name, content, message):
    path = tmp_path / name
    path.write_text(content)
    with pytest.raises(ValueError, match=message) as caught:
        mt.read(path)
    assert name in str(caught.value)
    assert "\n" not in str(caught.value)


def test_encodings_other_than_utf_8_are_named(tmp_path):
    (tmp_path / "a.csv").write_bytes("a,b".encode("utf-16"))
    with pytest.raises(ValueError, match="UTF-16: save it as UTF-8"):
        mt.read(tmp_path / "a.csv")
    (tmp_path / "a.csv").write_bytes(b"a,b\n\xe9,c")
    with pytest.raises(ValueError, match="line 2 is not UTF-8 \\(byte 0xe9\\)"):
        mt.read(tmp_path / "a.csv")


LINK = {"source": 0, "target": 1}


def links(tmp_path, *own, **content):
    path = tmp_path / "a.json"
    path.write_text(json.dumps({"nodes": [{"id": 0}, {"id": 1}], "links": [LINK | link for link in own], **content}))
    return mt.read(path)


@pytest.mark.parametrize("name", ["weight", "Weight", "w", "value", "edge_weight", " WEIGHT "])
def test_weights_are_known_by_the_same_names_in_every_format(tmp_path, name):
    assert links(tmp_path, {name: 7, "cost": 3}).weights.tolist() == [7]
    key = f"<key id='d1' for='edge' attr.name='{name}' attr.type='double'/>"
    edge = "<edge source='a' target='b'><data key='d1'>7</data></edge>"
    assert graphml(tmp_path, f"{key}<graph edgedefault='directed'>{NODES}{edge}</graph>").weights.tolist() == [7]
    (tmp_path / "a.csv").write_text(f"source,target,{name}\na,b,7")
    assert mt.read(tmp_path / "a.csv").weights.tolist() == [7]


@pytest.mark.parametrize(
    ("link", "content", "message"),
    [
        ({"weight": 1, "value": 2}, {}, "edge 0 → 1 has several weights"),
        ({"Weight": "2"}, {}, "weight of edge 0 → 1 must be a number, got '2'"),
        ({"directed": False}, {}, "edge 0 → 1 has 'directed' False in a graph that is directed"),
        ({"Directed": "false"}, {}, "edge 0 → 1 has 'Directed' 'false'"),
        ({"undirected": True}, {}, "edge 0 → 1 has 'undirected' True"),
        ({"type": "Undirected"}, {}, "edge 0 → 1 has 'type' 'Undirected'"),
        ({"directed": True}, {"directed": False}, "edge 0 → 1 has 'directed' True in a graph that is undirected"),
        ({}, {"Directed": False}, "it has 'Directed', which is not read: write it 'directed'"),
    ],
)
def test_json_that_would_be_read_otherwise_than_it_says_is_refused(tmp_path, link, content, message):
    with pytest.raises(ValueError, match=message):
        links(tmp_path, link, **content)


def test_json_may_say_the_direction_of_each_link(tmp_path):
    assert links(tmp_path, {"directed": True, "undirected": False}).edges.tolist() == [[0], [1]]
    assert links(tmp_path, {"directed": False}, directed=False).edges.tolist() == [[0, 1], [1, 0]]


WEIGHT = "<key id='d0' for='edge' attr.name='weight' attr.type='double'><default>3</default></key>"
NODES = "<node id='a'/><node id='b'><port name='p'/></node>"
EDGE = "<edge source='a' target='b'/>"
BOTH = "".join(
    f"<key id='d{i}' for='edge' attr.name='weight' attr.type='{kind}'/>" for i, kind in enumerate(("long", "double"))
)


def graphml(tmp_path, content):
    path = tmp_path / "a.graphml"
    path.write_text(f"<graphml>{content}</graphml>")
    return mt.read(path)


def test_graphml_defaults_and_directions_are_honoured(tmp_path):
    weighted = "<edge source='b' target='b' directed='true'><data key='d0'> 0.5 </data></edge>"
    graphs = graphml(tmp_path, f"{WEIGHT}<graph edgedefault='undirected'>{NODES}{EDGE}{weighted}</graph>")
    assert graphs.names == ["a", "b"]
    assert graphs.edges.tolist() == [[0, 1, 1], [1, 0, 1]]
    assert graphs.weights.tolist() == [3, 3, 0.5]
    graphs = graphml(tmp_path, f"<graph edgedefault='directed'>{NODES}{EDGE}</graph>")
    assert graphs.edges.tolist() == [[0], [1]]
    assert graphs.weights is None


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (f"<graph edgedefault='directed'>{NODES}{EDGE}</graph>" * 2, "contains 2 graphs"),
        ("", "contains 0 graphs"),
        (f"<graph edgedefault='directed'>{NODES}<node id='c'><graph/></node></graph>", "graph within a node"),
        (f"<graph edgedefault='directed'>{NODES}<hyperedge/></graph>", "hyperedges"),
        (f"<graph>{NODES}{EDGE}</graph>", "edgedefault of the graph must be directed or undirected, got None"),
        (f"<graph edgedefault='directed'>{NODES}<node id='a'/></graph>", "two nodes have the id 'a'"),
        (f"<graph edgedefault='directed'><node id='a'/>{EDGE}</graph>", "refers to node 'b', which is not declared"),
        (f"<graph edgedefault='directed'>{NODES}<edge source='a'/></graph>", "<edge> has no attribute target"),
        (f"{WEIGHT * 2}<graph edgedefault='directed'>{NODES}{EDGE}</graph>", "several keys with the id 'd0'"),
        (
            f"{WEIGHT}<key id='d1' for='edge' attr.name='W'/><graph edgedefault='directed'>{NODES}{EDGE}</graph>",
            r"has several weights .*: choose one with weight=",
        ),
        (
            f"<graph edgedefault='directed'>{NODES}"
            "<edge source='a' target='b'><data key='weight'>7</data></edge></graph>",
            "edge 'a' → 'b' has data with the key 'weight', which is not declared for edges",
        ),
        (
            f"<graph edgedefault='directed'>{NODES}<edge source='a' target='b' weight='7'/></graph>",
            "edge 'a' → 'b' has an attribute 'weight', which GraphML does not have",
        ),
        (
            f"<graph edgedefault='directed'>{NODES}<edge source='a' target='b'><weight>7</weight></edge></graph>",
            "<weight> within an <edge>",
        ),
        (
            f"<graph edgedefault='directed'>{NODES}{EDGE}<graph edgedefault='directed'>{EDGE}</graph></graph>",
            "<graph> within a <graph>",
        ),
        (f"<graph edgedefault='directed'>{NODES}<edges>{EDGE}</edges></graph>", "<edge> within a <edges>"),
        (f"<graph edgedefault='directed'><group>{NODES}</group></graph>", "<node> within a <group>"),
        (f"<graph edgedefault='directed'>{NODES}{EDGE}</graph>{EDGE}", "<edge> within a <graphml>"),
        (f"<graph edgedefault='directed'>{WEIGHT}{NODES}{EDGE}</graph>", "<key> within a <graph>"),
        (
            f"{WEIGHT}<graph edgedefault='directed'>{NODES}"
            "<edge source='a' target='b'><data key='d0'>x</data></edge></graph>",
            "weight of edge 'a' → 'b' must be a number, got 'x'",
        ),
        (
            f"{WEIGHT}<key id='d1' for='edge' attr.name='weight' attr.type='long'/>"
            f"<graph edgedefault='directed'>{NODES}{EDGE}</graph>",
            "several keys with the name 'weight' and different defaults",
        ),
        (
            f"{BOTH}<graph edgedefault='directed'>{NODES}"
            "<edge source='a' target='b'><data key='d0'>1</data><data key='d1'>1.5</data></edge></graph>",
            "edge 'a' → 'b' has several weights",
        ),
        (
            f"{BOTH.replace('edge', 'node').replace('weight', 'x')}<graph edgedefault='directed'>"
            "<node id='a'><data key='d0'>1</data><data key='d1'>1.5</data></node></graph>",
            "node 'a' has several data 'x'",
        ),
    ],
)
def test_graphml_that_is_no_plain_graph_is_refused(tmp_path, content, message):
    with pytest.raises(ValueError, match=message):
        graphml(tmp_path, content)


def test_graphml_of_networkx_may_have_a_key_per_type(tmp_path):
    graph = nx.DiGraph()
    graph.add_nodes_from([("a", {"x": 1, "y": 2}), ("b", {"x": 0.5, "y": 3}), ("c", {"x": 2, "y": 4})])
    graph.add_weighted_edges_from([("a", "b", 2), ("b", "c", 0.5)])
    nx.write_graphml(graph, tmp_path / "a.graphml")
    graphs = mt.read(tmp_path / "a.graphml")
    assert graphs.weights.tolist() == [2, 0.5]
    assert graphs.node_features["x"].tolist() == [1, 0.5, 2]
    assert graphs.node_features["y"].tolist() == [2, 3, 4]


@pytest.mark.parametrize("form", ["graphml", "gml", "json", "nodes"])
def test_features_beyond_single_precision_keep_their_values(tmp_path, form):
    values = {"large": [1e39, -0.5], "small": [1e38, 0.5], "endless": [float("inf"), 1.0]}
    nodes = [{"id": own} | {name: each[i] for name, each in values.items()} for i, own in enumerate("ab")]
    if form == "nodes":
        lines = [",".join(["node", *values]), *(",".join(str(cell) for cell in node.values()) for node in nodes)]
        (tmp_path / "nodes.csv").write_text("\n".join(lines))
        (tmp_path / "a.csv").write_text("source,target\na,b\n")
        features = mt.read(tmp_path / "a.csv", nodes=tmp_path / "nodes.csv").node_features
    else:
        graph = nx.DiGraph([("a", "b")])
        for node in nodes:
            graph.nodes[node["id"]].update({name: node[name] for name in values})
        path = tmp_path / f"a.{form}"
        if form == "json":
            path.write_text(json.dumps({"directed": True, "nodes": nodes, "links": [{"source": "a", "target": "b"}]}))
        else:
            {"graphml": nx.write_graphml, "gml": nx.write_gml}[form](graph, path)
        features = mt.read(path).node_features
    assert set(features) == {"large", "small"}
    assert features["large"].dtype == torch.float64 and features["large"].tolist() == [1e39, -0.5]
    assert features["small"].dtype == torch.float32


def test_entities_are_not_expanded(tmp_path):
    entities = "".join(f'<!ENTITY e{i + 1} "{f"&e{i};" * 10}">' for i in range(20))
    path = tmp_path / "a.graphml"
    path.write_text(f'<!DOCTYPE g [<!ENTITY e0 "ha">{entities}]><graphml><graph>&e20;</graph></graphml>')
    with pytest.raises(ValueError, match="DOCTYPE"):
        mt.read(path)


def test_undirected_json_has_both_directions(tmp_path):
    content = {"nodes": [{"id": [0, 1]}, {"id": 2}], "edges": [{"source": [0, 1], "target": 2}], "directed": False}
    (tmp_path / "a.json").write_text(json.dumps(content))
    graphs = mt.read(tmp_path / "a.json")
    assert graphs.names == ["(0, 1)", "2"]
    assert graphs.edges.tolist() == [[0, 1], [1, 0]]


def test_node_ids_out_of_range_in_npz(tmp_path):
    np.savez(tmp_path / "a.npz", edge_index=np.array([[0], [5]]), num_nodes=3)
    with pytest.raises(ValueError, match="outside its nodes 0…2"):
        mt.read(tmp_path / "a.npz")


def test_pickled_arrays_are_rejected(tmp_path):
    np.savez(tmp_path / "a.npz", edge_index=np.array([{"a": 1}], dtype=object))
    with pytest.raises(ValueError, match="pickle"):
        mt.read(tmp_path / "a.npz")


EDGES = np.array([[0, 1], [1, 2]])


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"edge_index": EDGES, "edge_weights": np.ones(2)}, "unknown array 'edge_weights'; it may have edge_index and"),
        ({"edge_index": EDGES, "weight": np.ones(2)}, "unknown array 'weight'"),
        ({"edges": EDGES}, "no array edge_index, only 'edges'"),
        ({"edge_index": EDGES, "num_nodes": 3.5}, "num_nodes must be one integer"),
        ({"edge_index": EDGES, "num_nodes": 10**12}, "num_nodes must be from 1 to 2147483647, got 1000000000000"),
        ({"edge_index": EDGES, "num_nodes": -1}, "num_nodes must be from 1"),
        ({"edge_index": EDGES, "num_nodes": 10**9}, "1000000000 nodes in .* bytes"),
        ({"edge_index": EDGES.astype(float)}, "must contain integers, got dtype float64"),
        ({"edge_index": EDGES, "edge_weight": np.ones(2, complex)}, "real numbers, got dtype complex128"),
        ({"edge_index": EDGES, "edge_weight": np.ones((2, 1))}, "one entry per edge"),
        ({"format": "xyz", "shape": [3, 3], "data": [1.0]}, "format must be one of csr, csc, bsr, dia, coo, got 'xyz'"),
        ({"format": 7, "shape": [3, 3], "data": [1.0]}, "format must be one of"),
    ],
)
def test_arrays_that_are_not_a_graph_are_named(tmp_path, arrays, message):
    np.savez(tmp_path / "a.npz", **arrays)
    with pytest.raises(ValueError, match=message):
        mt.read(tmp_path / "a.npz")


@pytest.mark.parametrize("kind", ["csr", "csc", "bsr", "coo", "dia"])
@pytest.mark.parametrize("damage", ["none", "range", "negative", "decreasing", "short", "dtype", "shape", "extra"])
def test_sparse_matrices_are_checked_before_scipy_converts_them(tmp_path, kind, damage):
    """Decreasing pointers made SciPy's conversion write outside its arrays."""
    path = tmp_path / "a.npz"
    matrix = eye_array(1000, format="coo", k=1)
    save_npz(path, matrix.asformat(kind))
    with np.load(path) as stored:
        arrays = dict(stored)
    pointer = {"coo": "row", "dia": "offsets"}.get(kind, "indptr")
    index = {"coo": "col", "dia": "offsets"}.get(kind, "indices")
    if damage == "range":
        arrays[index][0] = 10**6
    elif damage == "negative":
        arrays[index][0] = -(10**6)
    elif damage == "decreasing":
        arrays[pointer][len(arrays[pointer]) // 2] = 2**30
    elif damage == "short":
        arrays["data"] = arrays["data"][:0]
    elif damage == "dtype":
        arrays[pointer] = arrays[pointer].astype(float)
    elif damage == "shape":
        arrays["shape"] = np.array([2**60, 2**60])
    elif damage == "extra":
        arrays["weight"] = np.ones(3)
    np.savez(path, **arrays)
    if damage == "none":
        np.testing.assert_array_equal(mt.read(path).to_scipy()[0].toarray(), matrix.toarray())
    elif kind == "dia" and damage in ("range", "negative", "decreasing"):
        assert mt.read(path).num_edges == 0  # diagonals outside the matrix are legal and empty
    else:
        with pytest.raises(ValueError, match="cannot be read"):
            mt.read(path)


def test_archives_that_unpack_to_far_more_than_their_size_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("magnetite.io.readers.arrays.FREE_BYTES", 2**16)
    np.savez_compressed(tmp_path / "a.npz", edge_index=np.zeros((2, 10**6), np.int64))
    with pytest.raises(ValueError, match="unpacks to 16000128 bytes"):
        mt.read(tmp_path / "a.npz")


def test_headers_that_claim_more_than_the_file_has_are_refused(tmp_path):
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<i8", "fortran_order": False, "shape": (2, 2**50)})
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("edge_index.npy", header.getvalue() + b"few")
    with pytest.raises(ValueError, match="has 3 bytes, which is not shape"):
        mt.read(tmp_path / "a.npz")
