"""Encodings cached on disk by content: the same graphs are not encoded twice with the same parameters."""

import functools
import hashlib
import inspect
import re
import sys
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any, Protocol, TypeVar, runtime_checkable

import torch

from magnetite.encodings.results import RESULTS
from magnetite.graphs import Digraphs
from magnetite.io.storage import PREFIX, DamagedFile, as_bytes, locked, read_tensors, remove_leftovers, write_tensors
from magnetite.packed import Packed
from magnetite.version import __version__

Result = TypeVar("Result", bound=Packed, covariant=True)
Content = TypeVar("Content")

SHARD_NODES = 200_000
"""A shard ends with the graph that brings it to this number of nodes."""

NODES_TOGETHER = 16_000_000
"""Largest number of nodes of the shards that `store_together` encodes in one call, which bounds the memory of a GPU."""

COMPUTING = ("encodings", "linalg", "kernels", "graphs.py", "packed.py")
"""Files and folders of the package that determine an encoding."""

UNCLEAR = re.compile(r" at 0x[0-9a-fA-F]+|\.\.\.")
"""What a `repr` contains that does not show every parameter: an address, or an abridged array."""


@runtime_checkable
class Encoding(Protocol[Result]):
    """A frozen dataclass that turns graphs into a packed result; its `repr` contains every parameter."""

    def __call__(self, graphs: Digraphs) -> Result:
        """Encode every graph."""
        ...


def cached(
    encoding: Encoding[Result],
    graphs: Digraphs,
    folder: str | Path,
    progress: Callable[[int], None] | None = None,
    device: torch.device | str | None = None,
) -> Result:
    """`encoding(graphs)`, read from `folder` if it was computed before, otherwise computed and stored there.

    The graphs are split into shards. The key of a shard is a hash of its graphs, every parameter of the encoding, and
    the code that computes it; it is the name of the file and stands in it, so a file that was damaged, renamed or
    computed by other code is computed again. An interrupted run continues where it stopped, and several processes can
    share the work: each shard is computed under a lock and stored atomically.

    Args:
        encoding: The encoding to apply.
        graphs: Graphs to encode.
        folder: Where shards are stored; created if missing.
        progress: Called after each shard with its number of graphs.
        device: Where to compute; by default that of the graphs. A GPU solves graphs of one size at a time, so there all
            shards that have no file are computed together, by one process.

    >>> import tempfile
    >>> from magnetite.encodings.spectral import Laplacian
    >>> path = Digraphs.from_edges([[0, 1], [1, 2]])
    >>> cached(Laplacian(k=2), path, tempfile.mkdtemp())
    Eigenpairs(1 graphs, k=2, torch.float32)
    """
    folder = Path(folder)
    remove_leftovers(folder)
    parts = list(shards(graphs))
    if device is not None and torch.device(device).type != "cpu":
        store_together(encoding, parts, folder, device)
    results = []
    for shard in parts:
        results.append(_shard(encoding, shard, folder))
        if progress is not None:
            progress(len(shard))
    return type(results[0]).concat(results).to(graphs.device)


def key(encoding: Encoding[Packed], graphs: Digraphs) -> str:
    """Hash of the graphs' bytes, every parameter of the encoding, the version, and the code that computes it."""
    described = repr(encoding)
    if UNCLEAR.search(described):
        raise ValueError(
            f"{described:.80} cannot be cached, because its repr does not show every parameter: make it a dataclass "
            "whose fields are numbers, strings or tuples of them"
        )
    digest = hashlib.sha256(f"{__version__} {code_of(type(encoding))} {described}".encode())
    for name, tensor in sorted(graphs.tensors().items()):
        tensor = tensor.cpu().contiguous()
        digest.update(f" {name} {tensor.dtype} {tuple(tensor.shape)} ".encode())
        digest.update(as_bytes(tensor))
    return digest.hexdigest()[:40]


