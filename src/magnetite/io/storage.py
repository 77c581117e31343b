"""Storage: files and folders replaced in one step, locks, and checked JSON and safetensors files.

Nothing else in magnetite knows how files are written. A file is written beside its destination, flushed to the disk and
renamed, so a killed process, a full disk or a power failure leaves the old content or the new one.
"""

import json
import os
import re
import secrets
import shutil
import socket
import stat
import tempfile  # noqa: F401 (for the examples)
import time
import warnings
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

try:
    import fcntl
except ImportError:  # Windows: no kernel locks, and no signal 0
    fcntl = None

HEADER, CHECKSUM = "magnetite", "crc32"

DOUBLES = "complex128"
"""Metadata: names of tensors that are stored as pairs of float64, since safetensors has no such type."""

PREFIX = ".magnetite-"
"""How the names of unfinished files and folders begin; the machine, the process and a random number follow."""

LOCK = ".magnetite.lock"
"""Name of the lock of a folder."""

NEWER = "-newer"
"""How the name of a complete folder ends until it has replaced its predecessor."""

FORGOTTEN = 24 * 3600
"""Seconds after which unfinished files of another machine, whose processes cannot be asked for, are removed."""

_unfinished: set[Path] = set()
"""What this process is writing."""


class DamagedFile(ValueError):
    """A file with unexpected content: truncated, edited, overwritten, or not written by magnetite."""


class NotWritten(OSError):
    """A file that could not be written, because the disk is full, for example; what was there before is unchanged.

    Args:
        path: The file.
        reason: What the system said.
        errno: The number of the system's error, if there is one.
    """

    def __init__(self, path: str | Path, reason: str, errno: int | None = None):
        super().__init__(f"{path} could not be written ({reason}): free some space or choose another folder")
        self.reason, self.errno = reason, errno


class InUse(OSError):
    """A folder or file that another process is writing."""


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """A temporary path that replaces `path` in one step on success, and is removed on failure.

    The permissions of an existing file are kept, and a symbolic link stays a link. Errors of the system become a
    `NotWritten` that names the file.

    >>> folder = Path(tempfile.mkdtemp())
    >>> with replacing(folder / "note.txt") as part:
    ...     _ = part.write_text("complete")
    >>> [file.name for file in folder.iterdir()]
    ['note.txt']
    """
    with writing(path), _unfinished_beside(path) as (part, target):
        before = _replaceable(target)
        mode = 0o666 if before is None else stat.S_IMODE(before.st_mode)
        os.close(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode | stat.S_IWUSR))
        kept = stat.S_IMODE(part.stat().st_mode) if before is None else mode  # a new file follows the umask
        yield part
        part.chmod(kept)
        if before is not None and hasattr(os, "chown"):
            with suppress(OSError):  # only root can give a file to its former owner
                os.chown(part, before.st_uid, before.st_gid)
                part.chmod(kept)
        _flush(part)
        part.replace(target)
        if not target.parent.name.startswith(PREFIX):  # an unfinished folder is flushed as a whole
            _flush(target.parent)


@contextmanager
def replacing_folder(path: str | Path) -> Iterator[Path]:
    """A temporary folder that replaces the folder `path` on success, and is removed on failure.

    At every moment `complete_folder(path)` is the old or the new one: the new folder is first renamed to a name of its
    own, then the old one is removed. Only one process may call this for a path at a time.

    >>> path = Path(tempfile.mkdtemp()) / "model"
    >>> for text in ("old", "new"):
    ...     with replacing_folder(path) as part:
    ...         _ = (part / "note.txt").write_text(text)
    >>> (complete_folder(path) / "note.txt").read_text(), [folder.name for folder in path.parent.iterdir()]
    ('new', ['model'])
    """
    with writing(path), _unfinished_beside(path) as (part, target):
        settle_folder(target)
        part.mkdir()
        yield part
        _flush(part)
        part.rename(target.with_name(target.name + NEWER) if target.exists() else target)
        _flush(target.parent)
        settle_folder(target)


def complete_folder(path: Path) -> Path:
    """Where the content of a folder written by `replacing_folder` is: in `path`, or beside it after a kill."""
    newer = path.with_name(path.name + NEWER)
    return newer if newer.is_dir() else path


def settle_folder(path: Path) -> None:
    """Complete a replacement of `path` that was interrupted."""
    newer = path.with_name(path.name + NEWER)
    if newer.is_dir():
        remove_folder(path)
        newer.rename(path)


def remove_folder(path: Path) -> None:
    """Remove a folder; it is renamed first, so that a folder with some of its files is never found under its name."""
    if path.is_dir():
        with _unfinished_beside(path) as (part, target):
            target.rename(part)


