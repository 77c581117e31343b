"""Kills at every operation on the file system, simulated in this process."""

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

OPERATIONS = {
    "open", "os.chmod", "os.chown", "os.link", "os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.symlink",
    "os.truncate",
}  # fmt: skip
"""Events of Python's audit hooks before operations that may change a folder; `open` only if it is for writing."""


class Killed(BaseException):
    """What stands for the end of the process."""


_armed: Callable[[], None] | None = None
_installed = False


def _hook(event: str, arguments: tuple) -> None:
    if _armed is not None and event in OPERATIONS and not (event == "open" and not _writes(arguments)):
        _armed()


def _writes(arguments: tuple) -> bool:
    flags = arguments[2] if isinstance(arguments[2], int) else 0
    return bool(flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))


@contextmanager
def killed_at(number: int) -> Iterator[list[int]]:
    """Raise `Killed` at the operation of this number and at all later ones; the list counts the operations."""
    global _armed, _installed
    count, flush = [0], os.fsync

    def tick() -> None:
        count[0] += 1
        if count[0] > number:
            raise Killed

    if not _installed:  # a hook cannot be removed
        sys.addaudithook(_hook)
        _installed = True
    _armed, os.fsync = tick, lambda handle: None  # slow, and without effect on what is seen
    try:
        yield count
    finally:
        _armed, os.fsync = None, flush


def after_every_kill(work: Callable[[], object], folder: Path) -> Iterator[bool]:
    """Do the work on the folder as it is now, killed before operation 0, 1, …; yields whether it was completed.

    The caller looks at the folder after each kill. The last time, the work is completed.
    """
    before = folder.with_name(f"{folder.name}-before")
    shutil.copytree(folder, before)
    for number in range(10_000):
        shutil.rmtree(folder)
        shutil.copytree(before, folder)
        try:
            with killed_at(number):
                work()
        except Killed:
            yield False
        else:
            yield True
            break
    shutil.rmtree(before)
