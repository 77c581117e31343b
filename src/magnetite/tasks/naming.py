"""The naming task: the words of a function's name from its graph."""

import hashlib
import json
import os
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
import torch
from jaxtyping import Float, Int
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from torch import Tensor

from magnetite.batching import Batch
from magnetite.code.blocks import Block
from magnetite.code.code2 import Graphs
from magnetite.code.functions import Functions
from magnetite.encodings.checks import COUNT, COUNT_OR_NONE, DEPTH, DROPOUT, POSITIVE, SIZE, SIZE_OR_NONE, Domain, later
from magnetite.graphs import Digraphs
from magnetite.io.storage import LOCK, DamagedFile, locked, read_tensors, write_json, write_tensors
from magnetite.linalg.potential import Relative
from magnetite.nn.embeddings import (
    CategoryEdges,
    CategoryNodes,
    Embedding,
    Embeddings,
    embedding_table,
    node_feature,
)
from magnetite.nn.heads import SequenceHead
from magnetite.tasks.base import SPLITS, Examples, HeldTask, Presets
from magnetite.tasks.namer import COPIED, VOCABULARY, Namer, Vocabularies, subwords_of
from magnetite.tasks.words import NAMES, WordScores

__all__ = ["Namer", "Naming", "Vocabularies"]

KINDS = Domain(choices=tuple(Graphs.__args__))
MASKS = Domain(choices=("strict", "paper", "nowhere"))

UNKNOWN_OFFSETS = (0.0, 0.1, 0.2, 0.3, 0.45, 0.6, 0.75, 0.9, 1.0)
END_OFFSETS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.75)
"""Offsets of the probabilities of "unknown" and "end of name", among which validation chooses."""

PRESETS: Presets = {
    # What all rows of the comparison share; the options of AdamW are those of the sequential graph.
    "base": {
        "positions": "none",
        "model": {"name": "sat", "local": 0},
        "optim": {
            "lr": 1e-3, "weight_decay": 7.5e-5, "betas": (0.75, 0.935), "clip": 0.1,
            "batch": 256, "epochs": 20, "warmup": 2,
        },
        "data": {"tokens": 65_536, "pairs": 2**25, "stratified": True},
        "run": {"precision": "bf16-mixed"},
    },
    "sat-no-gnn": {
        "base": "base",
        "task": {"graphs": "ast", "attribute_dropout": 0.0, "lowered": False},
        "model": {"activation": "relu", "readout": "mean", "dropout": 0.2},
    },
    "sat": {"base": "sat-no-gnn", "model": {"local": 2, "network": "gcn"}},
    "sat++-no-gnn": {"base": "base", "task": {"graphs": "ast"}},
    # Sums over hundreds of edges are normalised after each step.
    "sat++": {"base": "sat++-no-gnn", "model": {"local": 3, "normalised": True}},
    "dataflow": {
        "base": "base",
        "task": {"graphs": "dataflow"},
        "model": {"local": 3, "normalised": True},
        "optim": {"weight_decay": 6e-5, "betas": (0.9, 0.95), "clip": 0.05},
    },
    # Features of all node pairs of all graphs would fill the GPU, so they are computed for some graphs at a time.
    "dataflow-walks": {
        "base": "dataflow",
        "positions": "walks",
        "data": {"pairs": 2**24, "pool": 16_384},
    },
    "dataflow-magnetic": {
        "base": "dataflow",
        "positions": "magnetic",
        "encoding": {"k": 25, "scaling": "none", "sign": "gnn"},
    },
    "dataflow-magnetic-mlp": {"base": "dataflow-magnetic", "encoding": {"sign": "mlp"}},
    # Statements follow each other as in the text, as in the graphs of Bieber et al. (2022).
    "sequential-magnetic": {"base": "dataflow-magnetic", "task": {"graphs": "dataflow-sequential"}},
    "dataflow-multi-q": {
        "base": "dataflow",
        "positions": "multi-q",
        "encoding": {"k": 16},
        "data": {"pairs": 2**23},
    },
    # Without a graph: a transformer over the tokens of the text, of the same size.
    "tokens": {
        "base": "base",
        "positions": "sinusoidal",
        "task": {"graphs": "tokens"},
        "model": {"degree_scaled": False},
    },
    "paper": {"base": "dataflow-magnetic"},
    # As the authors' code trains, where it differs from the text of the paper: the options of AdamW are those that the
    # paper's table has for the sequential graph.
    "authors": {
        "base": "dataflow-magnetic",
        "encoding": {"attention_dropout": 0.15, "attention_biases": False, "parallel": "once"},
        "model": {"inner_dropout": True, "init": "fan-in", "normalised": False},
        "optim": {"weight_decay": 7.5e-5, "betas": (0.75, 0.935), "clip": 0.1, "clipped": "update"},
        "encodings": {"walks": {"encoding": {"hidden": 8, "node_layers": 1}}},
    },
    # For users: attributes are also read as the words that they consist of, which can be copied into the name.
    "best": {
        "base": "dataflow-magnetic",
        "task": {
            "words": 8_000, "attributes": 8_000, "subwords": 12_000, "copied": True, "shared": True,
            "embedding_std": 0.1,
        },
        "encoding": {"scaling": "nodes"},
        "model": {"local_added": True, "position_scale": 0.1},
    },
    # Minutes on two cores.
    "quick": {
        "base": "best",
        "task": {"words": 1_000, "attributes": 2_000, "subwords": 2_000, "max_nodes": 300},
        "encoding": {"k": 8, "sign": None, "dropout": 0.0},
        "model": {"width": 64, "layers": 2, "local": 2, "dropout": 0.1},
        "optim": {"lr": 2e-3, "betas": (0.9, 0.98), "batch": 32, "epochs": 4, "warmup": 0.2},
        "data": {"tokens": 16_384, "pairs": 2**21},
        "run": {"precision": "32-true"},
    },
    # The model that comes with magnetite: no attention between nodes and no positions, so that one core trains it.
    "small": {
        "base": "base",
        "task": {
            "words": 8_000, "attributes": 8_000, "subwords": 12_000, "copied": True, "shared": True,
            "embedding_std": 0.1,
        },
        "model": {"name": "gnn", "width": 128, "steps": 3},
        "optim": {
            "lr": 2e-3, "weight_decay": 7.5e-5, "betas": (0.9, 0.98), "clip": 0.1, "batch": 128, "epochs": 6,
            "warmup": 0.2,
        },
        "data": {"tokens": 32_768, "pairs": 2**23},
        "run": {"evaluate_every": 2.0},
    },
}  # fmt: skip


