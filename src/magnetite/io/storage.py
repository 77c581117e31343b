"""Tensors on disk: safetensors files, written whole by atomic rename, checksummed, read memory-mapped."""

import json
import os
import tempfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

HEADER, CHECKSUM = "magnetite", "crc32"


class DamagedFile(ValueError):
    """A file that exists but does not hold what was written: truncated, overwritten, or not ours."""


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """Give a temporary path beside `path`; on success it takes `path`'s place in one step, on failure it is removed.

    >>> folder = Path(tempfile.mkdtemp())
    >>> with replacing(folder / "note.txt") as part:
    ...     _ = part.write_text("whole or not at all")
    >>> [file.name for file in folder.iterdir()]
    ['note.txt']
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{path.stem}-", suffix=path.suffix, dir=path.parent)
    os.close(handle)
    part = Path(name)
    try:
        yield part
        part.chmod(0o666 & ~_umask())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def check_writable(path: str | Path) -> None:
    """Refuse a place where no file can be written, before any work is done for it."""
    path = Path(path)
    if path.is_dir():
        raise ValueError(f"{path} is a folder: give the name of a file in it")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent)
    except OSError as error:
        raise ValueError(
            f"{path} cannot be written ({error.strerror}): choose a folder that you may write to"
        ) from error
    os.close(handle)
    Path(name).unlink()


def write_json(path: str | Path, content: object) -> None:
    """Write `content` as indented JSON in one step."""
    with replacing(path) as part:
        part.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def read_json(path: str | Path, what: str, advice: str) -> dict[str, Any]:
    """The table in a JSON file; a file that holds none is named, as not being `what`, with what to do.

    >>> path = Path(tempfile.mkdtemp()) / "note.json"
    >>> write_json(path, {"whole": True})
    >>> read_json(path, "note", "write it again")
    {'whole': True}
    """
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise FileNotFoundError(f"{path} does not exist: {advice}") from error
    except ValueError as error:  # of JSON, or of UTF-8
        raise DamagedFile(f"{path} is no {what} ({error}): {advice}") from error
    if not isinstance(content, dict):
        raise DamagedFile(f"{path} is no {what} (it holds no table): {advice}")
    return content


def write_tensors(path: str | Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> None:
    """Write named tensors and string metadata to a safetensors file, with a checksum, in one step."""
    stored = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    header = json.dumps({**metadata, CHECKSUM: checksum(stored)}, sort_keys=True)
    with replacing(path) as part:
        # One key only: safetensors writes several in random order, and equal content must give equal bytes.
        save_file(stored, part, metadata={HEADER: header})


def read_tensors(path: str | Path, verify: bool = True) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Read the tensors (memory-mapped) and metadata of a file of `write_tensors`; a damaged file is named.

    `verify=False` skips the checksum, and with it the one pass over all bytes.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"{path} does not exist or is not a file: check the path")
    try:
        with safe_open(path, framework="pt") as file:
            metadata = json.loads((file.metadata() or {}).get(HEADER, "{}"))
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dict)
    except SafetensorError as error:
        raise DamagedFile(f"{path} is not a whole safetensors file ({error}): write it again") from error
    if verify and metadata.get(CHECKSUM) != checksum(tensors):
        raise DamagedFile(f"{path} does not match its checksum: it was changed or damaged; write it again")
    return tensors, metadata


def checksum(tensors: Mapping[str, Tensor]) -> str:
    """CRC-32 over names, dtypes, shapes and bytes, in the order of the names.

    >>> checksum({"a": torch.arange(3)}) == checksum({"a": torch.arange(3)})
    True
    """
    value = 0
    for name in sorted(tensors):
        tensor = tensors[name].contiguous()
        value = zlib.crc32(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode(), value)
        value = zlib.crc32(as_bytes(tensor), value)
    return f"{value:08x}"


def as_bytes(tensor: Tensor) -> memoryview:
    """The bytes of a contiguous CPU tensor, without a copy."""
    return tensor.reshape(-1).view(torch.uint8).numpy().data


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
