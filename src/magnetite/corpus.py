"""Encode a corpus: many graphs in files, shard by shard, on processes of this machine or on a Ray cluster.

The inputs alone determine the shards. A process reads a shard, encodes it and writes one file, by atomic rename and
under a lock. Its name is that of the shard, and its metadata have a hash of the graphs, the encoding and the code. A
file that exists and matches hash and checksum is kept, so every shard is encoded once, whatever is killed in between,
and the bytes do not depend on the number or kind of the processes.
"""

import re
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import torch
from safetensors.torch import load as from_bytes
from safetensors.torch import save as to_bytes

from magnetite.encodings.cache import SHARD_NODES, Encoding, key, once, spans
from magnetite.encodings.encoded import FORMATS, MANIFEST, Encoded, EncodedCorpus, read_file
from magnetite.graphs import Digraphs, read_graphs, with_weight
from magnetite.io.storage import (
    CHECKSUM,
    LOCK,
    DamagedFile,
    NotWritten,
    foreign_files,
    locked,
    read_tensors,
    remove_leftovers,
    write_json,
)
from magnetite.packed import Packed
from magnetite.tasks import shards
from magnetite.tasks.base import Examples
from magnetite.tasks.datasets import LAYOUTS, data_set, saved_files
from magnetite.tasks.labelled import graph_files, joined
from magnetite.version import __version__
from magnetite.workers import Workers, start

AHEAD = 4
"""Number of shards per process that are submitted before the first of them is waited for."""

FILES_TOGETHER = 256
"""Number of files of one graph each that are read together."""

DIED = "the process died each time, perhaps for lack of memory: use smaller shards, or fewer processes per machine"

Weight = str | bool | None


class Progress(NamedTuple):
    """How far a corpus is.

    Args:
        graphs: Number of graphs that are done.
        kept: How many of them had been encoded before.
        total: Number of graphs of the inputs that have been read so far.
        failed: Number of inputs that failed.
    """

    graphs: int = 0
    kept: int = 0
    total: int = 0
    failed: int = 0


def encode_corpus(
    inputs: str | Path | Sequence[str | Path],
    encoding: Encoding[Packed],
    out: str | Path,
    *,
    format: str = "safetensors",
    workers: int | None = None,
    ray: str | None = None,
    device: str = "cpu",
    weight: Weight = True,
    shard_nodes: int = SHARD_NODES,
    progress: Callable[[Progress], None] | None = None,
) -> EncodedCorpus:
    """Encode all graphs of some folders and files, and write graphs and encodings to a folder.

    Call it again with the same arguments to continue after an interruption, or after repairing inputs that failed:
    shards that are complete are verified and kept. On a cluster of several machines, all of them need to see inputs and
    output under the same paths.

    Args:
        inputs: Folders of files written by `Digraphs.save`, of graph files, in OGB's layout or written by `magnetite
            data`; single files; or `module:name` of a PyG data set, whose code is run.
        encoding: The encoding.
        out: Folder of the corpus.
        format: safetensors, which is memory-mapped, or parquet, with one row per graph.
        workers: Number of processes; by default all cores, of this machine or of the Ray cluster, or all its GPUs.
        ray: Address of a Ray cluster, "auto" for the one that runs on this machine, "local" for a new one; None for
            processes of this machine.
        device: Where to encode: cpu or cuda.
        weight: As in `magnetite.read`.
        shard_nodes: A shard ends with the graph that brings it to this number of nodes.
        progress: Called after each shard.

    Returns:
        The corpus. If `complete` is false, `failed` says which inputs could not be encoded, and the others are there.

    >>> import tempfile
    >>> from magnetite.encodings import MagneticLaplacian
    >>> folder = Path(tempfile.mkdtemp())
    >>> Digraphs.from_edges([[[0, 1], [1, 2]]] * 10).save(folder / "paths.safetensors")
    >>> corpus = encode_corpus(folder / "paths.safetensors", MagneticLaplacian(k=2, q=0.1), folder / "out", workers=1)
    >>> corpus.graphs, corpus.encoding
    (Digraphs(10 graphs, 30 nodes, 20 edges), Eigenpairs(10 graphs, k=2, torch.complex64))
    """
    if ray is None and device != "cpu" and not torch.cuda.is_available():
        raise ValueError(f"device {device!r} is not available on this machine: use cpu, or a Ray cluster with GPUs")
    folder = Path(out).resolve()
    given = [inputs] if isinstance(inputs, str | Path) else list(inputs)
    settings = Settings(encoding, folder, f".{format}", device, weight, shard_nodes)
    units = _units(given)
    identity = settings.described(given)
    is_shard = _is_shard(settings)
    MANIFEST.check_free(folder, is_shard)  # before anything is written, the lock included
    with locked(folder / LOCK, str(folder)):
        MANIFEST.claim(folder, identity, is_shard)
        remove_leftovers(folder)
        with start(_call, workers, ray, gpu=device != "cpu") as pool:
            files, failed = _encode(units, settings, pool, progress)
        for path in foreign_files(folder):
            if (found := NAME.fullmatch(path.name)) and path.name not in files and int(found[1]) not in failed:
                path.unlink()  # of an input that is shorter now
        reasons = {units[number].name: reason for number, reason in sorted(failed.items())}
        content = {**identity, "files": dict(sorted(files.items())), "complete": not reasons, "failed": reasons}
        write_json(folder / MANIFEST.name, content)
    return EncodedCorpus(folder)


