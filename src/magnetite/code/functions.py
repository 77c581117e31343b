"""Functions of a corpus or of OGB's Code2 as blocks of graphs, which are built once and kept in the user's cache.

The attributes of a block are numbered by a vocabulary of its own, so the blocks of a data set serve every vocabulary.
"""

import hashlib
import json
from collections import deque
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from magnetite.code import blocks as stored
from magnetite.code import corpus
from magnetite.code.blocks import SPLITS, Block, Place
from magnetite.code.code2 import LABELS, OGB_GRAPHS, Code2
from magnetite.code.corpus.extraction import cut_function
from magnetite.code.corpus.stored import DESCRIPTION
from magnetite.code.features import Arrays, digraphs_of, packed_arrays
from magnetite.code.graph import CodeGraph
from magnetite.code.hashing import canonical
from magnetite.code.source import build, graph_of
from magnetite.code.vocabulary import Vocabulary
from magnetite.kernels._compat import available_cores
from magnetite.kernels.private import cache_home
from magnetite.version import __version__
from magnetite.workers.local import LocalWorkers

BLOCK = 512
"""Number of functions per block."""

PER_WORKER = 2_000
"""Number of functions for which another process pays off; it takes seconds to start."""


class Row(NamedTuple):
    """A function of a data set.

    Args:
        id: Its number in the data set.
        split: train, valid or test.
        words: All words of its name.
        source: Its text.
        name: Its name, if the data set knows whether it is a method.
        method: Whether it was defined in a class.
    """

    id: int
    split: str
    words: tuple[str, ...]
    source: str
    name: str | None = None
    method: bool = False


