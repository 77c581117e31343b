"""Manifests: what determines the content of a folder of shards, and the checksum of each of them.

A folder is claimed before its first shard is written, so that nothing else is written to it, and shards are verified
one by one. An interrupted command therefore continues where it stopped, and the manifest lists only complete shards.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from magnetite.io.storage import DamagedFile, foreign_files, read_json, write_json

FILES = "files"
"""The entry of a manifest that lists the shards."""


@dataclass(frozen=True)
class Manifest:
    """A kind of manifest.

    Args:
        name: Name of the file.
        what: What the folder holds, for messages.
        command: The command that writes such folders, for messages.
    """

    name: str
    what: str
    command: str

    def read(self, folder: Path) -> dict[str, Any]:
        """The content of the manifest of a folder."""
        advice = (
            f"choose another folder; if it is a damaged {self.what} of yours, remove this file and run "
            f"`{self.command}` again, which verifies and keeps the shards"
        )
        try:
            content = read_json(folder / self.name, f"manifest of a {self.what}", advice)
        except FileNotFoundError:
            raise ValueError(f"{folder} has no {self.name}: write a {self.what} with `{self.command}`") from None
        if not isinstance(content.get(FILES), dict):
            raise DamagedFile(f"{folder / self.name} is not a manifest of a {self.what}: choose another folder")
        return content

    def claim(self, folder: Path, expected: Mapping[str, Any], is_shard: Callable[[Path], bool]) -> dict[str, Any]:
        """The manifest of the folder, or a new one if there is none; an error if it belongs to something else.

        Args:
            folder: The folder.
            expected: What determines the content of the shards, as JSON stores it.
            is_shard: Whether a file is a shard with this content.
        """
        if not (folder / self.name).exists():
            self.check_free(folder, is_shard)
            write_json(folder / self.name, {**expected, FILES: {}})
        found = self.read(folder)
        differing = [name for name in expected if found.get(name) != expected[name]]
        if differing:
            given = ", ".join(f"{name} {found.get(name)} instead of {expected[name]}" for name in differing)
            raise ValueError(f"{folder} holds another {self.what} ({given}): choose another folder or remove it")
        return found

    def check_free(self, folder: Path, is_shard: Callable[[Path], bool]) -> None:
        """Raise an error if a folder without a manifest has anything but shards with this content."""
        if (folder / self.name).exists():
            return
        if folder.exists() and not folder.is_dir():
            raise ValueError(f"{folder} is a file: give a folder for the {self.what}")
        other = next((path.name for path in foreign_files(folder) if not is_shard(path)), None)
        if other is not None:
            raise ValueError(
                f"{folder} has no {self.name} but other files, such as {other}: choose a new or empty folder"
            )
