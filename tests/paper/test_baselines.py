"""Baselines without graphs against small cases, and the search against a product of dense matrices."""

from collections import Counter

import numpy as np
import pytest

from magnetite.tasks.words import WordScores
from paper import baselines
from paper.baselines import (
    Index,
    TokenSplit,
    answers,
    by_project,
    exact,
    frequent_names,
    frequent_words,
    neighbour_names,
    vote,
    word_f1,
)
from tests.code.code2_folder import write_code2


def random_functions(count: int, seed: int) -> list[Counter[str]]:
    rng = np.random.default_rng(seed)
    return [Counter(f"t{token}" for token in rng.zipf(1.4, rng.integers(1, 40)) % 300) for _ in range(count)]


def dense(functions: list[Counter[str]], index: Index) -> np.ndarray:
    """The vectors by their definition, in double precision."""
    rows = np.zeros((len(functions), len(index.number)))
    for row, counts in enumerate(functions):
        for token, count in counts.items():
            if token in index.number:
                rows[row, index.number[token]] = (1 + np.log(count)) * index.weights[index.number[token]]
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(norms > 0, norms, 1)


def test_scores_are_those_of_the_task():
    cases = [(["get", "x"], ["get"]), ([], ["a"]), (["a", "a"], ["a", "b"]), (["b"], ["a"])]
    for predicted, target in cases:
        scores = WordScores()
        scores.update([predicted], [target])
        assert word_f1(predicted, target) == pytest.approx(scores.compute()["f1"])


def test_the_constant_answer_is_chosen_by_validation():
    train = [["get", "x"]] * 6 + [["set", "y"]] * 4
    assert frequent_words(train, [["set", "y"]] * 3 + [["get", "z"]]) == ["set", "y"]
    assert frequent_words(train, [["z"]]) == []


@pytest.mark.parametrize("most", [1, 7])
def test_the_search_is_exact(most):
    train, queries = random_functions(500, 0), random_functions(90, 1)
    index = Index.of(train)
    found, similar = index.search(queries, most)
    products = dense(queries, index) @ dense(train, index).T
    np.testing.assert_allclose(similar, -np.sort(-products, axis=1)[:, :most], atol=1e-6)
    np.testing.assert_allclose(np.take_along_axis(products, found, axis=1), similar, atol=1e-6)


def test_the_search_does_not_depend_on_portions_nor_on_other_queries(monkeypatch):
    train, queries = random_functions(200, 2), random_functions(50, 3)
    whole = Index.of(train).search(queries, 3)
    monkeypatch.setattr(baselines, "QUERIES_AT_ONCE", 7)
    for one, other in zip(whole, Index.of(train).search(queries, 3), strict=True):
        np.testing.assert_array_equal(one, other)


def test_functions_without_known_tokens_have_no_neighbours():
    train = random_functions(20, 4)
    found, similar = Index.of(train).search([Counter(), Counter(["never seen"])], 2)
    assert (found == -1).all() and (similar == 0).all()
    assert vote([["a"]] * 20, found[0], similar[0], 2, 0.5) == []


def test_neighbours_vote_by_similarity():
    names = [["get", "x"], ["get", "y"], ["set"]]
    found, similar = np.array([0, 1, 2]), np.array([0.5, 0.3, 0.2])
    assert vote(names, found, similar, 3, 0.5) == ["get", "x"]
    assert vote(names, found, similar, 3, 0.8) == ["get"]
    assert vote(names, found, similar, 1, 0.9) == ["get", "x"]
    assert vote(names, found, similar, 3, 0.9) == ["get", "x"]  # no word has that many votes


def test_similar_functions_have_similar_names():
    def split(seed: int) -> TokenSplit:
        rng = np.random.default_rng(seed)
        kinds = rng.integers(0, 5, 60).tolist()
        tokens = [Counter([f"k{kind}", f"n{rng.integers(9)}", "("]) for kind in kinds]
        return TokenSplit(list(range(60)), [("do", f"kind{kind}") for kind in kinds], tokens)

    train, valid, test = map(split, range(3))
    found = answers(train, valid, test)
    scores = {
        name: np.mean([word_f1(words, target) for words, target in zip(said.words, test.words, strict=True)])
        for name, said in found.items()
    }
    assert scores["nearest"] > 0.95
    assert 0.4 < scores["frequent"] < 0.7
    assert found["frequent"].chosen["words"][0] == "do"
    names = {name: exact(said.proposals, test.words) for name, said in found.items()}
    assert names["nearest"]["exact"] > 0.9
    assert names["frequent"]["exact"] < 0.4 < names["frequent"]["exact_of_five"] == 1  # there are five names


def test_whole_names_of_neighbours_are_added_up():
    names = [["get", "x"], ["set"], ["set"], ["run"]]
    found, similar = np.array([0, 1, 2, 3, -1]), np.array([0.5, 0.3, 0.3, 0.1, 0.0])
    assert neighbour_names(names, found, similar, 5, 2) == [("set",), ("get", "x")]
    assert neighbour_names(names, found, similar, 1) == [("get", "x")]
    assert neighbour_names(names, found[4:], similar[4:], 1) == []
    assert frequent_names(names, 2) == [("set",), ("get", "x")]


def test_sums_by_project():
    table = {"project": ["b", "a", "b"], "f1": [0.5, 1.0, 0.25], "f1_dropped": [0.5, 1.0, 0.5]}
    assert by_project(table) == {"a": [1, 1.0, 1.0], "b": [2, 0.75, 1.0]}


def test_functions_of_a_data_set(tmp_path, monkeypatch):
    monkeypatch.setattr("magnetite.code.functions.cache_home", lambda: tmp_path / "cache")
    write_code2(tmp_path / "code2", 60)  # the last function cannot be parsed, but is counted
    found = baselines.measure(tmp_path / "code2")
    assert set(found) == {"frequent", "nearest"}
    for result in found.values():
        ((count, f1, dropped),) = result["projects"].values()
        assert (count, f1) == (6, dropped)
        assert 0 <= f1 <= 6
        assert result["f1"] == pytest.approx(f1 / count)
        assert 0 <= result["exact"] <= result["exact_of_five"] <= 1
    assert found["nearest"]["chosen"]["neighbours"] in baselines.NEIGHBOURS
