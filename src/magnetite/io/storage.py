"""Atomic storage: files replaced in one step, and safetensors files with checksums, read memory-mapped."""

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
    """A file with unexpected content: truncated, overwritten, or not written by magnetite."""


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """A temporary path that replaces `path` in one step on success, and is removed on failure.

    >>> folder = Path(tempfile.mkdtemp())
    >>> with replacing(folder / "note.txt") as part:
    ...     _ = part.write_text("complete")
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
    """Raise an error if no file can be written to `path`, before any work is done for it."""
    path = Path(path)
    if path.is_dir():
        raise ValueError(f"{path} is a folder: give the path of a file")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent)
    except OSError as error:
        raise ValueError(
            f"{path} cannot be written ({error.strerror}): choose a folder with write permission"
        ) from error
    os.close(handle)
    Path(name).unlink()


def write_json(path: str | Path, content: object) -> None:
    """Write `content` as indented JSON, atomically."""
    with replacing(path) as part:
        part.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def read_json(path: str | Path, what: str, advice: str) -> dict[str, Any]:
    """Read a JSON file that contains an object.

    Args:
        path: The file.
        what: What the file should be, for error messages.
        advice: What to do if it is not, for error messages.

    >>> path = Path(tempfile.mkdtemp()) / "note.json"
    >>> write_json(path, {"complete": True})
    >>> read_json(path, "note", "write it again")
    {'complete': True}
    """
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise FileNotFoundError(f"{path} does not exist: {advice}") from error
    except ValueError as error:  # invalid JSON or UTF-8
        raise DamagedFile(f"{path} is not a valid {what} ({error}): {advice}") from error
    if not isinstance(content, dict):
        raise DamagedFile(f"{path} is not a valid {what} (expected a JSON object): {advice}")
    return content


def write_tensors(path: str | Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> None:
    """Write named tensors, string metadata and a checksum to a safetensors file, atomically."""
    stored = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    header = json.dumps({**metadata, CHECKSUM: checksum(stored)}, sort_keys=True)
    with replacing(path) as part:
        # A single key: safetensors writes several in random order, and equal content should give equal bytes.
        save_file(stored, part, metadata={HEADER: header})


def read_tensors(path: str | Path, verify: bool = True) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Read a file written by `write_tensors`: its tensors, memory-mapped, and its metadata.

    Args:
        path: The file.
        verify: Whether to check the checksum, which reads the whole file once.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"{path} does not exist or is not a file: check the path")
    try:
        with safe_open(path, framework="pt") as file:
            metadata = json.loads((file.metadata() or {}).get(HEADER, "{}"))
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dict)
    except SafetensorError as error:
        raise DamagedFile(f"{path} is not a complete safetensors file ({error}): write it again") from error
    if verify and metadata.get(CHECKSUM) != checksum(tensors):
        raise DamagedFile(f"{path} does not match its checksum because it was changed or damaged: write it again")
    return tensors, metadata


def checksum(tensors: Mapping[str, Tensor]) -> str:
    """CRC-32 of names, dtypes, shapes and bytes, with the tensors sorted by name.

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
    """The bytes of a contiguous CPU tensor, without copying them."""
    if tensor.numel() == 0:  # its strides may be anything
        return memoryview(b"")
    return tensor.reshape(-1).view(torch.uint8).numpy().data


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