def read_corpus(inputs: Sequence[str | Path], weight: Weight = True) -> Digraphs:
    """All graphs of a corpus, without features, as `encode_corpus` reads them.

    Args:
        inputs: As in `encode_corpus`.
        weight: As in `magnetite.read`.
    """
    graphs = (unit.checked(weight) for unit in _units(inputs))
    return Digraphs.concat(each.replace(node_features={}, edge_features={}, graph_features={}) for each in graphs)


@dataclass(frozen=True)
class Settings:
    """What determines the content of a corpus, beside its inputs.

    Args:
        encoding: The encoding.
        folder: Folder of the corpus.
        extension: Extension of its files.
        device: Where to encode.
        weight: Which weights to read.
        shard_nodes: About how many nodes a shard has.
    """

    encoding: Encoding[Packed]
    folder: Path
    extension: str
    device: str
    weight: Weight
    shard_nodes: int

    def __post_init__(self) -> None:
        if self.extension not in FORMATS:
            known = " or ".join(each.removeprefix(".") for each in FORMATS)
            raise ValueError(f"format must be {known}, got {self.extension.removeprefix('.')!r}")
        if not isinstance(self.shard_nodes, int) or self.shard_nodes < 1:
            raise ValueError(f"shard_nodes must be a positive integer, got {self.shard_nodes!r}")
        key(self.encoding, Digraphs.from_edges([[0], [0]]))  # an error if its parameters cannot be described

    def described(self, inputs: Sequence[str | Path]) -> dict[str, Any]:
        """The same and the inputs, as the manifest stores them."""
        return {
            "encoding": repr(self.encoding),
            "version": __version__,
            "format": self.extension.removeprefix("."),
            "device": self.device.partition(":")[0],
            "weight": self.weight,
            "shard_nodes": self.shard_nodes,
            "inputs": [str(Path(each).resolve()) if Path(each).exists() else str(each) for each in inputs],
        }


NAME = re.compile(r"graphs-(\d{6})-(\d{5})\.(?:safetensors|parquet)")
"""Names of shards: number of the input, and of the shard in it."""


@dataclass(frozen=True)
class Saved:
    """A file written by `Digraphs.save`, or a shard of `magnetite data`, which processes read by themselves.

    Args:
        path: The file.
    """

    path: Path
    held: ClassVar[bool] = False

    @property
    def name(self) -> str:
        """The input in messages."""
        return str(self.path)

    def checked(self, weight: Weight) -> Digraphs:
        """The graphs, after everything in the file was verified."""
        tensors, metadata = read_tensors(self.path)
        if "shard" in metadata:
            return with_weight(Examples.from_tensors(tensors).graphs, weight)
        found, problem = Digraphs._of_file(tensors, metadata)
        if found is None:
            raise DamagedFile(f"{self.path} {problem}")
        return with_weight(found, weight)

    def graphs(self, weight: Weight, span: tuple[int, int]) -> Digraphs:
        """Some of the graphs of a file that has been checked."""
        status = self.path.stat()
        return with_weight(_mapped(self.path, status.st_mtime_ns, status.st_size).select(slice(*span)), weight)