@dataclass(frozen=True)
class Functions:
    """A folder of functions, with graphs of one kind: `write` builds them, `blocks` reads them.

    Args:
        folder: A corpus that `magnetite data functions` wrote, or the folder of OGB's Code2.
        graphs: Kind of the graphs, as in `code.build`; of Code2 also ogb or ogb-directed.
        mask: Where the function's name is hidden, see `code.build`.
        keep_docstrings: Whether docstrings become nodes.
    """

    folder: Path
    graphs: str = "dataflow"
    mask: str | None = "strict"
    keep_docstrings: bool = False

    def __post_init__(self) -> None:
        if (self.folder / DESCRIPTION).is_file():
            if self.graphs in OGB_GRAPHS:
                raise ValueError(
                    f"graphs {self.graphs!r} are those of OGB's Code2, and {self.folder} is a corpus: try ast"
                )
        elif not (self.folder / f"{LABELS}.csv.gz").is_file():
            missing = "does not exist" if not self.folder.exists() else f"has neither {DESCRIPTION} nor {LABELS}.csv.gz"
            raise ValueError(
                f"{self.folder} {missing}: give a corpus that `magnetite data functions` wrote, or OGB's Code2"
            )

    @cached_property
    def source(self) -> "corpus.Corpus | Code2":
        """The data set."""
        if (self.folder / DESCRIPTION).is_file():
            return corpus.load(self.folder, verify=False)
        return Code2(self.folder)

    @cached_property
    def counts(self) -> dict[str, int]:
        """Number of functions of each split."""
        if isinstance(self.source, Code2):
            return {split: len(self.source.splits[split]) for split in SPLITS}
        found: dict[str, int] = dict.fromkeys(SPLITS, 0)
        for batch in self.source.batches(columns=["split"]):
            for split in batch["split"].to_pylist():
                found[split] += 1
        return found

    @cached_property
    def fingerprint(self) -> str:
        """Hash of the functions, whatever the folder is called."""
        if isinstance(self.source, Code2):
            return hashlib.sha256(json.dumps(self.source.fingerprint(), sort_keys=True).encode()).hexdigest()[:16]
        return str(self.source.info["fingerprint"])[:16]

    @cached_property
    def cache(self) -> Path:
        """Folder of the blocks."""
        key = hashlib.sha256(json.dumps(self._about(), sort_keys=True).encode()).hexdigest()[:16]
        return cache_home() / "magnetite" / "graphs" / f"{self.graphs}-{key}"

    def write(self, workers: int | None = None, progress: Callable[[int, int], None] | None = None) -> Path:
        """Build all graphs that are not in the cache yet, and return its folder.

        Several processes may call it at the same time: one builds, the others wait.

        Args:
            workers: Number of processes; by default as many as pay off, up to the number of cores.
            progress: Called after each block with its number of functions and that of all functions.
        """
        total = sum(self.counts.values())
        most = max(1, min(available_cores(), total // PER_WORKER)) if workers is None else workers
        places = [Place(split, number) for split in SPLITS for number in range(-(-self.counts[split] // BLOCK))]
        stored.write(
            self.cache,
            self._about(),
            places,
            lambda done: self._built(done, most),
            None if progress is None else lambda block: progress(len(block), total),
            wait=True,
        )
        return self.cache

    def blocks(self, split: str) -> Iterator[Block]:
        """The blocks of a split, in order, after `write`; empty if the split has no functions."""
        if self.counts[split]:
            yield from stored.read(self.cache, split, verify=False)  # `write` has verified them

    def names(self, split: str) -> dict[int, tuple[str, list[str]]]:
        """The project of each function of a split and all words of its name, by its number; Code2 has no projects."""
        if isinstance(self.source, Code2):
            return {number: ("", list(words)) for number, words in self.source.words(split)}
        found, first = {}, 0
        for batch in self.source.batches(columns=["split", "project", "words"]):
            for number, row in enumerate(batch.to_pylist(), first):
                if row["split"] == split:
                    found[number] = row["project"], row["words"]
            first += batch.num_rows
        return found

    def rows(self) -> Iterator[Row]:
        """All functions with their sources, in the order of the data set."""
        if isinstance(self.source, Code2):
            splits = np.empty(len(self.source), dtype=object)
            for split, ids in self.source.splits.items():
                splits[ids] = split
            both = zip(self.source._words(), self.source._code(), strict=True)
            for number, (words, source) in enumerate(both):
                if splits[number] is not None:
                    yield Row(number, splits[number], words, source)
            return
        number = 0
        for batch in self.source.batches(columns=["split", "words", "source", "name", "method"]):
            for row in batch.to_pylist():
                yield Row(number, row["split"], tuple(row["words"]), row["source"], row["name"], row["method"])
                number += 1

    def _about(self) -> dict[str, Any]:
        return {
            "functions": self.fingerprint,
            "version": __version__,
            "order": "canonical" if self.graphs == "dataflow" else "text",
            "graphs": self.graphs,
            "mask": self.mask,
            "keep_docstrings": self.keep_docstrings,
            "size": BLOCK,
        }

    def _built(self, done: Collection[Place], workers: int) -> Iterator[Block]:
        if self.graphs in OGB_GRAPHS and isinstance(self.source, Code2):
            texts = tuple(self.source.attributes.texts)
            kind: Any = self.graphs
            for block in self.source.blocks(kind, size=BLOCK, workers=workers, done=done):
                yield replace(block, texts=texts)
            return
        with LocalWorkers(_Builder(self.graphs, self.mask, self.keep_docstrings), workers) as pool:
            pending: deque[tuple[Place, list[Row], Callable[[], list[Any]]]] = deque()
            for place, rows in self._grouped():
                if place in done:
                    continue
                pending.append((place, rows, pool.submit([rows])))
                if len(pending) > 2 * workers:
                    yield _block(*pending.popleft())
            while pending:
                yield _block(*pending.popleft())

    def _grouped(self) -> Iterator[tuple[Place, list[Row]]]:
        """The functions of each block; of each split, one block is open at a time."""
        opened: dict[str, list[Row]] = {split: [] for split in SPLITS}
        numbers: dict[str, int] = dict.fromkeys(SPLITS, 0)
        for row in self.rows():
            opened[row.split].append(row)
            if len(opened[row.split]) == BLOCK:
                yield Place(row.split, numbers[row.split]), opened[row.split]
                opened[row.split], numbers[row.split] = [], numbers[row.split] + 1
        for split, rows in opened.items():
            if rows:
                yield Place(split, numbers[split]), rows


class _Built(NamedTuple):
    """Graphs of some functions as arrays, which travel between processes."""

    arrays: Arrays | None
    rows: list[int]
    texts: tuple[str, ...]
    failed: dict[int, str]


@dataclass(frozen=True)
class _Builder:
    """Builds the graphs of some functions."""

    graphs: str
    mask: str | None
    keep_docstrings: bool

    def __call__(self, rows: list[Row]) -> _Built:
        graphs: list[CodeGraph] = []
        built: list[int] = []
        failed: dict[int, str] = {}
        for number, row in enumerate(rows):
            try:
                graphs.append(self._graph(row))
                built.append(number)
            except Exception as error:  # one function must not stop the others; it is counted and named
                reason = str(error) if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
                failed[row.id] = " ".join(reason.split())[:200]
        texts = tuple(dict.fromkeys(text for graph in graphs for text in graph.attributes if text is not None))
        return _Built(packed_arrays(graphs, Vocabulary(texts)) if graphs else None, built, texts, failed)

    def _graph(self, row: Row) -> CodeGraph:
        kind: Any = self.graphs
        mask: Any = self.mask
        if row.name is None:
            return in_order(build(row.source, kind, mask, keep_docstrings=self.keep_docstrings))
        return in_order(graph_of(cut_function(row.source, row.name, row.method), kind, mask, self.keep_docstrings))


def in_order(graph: CodeGraph) -> CodeGraph:
    """The graph as models read it: in a data-flow graph, the order of the text must not show, not even by rounding.

    Args:
        graph: A graph of any kind.
    """
    return canonical(graph) if graph.kind == "dataflow" else graph


def _block(place: Place, rows: list[Row], wait: Callable[[], list[Any]]) -> Block:
    (found,) = wait()
    if found is None:
        found = _Built(None, [], (), {row.id: "the process that built its graph ended" for row in rows})
    return Block(
        place=place,
        ids=torch.tensor([row.id for row in rows]),
        words=tuple(row.words for row in rows),
        graphs=None if found.arrays is None else digraphs_of(found.arrays),
        rows=torch.tensor(found.rows, dtype=torch.int64),
        failed=found.failed,
        texts=found.texts,
    )
