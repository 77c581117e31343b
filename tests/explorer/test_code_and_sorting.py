import pytest
import torch

import magnetite as mt
from magnetite.explorer import judge
from magnetite.explorer.sorting_view import failing_input
from magnetite.sorting import SortingNetwork, SortingNetworks, generate

SOURCE = "def f(a, b):\n    x = a + 1\n    y = b * 2\n    return x - y\n"


def answer(client, path, payload, status=200):
    response = client.post(f"/api/{path}", json=payload)
    assert response.status_code == status, response.text
    return response.json()


def test_both_graphs_have_the_hashes_of_the_library(client):
    found = answer(client, "code/graphs", {"source": SOURCE})
    assert found["dataflow"]["hash"] == mt.code.build(SOURCE, "dataflow").hash
    assert found["sequential"]["hash"] == mt.code.build(SOURCE, "ast").hash
    assert len(found["dataflow"]["nodes"]) == found["dataflow"]["size"]


def test_reordering_changes_the_sequential_graph_alone(client):
    found = answer(client, "code/rewrite", {"source": SOURCE, "seed": 1})
    assert found["source"] != SOURCE
    assert found["changed"] == {"sequential": True, "dataflow": False}


def test_renaming_changes_both_graphs(client):
    found = answer(client, "code/rewrite", {"source": SOURCE, "seed": 1, "kind": "rename"})
    assert found["changed"] == {"sequential": True, "dataflow": True}


def test_what_cannot_be_rewritten_says_so(client):
    error = answer(client, "code/rewrite", {"source": "def f():\n    return 1"}, 422)["error"]
    assert "no independent statements" in error


def test_names_are_proposed_or_a_line_says_why_not(client):
    found = answer(client, "code/names", {"source": SOURCE})
    assert found["names"] or "no model of names" in found["reason"]


def test_names_are_those_of_the_model(client, shipped_namer):
    for source in (SOURCE, SOURCE.replace("x = a + 1\n    y = b * 2", "y = b * 2\n    x = a + 1")):
        found = answer(client, "code/names", {"source": source, "top": 3})
        expected = mt.code.suggest_names(source, top=3)
        assert [name for name, _ in found["names"]] == [name for name, _ in expected]
        assert [part for _, part in found["names"]] == pytest.approx([part for _, part in expected])


def test_one_of_several_functions_is_chosen_the_first_by_default(client):
    source = "def f(a):\n    return a\nclass C:\n    def g(self, b):\n        return b + self\n"
    first = answer(client, "code/graphs", {"source": source})
    assert first["functions"] == ["f", "C.g"]
    assert first["function"] == "f"
    second = answer(client, "code/rewrite", {"source": source, "name": "C.g", "seed": 1})
    assert second["function"] == "C.g"
    assert "self + b" in second["source"]
    assert answer(client, "code/graphs", {"source": source, "name": "h"}, 422)["error"]


@pytest.mark.parametrize(
    "source",
    ["", "x = 1", "def f(:", "def f():\n    return " + "(" * 300 + ")" * 300, "\0",
     "def f():\n    return " + "-" * 20_000 + "1", "x" * 60_000, None, 3],
    ids=lambda source: str(source)[:20],
)  # fmt: skip
@pytest.mark.parametrize("path", ["graphs", "rewrite"])
def test_bad_source_is_refused_in_one_line(client, source, path):
    response = client.post(f"/api/code/{path}", json={"source": source})
    assert 400 <= response.status_code < 500
    assert "\n" not in response.json()["error"]


def test_source_is_never_executed(client, tmp_path):
    mark = tmp_path / "executed"
    source = f"import pathlib\npathlib.Path({str(mark)!r}).touch()\ndef f(a):\n    return a + 1\n"
    answer(client, "code/graphs", {"source": source})
    client.post("/api/code/rewrite", json={"source": source})
    client.post("/api/code/names", json={"source": source})
    assert not mark.exists()


@pytest.mark.parametrize("name", ["batcher", "bitonic", "optimal"])
def test_known_networks_sort(client, name):
    network = answer(client, "sorting/known", {"name": name, "length": 8})
    found = answer(client, "sorting/check", network)
    assert found["correct"]
    assert found["failing"] is None