@functools.cache
def code_of(kind: type) -> str:
    """Hash of the source that computes an encoding: magnetite's, and the modules of classes of one's own.

    >>> from magnetite.encodings.spectral import Laplacian
    >>> len(code_of(Laplacian))
    64
    """
    home = Path(__file__).parent.parent
    files = [path for name in COMPUTING for path in sorted([home / name, *(home / name).rglob("*")])]
    digest = hashlib.sha256()
    for path in files:
        if path.is_file() and "__pycache__" not in path.parts:
            digest.update(path.relative_to(home).as_posix().encode() + path.read_bytes())
    for base in kind.__mro__:
        if base.__module__.partition(".")[0] not in ("magnetite", "builtins", "typing"):
            digest.update(base.__qualname__.encode() + _source(base))
    return digest.hexdigest()


def shards(graphs: Digraphs) -> Iterator[Digraphs]:
    """Consecutive graphs with about `SHARD_NODES` nodes in total."""
    for begin, end in spans(graphs, SHARD_NODES):
        yield graphs.select(slice(begin, end))


def spans(graphs: Digraphs, nodes: int) -> list[tuple[int, int]]:
    """First graph and end of each shard of about this number of nodes.

    Args:
        graphs: The graphs.
        nodes: A shard ends with the graph that brings it to a multiple of this number of nodes.

    >>> spans(Digraphs.from_edges([[[0], [1]]] * 5), nodes=4)
    [(0, 2), (2, 4), (4, 5)]
    """
    bounds = (graphs.node_ptr[1:] - 1) // nodes
    return list(pairwise([0, *((bounds.diff() > 0).nonzero().squeeze(1) + 1).tolist(), len(graphs)]))


def store_together(
    encoding: Encoding[Packed], parts: Sequence[Digraphs], folder: Path, device: torch.device | str
) -> None:
    """Compute the shards that have no file in few large calls on a device, and store them.

    Args:
        encoding: The encoding to apply.
        parts: The graphs of each shard.
        folder: Where shards are stored.
        device: Where to compute.
    """
    with locked(folder / f"{PREFIX}together.lock", str(folder), wait=True):
        missing = [part for part in parts if not _path(folder, key(encoding, part)).exists()]
        while missing:
            ends = list(accumulate(part.num_nodes for part in missing))
            count = max(1, bisect_right(ends, NODES_TOGETHER))
            some, missing = missing[:count], missing[count:]
            result = encoding(Digraphs.concat(some).to(device)).to("cpu")
            start = 0
            for part in some:
                _store(result.select(slice(start, start + len(part))), folder, key(encoding, part))
                start += len(part)


def _shard(encoding: Encoding[Result], graphs: Digraphs, folder: Path) -> Result:
    name = key(encoding, graphs)
    path = _path(folder, name)

    def make() -> Result:
        result = encoding(graphs)
        _store(result, folder, name)
        return result

    return once(path, lambda: _read(path, name), make)


def _path(folder: Path, name: str) -> Path:
    return folder / f"{name}.safetensors"


def _store(result: Packed, folder: Path, name: str) -> None:
    metadata = {"kind": type(result).__name__, "version": __version__, "key": name}
    write_tensors(_path(folder, name), result.tensors(), metadata)


def once(path: Path, read: Callable[[], Content | None], make: Callable[[], Content]) -> Content:
    """What `read` returns, or `make` if that is None; several processes that call it make a file once.

    Args:
        path: The file that `make` writes; its lock is beside it.
        read: Reads and verifies the file; None if it has to be made.
        make: Writes the file atomically.
    """
    kept = read()
    if kept is not None:
        return kept
    with locked(path.parent / f"{PREFIX}{path.stem}.lock", str(path), wait=True):
        kept = read()
        return make() if kept is None else kept


def _read(path: Path, name: str) -> Any:
    """The content of the file, or None if it is missing, damaged, or of another key."""
    if not path.exists():
        return None
    try:
        named, metadata = read_tensors(path)
        return RESULTS[metadata["kind"]].from_tensors(named) if metadata["key"] == name else None
    except (DamagedFile, KeyError):
        return None


def _source(kind: type) -> bytes:
    """The module of a class; of a class typed into an interpreter, its own source or compiled code."""
    file = getattr(sys.modules.get(kind.__module__), "__file__", None)
    try:
        return Path(file).read_bytes() if file else inspect.getsource(kind).encode()
    except (OSError, TypeError):
        code = getattr(kind.__call__, "__code__", None)
        return b"" if code is None else code.co_code + repr(code.co_consts).encode()
