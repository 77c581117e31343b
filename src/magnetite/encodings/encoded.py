"""Graphs with their encodings: in memory, in files, and in folders of many files written by `encode_corpus`."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from torch import Tensor

from magnetite.encodings.results import RESULTS
from magnetite.encodings.rows import kind_of_rows, read_rows, stored_tensors, write_rows
from magnetite.graphs import Digraphs
from magnetite.io.manifests import Manifest
from magnetite.io.storage import CHECKSUM, DamagedFile, read_tensors, write_tensors
from magnetite.packed import Packed
from magnetite.version import __version__

MANIFEST = Manifest("encoded.json", "corpus of encoded graphs", "magnetite encode")
KIND, GRAPHS, ENCODING = "Encoded", "graphs", "encoding"


@dataclass(frozen=True)
class Encoded:
    """Graphs and the result of one encoding of them.

    Args:
        graphs: The graphs.
        encoding: What the encoding returned for them.

    >>> from magnetite.encodings.spectral import Laplacian
    >>> path = Digraphs.from_edges([[0, 1], [1, 2]])
    >>> Encoded(path, Laplacian(k=2)(path))
    Encoded(Digraphs(1 graphs, 3 nodes, 2 edges), Eigenpairs(1 graphs, k=2, torch.float32))
    """

    graphs: Digraphs
    encoding: Packed

    def __len__(self) -> int:
        return len(self.graphs)

    def __repr__(self) -> str:
        return f"Encoded({self.graphs}, {self.encoding})"

    def select(self, index: slice | Sequence[int] | Tensor) -> "Encoded":
        """A subset of the graphs, as in `Digraphs.select`."""
        return Encoded(self.graphs.select(index), self.encoding.select(index))

    @classmethod
    def concat(cls, items: Iterable["Encoded"]) -> "Encoded":
        """Join graphs and encodings end to end."""
        items = list(items)
        kind = type(items[0].encoding)
        return cls(Digraphs.concat(each.graphs for each in items), kind.concat(each.encoding for each in items))

    def save(self, path: str | Path, metadata: Mapping[str, str] | None = None) -> str:
        """Write to a file of a format in `FORMATS`, atomically, and return the checksum.

        Args:
            path: The file; its extension sets the format.
            metadata: Further strings to store.
        """
        content = {
            **(metadata or {}),
            "kind": KIND,
            "result": type(self.encoding).__name__,
            "version": __version__,
            "graphs": str(len(self)),
            "nodes": str(self.graphs.num_nodes),
        }
        return _format(Path(path)).write(Path(path), {GRAPHS: self.graphs, ENCODING: self.encoding}, content)

    @classmethod
    def load(cls, path: str | Path, verify: bool = True) -> "Encoded":
        """Read a file written by `save`, validated; safetensors files are memory-mapped.

        Args:
            path: The file.
            verify: Whether to check the checksum, which reads the whole file once.
        """
        tensors, metadata = read_file(Path(path), verify)
        return _of_tensors(Path(path), tensors, metadata)


class Format(NamedTuple):
    """How files of a format are written and read, and what they say they hold."""

    write: Callable[[Path, Mapping[str, Packed], Mapping[str, str]], str]
    read: Callable[[Path, bool], tuple[dict[str, Tensor], dict[str, str]]]
    kind: Callable[[Path], str | None]


def _write_tensors(path: Path, items: Mapping[str, Packed], metadata: Mapping[str, str]) -> str:
    return write_tensors(path, stored_tensors(items), metadata)


def _kind_of_tensors(path: Path) -> str | None:
    return read_tensors(path, verify=False)[1].get("kind")


FORMATS: dict[str, Format] = {
    ".safetensors": Format(_write_tensors, read_tensors, _kind_of_tensors),
    ".parquet": Format(write_rows, read_rows, kind_of_rows),
}
"""The formats of encoded graphs by file extension."""


def read_file(path: Path, verify: bool = True) -> tuple[dict[str, Tensor], dict[str, str]]:
    """The tensors and the metadata of a file of encoded graphs; a `DamagedFile` error if it is none."""
    tensors, metadata = _format(path).read(path, verify)
    if metadata.get("kind") != KIND or metadata.get("result") not in RESULTS:
        raise DamagedFile(f"{path} does not hold encoded graphs: write it with `magnetite encode`")
    return tensors, metadata


class EncodedCorpus:
    """Encoded graphs in a folder, written by `magnetite.encode_corpus` and opened by `magnetite.read`.

    A corpus of any size is read shard by shard with `shards`; `graphs` and `encoding` are all of it in memory.

    Args:
        folder: The folder.
        verify: Whether to verify the checksum of each shard when it is read.
    """

    def __init__(self, folder: str | Path, verify: bool = True):
        self.folder, self.verify = Path(folder), verify
        self.info: dict[str, Any] = MANIFEST.read(self.folder)
        """Content of the manifest: encoding, inputs, shards, and inputs that failed."""

    def __len__(self) -> int:
        return sum(entry["graphs"] for entry in self.files.values())

    def __repr__(self) -> str:
        missing = "" if self.complete else f", {len(self.failed)} inputs failed"
        return f"EncodedCorpus({len(self):,} graphs in {len(self.files):,} shards, {self.info['encoding']}{missing})"

    @property
    def files(self) -> dict[str, dict[str, Any]]:
        """Number of graphs and nodes, checksum and input of each shard, by the name of its file."""
        return self.info["files"]

    @property
    def failed(self) -> dict[str, str]:
        """Why inputs could not be encoded, by name."""
        return self.info.get("failed", {})

    @property
    def complete(self) -> bool:
        """Whether everything was encoded."""
        return bool(self.info.get("complete"))

    def shards(self, process: int = 0, processes: int = 1) -> Iterator[Encoded]:
        """The shards one by one, memory-mapped where they are safetensors files.

        Args:
            process: Number of this process, from 0, if several share the corpus.
            processes: Number of processes; each gets every `processes`-th shard.
        """
        if not self.files:
            raise ValueError(f"{self.folder} has no complete shards: run the same `magnetite encode` command again")
        for name in list(self.files)[process::processes]:
            path = self.folder / name
            tensors, metadata = read_file(path, self.verify)
            if metadata.get(CHECKSUM) != self.files[name][CHECKSUM]:
                raise DamagedFile(
                    f"{path} is not the shard that {MANIFEST.name} lists: run the same `magnetite encode` command "
                    "again, which replaces it"
                )
            yield _of_tensors(path, tensors, metadata)

    @cached_property
    def _all(self) -> Encoded:
        return Encoded.concat(self.shards())

    @property
    def graphs(self) -> Digraphs:
        """All graphs."""
        return self._all.graphs

    @property
    def encoding(self) -> Packed:
        """The encoding of all graphs."""
        return self._all.encoding


def is_encoded(path: Path) -> bool:
    """Whether a file holds encoded graphs, from its metadata."""
    if path.suffix not in FORMATS or not path.is_file():
        return False
    try:
        return FORMATS[path.suffix].kind(path) == KIND
    except Exception:  # the reader of the format says what is wrong with the file
        return False


def is_corpus(folder: Path) -> bool:
    """Whether a folder holds encoded graphs."""
    return (folder / MANIFEST.name).is_file()


def _format(path: Path) -> Format:
    if path.suffix not in FORMATS:
        raise ValueError(f"{path} has an unknown file extension: use one of {' '.join(FORMATS)}")
    return FORMATS[path.suffix]


def _of_tensors(path: Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> Encoded:
    parts: dict[str, dict[str, Tensor]] = {GRAPHS: {}, ENCODING: {}}
    try:
        for name, tensor in tensors.items():
            prefix, _, own = name.partition("/")
            parts[prefix][own] = tensor
        graphs = Digraphs.from_tensors(parts[GRAPHS])
        encoding = RESULTS[metadata["result"]].from_tensors({**parts[ENCODING], "node_ptr": graphs.node_ptr})
    except (ValueError, LookupError) as error:
        raise DamagedFile(f"{path} is damaged or was not written by magnetite: {error}") from error
    return Encoded(graphs, encoding)
