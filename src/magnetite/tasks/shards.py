"""Data sets on disk: safetensors shards and a manifest; an interrupted run goes on where it stopped."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from filelock import FileLock

from magnetite.io.storage import CHECKSUM, DamagedFile, read_json, read_tensors, write_json, write_tensors
from magnetite.tasks.examples import SPLITS, Examples, Task, shard_count
from magnetite.version import __version__

MANIFEST = "manifest.json"


def write(
    task: Task,
    folder: str | Path,
    splits: Sequence[str] = SPLITS,
    progress: Callable[[str, int], None] | None = None,
) -> Path:
    """Write a task's splits to `folder`, and a manifest with seed, parameters, version and checksums; its path.

    Each shard is written whole or not at all. Shards that are there are checked and kept, so that a run that was killed
    is finished by running it again, and gives the same bytes as one that was not. A folder that holds other data is
    refused. `progress(split, graphs)` is called after each shard.

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
        entry = claim(task, folder)
        for part in folder.glob(".*.safetensors"):
            part.unlink()  # what a killed run had begun; nobody else writes here while the lock is held
        for split in splits:
            for number in range(shard_count(task, split)):
                path = folder / f"{split}-{number:05d}.safetensors"
                entry["files"][path.name] = _shard(task, split, number, path)
                if progress is not None:
                    progress(split, entry["files"][path.name]["graphs"])
        entry["files"] = dict(sorted(entry["files"].items()))
        write_json(folder / MANIFEST, entry)
    return folder / MANIFEST


def read(folder: str | Path, split: str, verify: bool = True) -> Iterator[Examples]:
    """The shards of a split, memory-mapped, in order."""
    files = [name for name in _manifest(Path(folder))["files"] if name.startswith(f"{split}-")]
    if not files:
        raise ValueError(f"{folder} holds no finished split {split!r}: write it with `magnetite data`")
    for name in files:
        yield Examples.from_tensors(read_tensors(Path(folder) / name, verify)[0])


def describe(task: Task) -> dict[str, Any]:
    """What decides the bytes of a data set: task, seed, parameters and version."""
    parameters = asdict(task)  # pyright: ignore[reportArgumentType] (a task is a dataclass, which no protocol can say)
    return {
        "task": type(task).__name__,
        "version": __version__,
        "seed": parameters.pop("seed"),
        "parameters": parameters,
    }


def claim(task: Task, folder: Path) -> dict[str, Any]:
    """The folder's manifest, if it is this task's; a new one, written at once, if it has none; else an error."""
    wanted = describe(task)
    if not (folder / MANIFEST).exists():
        write_json(folder / MANIFEST, {**wanted, "files": {}})
    found = _manifest(folder)
    files = found.pop("files")
    if found != wanted:
        differing = [name for name in wanted if found.get(name) != wanted[name]]
        given = ", ".join(f"{name} {found.get(name)} there, {wanted[name]} now" for name in differing)
        raise ValueError(f"{folder} holds another data set ({given}): choose another folder or remove it")
    return {**wanted, "files": files}


def _manifest(folder: Path) -> dict[str, Any]:
    try:
        content = read_json(folder / MANIFEST, "manifest of a data set", "remove the folder")
    except FileNotFoundError:
        raise ValueError(f"{folder} has no {MANIFEST}: write a data set with `magnetite data`") from None
    if not isinstance(content.get("files"), dict):
        raise DamagedFile(f"{folder / MANIFEST} is no manifest of a data set: choose another folder")
    return content


def _shard(task: Task, split: str, number: int, path: Path) -> dict[str, Any]:
    """Write a shard unless a whole one is there; its entry in the manifest."""
    kept = _kept(path)
    if kept is None:
        drawn = task.shard(split, number)
        write_tensors(path, drawn.tensors(), {"graphs": str(len(drawn))})
        kept = read_tensors(path, verify=False)[1]
    return {"graphs": int(kept["graphs"]), CHECKSUM: kept[CHECKSUM]}


def _kept(path: Path) -> dict[str, str] | None:
    if not path.exists():
        return None
    try:
        return read_tensors(path)[1]
    except DamagedFile:
        return None
