import json

import networkx as nx
import numpy as np
import pytest
from scipy.sparse import save_npz

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
        ("node_1,node_2\n0,1\n1,2", [("0", "1", 1), ("1", "2", 1)]),
        ("caller,callee,calls\na,b,3", [("a", "b", 3)]),
        ("a,b\nb,c", [("a", "b", 1), ("b", "c", 1)]),
        ("a,b,2\nb,c", [("a", "b", 2), ("b", "c", 1)]),
    ],
)
def test_csv_headers_and_missing_weights(tmp_path, content, edges):
    (tmp_path / "a.csv").write_text(content)
    graphs = mt.read(tmp_path / "a.csv")
    names, (source, target) = graphs.names, graphs.edges.tolist()
    found = [(names[u], names[v], w) for u, v, w in zip(source, target, graphs.edge_weight.tolist(), strict=True)]
    assert found == edges


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
        ("a.csv", "0,1,2,3", "4 columns"),
        ("a.json", '{"nodes": [{"id": 0}], "links": [{"source": 0, "target": 7}]}', "node 7"),
        ("a.json", '{"nodes": [', "cannot be read"),
        ("a.json", '{"edges": []}', "no nodes"),
        ("a.json", "", "node-link data"),
        ("a.json", '{"nodes": [], "edges": []}', "empty"),
        ("a.graphml", "<graphml", "cannot be read"),
        ("a.npz", "not a zip", "not a complete .npz archive"),
        ("a.npz", "", "not a complete .npz archive"),
        ("a.graphml", "", "expected a GraphML graph"),
        ("a.csv", "a;b", "separated by commas"),
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


def test_node_ids_out_of_range_in_npz(tmp_path):
    np.savez(tmp_path / "a.npz", edge_index=np.array([[0], [5]]), num_nodes=3)
    with pytest.raises(ValueError, match="outside its nodes 0…2"):
        mt.read(tmp_path / "a.npz")


def test_pickled_arrays_are_rejected(tmp_path):
    np.savez(tmp_path / "a.npz", edge_index=np.array([{"a": 1}], dtype=object))
    with pytest.raises(ValueError, match="pickle"):
        mt.read(tmp_path / "a.npz")