@dataclass(frozen=True)
class Together:
    """Some graph files, which processes read by themselves.

    Args:
        paths: The files.
    """

    paths: tuple[Path, ...]
    held: ClassVar[bool] = False

    @property
    def name(self) -> str:
        """The input in messages."""
        first, last = self.paths[0], self.paths[-1]
        return str(first) if len(self.paths) == 1 else f"{first} to {last.name}"

    def checked(self, weight: Weight) -> Digraphs:
        """The graphs."""
        return joined([(path, read_graphs(path, weight)) for path in self.paths])

    def graphs(self, weight: Weight, span: tuple[int, int]) -> Digraphs:
        """Some of the graphs."""
        return self.checked(weight).select(slice(*span))


@dataclass(frozen=True)
class Whole:
    """A data set that can only be read as a whole: this process reads it and sends shards to the others.

    Args:
        name: Folder, or `module:name`.
        shard: The bytes of one shard, where it has been cut out.
    """

    name: str
    shard: bytes = b""
    held: ClassVar[bool] = True

    def checked(self, weight: Weight) -> Digraphs:
        """The graphs."""
        return with_weight(_whole(self.name), weight)

    def cut(self, span: tuple[int, int]) -> "Whole":
        """One shard."""
        tensors = _whole(self.name).select(slice(*span)).tensors()
        return Whole(self.name, to_bytes({name: tensor.contiguous() for name, tensor in tensors.items()}))

    def graphs(self, weight: Weight, _span: tuple[int, int]) -> Digraphs:
        """The graphs of the shard."""
        return with_weight(Digraphs.from_tensors(from_bytes(self.shard), validate=False), weight)


Unit = Saved | Together | Whole


@dataclass(frozen=True)
class Failure:
    """Why something could not be read or encoded."""

    reason: str


@dataclass(frozen=True)
class Inspection:
    """Verify an input, and find its shards.

    Args:
        unit: The input.
        settings: The settings.
    """

    unit: Unit
    settings: Settings

    def __call__(self) -> list[tuple[int, int]]:
        """First graph and end of each shard."""
        graphs = self.unit.checked(self.settings.weight)
        return spans(graphs, self.settings.shard_nodes) if len(graphs) else []


@dataclass(frozen=True)
class Job:
    """Encode a shard and write it.

    Args:
        unit: The input.
        span: First graph and end of the shard.
        name: Name of its file.
        settings: The settings.
    """

    unit: Unit
    span: tuple[int, int]
    name: str
    settings: Settings

    def __call__(self) -> tuple[dict[str, Any], bool]:
        """The entry of the shard in the manifest, and whether it existed before."""
        encoding, path = self.settings.encoding, self.settings.folder / self.name
        graphs = self.unit.graphs(self.settings.weight, self.span)
        wanted = key(encoding, graphs)

        def kept() -> tuple[dict[str, Any], bool] | None:
            try:
                metadata = read_file(path)[1]
            except (FileNotFoundError, DamagedFile):
                return None
            return (self._entry(graphs, metadata[CHECKSUM]), True) if metadata.get("key") == wanted else None

        def made() -> tuple[dict[str, Any], bool]:
            with _one_thread():
                bare = graphs.replace(names=None, node_features={}, edge_features={}, graph_features={})
                result = encoding(bare.to(self.settings.device)).to("cpu")
            return self._entry(graphs, Encoded(graphs, result).save(path, {"key": wanted})), False

        return once(path, kept, made)

    def _entry(self, graphs: Digraphs, value: str) -> dict[str, Any]:
        return {"graphs": len(graphs), "nodes": graphs.num_nodes, CHECKSUM: value, "input": self.unit.name}


def _call(work: Inspection | Job) -> Any:
    """Do one piece of work in a process; a `Failure` if the input is to blame."""
    try:
        return work()
    except NotWritten:
        raise  # such as a full disk, which every shard would meet
    except (ValueError, OSError, ArithmeticError, MemoryError, torch.OutOfMemoryError) as error:
        return Failure(" ".join(str(error).split()) or type(error).__name__)


