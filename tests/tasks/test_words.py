import math
import random

import pytest

from magnetite.tasks.words import UNKNOWN, WordScores, reachable


def scored(predicted, targets) -> dict[str, float]:
    scores = WordScores()
    scores.update(predicted, targets)
    return scores.compute()


BY_HAND = {
    "exact": (["get", "name"], ["get", "name"], (1, 1, 1), (1, 1, 1)),
    "order does not matter": (["name", "get"], ["get", "name"], (1, 1, 1), (1, 1, 1)),
    "half of each": (["get", "size"], ["get", "name"], (1 / 2, 1 / 2, 1 / 2), (1 / 2, 1 / 2, 1 / 2)),
    "one of three": (["get"], ["get", "the", "name"], (1 / 2, 1, 1 / 3), (1 / 2, 1, 1 / 3)),
    "empty": ([], ["get"], (0, 0, 0), (0, 0, 0)),
    "repeated words count once": (["get", "get"], ["get", "get", "get"], (1, 1, 1), (1, 1, 1)),
    "unknown": (["get", UNKNOWN], ["get", "name"], (1 / 2, 1 / 2, 1 / 2), (2 / 3, 1, 1 / 2)),
    "unknown twice": (["get", UNKNOWN, UNKNOWN], ["get"], (2 / 3, 1 / 2, 1), (1, 1, 1)),
    "unknown only": ([UNKNOWN], ["get"], (0, 0, 0), (0, 0, 0)),
    "beyond five": (list("abcde"), list("abcdefgh"), (10 / 13, 1, 5 / 8), (10 / 13, 1, 5 / 8)),
}


@pytest.mark.parametrize("case", BY_HAND)
def test_scores_by_hand(case):
    predicted, target, counted, dropped = BY_HAND[case]
    found = scored([predicted], [target])
    assert tuple(found[name] for name in ("f1", "precision", "recall")) == pytest.approx(counted)
    assert tuple(found[f"{name}_dropped"] for name in ("f1", "precision", "recall")) == pytest.approx(dropped)


def plain_f1(predicted, target) -> float:
    """Word by word, from the definition as a harmonic mean."""
    hits = sum(1 for word in dict.fromkeys(predicted) if word in target)
    if hits == 0:
        return 0.0
    precision, recall = hits / len(dict.fromkeys(predicted)), hits / len(dict.fromkeys(target))
    return 1 / ((1 / precision + 1 / recall) / 2)


def test_against_a_plain_implementation():
    generator = random.Random(0)
    words = [*"abcdefg", UNKNOWN]
    predicted = [generator.choices(words, k=generator.randrange(6)) for _ in range(500)]
    targets = [generator.choices(words[:-1], k=generator.randrange(1, 8)) for _ in range(500)]
    scores = WordScores()
    for start in range(0, 500, 77):  # blocks do not change a result
        scores.update(predicted[start : start + 77], targets[start : start + 77])
    found = scores.compute()
    assert found["f1"] == pytest.approx(sum(map(plain_f1, predicted, targets)) / 500)
    known = [[word for word in each if word != UNKNOWN] for each in predicted]
    assert found["f1_dropped"] == pytest.approx(sum(map(plain_f1, known, targets)) / 500)
    assert scored(known, targets)["f1"] == pytest.approx(found["f1_dropped"])


def test_functions_without_a_score_are_an_error_and_none_is_nan():
    assert math.isnan(WordScores().compute()["f1"])
    with pytest.raises(ValueError, match="1 predictions for 2 functions"):
        scored([["a"]], [["a"], ["b"]])
    with pytest.raises(TypeError, match="got the text 'get name': split it into words"):
        scored(["get name"], [["get", "name"]])


def test_what_cannot_be_reached_bounds_the_score():
    target = ["get", "foo", "a", "b", "c", "d"]
    best = reachable(target, {"get", "a", "b", "c", "d"})
    assert best == ["get", "a", "b", "c"]
    assert scored([best], [target])["f1"] == pytest.approx(8 / 10)
