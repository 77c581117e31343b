"""A folder that only this user can write to, for compiled kernels: they are unpickled, so a planted file would run."""

import hashlib
import os
import stat
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

KEPT_FOLDERS = 8
"""Number of folders of other versions of the kernels that are kept, those that were used last."""

SUFFIX, PART = ".kernel", ".part"
STALE_PART = 3600.0
"""Seconds after which a half-written file was left behind by a process that was killed."""


def cache_home() -> Path:
    """The user's cache folder: `$XDG_CACHE_HOME`, or `~/.cache`; an `OSError` if the user has no home."""
    chosen = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if chosen.is_absolute():
        return chosen
    with suppress(RuntimeError):  # HOME is not set, and the user is not in the password file
        if (home := Path.home()).is_absolute():
            return home / ".cache"
    raise OSError("this user has no home folder")


def make_private(folder: Path) -> None:
    """Create a folder that only this user can write to, or check that an existing one is; otherwise an `OSError`.

    Folders above it may be shared if they are sticky, such as `/tmp`.
    """
    folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode):
        raise OSError(f"{folder} is not a folder")
    _check_private(status, folder)
    above = folder.parent.resolve()
    for parent in (above, *above.parents):
        mode = parent.stat().st_mode
        if hasattr(os, "geteuid") and mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
            raise OSError(f"{parent} is writable by other users")


class PrivateFiles:
    """Small files in a private folder, each with a checksum; trouble is reported, and never an error.

    Args:
        name: Name of the folder within `magnetite/` in the user's cache; it ends in a version. Folders of the same name
            up to the last hyphen belong to other versions, of which the least recently used are removed.
        report: Called with one line if the folder or a file cannot be used.
        home: Folder to use instead of the user's cache; None for the default.
    """

    def __init__(self, name: str, report: Callable[[str], None], home: str | None = None):
        self.name, self.report, self.home = name, report, home
        self._prepared = False

    def folder(self) -> Path:
        """The folder, created and checked; an `OSError` if it cannot be used."""
        home = cache_home() if self.home is None else Path(self.home).expanduser().absolute()
        folder = home / "magnetite" / self.name
        make_private(folder.parent)
        make_private(folder)
        if not self._prepared:
            self._prepared = True
            with suppress(OSError):
                os.utime(folder)
            self._clean(folder)
        return folder

    def read(self, name: str) -> bytes | None:
        """The content of a file; None if there is none, or if it is damaged or not private, which is reported."""
        try:
            path = self.folder() / f"{name}{SUFFIX}"
        except OSError as error:
            self.report(str(error))
            return None
        try:
            content = _read_private(path)
        except FileNotFoundError:
            return None
        except OSError as error:
            self.report(str(error))
            return None
        data = content[hashlib.sha256().digest_size :]
        if content != _checksum(name, data) + data:
            self.report(f"{path} is damaged")
            return None
        return data

    def write(self, name: str, data: bytes) -> None:
        """Write a file and then rename it, so that other processes see all of it or nothing."""
        part = None
        try:
            folder = self.folder()
            part = folder / f"{name}-{uuid4().hex}{PART}"
            with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(_checksum(name, data) + data)
            part.replace(folder / f"{name}{SUFFIX}")
        except OSError as error:
            if part is not None:
                with suppress(OSError):
                    part.unlink()
            self.report(str(error))

    def _clean(self, folder: Path) -> None:
        """Remove half-written files, and folders of other versions beyond the most recently used."""
        with suppress(OSError):
            _remove(folder, (PART,), before=time.time() - STALE_PART)
            kind = self.name.rpartition("-")[0]
            others = [each for each in folder.parent.glob(f"{kind}-*") if each != folder]
            for other in sorted(others, key=lambda each: each.lstat().st_mtime, reverse=True)[KEPT_FOLDERS:]:
                with suppress(OSError):
                    make_private(other)
                    _remove(other, (SUFFIX, PART))
                    other.rmdir()


def _remove(folder: Path, suffixes: tuple[str, ...], before: float = float("inf")) -> None:
    for path in folder.iterdir():
        with suppress(OSError):
            if path.suffix in suffixes and path.lstat().st_mtime < before:
                path.unlink()


def _checksum(name: str, data: bytes) -> bytes:
    """A hash of a file with its name, so that a file under another name is found damaged, too."""
    return hashlib.sha256(name.encode() + b"\0" + data).digest()


def _read_private(path: Path) -> bytes:
    # Not through a link, and without waiting for the writer of a pipe; what is checked is what is read.
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    with os.fdopen(os.open(path, flags), "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise OSError(f"{path} is not a file")
        _check_private(status, path)
        return file.read()


def _check_private(status: os.stat_result, path: Path) -> None:
    """Raise an `OSError` unless only this user can write here; on Windows, homes are private by default."""
    if not hasattr(os, "geteuid"):
        return
    if status.st_uid != os.geteuid():
        raise OSError(f"{path} belongs to another user")
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise OSError(f"{path} is writable by other users")
