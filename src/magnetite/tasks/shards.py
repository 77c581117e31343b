"""Data sets on disk: safetensors shards and a manifest; an interrupted run continues where it stopped."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from filelock import FileLock

from magnetite.io.storage import CHECKSUM, DamagedFile, read_json, read_tensors, write_json, write_tensors
from magnetite.tasks.base import SPLITS, Examples, Task
from magnetite.version import __version__

MANIFEST = "manifest.json"


def write(
    task: Task,
    folder: str | Path,
    splits: Sequence[str] = SPLITS,
    progress: Callable[[str, int], None] | None = None,
) -> Path:
    """Write the splits of a task to a folder, with a manifest of seed, options, version and checksums.

    Each shard is written atomically. Existing shards are verified and kept, so calling the function again completes an
    interrupted data set, with the same bytes. A folder with other data is rejected.

    Args:
        task: The task.
        folder: Where to write.
        splits: Names of the splits to write.
        progress: Called with the split and the number of graphs after each shard.

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
    folder.mkdir(parents=True, exist_ok=True)
    with FileLock(folder / ".lock"):
        manifest = claim(task, folder)
        for unfinished in folder.glob(".*.safetensors"):
            unfinished.unlink()  # of a killed run: nobody else writes here while the lock is held
        for split in splits:
            for number in range(task.shard_count(split)):
                path = folder / shard_name(split, number)
                manifest["files"][path.name] = _shard(task, split, number, path)
                if progress is not None:
                    progress(split, manifest["files"][path.name]["graphs"])
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
    files = [name for name in _manifest(Path(folder))["files"] if name.startswith(f"{split}-")]
    if not files:
        raise ValueError(f"{folder} has no complete split {split!r}: write it with `magnetite data`")
    for name in files:
        yield Examples.from_tensors(read_tensors(Path(folder) / name, verify)[0])


def splits(folder: str | Path) -> list[str]:
    """The splits that have been written to a folder."""
    names = _manifest(Path(folder))["files"]
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
    expected = describe(task)
    if not (folder / MANIFEST).exists():
        write_json(folder / MANIFEST, {**expected, "files": {}})
    found = _manifest(folder)
    files = found.pop("files")
    if found != expected:
        differing = [name for name in expected if found.get(name) != expected[name]]
        given = ", ".join(f"{name} {found.get(name)} instead of {expected[name]}" for name in differing)
        raise ValueError(f"{folder} holds another data set ({given}): choose another folder or remove it")
    return {**expected, "files": files}


def _manifest(folder: Path) -> dict[str, Any]:
    try:
        content = read_json(folder / MANIFEST, "manifest of a data set", "remove the folder")
    except FileNotFoundError:
        raise ValueError(f"{folder} has no {MANIFEST}: write a data set with `magnetite data`") from None
    if not isinstance(content.get("files"), dict):
        raise DamagedFile(f"{folder / MANIFEST} is not a manifest of a data set: choose another folder")
    return content


def _shard(task: Task, split: str, number: int, path: Path) -> dict[str, Any]:
    """Write a shard unless an undamaged one exists; return its entry in the manifest."""
    kept = _kept(path)
    if kept is None:
        examples = task.shard(split, number)
        write_tensors(path, examples.tensors(), {"graphs": str(len(examples))})
        kept = read_tensors(path, verify=False)[1]
    return {"graphs": int(kept["graphs"]), CHECKSUM: kept[CHECKSUM]}


def _kept(path: Path) -> dict[str, str] | None:
    if not path.exists():
        return None
    try:
        return read_tensors(path)[1]
    except DamagedFile:
        return None