def _encode(
    units: Sequence[Unit],
    settings: Settings,
    pool: Workers[Inspection | Job, Any],
    progress: Callable[[Progress], None] | None,
) -> tuple[dict[str, dict[str, Any]], dict[int, str]]:
    """Encode all shards.

    Returns:
        The entries of the manifest by name of the file, and why inputs failed, by number.
    """
    files: dict[str, dict[str, Any]] = {}
    failed: dict[int, str] = {}
    state = Progress()

    def report(**changes: int) -> None:
        nonlocal state
        state = state._replace(**changes, failed=len(failed))
        if progress is not None:
            progress(state)

    pending: deque[tuple[int, str, Callable[[], list[Any]]]] = deque()

    def collect() -> None:
        number, name, wait = pending.popleft()
        found = wait()[0]
        if found is None or isinstance(found, Failure):
            failed.setdefault(number, DIED if found is None else found.reason)
            report()
            return
        files[name], kept = found
        graphs = files[name]["graphs"]
        report(graphs=state.graphs + graphs, kept=state.kept + kept * graphs)

    for number, cuts in _inspected(units, settings, pool):
        if isinstance(cuts, Failure):
            failed[number] = cuts.reason
            report()
            continue
        report(total=state.total + sum(end - begin for begin, end in cuts))
        for place, span in enumerate(cuts):
            unit = units[number]
            name = f"graphs-{number:06d}-{place:05d}{settings.extension}"
            job = Job(unit.cut(span) if isinstance(unit, Whole) else unit, span, name, settings)
            pending.append((number, name, pool.submit([job])))
            while len(pending) > AHEAD * pool.count:
                collect()
    while pending:
        collect()
    return files, failed


def _inspected(
    units: Sequence[Unit], settings: Settings, pool: Workers[Inspection | Job, Any]
) -> Iterator[tuple[int, list[tuple[int, int]] | Failure]]:
    """The shards of each input in order, found by the processes ahead of the shards that are encoded."""
    waiting: deque[tuple[int, Callable[[], list[Any]]]] = deque()

    def first() -> tuple[int, Any]:
        number, wait = waiting.popleft()
        found = wait()[0]
        return number, Failure(DIED) if found is None else found

    for number, unit in enumerate(units):
        inspection = Inspection(unit, settings)
        waiting.append((number, (lambda each=inspection: [_call(each)]) if unit.held else pool.submit([inspection])))
        if len(waiting) > AHEAD * pool.count:
            yield first()
    while waiting:
        yield first()


def _units(inputs: Sequence[str | Path]) -> list[Unit]:
    """What is read and cut on its own, in order."""
    if not inputs:
        raise ValueError("at least one folder or file is needed, got none")
    return [unit for each in inputs for unit in _units_of(each)]


def _units_of(given: str | Path) -> Iterator[Unit]:
    path = Path(given)
    if path.is_file():
        resolved = path.resolve()
        yield Saved(resolved) if path.suffix == ".safetensors" else Together((resolved,))
        return
    if not path.is_dir():
        _whole(str(given))  # an error if there is no such data set
        yield Whole(str(given))
        return
    path = path.resolve()
    layout = next((name for name, layout in LAYOUTS.items() if layout.fits(path)), None)
    if layout is None:
        data_set(path)  # says what is there, and what was expected
    elif layout == "shards":
        for split in shards.splits(path):
            yield from (Saved(path / name) for name in shards.files(path, split))
    elif layout == "saved":
        yield from map(Saved, saved_files(path))
    elif layout == "files":
        paths = graph_files(path)
        for first in range(0, len(paths), FILES_TOGETHER):
            yield Together(tuple(paths[first : first + FILES_TOGETHER]))
    else:
        yield Whole(str(path))


def _is_shard(settings: Settings) -> Callable[[Path], bool]:
    """Whether a file is a shard of a corpus with these settings, as far as its name says."""
    return lambda path: NAME.fullmatch(path.name) is not None and path.suffix == settings.extension


@lru_cache(maxsize=1)
def _whole(name: str) -> Digraphs:
    """The graphs of a data set that is read as a whole; the shards of one are cut before the next is read."""
    return data_set(name).graphs


@lru_cache(maxsize=2)
def _mapped(path: Path, _changed: int, _size: int) -> Digraphs:
    """The graphs of a file that has been checked, memory-mapped, for several shards of the same file."""
    tensors, metadata = read_tensors(path, verify=False)
    if "shard" in metadata:
        tensors = {name.removeprefix("graphs/"): tensor for name, tensor in tensors.items() if name != "targets"}
    return Digraphs.from_tensors(tensors, validate=False)


@contextmanager
def _one_thread() -> Iterator[None]:
    """One thread of torch, so that sums are in the same order in every process; several processes use the cores."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
