"""Kills at any file operation while a model, run, data set, cache or result is written: nothing is lost."""

import shutil
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from tests.fuzz._stores import STORES, same
from tests.kills import Killed, killed_at

CASES = 1_000


@cache
def whole(kind: str) -> tuple[Path, list[Any], list[int]]:
    """A folder with the first content, both contents, and the number of operations that lead to the second."""
    folder, copy = Path(tempfile.mkdtemp()), Path(tempfile.mkdtemp()) / "copy"
    STORES[kind].write(folder, 0)
    shutil.copytree(folder, copy)
    contents = [STORES[kind].read(copy)]
    with killed_at(10**6) as count:
        STORES[kind].write(copy, 1)
    contents.append(STORES[kind].read(copy))
    return folder, contents, count


def case(random: np.random.Generator, folder: Path) -> None:
    kind = str(random.choice(list(STORES)))
    base, contents, (operations,) = whole(kind)
    store, made = STORES[kind], folder / kind
    new = kind in ("data", "cache")  # begun in an empty folder, otherwise replaced
    made.mkdir() if new else shutil.copytree(base, made)
    for _ in range(int(random.integers(1, 4))):  # killed once or several times
        try:
            with killed_at(int(random.integers(operations + 1)) if not new else int(random.integers(60))):
                store.write(made, 1)
        except Killed:
            pass
        if not new:
            found = store.read(made)
            assert known(kind, found, contents), f"a {kind} is neither the old nor the new one"
    store.write(made, 1)
    assert same(store.read(made), contents[1]), f"a {kind} differs after a kill"
    left = [path.name for path in made.rglob(".*") if not path.name.endswith(".lock")]
    assert not left, f"a {kind} has left-overs: {left}"


def known(kind: str, found: Any, contents: list[Any]) -> bool:
    """Whether this is one of the contents; the best model of a run is saved before its progress."""
    if kind != "run":
        return any(same(found, content) for content in contents)
    progress = any(same(found[:-1], content[:-1]) for content in contents)
    return progress and any(same(found[-1], content[-1]) for content in contents)