@dataclass(frozen=True)
class Naming(HeldTask):
    """Name functions: the first words of a function's name from its graph, in which the name is hidden.

    Vocabularies are those of the training functions. Scores count all words of a name, also those that the model cannot
    predict, and functions without an answer: graphs of more than `max_nodes` nodes, which are not trained on, and
    sources that cannot be parsed. Graph features: `words` has the numbers of the first words, `names` those of all
    different words that the vocabulary has, −1 otherwise, `count` is the number of all different words.

    Args:
        data: Folder of a corpus, written by `magnetite data functions`, or of OGB's Code2.
        graphs: Kind of graph: dataflow, dataflow-sequential (statements follow each other as in the text), ast,
            ast-directed, tokens (a path), or OGB's own as ogb and ogb-directed.
        words: Number of words of names in the vocabulary.
        attributes: Number of texts of node attributes in the vocabulary.
        subwords: Number of words of which attributes consist in the vocabulary; 0 reads whole attributes only.
        length: Number of words that are predicted.
        max_nodes: Number of nodes of the largest graph.
        attribute_dropout: Probability in training that an attribute is replaced by "unknown".
        embedding_std: Standard deviation of the vectors of types, attributes and words at the beginning.
        lowered: Whether the probabilities of "unknown" and "end of name" are lowered by offsets, tuned in validation.
        mask: Where the function's name is hidden: strict, paper or nowhere, see `magnetite.code.build`.
        keep_docstrings: Whether docstrings are part of the graph.
        most: Number of training functions to use, evenly spread; 0 for all.
        fingerprint: Hash of the data; other data are refused.
        shard_size: Number of graphs that are taken at a time.
        copied: Whether the words of attributes can be copied into the name, as far as the vocabulary has them.
        shared: Whether the words have the same vectors at all positions of a name, which attend to the nodes.
    """

    presets: ClassVar[Presets] = PRESETS
    potential = Relative  # as in the paper
    model_options: ClassVar[tuple[str, ...]] = ("attribute_dropout", "embedding_std", "lowered", "shared")

    data: str | Path
    graphs: Annotated[str, KINDS] = "dataflow"
    words: Annotated[int, SIZE] = 5_000
    attributes: Annotated[int, SIZE] = 10_000
    subwords: Annotated[int, SIZE_OR_NONE] = 0
    length: Annotated[int, DEPTH] = 5
    max_nodes: Annotated[int, COUNT] = 1_000
    attribute_dropout: Annotated[float, DROPOUT] = 0.15
    embedding_std: Annotated[float, POSITIVE] = 1.0
    lowered: bool = True
    mask: Annotated[str, MASKS] = "strict"
    keep_docstrings: bool = False
    most: Annotated[int, COUNT_OR_NONE] = 0
    fingerprint: str = ""
    shard_size: Annotated[int, COUNT] = 10_000
    copied: bool = later(False)
    shared: bool = later(False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.data, str | Path):
            raise TypeError(f"data must be the path of a folder, got {type(self.data).__name__}")
        object.__setattr__(self, "data", os.fspath(self.data))
        found = self.functions.fingerprint
        if self.fingerprint not in ("", found):
            raise ValueError(
                f"the functions in {self.data} are not those of the run (fingerprint {found}, not "
                f"{self.fingerprint}): give the same data"
            )
        object.__setattr__(self, "fingerprint", found)
        empty = next((split for split in SPLITS if not self.functions.counts[split]), None)
        if empty is not None:
            raise ValueError(f"{self.data} has no functions in the split {empty}: give a larger corpus")

    @property
    def selects(self) -> str:
        """Validation chooses by the F1 of the words that are answered."""
        return "f1_dropped"

    @property
    def variant(self) -> tuple[str, ...]:
        """The kind of graph."""
        return (self.graphs,)

    @cached_property
    def functions(self) -> Functions:
        """The functions and where their graphs are kept."""
        mask = None if self.mask == "nowhere" else self.mask
        return Functions(Path(self.data), self.graphs, mask, self.keep_docstrings)

    @cached_property
    def vocabularies(self) -> Vocabularies:
        """The vocabularies of the training functions."""
        path = self._folder / VOCABULARY
        with locked(self._folder / f"{LOCK}-{VOCABULARY}", str(path), wait=True):
            with suppress(FileNotFoundError, DamagedFile):
                return Vocabularies.read(path)
            found = self._counted()
            write_json(path, found.to_dict())
        return found

    def _counted(self) -> Vocabularies:
        words, texts = Counter[str](), Counter[str]()
        for block in self._blocks["train"]:
            words.update(word for name in block.words for word in name)
            if block.graphs is not None:
                numbers = torch.bincount(block.graphs.node_features["attribute"], minlength=2).tolist()[2:]
                texts.update({text: number for text, number in zip(block.texts or (), numbers, strict=False) if number})
        parts = Counter[str]()
        for text, number in texts.items() if self.subwords else ():
            parts.update(dict.fromkeys(subwords_of(text), number))
        return Vocabularies(
            graphs=self.graphs,
            words=_most_frequent(words, self.words),
            attributes=_most_frequent(texts, self.attributes),
            subwords=_most_frequent(parts, self.subwords),
            length=self.length,
            max_nodes=self.max_nodes,
            mask=self.functions.mask,
            keep_docstrings=self.keep_docstrings,
            copied=self.copied,
        )

    def embedding(self) -> Embeddings:
        """The sum of the vectors of type, attribute and depth, and the mean of those of the words of the attribute."""
        sizes, rate = self.vocabularies.node_sizes, self.attribute_dropout
        whole = CategoryNodes(sizes, {"attribute": rate} if rate else None, self.embedding_std)
        known = len(self.vocabularies.subwords)
        return [whole, SubwordNodes(known + 2, rate, std=self.embedding_std)] if known else whole

    def edge_embedding(self) -> Embedding:
        """Type, and name or direction of the edges."""
        return CategoryEdges(self.vocabularies.edge_sizes)

    def head(self, readout: str, pair_channels: int) -> SequenceHead:  # noqa: ARG002
        """Logits of the words at each position."""
        copied = COPIED if self.copied else None
        return SequenceHead(self.vocabularies.outputs, self.length, readout, shared=self.shared, copied=copied)

    def weights(self, examples: Examples) -> Float[Tensor, " graphs"]:
        """1 for functions with a graph, 0 for those without an answer."""
        return examples.graphs.graph_features["answered"].float()

    def loss(self, outputs: Float[Tensor, "b length words"], batch: Batch) -> Float[Tensor, ""]:
        """Sum over the functions of the mean cross-entropy of the positions; after the name, "end" is expected."""
        targets = batch.graph_features["words"].long()
        each = torch.nn.functional.cross_entropy(outputs.flatten(0, 1).float(), targets.flatten(), reduction="none")
        return (each.view_as(targets).mean(1) * batch.graph_features["answered"]).sum()

    def metric(self, device: torch.device | str = "cpu") -> "NameScores":
        """F1, precision and recall of the words, for all offsets at once."""
        return NameScores(self.vocabularies.unknown, self.lowered, device)

    def tune(self, model: Any, metric: Any, fit: bool) -> None:
        """Choose the offsets with the best F1 in validation, which are saved with the head; elsewhere use them."""
        head: SequenceHead = model.head
        chosen = slice(self.vocabularies.unknown, self.vocabularies.end + 1)
        if fit:
            head.offsets[chosen] = metric.best().to(head.offsets)
        metric.offsets = head.offsets[chosen]

    def answers(self, outputs: Float[Tensor, "b length words"], model: Any) -> Int[Tensor, "b length"]:
        """The number of the predicted word at each position."""
        return model.head.lowered(outputs).argmax(-1).short()

    def answer_table(self, split: str, answers: Int[Tensor, "functions length"]) -> dict[str, Any]:
        """One row per function of a split: id, project, words of the name, predicted words and their scores."""
        graphs = self.held(split).graphs
        names = self.functions.names(split)
        table: dict[str, list[Any]] = {
            name: [] for name in ("id", "project", "words", "predicted", "nodes", "f1", "f1_dropped")
        }
        features = graphs.graph_features
        rows = zip(
            features["id"].tolist(), features["answered"].tolist(), graphs.sizes.tolist(), answers.tolist(), strict=True
        )
        for number, answered, size, found in sorted(rows):
            predicted = self.vocabularies.decode(found) if answered else []
            scores = WordScores()
            project, words = names[number]
            scores.update([predicted], [words])
            counted = scores.compute()
            row = (number, project, words, predicted, size if answered else 0)
            for column, value in zip(table, (*row, counted["f1"], counted["f1_dropped"]), strict=True):
                table[column].append(value)
        numbers = ("id", "nodes", "f1", "f1_dropped")
        return {name: np.array(column) if name in numbers else column for name, column in table.items()}

    def files(self) -> Mapping[str, Mapping[str, Any]]:
        """The vocabularies, which predictions for other functions need."""
        return {VOCABULARY: self.vocabularies.to_dict()}

    @cached_property
    def _blocks(self) -> dict[str, list[Block]]:
        """The blocks of each split, memory-mapped; graphs that are not in the cache yet are built."""
        functions = self.functions
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        console = Console(file=sys.stderr)
        with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as bar:
            row = bar.add_task(f"building {self.graphs} graphs", total=sum(functions.counts.values()))
            functions.write(progress=lambda count, _total: bar.advance(row, count))
        return {split: list(functions.blocks(split)) for split in SPLITS}

    @cached_property
    def _folder(self) -> Path:
        """Where vocabularies and numbered graphs are kept, since loading them is faster than making them."""
        options = [self.words, self.attributes, self.subwords, self.length, self.max_nodes, self.most]
        options += [self.copied] if self.copied else []
        blocks = self.functions.cache
        key = hashlib.sha256(json.dumps([blocks.name, *options]).encode()).hexdigest()[:16]
        return blocks.parent / f"{self.graphs}-numbered-{key}"

    def make(self, split: str) -> Examples:
        """The functions of a split, from the cache if they are there; one process makes them, others wait."""
        path = self._folder / f"{split}.safetensors"
        with locked(self._folder / f"{LOCK}-{split}", str(path), wait=True):
            try:
                tensors, counts = read_tensors(path)
                found = Examples.from_tensors(tensors)
            except (FileNotFoundError, DamagedFile):
                found, counts = self._made(split)
                write_tensors(path, found.tensors(), counts)
        if counts["left_out"] != "0":
            fate = "left out" if split == "train" else "counted as empty answers"
            Console(stderr=True, soft_wrap=True, highlight=False).print(
                f"{split}: {int(counts['answered']):,} functions; {int(counts['left_out']):,} are {fate}, "
                f"{int(counts['failed']):,} of them without a graph, the others with more than {self.max_nodes:,} nodes"
            )
        return found

    def _made(self, split: str) -> tuple[Examples, dict[str, str]]:
        """The functions of a split; beyond training, those without a graph are single nodes without an answer."""
        parts: list[Digraphs] = []
        rows: list[tuple[int, tuple[str, ...]]] = []
        missing: list[tuple[int, tuple[str, ...]]] = []
        for block in self._blocks[split]:
            all_rows = list(zip(block.ids.tolist(), block.words, strict=True))
            kept: list[int] = []
            if block.graphs is not None:
                fits = block.graphs.sizes <= self.max_nodes
                kept = block.rows[fits].tolist()
                if kept:
                    graphs = block.graphs if bool(fits.all()) else block.graphs.select(fits)
                    parts.append(self.vocabularies.numbered(graphs, block.texts or ()))
                    rows += [all_rows[row] for row in kept]
            used = set(kept)
            missing += [row for number, row in enumerate(all_rows) if number not in used]
        if not rows:
            raise ValueError(f"no function of the split {split} has a graph of at most {self.max_nodes} nodes")
        graphs = Digraphs.concat(parts)
        if split == "train" and 0 < self.most < len(graphs):
            chosen = torch.linspace(0, len(graphs) - 1, self.most).long()
            graphs, rows = graphs.select(chosen), [rows[row] for row in chosen.tolist()]
        answered = len(rows)
        if split != "train" and missing:
            graphs, rows = Digraphs.concat([graphs, _single_nodes(graphs, len(missing))]), rows + missing
        features = self._targets(rows) | {"answered": (torch.arange(len(rows)) < answered).to(torch.int8)}
        failed = sum(len(block.failed) for block in self._blocks[split])
        counts = {"answered": answered, "left_out": len(missing), "failed": failed}
        return Examples(graphs.replace(graph_features=features)), {name: str(count) for name, count in counts.items()}

    def _targets(self, rows: Sequence[tuple[int, tuple[str, ...]]]) -> dict[str, Tensor]:
        vocabularies = self.vocabularies
        numbers = vocabularies.word_numbers
        first = [[numbers.get(word, vocabularies.unknown) for word in name[: self.length]] for _, name in rows]
        known = [list(dict.fromkeys(numbers[word] for word in name if word in numbers)) for _, name in rows]
        return {
            "id": torch.tensor([number for number, _ in rows]),
            "words": _filled(first, self.length, vocabularies.end),
            "names": _filled(known, max(1, *map(len, known)), -1),
            "count": torch.tensor([len(set(name)) for _, name in rows], dtype=torch.int32),
        }


