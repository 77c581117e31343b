"""Baselines for naming functions that need neither a graph nor a network: frequent words, and similar functions.

Both learn from the training functions; the validation split chooses what they leave open.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_matrix

from magnetite.code.blocks import Block
from magnetite.code.functions import Functions
from magnetite.kernels._compat import available_cores
from magnetite.kernels.cpu.compile import kernel

CANDIDATES = 200
"""Number of frequent words among which a constant answer is chosen."""

NEIGHBOURS = (1, 2, 3, 5, 8, 12, 20, 32, 50)
SHARES = (0.05, 0.07, 0.1, 0.12, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6)
"""Numbers of neighbours, and shares of their votes that a word needs, among which validation chooses."""

TOP = 5
"""Number of whole names that are proposed."""

QUERIES_AT_ONCE = 64
"""Number of functions that a thread looks up at a time."""


class TokenSplit(NamedTuple):
    """The functions of a split as texts.

    Args:
        ids: Number of each function in its data set.
        words: The words of their names.
        tokens: The tokens of each function: words, and identifiers of several words, as often as they occur.
    """

    ids: list[int]
    words: list[tuple[str, ...]]
    tokens: list[Counter[str]]


def read_split(functions: Functions, split: str) -> TokenSplit:
    """The functions of a split.

    Args:
        functions: Functions with graphs of kind "tokens", written.
        split: Name of the split.
    """
    found = TokenSplit([], [], [])
    for block in functions.blocks(split):
        found.ids.extend(block.ids.tolist())
        found.words.extend(block.words)
        tokens = [Counter[str]() for _ in block.words]
        for row, counts in zip(block.rows.tolist(), _counts(block), strict=True):
            tokens[row] = counts
        found.tokens.extend(tokens)
    return found


def _counts(block: Block) -> Iterator[Counter[str]]:
    """The tokens of each graph of a block. Depths count the words of an identifier, so it can be put together."""
    if block.graphs is None:
        return
    texts = ("", "", *(block.texts or ()))
    numbers, depths = (block.graphs.node_features[name].tolist() for name in ("attribute", "depth"))
    for first, last in zip(block.graphs.node_ptr.tolist(), block.graphs.node_ptr.tolist()[1:], strict=False):
        words = [texts[number] for number in numbers[first:last]]
        counts = Counter(words)
        whole: list[str] = []
        for word, depth in zip([*words, ""], [*depths[first:last], 0], strict=True):
            if depth == 0:
                if len(whole) > 1:
                    counts["_".join(whole)] += 1
                whole = []
            whole.append(word)
        yield counts


def word_f1(predicted: Sequence[str], target: Sequence[str]) -> float:
    """`2 |P ∩ T| / (|P| + |T|)`, as in `magnetite.tasks.words`, for answers without "unknown".

    >>> word_f1(["get", "name"], ["get", "full", "name"])
    0.8
    """
    found, true = set(predicted), set(target)
    return 2 * len(found & true) / (len(found) + len(true)) if found or true else 0.0


def frequent_words(train: Sequence[Sequence[str]], valid: Sequence[Sequence[str]]) -> list[str]:
    """The constant answer with the best F1 in validation: frequent words are added as long as it improves.

    Args:
        train: Names of the training functions, which decide what is frequent.
        valid: Names of the validation functions.

    >>> frequent_words([["get", "x"], ["get", "y"], ["set", "x"]], [["get", "x"], ["get", "z"]])
    ['get', 'x']
    """
    counts = Counter(word for name in train for word in set(name))
    candidates = [word for word, _ in sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:CANDIDATES]]
    names = [set(name) for name in valid]
    sizes = np.array([len(name) for name in names])
    has = {word: np.array([word in name for name in names]) for word in candidates}
    chosen: list[str] = []
    hits, best = np.zeros(len(names)), 0.0
    while candidates:
        scores = [float(np.mean(2 * (hits + has[word]) / (len(chosen) + 1 + sizes))) for word in candidates]
        place = int(np.argmax(scores))
        if scores[place] <= best:
            break
        best, word = scores[place], candidates.pop(place)
        hits = hits + has[word]
        chosen.append(word)
    return chosen


@dataclass(frozen=True)
class Index:
    """TF-IDF vectors of the training functions, token by token, for the search of the most similar ones.

    `x_t = (1 + ln n_t) ln((1 + N) / (1 + N_t))` for a token that a function has `n_t` times and `N_t` of `N` functions
    have, divided by the norm of `x`. Similarity is the inner product.

    Args:
        number: The number of each token; tokens of one function only are left out, since no other can match.
        weights: The logarithms `ln((1 + N) / (1 + N_t))`.
        postings: Functions and values of each token: the transposed matrix.
        count: Number of functions.
    """

    number: Mapping[str, int]
    weights: np.ndarray
    postings: csr_matrix
    count: int

    @classmethod
    def of(cls, functions: Sequence[Counter[str]]) -> "Index":
        """The index of some functions.

        Args:
            functions: Their tokens.
        """
        having = Counter(token for counts in functions for token in counts)
        number = {token: place for place, token in enumerate(t for t, count in having.items() if count > 1)}
        known = np.array([having[token] for token in number], dtype=np.float64)
        weights = np.log((1 + len(functions)) / (1 + known)).astype(np.float32)
        matrix = _vectors(functions, number, weights)
        return cls(number, weights, csr_matrix(matrix.T, copy=True), len(functions))

    def search(self, functions: Sequence[Counter[str]], most: int) -> tuple[np.ndarray, np.ndarray]:
        """Numbers and similarities of the most similar training functions, best first; −1 where there are none.

        Of equally similar ones, the first is taken. The result does not depend on the number of threads, and each
        thread needs memory for one number per training function.

        Args:
            functions: Tokens of the functions.
            most: Number of neighbours.
        """
        queries = _vectors(functions, self.number, self.weights)
        found = np.full((len(functions), most), -1, dtype=np.int64)
        similar = np.zeros((len(functions), most), dtype=np.float32)
        postings = _arrays(self.postings)
        parts = [slice(first, first + QUERIES_AT_ONCE) for first in range(0, len(functions), QUERIES_AT_ONCE)]

        def look_up(part: slice) -> None:
            scores = np.zeros(self.count, np.float32)
            _search(*_arrays(csr_matrix(queries[part])), *postings, scores, found[part], similar[part])

        with ThreadPoolExecutor(available_cores()) as pool:
            list(pool.map(look_up, parts))
        return found, similar


def _arrays(matrix: csr_matrix) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Starts of the rows, columns and values, as the kernel takes them."""
    return matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32), matrix.data