def remove_leftovers(folder: str | Path) -> None:
    """Remove what killed processes left unfinished in a folder; files of running processes, and others', stay."""
    for path in Path(os.path.realpath(folder)).glob(f"{PREFIX}*"):
        found = re.fullmatch(rf"{re.escape(PREFIX)}([0-9a-f]{{8}})-(\d{{1,9}})-[0-9a-f]{{8}}.*", path.name)
        if found and path not in _unfinished and _abandoned(path, found[1], int(found[2])):
            _discard(path)
        elif path.suffix == ".lock" and _is_lock(path):
            with suppress(OSError), locked(path, path.name):
                pass  # nobody holds it, so it is removed


def foreign_files(folder: Path) -> list[Path]:
    """What a folder contains besides locks and unfinished files; nothing if it does not exist.

    >>> folder = Path(tempfile.mkdtemp())
    >>> (folder / "thesis.tex").touch()
    >>> [path.name for path in foreign_files(folder)]
    ['thesis.tex']
    """
    if not folder.is_dir():
        return []
    return sorted(path for path in folder.iterdir() if not path.name.startswith((PREFIX, LOCK)))


@contextmanager
def locked(path: Path, what: str, wait: bool = False) -> Iterator[None]:
    """Hold a lock, which the system releases when this process ends in any way.

    Args:
        path: The file of the lock; it is removed afterwards.
        what: What is locked, for the error message.
        wait: Whether to wait for the other process; otherwise an `InUse` names it.
    """
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = _acquired(path, wait)
    if handle is None:
        pid = _pid_in(path)
        raise InUse(
            f"{what} is in use by another process{f' (pid {pid})' if pid else ''}: wait until it has finished, or "
            "choose another folder"
        )
    try:
        with suppress(OSError):  # on a full disk, the lock still holds
            os.truncate(handle, 0)
            os.write(handle, str(os.getpid()).encode())
        yield
    finally:
        try:
            with suppress(OSError):
                path.unlink()  # while it is locked: whoever waits for it sees that it is gone
        finally:
            os.close(handle)


@contextmanager
def writing(path: str | Path) -> Iterator[None]:
    """Turn errors of the system into one line that names the file."""
    try:
        yield
    except InUse:
        raise
    except NotWritten as error:  # of a file in an unfinished folder
        raise NotWritten(path, error.reason, error.errno) from error
    except OSError as error:
        raise NotWritten(path, error.strerror or str(error), error.errno) from error
    except SafetensorError as error:
        raise NotWritten(path, str(error)) from error


def check_writable(path: str | Path) -> None:
    """Raise an error if no file can be written to `path`, before any work is done for it; remove left-overs there."""
    if Path(path).is_dir():
        raise ValueError(f"{path} is a folder: give the path of a file")
    try:
        with _unfinished_beside(path) as (part, target):
            _replaceable(target)
            part.touch()
        remove_leftovers(target.parent)
    except OSError as error:
        reason = error.strerror or str(error)
        raise ValueError(f"{path} cannot be written ({reason}): choose a folder with write permission") from error


def write_json(path: str | Path, content: Mapping[str, Any]) -> None:
    """Write an object as indented JSON with a checksum of its content, atomically."""
    try:
        plain = _parsed(json.dumps(content, allow_nan=False))  # as it will be read: keys are strings
    except ValueError as error:
        raise ValueError(f"{path} cannot be written as JSON ({error}): use finite numbers and distinct keys") from None
    if not isinstance(plain, dict) or CHECKSUM in plain:
        raise TypeError(f"{path} must have an object without the key {CHECKSUM!r} as its content, got {content!r:.60}")
    text = json.dumps({**plain, CHECKSUM: _json_checksum(plain)}, indent=2, ensure_ascii=False)
    with replacing(path) as part:
        part.write_text(text + "\n", encoding="utf-8")