class SubwordNodes(Embedding):
    """The mean of the vectors of a node's words: `Σ_i E[w_i] / m` over those of the `m` words that exist.

    Args:
        size: Number of categories: 0 is "none", 1 is "unknown".
        dropout: Probability in training that all words of a node are left out.
        feature: Node feature with the numbers of the words.
        std: Standard deviation of the vectors at the beginning.
    """

    def __init__(
        self,
        size: Annotated[int, SIZE],
        dropout: Annotated[float, DROPOUT] = 0.0,
        feature: str = "subwords",
        std: float = 1.0,
    ):
        super().__init__()
        self.size, self.dropout, self.feature, self.std = size, dropout, feature, std

    def setup(self, width: int) -> None:
        """Make the table."""
        self.table = embedding_table(self.size, width, self.std)

    def forward(self, batch: Batch) -> Float[Tensor, "nodes d"]:
        """The mean vectors; zero for nodes without words."""
        numbers = node_feature(batch, self.feature).long()
        held = (numbers > 0).float()
        if self.training and self.dropout:
            held = held * (torch.rand(len(held), 1, device=held.device) >= self.dropout)
        weights = held / held.sum(1, keepdim=True).clamp(min=1)
        if numbers.is_cuda:  # where the backward pass of embedding_bag cannot be captured as a graph
            # Its additions of zeros to a single vector would wait for each other, so places without a word are spread.
            rows = torch.arange(len(numbers), device=numbers.device)[:, None] % self.size
            return torch.einsum("ns,nsd->nd", weights, self.table(torch.where(numbers > 0, numbers, rows)))
        return torch.nn.functional.embedding_bag(
            numbers, self.table.weight, mode="sum", per_sample_weights=weights, padding_idx=0
        )


