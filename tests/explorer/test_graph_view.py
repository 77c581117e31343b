import io
import json

import numpy as np
import pytest
import torch

import magnetite as mt
from magnetite.explorer.examples import EXAMPLES
from magnetite.graphs import Digraphs

PATH = {"nodes": 4, "edges": [[0, 1], [1, 2], [2, 3]], "weights": None, "names": None}


def answer(client, path, payload, status=200):
    response = client.post(f"/api/{path}", json=payload)
    assert response.status_code == status, response.text
    return response.json()


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_example_is_the_graph_of_the_paper_with_finite_positions(client, name):
    graph = answer(client, "graph/example", {"name": name, "nodes": 10})
    assert {tuple(edge) for edge in graph["edges"]} == set(EXAMPLES[name](10))
    assert np.isfinite(graph["positions"]).all()
    assert len(graph["positions"]) == 10


@pytest.mark.parametrize("potential", ["absolute", "relative", "adaptive"])
@pytest.mark.parametrize("normalised", [True, False])
def test_the_numbers_are_those_of_magnetite(client, potential, normalised):
    payload = {"graph": PATH, "potential": potential, "q": 0.2, "normalised": normalised}
    found = answer(client, "graph/encode", payload)
    q = {"absolute": 0.2, "relative": mt.Relative(0.2), "adaptive": mt.Adaptive()}[potential]
    graphs = Digraphs.from_edges(np.array(PATH["edges"]).T, 4)
    pairs = mt.MagneticLaplacian(k=4, q=q, normalised=normalised, dtype=torch.float64)(graphs)
    assert found["values"] == pairs.values[0].tolist()
    vectors = np.array(found["re"]) + 1j * np.array(found["im"])
    assert np.allclose(vectors, pairs.vectors.T.numpy(), rtol=0, atol=1e-8)
    assert found["q"] == pytest.approx({"absolute": 0.2, "relative": 0.2 / 3, "adaptive": 0.25 / 3}[potential])


def test_the_order_of_a_path_is_restored_from_its_phases(client):
    assert answer(client, "graph/encode", {"graph": PATH})["order"] == [0, 1, 2, 3]


def test_the_spectrum_begins_with_the_combinatorial_laplacian(client):
    found = answer(client, "graph/spectrum", {"graph": PATH, "normalised": True})
    graphs = Digraphs.from_edges(np.array(PATH["edges"]).T, 4)
    assert found["q"][0] == 0
    assert found["q"][-1] == 0.5
    assert np.allclose([row[0] for row in found["values"]], mt.Laplacian(k=4)(graphs).values[0], atol=1e-6)


def test_walks_from_a_node_are_those_of_random_walk(client):
    found = answer(client, "graph/walks", {"graph": PATH, "start": 1, "steps": 2})
    walks = mt.RandomWalk(steps=2)(Digraphs.from_edges(np.array(PATH["edges"]).T, 4))[0]
    assert np.allclose(found["landing"], walks[1].T)
    assert found["features"][3] == "1 step"
    assert found["landing"][3] == [0, 0, 1, 0]


def test_advice_is_that_of_advise(client):
    found = answer(client, "graph/advise", {"graph": PATH})
    assert found["name"] == "magnetic"
    assert found["q"] == pytest.approx(0.25 / 3)


@pytest.mark.parametrize("suffix", [".npz", ".safetensors", ".parquet", ".csv", ".json"])
def test_downloads_are_read_back(client, tmp_path, suffix):
    response = client.post("/api/graph/download", json={"graph": PATH, "format": suffix, "q": 0.25})
    path = tmp_path / f"encoding{suffix}"
    path.write_bytes(response.content)
    found = mt.read(path)
    direct = mt.MagneticLaplacian(k=4, q=mt.Relative(0.25))
    expected = direct(Digraphs.from_edges(np.array(PATH["edges"]).T, 4))
    assert torch.equal(found.vectors, expected.vectors)


def test_typed_edges_keep_their_names_and_weights(client):
    graph = answer(client, "graph/typed", {"text": "main parse 2\nmain run 1\n"})
    assert graph["names"] == ["main", "parse", "run"]
    assert graph["weights"] == [2, 1]


def upload(client, name, content):
    return client.post(f"/api/graph/read?name={name}", content=content)


