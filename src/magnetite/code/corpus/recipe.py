"""Recipes: lists of packages with the hashes of their files, and the projects that they describe."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from importlib.resources import files
from pathlib import Path

from magnetite.code.corpus.projects import normalised

SHIPPED = "pypi-corpus.tsv"
"""The recipe in this package."""

COLUMNS = ("package", "version", "file", "sha256", "bytes", "licence")

LEFT_OUT = frozenset(["datadog-api-client", "twilio", "mlflow-skinny", "pytorch-lightning", "superset", "wxpython"])
"""Packages of the shipped recipe whose code is generated, or a copy of another package."""


@dataclass(frozen=True)
class Package:
    """One line of a recipe.

    Args:
        package: Name of the package in the index.
        version: Its version.
        file: Name of the file to download, a wheel or a source distribution.
        sha256: Its hash.
        bytes: Its size.
        licence: Family of its licence.
    """

    package: str
    version: str
    file: str
    sha256: str
    bytes: int
    licence: str


@dataclass(frozen=True)
class Recipe:
    """A list of packages.

    Args:
        packages: The packages.
        fingerprint: Hash of the list.
    """

    packages: tuple[Package, ...]
    fingerprint: str


def read_recipe(path: str | Path | None = None, only: Sequence[str] = ()) -> Recipe:
    """Read and check a recipe: tab-separated lines of package, version, file, sha256, bytes and licence.

    Args:
        path: A .tsv file; None for the one that ships with magnetite.
        only: Names of the packages to keep; all by default.

    >>> len(read_recipe().packages)
    500
    """
    place = files("magnetite.code.corpus").joinpath(SHIPPED) if path is None else Path(path)
    try:
        lines = place.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise ValueError(f"{place} cannot be read ({error.strerror}): give a .tsv file of packages") from error
    except UnicodeDecodeError as error:
        raise ValueError(f"{place} is not a text file ({error.reason}): give a .tsv file of packages") from error
    if not lines or tuple(lines[0].split("\t")) != COLUMNS:
        raise ValueError(f"{place} line 1: expected the columns {', '.join(COLUMNS)}, separated by tabs")
    packages: dict[str, Package] = {}
    for number, line in enumerate(lines[1:], start=2):
        package = _package(line, f"{place} line {number}")
        if packages.setdefault(normalised(package.package), package) is not package:
            raise ValueError(f"{place} line {number}: the package {package.package} is listed twice: remove one line")
    unknown = [name for name in only if normalised(name) not in packages]
    if unknown:
        raise ValueError(f"{place} has no package {unknown[0]!r}: choose packages of the list")
    if only:
        packages = {name: package for name, package in packages.items() if name in map(normalised, only)}
    if not packages:
        raise ValueError(f"{place} lists no packages: add a line for each package")
    chosen = tuple(packages[name] for name in sorted(packages))
    return Recipe(chosen, sha256("\n".join(map(repr, chosen)).encode()).hexdigest())


def _package(line: str, where: str) -> Package:
    cells = line.split("\t")
    if len(cells) != len(COLUMNS):
        raise ValueError(f"{where}: expected {len(COLUMNS)} cells separated by tabs, got {len(cells)}")
    name, version, file, digest, size, licence = cells
    if not re.fullmatch(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?", name):
        raise ValueError(f"{where}: {name!r} is not the name of a package")
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._+!-]*", file):
        raise ValueError(f"{where}: {file!r} is not the name of a file: give it without folders")
    if not re.fullmatch(r"[0-9a-f]{64}", digest):
        raise ValueError(f"{where}: sha256 must have 64 hexadecimal digits, got {digest!r:.80}")
    if not re.fullmatch(r"[1-9][0-9]{0,11}", size):
        raise ValueError(f"{where}: bytes must be a positive integer, got {size!r:.40}")
    if not licence.strip():
        raise ValueError(f"{where}: the licence is empty: write unknown if it is not known")
    return Package(name, version, file, digest, int(size), licence)
