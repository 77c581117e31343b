"""The metric of function names: F1 of the words of each function, as in OGB's evaluator for Code2."""

from collections.abc import Collection, Iterable, Sequence

import torch

UNKNOWN = "__UNK__"
"""A predicted word that is not in the vocabulary; it never equals a word of a name, whatever it is spelled like."""

NAMES = ("f1", "precision", "recall", "f1_dropped", "precision_dropped", "recall_dropped")


class WordScores:
    """Mean over functions of F1, precision and recall of the set of words.

    For the set `P` of predicted and `T` of true words, with `h = |P ∩ T|`, precision is `h / |P|`, recall
    `h / |T|`, and F1 `2 h / (|P| + |T|)`; each is 0 where its denominator is 0, so an empty answer counts as 0.
    OGB counts a predicted "unknown" as one wrong word; the paper's authors drop it. Both are reported: `f1`,
    `precision`, `recall`, and the same names with `_dropped`.

    >>> scores = WordScores()
    >>> scores.update([["get", UNKNOWN], []], [["get", "name"], ["run"]])
    >>> found = scores.compute()
    >>> found["f1"], round(found["f1_dropped"], 3)
    (0.25, 0.333)
    """

    def __init__(self) -> None:
        self.state = torch.zeros(1 + len(NAMES), dtype=torch.float64)
        """Number of functions and the sums of their scores; those of several processes are added."""

    def update(self, predicted: Iterable[Iterable[str]], targets: Iterable[Iterable[str]]) -> None:
        """Count some functions.

        Args:
            predicted: The predicted words of each function, without the end of the name; empty for no answer.
            targets: All words of each function's name, also those beyond the model's length or vocabulary.
        """
        predicted, targets = list(predicted), list(targets)
        text = next((each for each in (*predicted, *targets) if isinstance(each, str)), None)
        if text is not None:
            raise TypeError(f"give a list of words for each function, got the text {text[:40]!r}: split it into words")
        if len(predicted) != len(targets):
            raise ValueError(
                f"there are {len(predicted)} predictions for {len(targets)} functions: give an empty list for a "
                "function without an answer"
            )
        for answer, target in zip(predicted, targets, strict=True):
            found, true = set(answer), set(target)
            # A true word is never "unknown", so an unknown prediction is wrong even if a name contains that text.
            known = found - {UNKNOWN}
            scores = (1.0, *_scores(known, true, len(found)), *_scores(known, true, len(known)))
            self.state += torch.tensor(scores, dtype=torch.float64)

    def compute(self) -> dict[str, float]:
        """The means over all functions; NaN if there are none."""
        count, *sums = self.state.tolist()
        return {name: value / count if count else float("nan") for name, value in zip(NAMES, sums, strict=True)}


def reachable(words: Sequence[str], vocabulary: Collection[str], length: int = 5) -> list[str]:
    """The words of a name that a model can predict: those of the first `length` that its vocabulary has.

    Args:
        words: All words of the name.
        vocabulary: The words that the model knows.
        length: Number of words that it predicts.

    >>> reachable(["get", "the", "foo"], {"get", "foo"}, length=2)
    ['get']
    """
    return [word for word in words[:length] if word in vocabulary]


def _scores(known: set[str], true: set[str], size: int) -> tuple[float, float, float]:
    """F1, precision and recall of a set of `size` predicted words, of which those that are not `known` are wrong."""
    hits = len(known & true)
    f1 = 2 * hits / (size + len(true)) if hits else 0.0
    return f1, hits / size if size else 0.0, hits / len(true) if true else 0.0
