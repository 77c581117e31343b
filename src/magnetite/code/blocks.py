"""Blocks of functions with graphs and names: how data sets of functions are read, and stored as shards.

A data set gives its functions block by block, so that it never has to fit into memory. `write` stores the blocks as
safetensors files, and continues where an interrupted run stopped; `read` gives them back.
"""

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import torch
from jaxtyping import Int
from torch import Tensor

from magnetite.graphs import Digraphs
from magnetite.io.storage import (
    CHECKSUM,
    LOCK,
    DamagedFile,
    foreign_files,
    locked,
    read_json,
    read_tensors,
    remove_leftovers,
    write_json,
    write_tensors,
)

SPLITS = ("train", "valid", "test")
"""The parts of every data set, here and in `magnetite.tasks`."""

MANIFEST = "blocks.json"
ADVICE = "choose another folder, or remove the file and write the blocks again, which keeps undamaged ones"


class Place(NamedTuple):
    """Which block of a data set.

    Args:
        split: Name of the split.
        number: Number of the block within the split.
    """

    split: str
    number: int

    @property
    def file(self) -> str:
        """Name of its file."""
        return f"{self.split}-{self.number:05d}.safetensors"


@dataclass(frozen=True, kw_only=True)
class Block:
    """Some functions of a split. Functions without a graph have a name to predict as well: their answer is empty.

    Args:
        place: Split and number of the block.
        ids: Number of each function in its data set.
        words: All words of each function's name.
        graphs: The graphs, in the order of the functions; None if no function has one.
        rows: For each graph, the position of its function in the block.
        failed: Why functions have no graph, by their numbers.
        texts: The texts of the attributes, if they are numbered by a vocabulary of the block's own; then another
            vocabulary can be chosen later.
    """

    place: Place
    ids: Int[Tensor, " functions"]
    words: tuple[tuple[str, ...], ...]
    graphs: Digraphs | None
    rows: Int[Tensor, " graphs"]
    failed: Mapping[int, str] = field(default_factory=dict)
    texts: tuple[str, ...] | None = None

    def __len__(self) -> int:
        return len(self.ids)

    def tensors(self) -> dict[str, Tensor]:
        """All tensors by name; words as text, one line per function."""
        text = "".join(" ".join(words) + "\n" for words in self.words)
        found = {"ids": self.ids, "rows": self.rows, "words": _bytes(text)}
        if self.texts is not None:
            found["texts"] = _bytes(json.dumps(self.texts))  # in ASCII, since texts may have unpaired surrogates
        graphs = {} if self.graphs is None else self.graphs.tensors()
        return found | {f"graphs/{name}": tensor for name, tensor in graphs.items()}

    @classmethod
    def from_tensors(cls, place: Place, named: Mapping[str, Tensor], failed: Mapping[int, str]) -> "Block":
        """The inverse of `tensors`.

        Args:
            place: Split and number of the block.
            named: Tensors by name.
            failed: Why functions have no graph.
        """
        graphs = {name.removeprefix("graphs/"): each for name, each in named.items() if name.startswith("graphs/")}
        lines = named["words"].numpy().tobytes().decode().split("\n")[:-1]
        return cls(
            place=place,
            ids=named["ids"],
            words=tuple(tuple(line.split()) for line in lines),
            graphs=Digraphs.from_tensors(graphs) if graphs else None,
            rows=named["rows"],
            failed=failed,
            texts=tuple(json.loads(named["texts"].numpy().tobytes())) if "texts" in named else None,
        )


