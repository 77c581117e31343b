"""OGB's Code2 data set, read from its own files as a stream: 450,000 functions never lie in memory at once.

The folder (`ogbg_code2` or `code2`) has these files, whose rows are those of all graphs one after the other:

- `raw/num-node-list`, `raw/num-edge-list`: the number of nodes and of edges (of the syntax tree) of each graph;
- `raw/edge`: source and target of each edge, numbered from 0 within the graph;
- `raw/node-feat` (type, attribute), `raw/node_is_attributed`, `raw/node_dfs_order`, `raw/node_depth`: one row per node;
- `raw/graph-label`: the words of each function's name, separated by spaces;
- `split/project/train`, `valid`, `test`: numbers of graphs; all these are `.csv.gz` without a header;
- `mapping/typeidx2type`, `mapping/attridx2attr`: `.csv.gz` with a header, the texts that the numbers stand for;
- `mapping/graphidx2code.json.gz`: the source of each function, a table of pandas in `orient="split"`.
"""

import csv
import re
import zlib
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
import torch

from magnetite.code import blocks as stored
from magnetite.code.ast_graph import UNKNOWN
from magnetite.code.blocks import SPLITS, Block, Place
from magnetite.code.features import Arrays, arrays, digraphs_of, packed_arrays
from magnetite.code.graph import EDGE_TYPE_NUMBER, NODE_TYPE_NUMBER, CodeGraph
from magnetite.code.source import Kind, Mask, build
from magnetite.code.vocabulary import Vocabulary
from magnetite.io.storage import DamagedFile
from magnetite.io.streams import IntegerRows, explained, json_rows, text_lines
from magnetite.version import __version__
from magnetite.workers.processes import process_pool

OGB_GRAPHS = ("ogb", "ogb-directed")
"""The kinds of graphs that only OGB's Code2 has: its own."""

Graphs = Literal["ogb", "ogb-directed", "dataflow", "ast", "ast-directed", "tokens", "dataflow-sequential"]
"""OGB's own graphs, with or without inverse edges, or graphs that are built from the source."""

NO_ATTRIBUTE = "__NONE__"
"""OGB's attribute of a node that has none."""

NODES, COUNTS, EDGES, LABELS = "raw/num-node-list", "raw/num-edge-list", "raw/edge", "raw/graph-label"
FEATURES, ATTRIBUTED, ORDER, DEPTH = "raw/node-feat", "raw/node_is_attributed", "raw/node_dfs_order", "raw/node_depth"
NODE_FILES = (FEATURES, ATTRIBUTED, ORDER, DEPTH)
TYPES, ATTRIBUTES, SOURCES = "mapping/typeidx2type", "mapping/attridx2attr", "mapping/graphidx2code"
FILES = (
    *(f"{stem}.csv.gz" for stem in (NODES, COUNTS, EDGES, FEATURES, ATTRIBUTED, ORDER, DEPTH, LABELS)),
    *(f"split/project/{split}.csv.gz" for split in SPLITS),
    *(f"{stem}.csv.gz" for stem in (TYPES, ATTRIBUTES)),
    f"{SOURCES}.json.gz",
)
"""Every file that is read."""

AT_ONCE = 256
"""Number of graphs whose rows are read at a time."""


class Tree(NamedTuple):
    """The rows of one graph: its edges, and type, attribute, mark, order and depth of its nodes."""

    edges: np.ndarray
    features: np.ndarray
    attributed: np.ndarray
    order: np.ndarray
    depth: np.ndarray


Content = str | Tree
"""What a graph is made of."""


@dataclass(frozen=True)
class _Options:
    """How graphs are made; the fields are arguments of `Code2.blocks`."""

    graphs: Graphs
    attributes: Vocabulary
    mask: Mask
    keep_docstrings: bool


