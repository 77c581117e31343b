"""Flipped bits, cuts, holes and swapped files in a model, a run, a data set, a cache, a result: never other content."""

import shutil
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from tests.fuzz import refusing
from tests.fuzz._stores import STORES, same

CASES = 3_000


@cache
def whole(kind: str) -> tuple[Path, Any]:
    """An undamaged folder and its content."""
    folder = Path(tempfile.mkdtemp())
    STORES[kind].write(folder, 0)
    return folder, STORES[kind].read(folder)


def case(random: np.random.Generator, folder: Path) -> None:
    kind = str(random.choice(list(STORES), p=[0.2, 0.4, 0.15, 0.15, 0.1]))
    base, expected = whole(kind)
    shutil.copytree(base, folder / kind)
    files = sorted(path for path in (folder / kind).rglob("*") if path.is_file() and path.stat().st_size)
    chosen = files[random.integers(len(files))]
    content = bytearray(chosen.read_bytes())
    way = str(random.choice(["flip", "flips", "cut", "hole", "longer", "swap"], p=[0.6, 0.1, 0.1, 0.1, 0.05, 0.05]))
    place = int(random.integers(len(content)))
    if way in ("flip", "flips"):
        head = len(content) if random.random() < 0.5 else min(len(content), 2000)  # headers are a small part
        for _ in range(1 if way == "flip" else 3):
            content[int(random.integers(head))] ^= 1 << int(random.integers(8))
    elif way == "cut":
        del content[place:]
    elif way == "hole":
        end = min(len(content), place + int(random.integers(1, 64)))
        content[place:end] = bytes(end - place)
    elif way == "longer":
        content += bytes(random.integers(0, 256, 8, dtype=np.uint8))
    else:
        others = [path for path in files if path.suffix == chosen.suffix]
        content = bytearray(others[random.integers(len(others))].read_bytes())
    chosen.write_bytes(content)
    with refusing():
        found = STORES[kind].read(folder / kind)
        assert same(found, expected), f"{way} in {chosen.name} of a {kind} loads as other content"