def test_a_network_that_fails_comes_with_an_input_that_it_does_not_sort(client):
    network = answer(client, "sorting/generated", {"length": 7, "seed": 3, "correct": False})
    found = answer(client, "sorting/check", network)
    assert not found["correct"]
    output = SortingNetwork.from_dict(network).sort(found["failing"])
    assert output == found["output"] != sorted(output)


def test_a_failing_input_is_found_exactly_where_the_truth_is_no():
    for network in [*generate(20, [5, 6], seed=0), *generate(20, [5, 6], seed=1).without_last()]:
        assert (failing_input(network) is None) == network.is_correct()


def test_topological_sorts_are_counted_exactly_or_estimated(client):
    small = answer(client, "sorting/check", mt.sorting.batcher(8).to_dict())
    assert small["sorts"] == {"exact": True, "text": f"{mt.sorting.batcher(8).topological_sorts():,}"}
    wide = {"length": 16, "comparators": [[2 * i, 2 * i + 1] for i in range(8)] * 12}
    assert answer(client, "sorting/check", wide)["sorts"]["exact"] is False


def test_a_network_without_comparators_has_no_graph(client):
    found = answer(client, "sorting/check", {"length": 3, "comparators": []})
    assert found["graph"] is None
    assert not found["correct"]
    assert answer(client, "sorting/verdict", {"length": 3, "comparators": []})["reason"]


@pytest.mark.parametrize(
    "network",
    [{"length": 17, "comparators": []}, {"length": 0, "comparators": []}, {"length": 3, "comparators": [[0, 3]]},
     {"length": 3, "comparators": [[0, 0]]}, {"length": 3, "comparators": [[0]]}, {"length": 3, "comparators": ["01"]},
     {"length": 3, "comparators": [[0, 1]] * 401}, {"length": 3}, {"length": "3", "comparators": []},
     {"length": 3, "comparators": [[True, 2]]}],
    ids=lambda network: str(network)[:40],
)  # fmt: skip
def test_a_bad_network_is_refused(client, network):
    response = client.post("/api/sorting/check", json=network)
    assert 400 <= response.status_code < 500


class Fixed(torch.nn.Module):
    """The same logits for every network."""

    def forward(self, graphs):
        assert set(graphs.edge_features) == {"ports"}
        return torch.tensor([[0.0, 2.0]]).expand(len(graphs), 2)


def test_the_verdict_is_the_probability_of_the_model(client, monkeypatch):
    monkeypatch.setattr(judge, "load_judge", lambda folder: {"runs/mine": Fixed()}[folder])
    monkeypatch.setattr(client.app.router.lifespan_context.__self__, "sorting_model", "runs/mine")
    found = answer(client, "sorting/verdict", mt.sorting.batcher(4).to_dict())
    assert found == {"probability": pytest.approx(0.8808, abs=1e-4), "reason": None, "accuracy": None}
    assert answer(client, "sorting/verdict", {"length": 3, "comparators": [], "model": "/etc"})["probability"] is None


def test_without_a_model_there_is_a_line_that_says_so(client, monkeypatch, tmp_path):
    monkeypatch.setattr(judge, "SHIPPED", tmp_path)
    judge.load_judge.cache_clear()
    found = answer(client, "sorting/verdict", mt.sorting.batcher(4).to_dict())
    assert found["probability"] is None
    assert "--sorting-model" in found["reason"]


@pytest.mark.skipif(not (judge.SHIPPED / judge.CARD).is_file(), reason="no model is shipped")
def test_the_shipped_model_judges_and_says_how_often_it_is_right(client):
    judge.load_judge.cache_clear()
    network = mt.sorting.batcher(6)
    found = answer(client, "sorting/verdict", network.to_dict())
    [expected] = judge.probabilities(judge.load_judge(), SortingNetworks.from_networks([network])).tolist()
    assert found["probability"] == pytest.approx(expected, abs=1e-6)
    low, high = found["accuracy"]["trained"]
    assert low <= 6 <= high
    assert {row["kind"] for row in found["accuracy"]["rows"]} >= {"compact", "smallest", "unfinished"}
    far = answer(client, "sorting/verdict", mt.sorting.batcher(16).to_dict())
    assert far["accuracy"]["rows"] == []