def test_every_format_of_encode_is_read(client, tmp_path):
    edges = np.array([[0, 1, 2], [1, 2, 0]])
    npz, nodes = io.BytesIO(), [{"id": 0}, {"id": 1}, {"id": 2}]
    np.savez(npz, edge_index=edges)
    Digraphs.from_edges(edges).save(tmp_path / "g.safetensors")
    links = [{"source": int(u), "target": int(v)} for u, v in edges.T]
    xml = "".join(f'<node id="{n}"/>' for n in range(3)) + "".join(
        f'<edge source="{u}" target="{v}"/>' for u, v in edges.T
    )
    files = {
        "g.txt": b"0 1\n1 2\n2 0\n", "g.edges": b"0 1\n1 2\n2 0\n", "g.edgelist": b"0 1\n1 2\n2 0\n",
        "g.csv": b"source,target\n0,1\n1,2\n2,0\n", "g.tsv": b"source\ttarget\n0\t1\n1\t2\n2\t0\n",
        "g.npz": npz.getvalue(), "g.safetensors": (tmp_path / "g.safetensors").read_bytes(),
        "g.json": json.dumps({"directed": True, "multigraph": False, "nodes": nodes, "links": links}).encode(),
        "g.graphml": f'<graphml><graph edgedefault="directed">{xml}</graph></graphml>'.encode(),
        "g.gml": b"graph [ directed 1 node [ id 0 ] node [ id 1 ] node [ id 2 ]"
        b" edge [ source 0 target 1 ] edge [ source 1 target 2 ] edge [ source 2 target 0 ] ]",
    }  # fmt: skip
    about = client.get("/api/about").json()
    assert {f".{name.split('.')[1]}" for name in files} == set(about["formats"])
    for name, content in files.items():
        response = upload(client, name, content)
        assert response.status_code == 200, (name, response.text)
        assert sorted(response.json()["edges"]) == edges.T.tolist(), name


BAD_FILES = {
    "g.exe": b"MZ",
    "g.txt": b"0 1 2 3 4",
    "g.graphml": b'<!DOCTYPE g [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><graphml>&b;</graphml>',
    "g.json": b"[" * 100_000,
    "g.npz": b"PK\x03\x04nothing",
    "g.safetensors": b"\xff" * 100,
    "g.gml": b"graph [" * 5_000,
    "g.csv": b"\x00\xff\xfe",
    "g.pkl": b"cos\nsystem\n(S'true'\ntR.",
    "": b"0 1",
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_a_bad_file_is_refused_in_one_line_without_a_path(client, name):
    response = upload(client, name, BAD_FILES[name])
    assert 400 <= response.status_code < 500
    line = response.json()["error"]
    assert "\n" not in line
    assert "/tmp" not in line


BAD_GRAPHS = [
    {"nodes": 0, "edges": []},
    {"nodes": -1, "edges": []},
    {"nodes": 10**9, "edges": []},
    {"nodes": 2.5, "edges": []},
    {"nodes": True, "edges": []},
    {"nodes": 2, "edges": [[0, 2]]},
    {"nodes": 2, "edges": [[0, -1]]},
    {"nodes": 2, "edges": [[0]]},
    {"nodes": 2, "edges": [[0, "1"]]},
    {"nodes": 2, "edges": [[0, 0.5]]},
    {"nodes": 2, "edges": [[0, None]]},
    {"nodes": 2, "edges": [[0, 1, 1]]},
    {"nodes": 2, "edges": "0 1"},
    {"nodes": 2, "edges": {"0": 1}},
    {"nodes": 2, "edges": [[0, 1]], "weights": [-1]},
    {"nodes": 2, "edges": [[0, 1]], "weights": [1, 2]},
    {"nodes": 2, "edges": [[0, 1]], "weights": ["a"]},
    {"nodes": 2, "edges": [[0, 1]], "names": ["a"]},
    {"nodes": 2, "edges": [[0, 1]], "names": [1, 2]},
    {"nodes": 2, "edges": [[0, 1]] * 20_001},
    [],
    None,
]


@pytest.mark.parametrize("graph", BAD_GRAPHS, ids=lambda graph: str(graph)[:40])
def test_a_bad_graph_is_refused(client, graph):
    response = client.post("/api/graph/encode", json={"graph": graph})
    assert 400 <= response.status_code < 500
    assert response.json()["error"]


@pytest.mark.parametrize(
    "change",
    [{"q": -1}, {"q": 0.6, "potential": "absolute"}, {"q": "1"}, {"q": 1e308}, {"k": 0}, {"k": 17}, {"potential": "x"},
     {"normalised": "yes"}, {"q": None}],
    ids=str,
)  # fmt: skip
def test_a_bad_setting_is_refused(client, change):
    assert "must be" in answer(client, "graph/encode", {"graph": PATH, **change}, 422)["error"]


def test_graphs_without_edges_and_of_one_node_are_encoded(client):
    for nodes in (1, 3):
        graph = {"nodes": nodes, "edges": []}
        for path in ("encode", "spectrum", "advise", "arranged"):
            answer(client, f"graph/{path}", {"graph": graph})
        answer(client, "graph/walks", {"graph": graph, "start": 0})
