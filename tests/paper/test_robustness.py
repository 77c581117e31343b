"""Robustness with networks that have random weights, whose answers depend on everything that they read."""

from functools import cache

import pytest
import torch

from magnetite import code
from magnetite.code.corpus import CorpusFunction, words_of
from magnetite.nn.encoders import MagLapNet
from magnetite.nn.presets import CodeSizes, sat_plus_plus
from magnetite.tasks.namer import Namer, Vocabularies
from paper import robustness
from paper.robustness import F1_SCORE, RENAMED, REORDERED, Reading, Rewriter, Tally, orders, renames

SOURCES = (
    F1_SCORE,
    "def area(a, b):\n    x = a * b\n    y = b + 1\n    return x - y",
    "    def update(self, items):\n        self.total = self.total + len(items)\n        self.items = items\n"
    "        return self.update(items)",
    # Equal parts: their eigenvectors share an eigenvalue.
    "def twins(a):\n    x = [a, a]\n    y = [a, a]\n    z = {1, 2}\n    return g(x) * g(y), z",
    "def single(a):\n    return a.b",  # has one order only
    "def looks(a, b):\n    c = a * b\n    return locals()",  # sees the names of its variables
)


def function(source: str) -> CorpusFunction:
    name = code.build(source).name
    graph = code.build(source)
    return CorpusFunction(
        source, name, words_of(name), "p", "MIT", "f.py", 1, source[0] == " ", len(graph), graph.hash, "", "test"
    )


@cache
def namer(kind: str) -> Namer:
    texts = dict.fromkeys(text for each in SOURCES for text in code.build(each, kind).attributes if text)
    known = Vocabularies(kind, tuple(f"w{number}" for number in range(50)), tuple(texts))
    torch.manual_seed(0)
    position = MagLapNet(8, 32, scaling="none") if kind == "dataflow" else None
    sizes = CodeSizes.of(kind, len(texts) + 2, known.outputs)
    model = sat_plus_plus(sizes, 32, 1, position or MagLapNet(2, 32, scaling="none"))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(3)  # so that small changes of the input decide
    return Namer(model, known)


@pytest.fixture(scope="module")
def measured():
    namers = {kind: namer(kind) for kind in ("tokens", "ast-directed", "dataflow")}
    rewriter = Rewriter(tuple(map(Reading.of, namers.values())), most=6, renamed=2, seed=0)
    return robustness.measure(namers, [function(source) for source in SOURCES], 10, rewriter, workers=1)


def test_models_of_the_data_flow_graph_see_no_order(measured):
    found = measured["models"]["dataflow"][REORDERED]
    assert found["rewrites"] >= 15
    assert (found["seen"], found["changed"], found["functions_changed"], found["most_names"]) == (0, 0, 0, 1)
    assert measured["outside_the_law"] == 0


def test_other_models_do(measured):
    for kind in ("tokens", "ast-directed"):
        found = measured["models"][kind][REORDERED]
        assert found["seen"] == found["rewrites"] == measured["models"]["dataflow"][REORDERED]["rewrites"]
        assert found["changed"] > 0


def test_every_model_sees_other_names(measured):
    assert measured["functions"] == 5
    for kinds in measured["models"].values():
        assert kinds[RENAMED]["functions"] == 4  # one function sees its names
        assert kinds[RENAMED]["seen"] == kinds[RENAMED]["rewrites"] == 8


@pytest.mark.parametrize("source", [SOURCES[0], SOURCES[3]])
def test_equivalent_texts_have_the_same_probabilities_to_the_last_bit(source):
    texts = list(code.reorderings(source).sample(6, seed=1))
    assert len(set(texts)) > 1
    model = namer("dataflow")
    alone = [model.propose([text], top=3)[0] for text in texts]
    assert all(each == alone[0] for each in alone)
    together = model.propose([*texts, SOURCES[1]], top=3)
    assert all(each == together[0] for each in together[:-1])


def test_a_function_comes_first_in_its_own_order():
    count, texts = orders(SOURCES[1], 64, 0)
    assert count == len(texts) == 8
    assert texts[0] == SOURCES[1]
    count, texts = orders(F1_SCORE, 20, 0)
    assert count == 8192
    assert len(texts) == len(set(texts)) == 21
    assert texts[0] == F1_SCORE.strip()
    assert orders(F1_SCORE, 20, 0)[1] == texts


def test_names_are_replaced_unless_the_function_sees_them():
    found = renames(SOURCES[1], 3, 0)
    assert len(found) == 3
    assert not any("a * b" in text for text in found)
    assert renames(SOURCES[5], 3, 0) == []
    assert renames("def f(self):\n    return self.a", 3, 0) == []


def test_names_of_f1_score():
    found = robustness.f1_score_names({kind: namer(kind) for kind in ("tokens", "dataflow")}, 63)
    assert found["texts"] == 64
    assert (found["dataflow"]["graphs"], found["dataflow"]["names"], found["dataflow"]["changed"]) == (1, 1, 0)
    assert found["tokens"]["graphs"] == 64
    assert sum(count for _, count in found["tokens"]["most_frequent"]) <= 64


def test_counts_by_hand():
    tally = Tally()
    tally.add(0, [0, 1, 2, 1], [["get"], ["get"], ["set"]])
    tally.add(0, [1], [["a", "b"], ["b", "a"]])
    tally.add(0, [], [["a"]])
    assert tally.to_dict() == {
        "functions": 2,
        "rewrites": 5,
        "seen": 4,
        "changed": 2,
        "functions_changed": 2,
        "most_names": 2,
        "share": 0.4,
        "share_of_functions": 1.0,
    }


def test_the_table_shows_every_model(measured, tmp_path):
    f1_score = {name: {"names": 3} for name in measured["models"]} | {"texts": 64}
    result = {"orders": 6, "renamed": 2, **measured, "f1_score": f1_score}
    text = robustness.markdown(result)
    assert "| `dataflow` | 0 | 0 |" in text
    assert text.count("\n") == 2 + len(measured["models"])
    robustness._picture(result, tmp_path)
    assert (tmp_path / "robustness-code.png").exists()