class NameScores(WordScores):
    """`WordScores` of the answers with each pair of offsets, counted on the device.

    With offsets, the word at a position is the largest of `p_word`, `p_unknown − o_unknown` and `p_end − o_end`: only
    the most probable word matters, so all pairs of offsets are counted at once.

    Args:
        unknown: Number of the word "unknown"; "end of name" follows.
        lowered: Whether to count all pairs of offsets, or no offsets only.
        device: Where to count.
    """

    def __init__(self, unknown: int, lowered: bool = True, device: torch.device | str = "cpu"):
        super().__init__()
        self.unknown = unknown
        grid = [(u, e) for u in UNKNOWN_OFFSETS for e in END_OFFSETS] if lowered else [(0.0, 0.0)]
        self.grid = torch.tensor(grid, device=device)
        self.offsets: Float[Tensor, " 2"] = self.grid[0]
        self.state = torch.zeros(len(grid), 1 + len(NAMES), dtype=torch.float64, device=device)

    def update(self, outputs: Float[Tensor, "b length words"], batch: Batch) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Count the functions of a batch."""
        features = batch.graph_features
        probabilities = outputs.float().softmax(-1)
        best, word = probabilities[..., : self.unknown].max(-1)
        special = probabilities[..., self.unknown :, None] - self.grid.T  # [b, length, 2, grid]
        choice = torch.cat([best[..., None, None].expand_as(special[:, :, :1]), special], 2).argmax(2)
        going = ((choice == 2).cumsum(1) == 0) & (features["answered"] > 0)[:, None, None]
        words, unknown = going & (choice == 0), going & (choice == 1)
        earlier = (word[:, :, None] == word[:, None, :]).tril(-1)[..., None]
        words &= ~(earlier & words[:, None]).any(2)  # a word that was said before
        hit = (word[:, :, None] == features["names"][:, None].long()).any(-1)
        hits, known = (words & hit[..., None]).sum(1).double(), words.sum(1).double()
        true = features["count"][:, None].double()
        scores = [torch.ones_like(hits)]
        for size in (known + unknown.any(1), known):
            scores += [2 * hits / (size + true).clamp(min=1), hits / size.clamp(min=1), hits / true.clamp(min=1)]
        self.state += torch.stack(scores, -1).sum(0)

    def best(self) -> Float[Tensor, " 2"]:
        """The offsets with the largest F1 of the words that are answered; the smallest of equally good ones."""
        return self.grid[int(self.state[:, 1 + NAMES.index("f1_dropped")].argmax())]

    def compute(self) -> dict[str, float]:
        """The means over all functions with the offsets of the model."""
        chosen = int((self.grid - self.offsets.to(self.grid)).abs().sum(1).argmin())
        count, *sums = self.state[chosen].tolist()
        found = {name: value / count if count else float("nan") for name, value in zip(NAMES, sums, strict=True)}
        unknown, end = self.grid[chosen].tolist()
        return found | {"offset_unknown": unknown, "offset_end": end}


def _filled(rows: Sequence[list[int]], length: int, value: int) -> Int[Tensor, "rows length"]:
    """Lists as the rows of a matrix, filled up with a value."""
    return torch.tensor([row + [value] * (length - len(row)) for row in rows], dtype=torch.int32)


def _most_frequent(counts: Mapping[str, int], size: int) -> tuple[str, ...]:
    """The most frequent texts; of equally frequent ones, the first in the alphabet."""
    return tuple(sorted(counts, key=lambda text: (-counts[text], text))[:size])


def _single_nodes(like: Digraphs, count: int) -> Digraphs:
    """Graphs of one node each, with the features of other graphs, all zero."""

    def zeros(features: Mapping[str, Tensor], rows: int) -> dict[str, Tensor]:
        return {name: values.new_zeros((rows, *values.shape[1:])) for name, values in features.items()}

    return Digraphs(
        node_ptr=torch.arange(count + 1),
        edge_ptr=torch.zeros(count + 1, dtype=torch.int64),
        edges=like.edges.new_zeros((2, 0)),
        weights=None if like.weights is None else like.weights.new_zeros(0),
        node_features=zeros(like.node_features, count),
        edge_features=zeros(like.edge_features, 0),
    )