class Code2:
    """The data set in a folder. Only counts, splits and the texts of types and attributes are read at once.

    Args:
        folder: Folder with `raw`, `split` and `mapping`.
    """

    def __init__(self, folder: str | Path):
        self.folder = Path(folder)
        missing = next((name for name in FILES if not (self.folder / name).is_file()), None)
        if missing is not None:
            raise FileNotFoundError(
                f"{self.folder} has no file {missing}, which OGB's Code2 has: give the folder ogbg_code2, complete"
            )
        self.nodes, self.counts = self._counts(NODES, 1), self._counts(COUNTS, 0)
        if len(self.nodes) != len(self.counts):
            raise DamagedFile(
                f"{self._path(NODES)} has {len(self.nodes)} rows, but {COUNTS} has {len(self.counts)}: both need one "
                "row per graph"
            )
        self.splits = self._splits()
        self.types = self._texts(TYPES)
        self._attributes = self._texts(ATTRIBUTES)
        known = dict.fromkeys(text for text in self._attributes if text not in (UNKNOWN, NO_ATTRIBUTE))
        self.attributes = Vocabulary(list(known))

    def __len__(self) -> int:
        return len(self.nodes)

    def __repr__(self) -> str:
        parts = ", ".join(f"{len(ids)} {split}" for split, ids in self.splits.items())
        return f"Code2({len(self)} functions, {parts})"

    def places(self, size: int = 1024, splits: Sequence[str] = SPLITS) -> list[Place]:
        """The blocks of some splits, in order.

        Args:
            size: Number of functions per block.
            splits: Names of the splits.
        """
        if size < 1:
            raise ValueError(f"size must be a positive integer, got {size}")
        for split in splits:
            if split not in SPLITS:
                raise ValueError(f"split must be one of {', '.join(SPLITS)}, got {split!r}")
        return [Place(split, number) for split in splits for number in range(-(-len(self.splits[split]) // size))]

    def blocks(
        self,
        graphs: Graphs = "ogb-directed",
        splits: Sequence[str] = SPLITS,
        size: int = 1024,
        attributes: Vocabulary | None = None,
        mask: Mask = "strict",
        keep_docstrings: bool = False,
        workers: int = 1,
        done: Collection[Place] = (),
    ) -> Iterator[Block]:
        """Read the files once, from beginning to end, and give the functions block by block.

        Functions are in the order of their numbers within each split. One whose source cannot be parsed or analysed has
        no graph, but its words are in the block, and the reason in `failed`.

        Args:
            graphs: "ogb" for OGB's own graphs with next-token edges and the inverse of every edge, "ogb-directed"
                without inverses; "dataflow", "ast", "ast-directed" or "tokens" for those built from the source.
            splits: Names of the splits.
            size: Number of functions per block.
            attributes: Vocabulary of the attributes; by default OGB's.
            mask: Where graphs that are built from the source hide the function's name, see `code.build`.
            keep_docstrings: Whether docstrings become nodes of graphs that are built from the source.
            workers: Number of processes that build graphs.
            done: Blocks to leave out.
        """
        if graphs not in get_args(Graphs):
            raise ValueError(f"graphs must be one of {', '.join(map(repr, get_args(Graphs)))}, got {graphs!r}")
        wanted = [place for place in self.places(size, splits) if place not in set(done)]
        options = _Options(graphs, self.attributes if attributes is None else attributes, mask, keep_docstrings)
        work: Callable[[Any], Any]
        if graphs in OGB_GRAPHS:
            contents, work = self._trees, _OfTrees(self.folder, self.types, self._attributes, options)
        else:
            contents, work = self._sources, _OfSources(options)
        return self._worked(self._read(wanted, size, contents), work, workers)

    def write(
        self,
        folder: str | Path,
        graphs: Graphs = "ogb-directed",
        splits: Sequence[str] = SPLITS,
        size: int = 1024,
        attributes: Vocabulary | None = None,
        mask: Mask = "strict",
        keep_docstrings: bool = False,
        workers: int = 1,
        progress: Callable[[Block], None] | None = None,
    ) -> Path:
        """Write all blocks to a folder, from which `code.blocks.read` reads them; an interrupted run is continued.

        Args:
            folder: Where to write.
            graphs: Which graphs, see `blocks`.
            splits: Names of the splits.
            size: Number of functions per block.
            attributes: Vocabulary of the attributes; by default OGB's.
            mask: See `blocks`.
            keep_docstrings: See `blocks`.
            workers: Number of processes that build graphs.
            progress: Called with each block that has been written.
        """
        known = self.attributes if attributes is None else attributes
        about = {
            "data": "OGB Code2",
            "version": __version__,
            "graphs": graphs,
            "splits": list(splits),
            "size": size,
            "attributes": f"{zlib.crc32(chr(0).join(known.texts).encode('utf-8', 'surrogatepass')):08x}",
            "mask": mask,
            "keep_docstrings": keep_docstrings,
            "files": self.fingerprint(),
        }

        def missing(done: Collection[Place]) -> Iterator[Block]:
            return self.blocks(graphs, splits, size, attributes, mask, keep_docstrings, workers, done)

        return stored.write(folder, about, self.places(size, splits), missing, progress)

    def words(self, split: str) -> Iterator[tuple[int, tuple[str, ...]]]:
        """The number of each function of a split and all words of its name.

        Args:
            split: Name of the split.
        """
        chosen = self._chosen(split)
        return ((number, words) for number, words in enumerate(self._words()) if chosen[number])

    def sources(self, split: str) -> Iterator[tuple[int, str]]:
        """The number of each function of a split and its source.

        Args:
            split: Name of the split.
        """
        chosen = self._chosen(split)
        return ((number, source) for number, source in enumerate(self._code()) if chosen[number])

    def fingerprint(self) -> dict[str, str]:
        """Checksum and length of the content of each file, as its last bytes say."""
        found = {}
        for name in FILES:
            with explained(self.folder / name), (self.folder / name).open("rb") as file:
                file.seek(-8, 2)
                found[name] = file.read().hex()
        return found

    def _chosen(self, split: str) -> np.ndarray:
        """Which graphs belong to a split."""
        self.places(1, [split])  # raises an error if there is no such split
        return np.isin(np.arange(len(self)), self.splits[split])

    def _path(self, stem: str) -> Path:
        return self.folder / f"{stem}.csv.gz"

    def _counts(self, stem: str, least: int) -> np.ndarray:
        counts = IntegerRows(self._path(stem)).rest()[:, 0]
        wrong = np.flatnonzero(counts < least)
        if wrong.size:
            row = int(wrong[0])
            raise DamagedFile(f"{self._path(stem)} line {row + 1}: expected at least {least}, got {counts[row]}")
        return counts

    def _splits(self) -> dict[str, np.ndarray]:
        """The sorted numbers of the graphs of each split."""
        used = np.zeros(len(self), dtype=np.int8)
        found = {}
        for code, split in enumerate(SPLITS, 1):
            path = self.folder / f"split/project/{split}.csv.gz"
            ids = IntegerRows(path).rest()[:, 0]
            outside = np.flatnonzero((ids < 0) | (ids >= len(self)))
            if outside.size:
                row = int(outside[0])
                raise DamagedFile(f"{path} line {row + 1}: graph {ids[row]}, but there are graphs 0 to {len(self) - 1}")
            kept, first, count = np.unique(ids, return_index=True, return_counts=True)
            if (count > 1).any():
                raise DamagedFile(f"{path} has graph {kept[count > 1][0]} twice: give each graph once")
            both = np.flatnonzero(used[kept])
            if both.size:
                number = kept[both[0]]
                raise DamagedFile(
                    f"{path} line {first[both[0]] + 1}: graph {number} is in {SPLITS[used[number] - 1]}, too: give "
                    "each graph to one split"
                )
            used[kept] = code
            found[split] = kept
        return found

    def _texts(self, stem: str) -> tuple[str, ...]:
        """The texts of a mapping by their numbers. The texts "nan" and "" are texts."""
        path = self._path(stem)
        # A carriage return within a row would end it for Python, but not for pandas.
        lines = [line.replace("\r", "\ue000") + "\n" for line in text_lines(path)]
        found: dict[int, str] = {}
        rows = csv.reader(lines)
        try:
            next(rows, None)
            for row in rows:
                if not row:
                    continue
                if len(row) != 2 or not re.fullmatch("[0-9]{1,9}", row[0]) or int(row[0]) in found:
                    raise DamagedFile(f"{path} line {rows.line_num}: expected a new number and a text, got {row!r:.80}")
                found[int(row[0])] = row[1].replace("\ue000", "\r")
        except csv.Error as error:
            raise DamagedFile(f"{path} line {rows.line_num} is not valid CSV: {error}") from None
        missing = next((number for number in range(len(found)) if number not in found), None)
        if missing is not None or not found:
            raise DamagedFile(f"{path} has no text for number {missing or 0}: download it again")
        return tuple(found[number] for number in range(len(found)))

    def _words(self) -> Iterator[tuple[str, ...]]:
        """The words of every graph."""
        path, number = self._path(LABELS), 0
        for number, line in enumerate(text_lines(path), 1):
            words = tuple(line.strip('"').split())
            if not words:
                raise DamagedFile(f"{path} line {number} has no words: every function needs a name")
            if number > len(self):
                break
            yield words
        if number != len(self):
            found = f"more than {len(self)}" if number > len(self) else number
            raise DamagedFile(f"{path} has {found} lines, but {NODES} has {len(self)}: both need one line per graph")

    def _code(self) -> Iterator[str]:
        """The source of every graph."""
        path, number = self.folder / f"{SOURCES}.json.gz", 0
        for number, source in enumerate(json_rows(path, "code"), 1):
            if not isinstance(source, str):
                raise DamagedFile(f"{path}: the source of graph {number - 1} is not text, but {source!r:.40}")
            if number > len(self):
                break
            yield source
        if number != len(self):
            found = f"more than {len(self)}" if number > len(self) else number
            raise DamagedFile(f"{path} has {found} sources, but {NODES} has {len(self)}: both need one per graph")

    def _sources(self, wanted: np.ndarray) -> Iterator[Content | None]:
        """The source of every graph; None for those that are not wanted."""
        return (source if each else None for each, source in zip(wanted.tolist(), self._code(), strict=True))

    def _trees(self, wanted: np.ndarray) -> Iterator[Content | None]:
        """The rows of every graph, read for many graphs at a time; None for those that are not wanted."""
        edges = IntegerRows(self._path(EDGES), 2)
        columns = [IntegerRows(self._path(stem), 2 if stem == FEATURES else 1) for stem in NODE_FILES]
        whys = [f"{stem} has {int(total.sum())} in all" for stem, total in ((COUNTS, self.counts), (NODES, self.nodes))]
        for run, each in _runs(wanted):
            nodes, counts = self.nodes[run.start : run.stop], self.counts[run.start : run.stop]
            if not each:
                edges.skip(int(counts.sum()), whys[0])
                for column in columns:
                    column.skip(int(nodes.sum()), whys[1])
                yield from (None for _ in run)
                continue
            parts = [edges.take(int(counts.sum()), whys[0])]
            parts += [column.take(int(nodes.sum()), whys[1]) for column in columns]
            ends = [counts.cumsum()[:-1], *[nodes.cumsum()[:-1]] * len(columns)]
            split = [np.split(part, end) for part, end in zip(parts, ends, strict=True)]
            yield from (Tree(*rows) for rows in zip(*split, strict=True))
        edges.finish(whys[0])
        for column in columns:
            column.finish(whys[1])

    def _read(
        self,
        wanted: Sequence[Place],
        size: int,
        contents: Callable[[np.ndarray], Iterator[Content | None]],
    ) -> Iterator["_Open"]:
        """The blocks, complete, but without graphs. Of each split, one is open at a time."""
        block = np.full(len(self), -1, dtype=np.int64)
        for code, place in enumerate(wanted):
            block[self.splits[place.split][place.number * size : (place.number + 1) * size]] = code
        opened: dict[int, _Open] = {}
        lengths = np.bincount(block[block >= 0], minlength=len(wanted))
        if not wanted:
            return
        rows = zip(block.tolist(), self._words(), contents(block >= 0), strict=True)
        for number, (code, words, content) in enumerate(rows):
            if code < 0 or content is None:
                continue
            part = opened.setdefault(code, _Open(wanted[code], [], [], []))
            part.ids.append(number)
            part.words.append(words)
            part.contents.append(content)
            if len(part.ids) == lengths[code]:
                yield opened.pop(code)

    def _worked(self, opened: Iterator["_Open"], work: Any, workers: int) -> Iterator[Block]:
        """The blocks with their graphs, made in this process or in others."""
        if workers <= 1:
            yield from (part.block(*work(part)) for part in opened)
            return
        pool = process_pool(workers)
        pending: deque[tuple[_Open, Future[Any]]] = deque()
        try:
            for part in opened:
                pending.append((part, pool.submit(work, part)))
                if len(pending) > workers:
                    done, future = pending.popleft()
                    yield done.block(*future.result())
            while pending:
                done, future = pending.popleft()
                yield done.block(*future.result())
        finally:
            pool.shutdown(cancel_futures=True)


class _Open(NamedTuple):
    """A block whose graphs are not made yet."""

    place: Place
    ids: list[int]
    words: list[tuple[str, ...]]
    contents: list[Content]

    def block(self, found: Arrays | None, rows: Sequence[int], failed: Mapping[int, str]) -> Block:
        return Block(
            place=self.place,
            ids=torch.tensor(self.ids),
            words=tuple(self.words),
            graphs=None if found is None else digraphs_of(found),
            rows=torch.tensor(rows, dtype=torch.int64),
            failed=failed,
        )


@dataclass(frozen=True)
class _OfSources:
    """Makes graphs from sources; arrays, because they travel between processes."""

    options: _Options

    def __call__(self, part: _Open) -> tuple[Arrays | None, list[int], dict[int, str]]:
        options = self.options
        kind: Kind = options.graphs  # pyright: ignore[reportAssignmentType]
        graphs: list[CodeGraph] = []
        rows: list[int] = []
        failed: dict[int, str] = {}
        for row, source in enumerate(part.contents):
            try:
                graphs.append(build(str(source), kind, options.mask, keep_docstrings=options.keep_docstrings))
                rows.append(row)
            except Exception as error:  # one function must not stop the others; it is counted and named
                reason = str(error) if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
                failed[part.ids[row]] = " ".join(reason.split())[:200]
        return packed_arrays(graphs, options.attributes) if graphs else None, rows, failed


@dataclass(frozen=True)
class _OfTrees:
    """Makes graphs from the rows of OGB's files, with next-token edges in the order of the depth-first walk."""

    folder: Path
    types: tuple[str, ...]
    attributes: tuple[str, ...]
    options: _Options

    def __call__(self, part: _Open) -> tuple[Arrays | None, list[int], dict[int, str]]:
        trees = [content for content in part.contents if isinstance(content, Tree)]
        nodes, counts = [len(tree.depth) for tree in trees], [len(tree.edges) for tree in trees]
        columns = Tree(*(np.concatenate(rows) for rows in zip(*trees, strict=True)))
        graph = np.repeat(np.arange(len(trees)), nodes)
        start = np.concatenate([[0], np.cumsum(nodes)])
        kind, attribute = columns.features.T
        self._check(EDGES, columns.edges, np.repeat(nodes, counts)[:, None], np.repeat(part.ids, counts))
        for stem, column, size in (
            (FEATURES, kind, len(self.types)),
            (FEATURES, attribute, len(self.attributes)),
            (ATTRIBUTED, columns.attributed[:, 0], 2),
            (DEPTH, columns.depth[:, 0], 2**31),
        ):
            self._check(stem, column[:, None], np.full((len(column), 1), size), np.array(part.ids)[graph])

        tokens = np.flatnonzero(columns.attributed[:, 0])
        tokens = tokens[np.lexsort((columns.order[tokens, 0], graph[tokens]))]
        same = graph[tokens[:-1]] == graph[tokens[1:]]
        owner = graph[tokens[:-1]][same]
        following = np.stack([tokens[:-1][same], tokens[1:][same]]) - start[owner]
        tree = columns.edges.T
        groups = [(tree, np.repeat(np.arange(len(trees)), counts), "FIELD"), (following, owner, "NEXT_TOKEN")]
        if self.options.graphs == "ogb":
            groups = [
                group
                for edges, of, name in groups
                for group in ((edges, of, name), (edges[::-1], of, f"{name}_INVERSE"))
            ]
        of = np.concatenate([group[1] for group in groups])
        order = np.argsort(of, kind="stable")
        types = np.repeat([EDGE_TYPE_NUMBER[name] for _, _, name in groups], [len(each) for _, each, _ in groups])
        texts = [None if text == NO_ATTRIBUTE else text for text in self.attributes]
        found = arrays(
            nodes=nodes,
            counts=np.bincount(of, minlength=len(trees)),
            edges=np.concatenate([edges for edges, _, _ in groups], 1)[:, order].astype(np.int32),
            node_type=np.array([NODE_TYPE_NUMBER.get(name, 0) for name in self.types], dtype=np.int32)[kind],
            attribute=np.array(self.options.attributes.numbers(texts), dtype=np.int32)[attribute],
            depth=columns.depth[:, 0].astype(np.int32),
            edge_type=types[order].astype(np.int32),
            edge_name=np.zeros(len(of), dtype=np.int32),
        )
        return found, list(range(len(trees))), {}

    def _check(self, stem: str, values: np.ndarray, sizes: np.ndarray, ids: np.ndarray) -> None:
        """Raise an error unless `0 ≤ value < size`."""
        wrong = np.flatnonzero(((values < 0) | (values >= sizes)).any(1))
        if wrong.size:
            row = wrong[0]
            shown = ", ".join(map(str, values[row]))
            raise DamagedFile(
                f"{self.folder / stem}.csv.gz: graph {ids[row]} has {shown}, expected numbers from 0 to "
                f"{sizes[row, 0] - 1}: download it again"
            )


def _runs(wanted: np.ndarray) -> list[tuple[range, bool]]:
    """Ranges of at most `AT_ONCE` graphs, and whether they are wanted; longer ranges of unwanted ones.

    >>> _runs(np.array([False, True, True, False]))
    [(range(0, 1), False), (range(1, 3), True), (range(3, 4), False)]
    """
    bounds = [0, *(np.flatnonzero(np.diff(wanted)) + 1).tolist(), len(wanted)]
    found = []
    for start, stop in pairwise(bounds):
        if stop > start:
            step = AT_ONCE if wanted[start] else stop - start
            found += [(range(each, min(each + step, stop)), bool(wanted[start])) for each in range(start, stop, step)]
    return found
