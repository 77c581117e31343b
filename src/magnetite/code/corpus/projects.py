"""Projects on this machine: the standard library, installed packages, or the folders of a user."""

import re
import stat
import sysconfig
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from hashlib import blake2b
from importlib.metadata import Distribution, distributions
from os import walk
from pathlib import Path, PurePosixPath

from magnetite.code.corpus.archives import LINK, Member
from magnetite.code.corpus.extraction import LARGEST_FILE, TEST_FILE, TOO_LARGE, UNREADABLE, is_test_path

PERMISSIVE = ("Apache", "BSD", "ISC", "MIT", "PD/HPND", "PSF", "ZPL")
"""Families of licences that allow any use with attribution."""

UNKNOWN = "unknown"
NOT_PERMISSIVE = "licence not permissive"

_FAMILIES = (
    ("GPL", r"\bA?GPL|(?<!Lesser )\bGeneral Public Licen[sc]e"),
    ("LGPL", r"\bLGPL|Lesser General Public|Library General Public"),
    ("MPL", r"\bMPL|Mozilla"),
    ("Apache", r"Apache"),
    ("BSD", r"\b0?BSD"),
    ("MIT", r"\bMIT\b"),
    ("ISC", r"\bISC"),
    ("PSF", r"\bPSF|Python Software Foundation|Python-2"),
    ("ZPL", r"\bZPL|Zope"),
    ("PD/HPND", r"HPND|Unlicense|Public Domain|CC0|\bZlib"),
)


@dataclass(frozen=True)
class Project:
    """Source files that stay together in one split.

    Args:
        name: Its name.
        licence: Family of its licence, such as MIT.
        read: Returns its Python files, sorted by path.
        key: What identifies its content; empty if that is only known from the files.
    """

    name: str
    licence: str
    read: Callable[[], list[Member]]
    key: str = ""


def standard_library() -> list[Project]:
    """The standard library: every top-level module or package is a project, since they have different authors."""
    root = Path(sysconfig.get_path("stdlib"))
    if not root.is_dir():
        raise ValueError(f"{root} is not a folder: this Python has no standard library on the disk; use a folder")
    inside = (path for path in _python_paths(root) if path.parts[0] not in ("site-packages", "dist-packages"))
    return _grouped(root, inside, lambda path: ("PSF", f"stdlib.{PurePosixPath(path.parts[0]).stem}"))


def site_packages() -> list[Project]:
    """The installed packages: every distribution is a project."""
    found: dict[str, Project] = {}
    for root in sorted({Path(sysconfig.get_path(name)) for name in ("purelib", "platlib")}):
        owners: dict[str, tuple[str, str]] = {}
        for distribution in distributions(path=[str(root)]):
            owner = (licence_of(distribution), normalised(distribution.metadata["Name"] or UNKNOWN))
            owners |= {file.as_posix(): owner for file in distribution.files or () if file.suffix == ".py"}
        for project in _grouped(
            root,
            _python_paths(root),
            lambda path, owners=owners: owners.get(path.as_posix(), (UNKNOWN, PurePosixPath(path.parts[0]).stem)),
        ):
            other = found.get(project.name)
            found[project.name] = project if other is None else _joined(other, project)
    return [found[name] for name in sorted(found)]


def folder_projects(folder: Path) -> list[Project]:
    """A folder of the user: every entry of it, a folder or a file, is a project.

    Args:
        folder: The folder.
    """
    if not folder.is_dir():
        raise ValueError(f"{folder} is not a folder: give stdlib, site-packages, recipe, a .tsv file or a folder")
    found = _grouped(folder, _python_paths(folder), lambda path: (UNKNOWN, path.parts[0]))
    if not found:
        raise ValueError(f"{folder} has no Python files: give a folder of projects")
    return found


def licence_of(distribution: Distribution) -> str:
    """The family of the licence that an installed distribution declares."""
    metadata = distribution.metadata
    declared = [
        text.split("\n")[0] for name in ("License-Expression", "License") for text in metadata.get_all(name) or ()
    ]
    declared += [text for text in metadata.get_all("Classifier") or () if text.startswith("License ::")]
    return licence_family(" ; ".join(declared))


def licence_family(text: str) -> str:
    """The family of licences that a text names; the most restrictive if it names several.

    >>> licence_family("License :: OSI Approved :: MIT License"), licence_family("LGPL-3.0 AND MIT"), licence_family("")
    ('MIT', 'LGPL', 'unknown')
    """
    return next((family for family, pattern in _FAMILIES if re.search(pattern, text, re.IGNORECASE)), UNKNOWN)


def normalised(name: str) -> str:
    """The name of a package as indexes write it (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def content_key(members: Iterable[Member]) -> str:
    """A hash of the files of a project."""
    digest = blake2b(digest_size=16)
    for path, content, problem in members:
        head = f"{path}\0{problem}\0{-1 if content is None else len(content)}\0"
        digest.update(head.encode("utf-8", "backslashreplace"))
        digest.update(content or b"")
    return digest.hexdigest()


def _python_paths(root: Path) -> Iterator[PurePosixPath]:
    """The Python files below a folder, relative to it, and links to folders, which are not followed."""
    for folder, names, files in walk(root):
        names[:] = sorted(name for name in names if name != "__pycache__")
        inside = PurePosixPath(Path(folder).relative_to(root).as_posix())
        yield from (inside / name for name in names if (Path(folder) / name).is_symlink())
        yield from (inside / name for name in sorted(files) if name.endswith(".py"))


def _joined(one: Project, other: Project) -> Project:
    """A project in two folders; files without a known licence get that of the others."""
    licence = other.licence if one.licence == UNKNOWN else one.licence
    return Project(one.name, licence, lambda: sorted(one.read() + other.read()))


def _grouped(
    root: Path, paths: Iterable[PurePosixPath], owner: Callable[[PurePosixPath], tuple[str, str]]
) -> list[Project]:
    groups: dict[str, list[PurePosixPath]] = {}
    licences: dict[str, str] = {}
    for path in paths:
        licence, name = owner(path)
        name = name.encode("utf-8", "backslashreplace").decode()
        groups.setdefault(name, []).append(path)
        if licences.get(name, UNKNOWN) == UNKNOWN:
            licences[name] = licence
    return [
        Project(name, licences[name], lambda paths=paths: [_member(root, path) for path in sorted(paths)])
        for name, paths in sorted(groups.items())
    ]


def _member(root: Path, path: PurePosixPath) -> Member:
    name, file = path.as_posix().encode("utf-8", "backslashreplace").decode(), root / path
    if any(part.startswith(".") for part in path.parts):
        return Member(name, None, "hidden file or folder")
    if is_test_path(name):
        return Member(name, None, TEST_FILE)
    try:
        status = file.lstat()
        if stat.S_ISLNK(status.st_mode):
            return Member(name, None, LINK)
        if not stat.S_ISREG(status.st_mode):
            return Member(name, None, "not a regular file")
        if status.st_size > LARGEST_FILE:
            return Member(name, None, TOO_LARGE)
        return Member(name, file.read_bytes())
    except OSError:
        return Member(name, None, UNREADABLE)
