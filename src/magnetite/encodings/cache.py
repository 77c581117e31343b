"""Encodings cached on disk by content: the same graphs are not encoded twice with the same parameters."""

import hashlib
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol, TypeVar, runtime_checkable

from filelock import FileLock

from magnetite.encodings.results import RESULTS
from magnetite.graphs import Digraphs
from magnetite.io.storage import DamagedFile, as_bytes, read_tensors
from magnetite.packed import Packed
from magnetite.version import __version__

Result = TypeVar("Result", bound=Packed, covariant=True)

SHARD_NODES = 200_000
"""A shard ends with the graph that brings it to this number of nodes."""


@runtime_checkable
class Encoding(Protocol[Result]):
    """A frozen dataclass that turns graphs into a packed result; its `repr` contains every parameter."""

    def __call__(self, graphs: Digraphs) -> Result:
        """Encode every graph."""
        ...


def cached(
    encoding: Encoding[Result], graphs: Digraphs, folder: str | Path, progress: Callable[[int], None] | None = None
) -> Result:
    """`encoding(graphs)`, read from `folder` if it was computed before, otherwise computed and stored there.

    The graphs are split into shards. The file name of a shard is a hash of its graphs, every parameter of the encoding
    and the version, so an interrupted run continues where it stopped, and several processes can share the work: each
    shard is computed under a lock and stored atomically. A damaged shard fails its checksum and is computed again.

    Args:
        encoding: The encoding to apply.
        graphs: Graphs to encode.
        folder: Where shards are stored; created if missing.
        progress: Called after each shard with its number of graphs.

    >>> import tempfile
    >>> from magnetite.encodings.spectral import Laplacian
    >>> path = Digraphs.from_edges([[0, 1], [1, 2]])
    >>> cached(Laplacian(k=2), path, tempfile.mkdtemp())
    Eigenpairs(1 graphs, k=2, torch.float32)
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    results = []
    for shard in shards(graphs):
        results.append(_shard(encoding, shard, folder / f"{key(encoding, shard)}.safetensors"))
        if progress is not None:
            progress(len(shard))
    return type(results[0]).concat(results).to(graphs.device)


def key(encoding: Encoding[Packed], graphs: Digraphs) -> str:
    """Hash of the graphs' bytes, every parameter of the encoding, and the version."""
    digest = hashlib.sha256(f"{__version__} {encoding!r}".encode())
    for name, tensor in sorted(graphs.tensors().items()):
        tensor = tensor.cpu().contiguous()
        digest.update(f" {name} {tensor.dtype} {tuple(tensor.shape)} ".encode())
        digest.update(as_bytes(tensor))
    return digest.hexdigest()[:40]


def shards(graphs: Digraphs) -> Iterator[Digraphs]:
    """Consecutive graphs with about `SHARD_NODES` nodes in total."""
    bounds = (graphs.node_ptr[1:] - 1) // SHARD_NODES
    starts = [0, *((bounds.diff() > 0).nonzero().squeeze(1) + 1).tolist(), len(graphs)]
    for begin, end in pairwise(starts):
        yield graphs.select(slice(begin, end))


def _shard(encoding: Encoding[Result], graphs: Digraphs, path: Path) -> Result:
    kept = _read(path)
    if kept is not None:
        return kept
    with FileLock(path.with_suffix(".lock")):
        kept = _read(path)
        if kept is None:
            kept = encoding(graphs)
            kept.save(path)
    return kept


def _read(path: Path) -> Any:
    """The content of the file, or None if it is missing or damaged."""
    if not path.exists():
        return None
    try:
        named, metadata = read_tensors(path)
        return RESULTS[metadata["kind"]].from_tensors(named)
    except (DamagedFile, KeyError):
        return None
