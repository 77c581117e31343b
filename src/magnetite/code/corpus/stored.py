"""A corpus on disk: Parquet files of functions and a description with checksums."""

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from magnetite.code.blocks import SPLITS
from magnetite.code.corpus.extraction import cut_function
from magnetite.code.graph import CodeGraph
from magnetite.code.source import Kind, Mask, graph_of
from magnetite.io.storage import DamagedFile, read_json

if TYPE_CHECKING:
    import pyarrow as pa

DESCRIPTION = "corpus.json"
ADVICE = "run `magnetite data functions` again, or choose another folder"
BATCH = 1000
"""Number of functions that are read at once."""


class CorpusFunction(NamedTuple):
    """A function of a corpus.

    Args:
        source: Its text, with decorators, indented as in its file.
        name: Its name.
        words: The words of the name, in lower case.
        project: The project that it belongs to.
        licence: Family of the project's licence.
        path: File in the project.
        line: Line of the file where the text begins.
        method: Whether it was defined in a class.
        nodes: Number of nodes of the data-flow graph.
        dataflow: Hash of the data-flow graph, with the name hidden.
        sequential: Hash of the graph of kind "ast", with the name hidden.
        split: train, valid or test.
    """

    source: str
    name: str
    words: list[str]
    project: str
    licence: str
    path: str
    line: int
    method: bool
    nodes: int
    dataflow: str
    sequential: str
    split: str

    def build(self, kind: Kind = "dataflow", mask: Mask = "strict", keep_docstrings: bool = False) -> CodeGraph:
        """The graph of the function; with the defaults, its hash is `dataflow`, or `sequential` for kind "ast".

        Args:
            kind: "dataflow", "ast", "ast-directed", "tokens" or "dataflow-sequential".
            mask: Where to hide the name, see `magnetite.code.build`.
            keep_docstrings: Whether docstrings become nodes.
        """
        return graph_of(cut_function(self.source, self.name, self.method), kind, mask, keep_docstrings)


@dataclass(frozen=True)
class Corpus:
    """Functions in a folder, opened by `load`.

    Args:
        folder: The folder.
        info: Content of corpus.json: settings, counts, and what was left out and why.
    """

    folder: Path
    info: dict[str, Any]

    def __len__(self) -> int:
        return self.info["functions"]["kept"]

    def __repr__(self) -> str:
        return f"Corpus({len(self):,} functions of {self.info['projects']['read']:,} projects)"

    @property
    def complete(self) -> bool:
        """Whether no project failed."""
        return self.info["complete"]

    def functions(self, split: str | None = None) -> Iterator[CorpusFunction]:
        """The functions one by one, without reading all of them into memory.

        Args:
            split: train, valid or test; None for all.
        """
        for batch in self.batches(split):
            yield from (CorpusFunction(**row) for row in batch.to_pylist())

    def batches(self, split: str | None = None, columns: list[str] | None = None) -> Iterator["pa.RecordBatch"]:
        """The functions as batches of Arrow columns.

        Args:
            split: train, valid or test; None for all.
            columns: Names of the columns to read; all by default.
        """
        import pyarrow as pa
        import pyarrow.parquet as pq

        if split is not None and split not in SPLITS:
            raise ValueError(f"split must be one of {', '.join(SPLITS)}, got {split!r}")
        wanted = list(CorpusFunction._fields) if columns is None else columns
        for name in self.info["shards"]:
            with pq.ParquetFile(self.folder / name) as file:
                for batch in file.iter_batches(BATCH, columns=list(dict.fromkeys([*wanted, "split"]))):
                    chosen = (
                        batch
                        if split is None
                        else batch.filter(
                            pa.array([value == split for value in batch["split"].to_pylist()], pa.bool_())
                        )
                    )
                    if chosen.num_rows:
                        yield chosen.select(wanted)


def load(folder: str | Path, verify: bool = True) -> Corpus:
    """Open a corpus written by `write` or `magnetite data functions`.

    Args:
        folder: Its folder.
        verify: Whether to verify the checksums of all files.
    """
    folder = Path(folder)
    info = read_json(folder / DESCRIPTION, "description of a corpus", ADVICE)
    if not isinstance(info.get("shards"), dict) or not isinstance(info.get("functions"), dict):
        raise DamagedFile(f"{folder / DESCRIPTION} is not a description of a corpus: {ADVICE}")
    for name, entry in info["shards"].items():
        path = folder / name
        if not path.is_file():
            raise FileNotFoundError(f"{path} does not exist: {ADVICE}")
        if verify and file_hash(path) != entry["sha256"]:
            raise DamagedFile(f"{path} does not match its checksum because it was changed or damaged: {ADVICE}")
    return Corpus(folder, info)


def file_hash(path: Path) -> str:
    """SHA-256 of a file."""
    digest = sha256()
    with path.open("rb") as file:
        while piece := file.read(2**20):
            digest.update(piece)
    return digest.hexdigest()
