"""Data sets on disk: safetensors shards and a manifest; an interrupted run continues where it stopped."""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from magnetite.io.manifests import Manifest
from magnetite.io.storage import (
    CHECKSUM,
    LOCK,
    DamagedFile,
    locked,
    read_tensors,
    remove_leftovers,
    write_json,
    write_tensors,
)
from magnetite.tasks.base import SPLITS, Examples, Task
from magnetite.version import __version__

MANIFEST = "manifest.json"
MANIFESTS = Manifest(MANIFEST, "data set", "magnetite data")


def write(
    task: Task,
    folder: str | Path,
    splits: Sequence[str] = SPLITS,
    progress: Callable[[str, int], None] | None = None,
    wait: bool = False,
) -> Path:
    """Write the splits of a task to a folder, with a manifest of seed, options, version and checksums.

    Each shard is written atomically, and says which task, seed, options, split and number it belongs to. Existing
    shards are verified and kept, so calling the function again completes an interrupted data set, with the same bytes.
    A folder with other data or other files is rejected, and nothing in it is changed.

    Args:
        task: The task.
        folder: Where to write.
        splits: Names of the splits to write.
        progress: Called with the split and the number of graphs after each shard.
        wait: Whether to wait for a process that is writing to the folder, instead of raising an error.

    Returns:
        Path of the manifest.

    >>> import tempfile
    >>> from magnetite.tasks.sorting import Sorting
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = write(Sorting(train=20, shard_size=10), folder, ["train"])
    >>> sorted(path.name for path in folder.glob("[!.]*"))
    ['manifest.json', 'train-00000.safetensors', 'train-00001.safetensors']
    """
    folder = Path(folder)
    MANIFESTS.check_free(folder, lambda path: _is_shard(task, path))  # before anything is written, the lock included
    with locked(folder / LOCK, str(folder), wait):
        manifest = claim(task, folder)
        remove_leftovers(folder)
        for split in splits:
            for number in range(task.shard_count(split)):
                name = shard_name(split, number)
                manifest["files"][name] = _shard(task, split, number, folder / name, name in manifest["files"])
                if progress is not None:
                    progress(split, manifest["files"][name]["graphs"])
        manifest["files"] = dict(sorted(manifest["files"].items()))
        write_json(folder / MANIFEST, manifest)
    return folder / MANIFEST


def read(folder: str | Path, split: str, verify: bool = True) -> Iterator[Examples]:
    """The shards of a split, memory-mapped, in order.

    Args:
        folder: Folder of a data set.
        split: Name of the split.
        verify: Whether to verify the checksums.
    """
    folder = Path(folder)
    manifest = MANIFESTS.read(folder)
    listed = manifest.pop("files")
    chosen = files(folder, split)
    if not chosen:
        raise ValueError(f"{folder} has no complete split {split!r}: write it with `magnetite data`")
    for number, name in enumerate(chosen):
        tensors, metadata = read_tensors(folder / name, verify)
        stored = (metadata.get("shard"), metadata.get(CHECKSUM))
        if stored != (_place(manifest, split, number), listed[name][CHECKSUM]):
            raise DamagedFile(
                f"{folder / name} is not the shard that {MANIFEST} lists: run `magnetite data` again, which replaces it"
            )
        yield Examples.from_tensors(tensors)


def files(folder: str | Path, split: str) -> list[str]:
    """Names of the files of a split, in order."""
    return [name for name in MANIFESTS.read(Path(folder))["files"] if name.startswith(f"{split}-")]


def splits(folder: str | Path) -> list[str]:
    """The splits that have been written to a folder."""
    names = MANIFESTS.read(Path(folder))["files"]
    found = [split for split in SPLITS if any(name.startswith(f"{split}-") for name in names)]
    if not found:
        raise ValueError(f"{folder} has no complete split: write one with `magnetite data`")
    return found


def shard_name(split: str, number: int) -> str:
    """File name of a shard."""
    return f"{split}-{number:05d}.safetensors"


def describe(task: Task) -> dict[str, Any]:
    """What determines the bytes of a data set: task, version, seed and the options of its data."""
    parameters = task.data_options()
    return {
        "task": type(task).__name__,
        "version": __version__,
        "seed": parameters.pop("seed"),
        "parameters": parameters,
    }


def claim(task: Task, folder: Path) -> dict[str, Any]:
    """The manifest of the folder, or a new one if there is none; an error if it belongs to another task."""
    return MANIFESTS.claim(folder, describe(task), lambda path: _is_shard(task, path))


def _is_shard(task: Task, path: Path) -> bool:
    """Whether a file is a shard of this data set, as far as it says so."""
    found = re.fullmatch(r"(\w+)-(\d{5})\.safetensors", path.name)
    return bool(found) and _stored(path, verify=False).get("shard") == _place(describe(task), found[1], int(found[2]))


def _shard(task: Task, split: str, number: int, path: Path, listed: bool) -> dict[str, Any]:
    """Write a shard unless an undamaged one exists; return its entry in the manifest."""
    place = _place(describe(task), split, number)
    kept = _stored(path)
    if kept.get("shard") != place:
        if path.exists() and not listed:
            raise ValueError(f"{path} is not a shard of this data set: move it away, or choose another folder")
        examples = task.shard(split, number)
        kept = {"graphs": str(len(examples)), "shard": place}
        kept[CHECKSUM] = write_tensors(path, examples.tensors(), kept)
    return {"graphs": int(kept["graphs"]), CHECKSUM: kept[CHECKSUM]}


def _place(description: dict[str, Any], split: str, number: int) -> str:
    """Which shard of which data set this is, as text."""
    return json.dumps({**description, "split": split, "number": number}, sort_keys=True)


def _stored(path: Path, verify: bool = True) -> dict[str, str]:
    """The metadata of a file; empty if it is missing or damaged."""
    try:
        return read_tensors(path, verify)[1]
    except (FileNotFoundError, DamagedFile):
        return {}
