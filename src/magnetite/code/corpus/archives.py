"""Python files in wheels and source distributions: read member by member, never unpacked to the disk, never run."""

import bz2
import gzip
import io
import lzma
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import IO, Any, NamedTuple

from magnetite.code.corpus.extraction import LARGEST_FILE, TEST_FILE, TOO_LARGE, UNREADABLE, is_test_path

MOST_BYTES = 4 * 2**30
"""Bytes that an archive may have when it is unpacked."""

MOST_RATIO = 100
"""How many times larger than the archive its content may be; text is rarely compressed more than tenfold."""

SMALL = 16 * 2**20
"""Bytes that every archive may have, whatever the ratio."""

MOST_MEMBERS = 500_000
"""Number of members that an archive may have."""

UNSAFE = "unsafe name in the archive"
LINK = "link"


class BadArchive(ValueError):
    """An archive that is not read: damaged, of unknown kind, or a decompression bomb."""


class Member(NamedTuple):
    """A Python file: its content, or why it is left out."""

    path: str
    content: bytes | None
    problem: str = ""


class Limited:
    """A file that raises an error when more than a given number of bytes is read.

    Args:
        file: The file.
        most: The number of bytes.
    """

    def __init__(self, file: IO[bytes], most: int):
        self.file, self.left = file, most

    def read(self, size: int = -1) -> bytes:
        """Read some bytes; an error if there are more than allowed."""
        content = self.file.read(size)
        self.left -= len(content)
        if self.left < 0:
            raise BadArchive("it grows without bounds when it is unpacked (decompression bomb)")
        return content


def python_files(path: Path) -> list[Member]:
    """The Python files of an archive, sorted by name.

    Args:
        path: A wheel (.whl), or a source distribution (.tar.gz, .tgz, .tar.bz2, .tar.xz, .tar, .zip).
    """
    name = path.name.lower()
    suffix = next((suffix for suffix in READERS if name.endswith(suffix)), None)
    if suffix is None:
        raise BadArchive(f"its name does not end with one of {' '.join(READERS)}")
    try:
        found = list(READERS[suffix](path))
    except BadArchive:
        raise
    except (OSError, EOFError, zipfile.BadZipFile, tarfile.TarError, lzma.LZMAError, zlib.error) as error:
        raise BadArchive(f"it is not a valid {suffix} archive ({str(error) or type(error).__name__})") from error
    except (ValueError, NotImplementedError, RuntimeError, LookupError, OverflowError) as error:  # of bad headers
        raise BadArchive(f"it is not a valid {suffix} archive ({error})") from error
    return sorted(_distinct(found), key=lambda member: member.path)


def _distinct(found: list[Member]) -> Iterator[Member]:
    """The members, of which only the last of a name is read, as an installer would."""
    last = {member.path: number for number, member in enumerate(found)}
    for number, member in enumerate(found):
        yield member if last[member.path] == number else Member(member.path, None, "name twice in the archive")


def _zip(path: Path) -> Iterator[Member]:
    limit = _most_bytes(path)
    with zipfile.ZipFile(path) as archive:
        members = archive.infolist()
        if len(members) > MOST_MEMBERS or sum(member.file_size for member in members) > limit:
            raise BadArchive("it grows without bounds when it is unpacked (decompression bomb)")
        for member in members:
            if member.is_dir() or not member.filename.lower().endswith(".py"):
                continue
            mode = member.external_attr >> 16
            problem = LINK if stat.S_ISLNK(mode) else _problem(member.filename, member.file_size)
            if not problem and member.flag_bits & 1:
                problem = UNREADABLE  # it is encrypted
            if problem:
                yield Member(member.filename, None, problem)
                continue
            with archive.open(member) as file:
                yield Member(member.filename, Limited(file, LARGEST_FILE).read())


def _tar(opener: Callable[[Path], Any]) -> Callable[[Path], Iterator[Member]]:
    def read(path: Path) -> Iterator[Member]:
        with opener(path) as stream:
            limited = Limited(stream, _most_bytes(path))
            yield from members(limited)
            while limited.read(2**20):  # what follows the last member: a damaged end is found here
                pass

    def members(limited: Limited) -> Iterator[Member]:
        with tarfile.open(fileobj=limited, mode="r|") as archive:  # type: ignore[call-overload]
            for number, member in enumerate(archive):
                if number > MOST_MEMBERS:
                    raise BadArchive("it grows without bounds when it is unpacked (decompression bomb)")
                archive.members = []  # type: ignore[attr-defined] # tarfile would remember them all
                if member.isdir() or not member.name.lower().endswith(".py"):
                    continue
                name = _without_top(member.name)
                problem = LINK if member.issym() or member.islnk() else _problem(member.name, member.size)
                if not problem and not member.isreg():
                    problem = "not a regular file"
                file = None if problem else archive.extractfile(member)
                yield Member(name, None, problem) if file is None else Member(name, file.read())

    return read


READERS: dict[str, Callable[[Path], Iterator[Member]]] = {
    ".whl": _zip,
    ".zip": _zip,
    ".tar.gz": _tar(gzip.GzipFile),
    ".tgz": _tar(gzip.GzipFile),
    ".tar.bz2": _tar(bz2.BZ2File),
    ".tar.xz": _tar(lzma.LZMAFile),
    ".tar": _tar(io.FileIO),
}
"""How the members of an archive are read, by its extension."""


def _most_bytes(path: Path) -> int:
    return min(MOST_BYTES, max(SMALL, MOST_RATIO * path.stat().st_size))


def _problem(name: str, size: int) -> str:
    """Why a member is left out; empty if it is not."""
    parts = PurePosixPath(name).parts
    if not parts or name.startswith("/") or ".." in parts or "\\" in name or ":" in name or not name.isprintable():
        return UNSAFE
    if is_test_path(_without_top(name)):
        return TEST_FILE
    return TOO_LARGE if size > LARGEST_FILE else ""


def _without_top(name: str) -> str:
    """A name in a source distribution without the folder `project-version` around everything."""
    first, _, rest = name.partition("/")
    return rest if rest and first not in ("", "..", ".") and "-" in first and first[-1].isdigit() else name
