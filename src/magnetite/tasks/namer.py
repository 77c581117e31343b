"""Namer: a model of function names with its vocabularies, which proposes names for other functions."""

import heapq
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from importlib import import_module
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from magnetite.code.code2 import OGB_GRAPHS
from magnetite.code.corpus.words import words_of
from magnetite.code.features import to_digraphs
from magnetite.code.functions import in_order
from magnetite.code.graph import CodeGraph
from magnetite.code.names import check_top
from magnetite.code.source import build
from magnetite.code.vocabulary import NONE, UNKNOWN, Vocabulary
from magnetite.graphs import Digraphs
from magnetite.io.storage import DamagedFile, read_json, write_json
from magnetite.linalg.potential import PotentialWarning
from magnetite.nn import GraphModel, checkpoint
from magnetite.nn.heads import SequenceHead
from magnetite.nn.presets import EDGES, NODES
from magnetite.tasks import words as scores

VOCABULARY = "vocabulary.json"
"""File of the vocabularies, in the folder of a run or beside a model."""

ADVICE = "copy it from the run again, or train again"
AT_ONCE = 32
"""Number of functions that are answered at a time."""

BRANCHES, BEAM = 12, 24
"""Number of words that are considered at each position, and of beginnings that are continued; at least those asked."""

SMALLEST = 1e-6
"""Smallest probability that a position has a word that was not said before, by which others are divided."""

SUBWORDS = 5
"""Number of sub-words of an attribute that a model reads."""

COPIED = "copied"
"""Node feature: the words of names in an attribute."""

Proposals = list[tuple[list[str], float]]
"""Lists of words with their probabilities, the most probable first."""


@dataclass(frozen=True)
class Vocabularies:
    """What a model of function names reads and predicts.

    Numbers of words: 0, 1, … are `words`; the two last are "unknown" and "end of name".

    Args:
        graphs: Kind of the graphs: dataflow, ast, ast-directed, ogb or ogb-directed.
        words: The words of names.
        attributes: The texts of node attributes.
        subwords: The words of which attributes consist, for models that read them.
        length: Number of words per name.
        max_nodes: Largest graph that is answered.
        mask: Where the function's name is hidden, see `code.build`.
        keep_docstrings: Whether docstrings are nodes.
        copied: Whether the words of attributes can be copied into the name.
    """

    graphs: str
    words: tuple[str, ...]
    attributes: tuple[str, ...]
    subwords: tuple[str, ...] = ()
    length: int = 5
    max_nodes: int = 1000
    mask: str | None = "strict"
    keep_docstrings: bool = False
    copied: bool = False

    @property
    def outputs(self) -> int:
        """Number of words with "unknown" and "end of name"."""
        return len(self.words) + 2

    @property
    def unknown(self) -> int:
        """Number of "unknown"."""
        return len(self.words)

    @property
    def end(self) -> int:
        """Number of "end of name"."""
        return len(self.words) + 1

    @cached_property
    def word_numbers(self) -> dict[str, int]:
        """The number of each word."""
        return {word: number for number, word in enumerate(self.words)}

    @cached_property
    def attribute_numbers(self) -> Vocabulary:
        """The vocabulary of the attributes."""
        return Vocabulary(self.attributes)

    @cached_property
    def subword_numbers(self) -> dict[str, int]:
        """The number of each sub-word; 0 is "none", 1 is "unknown"."""
        return {word: number for number, word in enumerate(self.subwords, 2)}

    @property
    def node_sizes(self) -> dict[str, int]:
        """Number of categories of each node feature."""
        return {**NODES, "attribute": len(self.attribute_numbers)}

    @property
    def edge_sizes(self) -> dict[str, int]:
        """Number of categories of each edge feature that the model reads."""
        return dict(EDGES[self.graphs.replace("ogb", "ast")])

    def numbered(self, graphs: Digraphs, texts: Sequence[str]) -> Digraphs:
        """Graphs with the features that the model reads, in small integers.

        Args:
            graphs: Graphs whose attributes are numbered by `Vocabulary(texts)`.
            texts: The texts of their attributes.
        """
        attribute = graphs.node_features["attribute"].long()
        known = [UNKNOWN, NONE, *self.attribute_numbers.numbers(texts)]
        nodes = {
            "node_type": graphs.node_features["node_type"].to(torch.int16),
            "attribute": _small(torch.tensor(known), len(self.attribute_numbers))[attribute],
            "depth": graphs.node_features["depth"].clamp(max=NODES["depth"] - 1).to(torch.int8),
        }
        if self.subwords:
            table = _word_table(texts, self.subword_numbers, none=0, unknown=1)
            nodes["subwords"] = _small(table, len(self.subwords) + 2)[attribute]
        if self.copied:
            table = _word_table(texts, self.word_numbers, none=-1, unknown=-1)
            nodes[COPIED] = _small(table, len(self.words))[attribute]
        edges = {name: _small(graphs.edge_features[name], size) for name, size in self.edge_sizes.items()}
        largest = int(graphs.sizes.max())
        return graphs.replace(
            edges=_small(graphs.edges, largest),
            weights=None if graphs.weights is None else graphs.weights.float(),
            node_features=nodes,
            edge_features=edges,
        )

    def digraphs(self, graphs: Sequence[CodeGraph]) -> Digraphs:
        """Graphs of functions as the model reads them."""
        texts = list(dict.fromkeys(text for graph in graphs for text in graph.attributes if text is not None))
        return self.numbered(to_digraphs(graphs, Vocabulary(texts)), texts)

    def decode(self, numbers: Sequence[int]) -> list[str]:
        """The words up to the end of the name; `words.UNKNOWN` for an unknown one."""
        found: list[str] = []
        for number in numbers:
            if number >= self.end:
                break
            found.append(scores.UNKNOWN if number == self.unknown else self.words[number])
        return found

    def to_dict(self) -> dict[str, Any]:
        """The content of `vocabulary.json`."""
        return asdict(self)

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> "Vocabularies":
        """The inverse of `to_dict`."""
        values: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in content.items()
        }
        return cls(**values)

    @classmethod
    def read(cls, path: Path) -> "Vocabularies":
        """The vocabularies in a file that `io.storage.write_json` wrote."""
        if not path.is_file():
            raise FileNotFoundError(f"{path} does not exist: give the folder of a run of the task naming")
        try:
            return cls.from_dict(read_json(path, "vocabulary of function names", ADVICE))
        except TypeError as error:
            raise DamagedFile(f"{path} is not a vocabulary of function names ({error}): {ADVICE}") from error