def _vectors(functions: Sequence[Counter[str]], number: Mapping[str, int], weights: np.ndarray) -> csr_matrix:
    """The normalised vectors of some functions."""
    columns: list[int] = []
    times: list[int] = []
    starts = [0]
    for counts in functions:
        for token, count in counts.items():
            place = number.get(token)
            if place is not None:
                columns.append(place)
                times.append(count)
        starts.append(len(columns))
    values = (1 + np.log(np.array(times, dtype=np.float32))) * weights[columns] if columns else np.zeros(0, np.float32)
    found = csr_matrix((values, columns, starts), shape=(len(functions), len(number)), dtype=np.float32)
    found.sort_indices()  # so that sums do not depend on the order of the tokens
    norms = np.sqrt(np.asarray(found.multiply(found).sum(axis=1)).ravel())
    found.data /= np.repeat(np.maximum(norms, np.finfo(np.float32).tiny), np.diff(found.indptr)).astype(np.float32)
    return found


@kernel(seconds=3)
def _search(starts, tokens, values, posting_starts, functions, weights, scores, found, similar):
    """The most similar functions of each query, by insertion into a sorted list; `scores` is a work array of zeros."""
    most = found.shape[1]
    for query in range(starts.shape[0] - 1):
        for place in range(starts[query], starts[query + 1]):
            value, token = values[place], tokens[place]
            for entry in range(posting_starts[token], posting_starts[token + 1]):
                scores[functions[entry]] += value * weights[entry]
        for function in range(scores.shape[0]):
            score = scores[function]
            scores[function] = 0
            if score > similar[query, most - 1]:
                place = most - 1
                while place > 0 and score > similar[query, place - 1]:
                    similar[query, place] = similar[query, place - 1]
                    found[query, place] = found[query, place - 1]
                    place -= 1
                similar[query, place] = score
                found[query, place] = function


def vote(names: Sequence[Sequence[str]], found: np.ndarray, similar: np.ndarray, most: int, share: float) -> list[str]:
    """The words that have at least this share of the neighbours' votes; if none has, those of the nearest.

    Args:
        names: Names of the training functions.
        found: Numbers of the neighbours, best first.
        similar: Their similarities, the weights of their votes.
        most: Number of neighbours that vote.
        share: Share of the votes that a word needs.
    """
    votes: dict[str, float] = {}
    total = 0.0
    neighbours: list[int] = found[:most].tolist()
    for function, weight in zip(neighbours, similar[:most].tolist(), strict=True):
        if function < 0:
            break
        total += weight
        for word in dict.fromkeys(names[function]):
            votes[word] = votes.get(word, 0.0) + weight
    chosen = [word for word, weight in votes.items() if weight >= share * total]
    return chosen or (list(names[neighbours[0]]) if total else [])


def frequent_names(names: Sequence[Sequence[str]], top: int = TOP) -> list[tuple[str, ...]]:
    """The most frequent whole names.

    Args:
        names: Names of the training functions.
        top: Number of names.

    >>> frequent_names([["run"], ["get", "x"], ["run"]], top=1)
    [('run',)]
    """
    counts = Counter(map(tuple, names))
    return sorted(counts, key=lambda name: (-counts[name], name))[:top]