def read_json(path: str | Path, what: str, advice: str) -> dict[str, Any]:
    """Read a file written by `write_json`, and verify its checksum.

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
        content = _parsed(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise FileNotFoundError(f"{path} does not exist: {advice}") from error
    except (ValueError, RecursionError) as error:  # invalid JSON or UTF-8
        raise DamagedFile(f"{path} is not a valid {what} ({error}): {advice}") from error
    if not isinstance(content, dict):
        raise DamagedFile(f"{path} is not a valid {what} (expected a JSON object): {advice}")
    if CHECKSUM not in content:
        raise DamagedFile(f"{path} is not a valid {what} (it has no checksum, as files of this version do): {advice}")
    if content.pop(CHECKSUM) != _json_checksum(content):
        raise DamagedFile(
            f"{path} is not a valid {what} (it does not match its checksum, because it was edited or damaged): {advice}"
        )
    return content


def write_tensors(path: str | Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> str:
    """Write named tensors, string metadata and a checksum of both to a safetensors file, atomically.

    Returns:
        The checksum.
    """
    stored = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    value = checksum(stored, metadata)
    doubles = sorted(name for name, tensor in stored.items() if tensor.dtype == torch.complex128)
    stored |= {name: torch.view_as_real(stored[name]) for name in doubles}
    further = {DOUBLES: json.dumps(doubles)} if doubles else {}
    header = json.dumps({**metadata, **further, CHECKSUM: value}, sort_keys=True)
    with replacing(path) as part:
        # A single key: safetensors writes several in random order, and equal content should give equal bytes.
        save_file(stored, part, metadata={HEADER: header})
    return value


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
            metadata = _parsed((file.metadata() or {}).get(HEADER, "{}"))
            if not (isinstance(metadata, dict) and all(isinstance(value, str) for value in metadata.values())):
                raise ValueError("its metadata are not strings")
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dict)
        doubles = _parsed(metadata.pop(DOUBLES, "[]"))
        tensors |= {name: torch.view_as_complex(tensors[name]) for name in doubles}
    except PermissionError as error:
        raise PermissionError(f"{path} cannot be read ({error.strerror}): check its permissions") from error
    except (SafetensorError, ValueError, TypeError, LookupError, AttributeError, RuntimeError, OSError) as error:
        raise DamagedFile(f"{path} is not a complete safetensors file ({error}): write it again") from error
    if verify:
        content = {name: value for name, value in metadata.items() if name != CHECKSUM}
        if metadata.get(CHECKSUM) != checksum(tensors, content):
            raise DamagedFile(f"{path} does not match its checksum because it was changed or damaged: write it again")
    return tensors, metadata


def checksum(tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None = None) -> str:
    """CRC-32 of metadata, and of names, dtypes, shapes and bytes of the tensors, sorted by name.

    >>> checksum({"a": torch.arange(3)}) == checksum({"a": torch.arange(3)})
    True
    """
    value = zlib.crc32(json.dumps(dict(metadata or {}), sort_keys=True).encode())
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


@contextmanager
def _unfinished_beside(path: str | Path) -> Iterator[tuple[Path, Path]]:
    """A new name in the folder of `path`, removed afterwards if something is there, and `path` without links."""
    target = Path(os.path.realpath(path))
    target.parent.mkdir(parents=True, exist_ok=True)
    # With the suffix that was given: writers append theirs if it is missing, and a link may lead to any name.
    part = target.with_name(f"{PREFIX}{_machine()}-{os.getpid()}-{secrets.token_hex(4)}{Path(path).suffix}")
    _unfinished.add(part)
    try:
        yield part, target
    finally:
        _unfinished.discard(part)
        _discard(part)


def _replaceable(path: Path) -> os.stat_result | None:
    """The status of a file that may be replaced; None if it does not exist."""
    if not path.exists():
        return None
    if not path.is_file():
        raise OSError("it is not a regular file")
    if not os.access(path, os.W_OK):
        raise OSError("it is read-only")
    return path.stat()


def _discard(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink()


def _flush(path: Path) -> None:
    """Have the disk store a file, or the names in a folder."""
    folder = path.is_dir()
    try:
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
    except OSError:
        if not folder:  # not every file system can do it for folders
            raise


def _machine() -> str:
    return f"{zlib.crc32(socket.gethostname().encode()):08x}"


def _abandoned(path: Path, machine: str, pid: int) -> bool:
    if machine != _machine() or fcntl is None:
        with suppress(OSError):
            return time.time() - path.stat().st_mtime > FORGOTTEN
        return False
    if pid == os.getpid():
        return True  # of an earlier process with our number, as in containers
    try:
        os.kill(pid, 0)  # asks whether it runs
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False


def _acquired(path: Path, wait: bool) -> int | None:
    """An open file that holds the lock; None if another process holds it."""
    while True:
        if path.is_symlink() or (path.exists() and not _is_lock(path)):
            raise OSError("another file has the name of a lock")
        handle = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o666)
        try:
            if fcntl is None:
                return handle
            fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            os.close(handle)
            return None
        except OSError as error:
            warnings.warn(f"{path.parent} has no locks ({error.strerror}): use it from one process", stacklevel=4)
            return handle
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(handle), path.stat()):
                return handle
        os.close(handle)  # its holder removed it: lock the file that is there now


def _is_lock(path: Path) -> bool:
    """Whether a file is one of ours: it holds nothing, or the number of a process."""
    try:
        status = path.lstat()
        small = stat.S_ISREG(status.st_mode) and status.st_size < 20
        return small and (not status.st_size or path.read_bytes().isdigit())
    except FileNotFoundError:
        return True  # its holder has just removed it


def _pid_in(path: Path) -> str:
    with suppress(OSError, ValueError):
        return str(int(path.read_text()))
    return ""


def _parsed(text: str) -> Any:
    """Strict JSON: no NaN, no infinity, no key twice."""
    return json.loads(text, parse_constant=_refused, object_pairs_hook=distinct_keys)


def _refused(token: str) -> Any:
    raise ValueError(f"{token} is not a number in JSON")


def distinct_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object of these keys and values; an error if a key occurs twice, of which `json` would keep the last."""
    content = dict(pairs)
    if len(content) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"an object has the key {next(name for name in names if names.count(name) > 1)!r:.60} twice")
    return content


def _json_checksum(content: Mapping[str, Any]) -> str:
    return f"{zlib.crc32(json.dumps(content).encode()):08x}"