def subwords_of(text: str) -> list[str]:
    """The first words of an identifier or a constant; those of a quoted text are its words, too.

    >>> subwords_of("readHTTPHeader"), subwords_of("'max retries'"), subwords_of("2.5")
    (['read', 'http', 'header'], ['max', 'retries'], ['2', '5'])
    """
    clean = "".join(char if char.isalnum() else "_" for char in text[:80])
    return words_of(clean)[:SUBWORDS]


def _word_table(
    texts: Sequence[str], numbers: Mapping[str, int], none: int, unknown: int
) -> Int[Tensor, "texts words"]:
    """The numbers of the words of "unknown", "none" and each text."""
    table = np.full((len(texts) + 2, SUBWORDS), none, dtype=np.int32)
    for row, text in enumerate(texts, 2):
        found = subwords_of(text)
        table[row, : len(found)] = [numbers.get(word, unknown) for word in found]
    return torch.from_numpy(table)


class Namer:
    """A trained model of function names, for functions as source text.

    Args:
        model: The model, which has a `SequenceHead`.
        vocabularies: Its vocabularies.
    """

    def __init__(self, model: GraphModel, vocabularies: Vocabularies):
        if not isinstance(model.head, SequenceHead) or model.head.vocabulary != vocabularies.outputs:
            raise ValueError(f"the model does not predict {vocabularies.outputs} words: give those of one run")
        self.model, self.vocabularies = model.eval(), vocabularies

    @classmethod
    def load(cls, folder: str | Path, device: torch.device | str = "cpu") -> "Namer":
        """The best model of a run of the task `naming`, or a model that `save` wrote.

        Args:
            folder: Folder of the run or of the model.
            device: Where to load the model.
        """
        folder = Path(folder)
        vocabularies = Vocabularies.read(folder / VOCABULARY)
        if (folder / checkpoint.DESCRIPTION).exists():
            return cls(checkpoint.load(folder, device), vocabularies)
        # Imported here because the layout of a run belongs to the layer above.
        return cls(import_module("magnetite.training").load(folder, device), vocabularies)

    def save(self, folder: str | Path, precision: str = "float32") -> None:
        """Write model and vocabularies to a folder, without what only training needs.

        Args:
            folder: Where to write.
            precision: How parameters are stored: float32, float16 or int8, see `nn.compressed`.
        """
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        write_json(folder / VOCABULARY, self.vocabularies.to_dict())
        checkpoint.save(self.model, folder, precision)

    def graph(self, source: str, name: str | None = None) -> CodeGraph:
        """The graph of a function as the model reads it, with its name hidden.

        Args:
            source: Text that defines the function.
            name: Name or qualified name; needed where the text defines several functions.
        """
        kind: Any = self.vocabularies.graphs
        if kind in OGB_GRAPHS:
            raise ValueError(f"a model of OGB's own graphs ({kind}) cannot name other functions: train with graphs=ast")
        mask: Any = self.vocabularies.mask
        return in_order(build(source, kind, mask, name, self.vocabularies.keep_docstrings))

    def propose(self, functions: Sequence[str | CodeGraph], top: int = 5) -> list[Proposals]:
        """The most probable lists of words for each function.

        The probability of a list is the product over its positions, `Π_i p_i(w_i) · p(end)`, where each `p_i` is
        that of the words that were not said before. Unknown words are left out, and the probabilities of equal lists
        are added. A function that is too large has no proposals.

        Args:
            functions: Sources of one function each, or graphs that `graph` made.
            top: Number of proposals per function.
        """
        return [proposals for proposals, _ in self.judge(functions, [()] * len(functions), top)]

    def judge(
        self, functions: Sequence[str | CodeGraph], present: Sequence[Sequence[str]], top: int = 5
    ) -> list[tuple[Proposals, float | None]]:
        """The proposals of `propose`, and how likely the words of present names are.

        The likelihood of a name is the mean over its different words of the probability that the model uses them at any
        position, `1 − Π_i (1 − p_i(w))`; words outside the vocabulary are "unknown" to it. None without words.

        Args:
            functions: Sources of one function each, or graphs that `graph` made.
            present: The words of the present name of each function.
            top: Number of proposals per function.
        """
        check_top(top)
        found: list[tuple[Proposals, float | None]] = [([], None) for _ in functions]
        for groups, logits in self._logits(functions):
            probabilities = logits.softmax(-1)
            used = -(-probabilities.clamp(max=1)).log1p().sum(1).expm1()  # exact also for tiny probabilities
            best = probabilities.topk(min(max(BRANCHES, top), logits.shape[-1]), dim=-1)
            each = zip(groups, best.values.tolist(), best.indices.tolist(), used, strict=True)
            for rows, values, numbers, probable in each:
                known = self.vocabularies.word_numbers
                lists = self._lists(values, numbers, max(BEAM, 2 * top))[:top]
                for row in rows:
                    words = {known.get(word, self.vocabularies.unknown) for word in present[row]}
                    found[row] = list(lists), float(probable[sorted(words)].mean()) if words else None
        return found

    def answers(self, functions: Sequence[str | CodeGraph]) -> list[list[str]]:
        """The predicted words of each function, as they are scored; `words.UNKNOWN` for an unknown one.

        Args:
            functions: Sources of one function each, or graphs that `graph` made.
        """
        found: list[list[str]] = [[] for _ in functions]
        for groups, logits in self._logits(functions):
            for rows, numbers in zip(groups, self.model.head.lowered(logits).argmax(-1).tolist(), strict=True):
                for row in rows:
                    found[row] = self.vocabularies.decode(numbers)
        return found

    def _logits(
        self, functions: Sequence[str | CodeGraph]
    ) -> Iterator[tuple[list[list[int]], Float[Tensor, "graphs length words"]]]:
        """Logits of the functions that are small enough, with their numbers, those of similar size together.

        Functions with equal graphs are computed once, so that their answers agree whatever else is in their batch.
        """
        if isinstance(functions, str | CodeGraph):
            raise TypeError("give a list of functions, even for a single one")
        graphs = [self.graph(each) if isinstance(each, str) else in_order(each) for each in functions]
        same: dict[tuple[Any, ...], list[int]] = {}
        for row, graph in enumerate(graphs):
            if len(graph) <= self.vocabularies.max_nodes:
                same.setdefault((graph.types, graph.attributes, graph.depths, graph.edges), []).append(row)
        groups = sorted(same.values(), key=lambda rows: len(graphs[rows[0]]))
        for first in range(0, len(groups), AT_ONCE):
            part = groups[first : first + AT_ONCE]
            with torch.inference_mode(), warnings.catch_warnings():
                warnings.simplefilter("ignore", PotentialWarning)  # the potential is that of the training
                logits = self.model(self.vocabularies.digraphs([graphs[rows[0]] for rows in part]))
            yield part, logits

    def _lists(self, probabilities: list[list[float]], numbers: list[list[int]], beam: int) -> Proposals:
        """Lists of words by beam search; a beginning never becomes more probable."""
        end, unknown = self.vocabularies.end, self.vocabularies.unknown
        begun: dict[tuple[int, ...], float] = {(): 1.0}
        found: dict[tuple[int, ...], float] = {}
        longer: dict[tuple[int, ...], float] = {}
        for values, words in zip(probabilities, numbers, strict=True):
            longer = {}
            for prefix, before in begun.items():
                said = sum(value for value, word in zip(values, words, strict=True) if word in prefix)
                so_far = before / max(1 - said, SMALLEST)
                for value, word in zip(values, words, strict=True):
                    if word in prefix:
                        continue
                    if word == end:
                        found[prefix] = found.get(prefix, 0.0) + so_far * value
                    else:
                        whole = prefix if word == unknown else (*prefix, word)
                        longer[whole] = longer.get(whole, 0.0) + so_far * value
            begun = dict(heapq.nlargest(beam, longer.items(), key=itemgetter(1)))
        for prefix, probability in longer.items():  # all of them: rare ones may add to lists that ended before
            found[prefix] = found.get(prefix, 0.0) + probability
        found.pop((), None)
        ranked = sorted(found.items(), key=lambda item: (-item[1], item[0]))
        return [([self.vocabularies.words[word] for word in words], probability) for words, probability in ranked]


def _small(values: Int[Tensor, "..."], size: int) -> Int[Tensor, "..."]:
    """Categories below `size` in the smallest integers that `Digraphs` takes for edges, too."""
    return values.to(torch.int16 if size <= torch.iinfo(torch.int16).max else torch.int32)