def neighbour_names(
    names: Sequence[Sequence[str]], found: np.ndarray, similar: np.ndarray, most: int, top: int = TOP
) -> list[tuple[str, ...]]:
    """The whole names of the neighbours with the most votes, which are their similarities.

    Args:
        names: Names of the training functions.
        found: Numbers of the neighbours, best first.
        similar: Their similarities.
        most: Number of neighbours that vote.
        top: Number of names.
    """
    votes: dict[tuple[str, ...], float] = {}
    neighbours: list[int] = found[:most].tolist()
    for function, weight in zip(neighbours, similar[:most].tolist(), strict=True):
        if function >= 0:
            name = tuple(names[function])
            votes[name] = votes.get(name, 0.0) + weight
    return sorted(votes, key=lambda name: -votes[name])[:top]


def exact(proposed: Sequence[Sequence[Sequence[str]]], names: Sequence[Sequence[str]]) -> dict[str, float]:
    """How often the first proposal, and one of all, is the name.

    Args:
        proposed: Names that are proposed for each function, best first.
        names: Their names.

    >>> exact([[["run"], ["start"]], [["run"]]], [["start"], ["run"]])
    {'exact': 0.5, 'exact_of_five': 1.0}
    """
    pairs = [([list(each) for each in lists], list(name)) for lists, name in zip(proposed, names, strict=True)]
    return {
        "exact": float(np.mean([name in lists[:1] for lists, name in pairs])),
        "exact_of_five": float(np.mean([name in lists[:TOP] for lists, name in pairs])),
    }


class Answers(NamedTuple):
    """What a baseline says about the functions of the test split.

    Args:
        words: The words of each function, which are scored by F1.
        proposals: Up to five whole names of each function, best first.
        chosen: What validation chose.
    """

    words: list[list[str]]
    proposals: list[list[tuple[str, ...]]]
    chosen: dict[str, Any]


def answers(train: TokenSplit, valid: TokenSplit, test: TokenSplit) -> dict[str, Answers]:
    """The answers of each baseline for the test split.

    Args:
        train: The training functions.
        valid: The validation functions.
        test: The test functions.
    """
    constant = frequent_words(train.words, valid.words)
    index = Index.of(train.tokens)
    found, similar = index.search(valid.tokens, max(NEIGHBOURS))
    choices = [(most, share) for most in NEIGHBOURS for share in (SHARES if most > 1 else SHARES[:1])]
    scores = {
        choice: float(
            np.mean(
                [
                    word_f1(vote(train.words, rows, weights, *choice), name)
                    for rows, weights, name in zip(found, similar, valid.words, strict=True)
                ]
            )
        )
        for choice in choices
    }
    best = max(choices, key=lambda choice: scores[choice])
    hits = {
        most: exact(
            [neighbour_names(train.words, *rows, most) for rows in zip(found, similar, strict=True)], valid.words
        )
        for most in NEIGHBOURS
    }
    voters = max(NEIGHBOURS, key=lambda most: (hits[most]["exact_of_five"], hits[most]["exact"]))
    found, similar = index.search(test.tokens, max(best[0], voters))
    each = list(zip(found, similar, strict=True))
    same = frequent_names(train.words)
    return {
        "frequent": Answers([list(constant) for _ in test.words], [same for _ in test.words], {"words": constant}),
        "nearest": Answers(
            [vote(train.words, *rows, *best) for rows in each],
            [neighbour_names(train.words, *rows, voters) for rows in each],
            {"neighbours": best[0], "share": best[1], "valid_f1": scores[best], "neighbours_for_names": voters},
        ),
    }


def measure(folder: Path) -> dict[str, dict[str, Any]]:
    """The results of all baselines for a corpus or Code2: what validation chose, and the scores by project.

    Args:
        folder: Folder of the functions.
    """
    functions = Functions(folder, "tokens")
    functions.write()
    train, valid, test = (read_split(functions, split) for split in ("train", "valid", "test"))
    named = functions.names("test")
    found = {}
    for name, said in answers(train, valid, test).items():
        scores = [word_f1(words, target) for words, target in zip(said.words, test.words, strict=True)]
        table = {
            "project": [named[number][0] if number in named else "" for number in test.ids],
            "f1": scores,
            "f1_dropped": scores,
        }
        found[name] = {
            "chosen": said.chosen,
            "fingerprint": functions.fingerprint,
            "f1": float(np.mean(scores)),
            **exact(said.proposals, test.words),
            "projects": by_project(table),
        }
    return found


def by_project(table: Mapping[str, Sequence[Any]]) -> dict[str, list[float]]:
    """Number of functions and sums of both F1 of each project, in the order of the alphabet.

    Args:
        table: Columns `project`, `f1` and `f1_dropped` of predictions.

    >>> by_project({"project": ["b", "a", "b"], "f1": [0.5, 1.0, 0.0], "f1_dropped": [0.5, 1.0, 1.0]})
    {'a': [1, 1.0, 1.0], 'b': [2, 0.5, 1.5]}
    """
    found: dict[str, list[float]] = {}
    for project, f1, dropped in zip(table["project"], table["f1"], table["f1_dropped"], strict=True):
        entry = found.setdefault(project, [0, 0.0, 0.0])
        entry[0] += 1
        entry[1] += f1
        entry[2] += dropped
    return {project: found[project] for project in sorted(found)}