def write(
    folder: str | Path,
    about: Mapping[str, Any],
    places: Sequence[Place],
    blocks: Callable[[Collection[Place]], Iterator[Block]],
    progress: Callable[[Block], None] | None = None,
    wait: bool = False,
) -> Path:
    """Write blocks to a folder. Undamaged blocks are kept, so calling it again completes an interrupted data set.

    Args:
        folder: Where to write.
        about: What determines the blocks; a folder with other blocks or other files is refused.
        places: All blocks.
        blocks: Called with the blocks that exist, gives the others.
        progress: Called with each block that has been written.
        wait: Whether to wait for a process that is writing to the folder, instead of raising an error.

    Returns:
        Path of the manifest.
    """
    folder = Path(folder)
    about = json.loads(json.dumps(about))
    _check_free(folder)
    with locked(folder / LOCK, str(folder), wait):
        if not (folder / MANIFEST).exists():
            write_json(folder / MANIFEST, {"about": about, "files": {}})
        found = _manifest(folder)["about"]
        if found != about:
            differing = next(name for name in {**about, **found} if found.get(name) != about.get(name))
            raise ValueError(
                f"{folder} holds other blocks ({differing} {found.get(differing)!s:.80} instead of "
                f"{about.get(differing)!s:.80}): choose another folder or remove it"
            )
        remove_leftovers(folder)
        files = {place: entry for place in places if (entry := _entry(folder / place.file, about, place)) is not None}
        if len(files) < len(places):
            for block in blocks(files.keys()):
                metadata = {
                    "place": _described(about, block.place),
                    "functions": str(len(block)),
                    "failed": json.dumps({str(number): reason for number, reason in block.failed.items()}),
                }
                checksum = write_tensors(folder / block.place.file, block.tensors(), metadata)
                files[block.place] = {
                    "functions": len(block),
                    "failed": len(block.failed),
                    CHECKSUM: checksum,
                }
                if progress is not None:
                    progress(block)
        missing = next((place for place in places if place not in files), None)
        if missing is not None:
            raise DamagedFile(f"the data have no block {missing.number} of {missing.split}: {folder} is not complete")
        write_json(folder / MANIFEST, {"about": about, "files": {place.file: files[place] for place in places}})
    return folder / MANIFEST


def read(folder: str | Path, split: str, verify: bool = True) -> Iterator[Block]:
    """The blocks of a split, in order.

    Args:
        folder: Folder that `write` completed.
        split: Name of the split.
        verify: Whether to verify the checksums.
    """
    folder = Path(folder)
    manifest = _manifest(folder)
    places = [Place(split, number) for number in range(len(manifest["files"]))]
    chosen = [place for place in places if place.file in manifest["files"]]
    if not chosen:
        raise ValueError(f"{folder} has no complete split {split!r}: write it first")
    for place in chosen:
        tensors, metadata = read_tensors(folder / place.file, verify)
        known = (_described(manifest["about"], place), manifest["files"][place.file][CHECKSUM])
        if (metadata.get("place"), metadata.get(CHECKSUM)) != known:
            raise DamagedFile(f"{folder / place.file} is not the block that {MANIFEST} lists: write it again")
        failed = {int(number): reason for number, reason in json.loads(metadata["failed"]).items()}
        yield Block.from_tensors(place, tensors, failed)


def _bytes(text: str) -> Tensor:
    return torch.frombuffer(bytearray(text.encode()), dtype=torch.uint8)


def _check_free(folder: Path) -> None:
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder} is a file: give a folder for the blocks")
    if not (folder / MANIFEST).exists():
        other = next(iter(foreign_files(folder)), None)
        if other is not None:
            raise ValueError(
                f"{folder} has no {MANIFEST} but other files, such as {other.name}: choose a new or empty folder"
            )


def _manifest(folder: Path) -> dict[str, Any]:
    try:
        content = read_json(folder / MANIFEST, "list of blocks", ADVICE)
    except FileNotFoundError:
        raise ValueError(f"{folder} has no {MANIFEST}: write the blocks first") from None
    if not isinstance(content.get("files"), dict) or not isinstance(content.get("about"), dict):
        raise DamagedFile(f"{folder / MANIFEST} is not a list of blocks: {ADVICE}")
    return content


def _entry(path: Path, about: Mapping[str, Any], place: Place) -> dict[str, Any] | None:
    """The entry of an undamaged block in the manifest; None if it is missing, damaged or another one."""
    try:
        metadata = read_tensors(path)[1]
    except (FileNotFoundError, DamagedFile):
        return None
    if metadata.get("place") != _described(about, place):
        return None
    failed = json.loads(metadata["failed"])
    return {"functions": int(metadata["functions"]), "failed": len(failed), CHECKSUM: metadata[CHECKSUM]}


def _described(about: Mapping[str, Any], place: Place) -> str:
    return json.dumps({**about, "split": place.split, "number": place.number}, sort_keys=True)
