"""Damaged files of a Code2 folder: all blocks, or an error of one line that names the folder."""

import gzip
import shutil
import tempfile
from functools import cache
from pathlib import Path

import numpy as np

from magnetite.code.code2 import FILES, Code2
from tests.code.code2_folder import write_code2
from tests.fuzz import REFUSALS, refusing

CASES = 1_000
INSERTED = (b"\n", b",", b'"', b"9" * 21, b"-", b"1e5", b"nan", b"\xef\xbb\xbf", b"\x00", b"9" * 5000, b"[" * 100_000)


@cache
def undamaged() -> dict[str, bytes]:
    """The files of a small folder."""
    with tempfile.TemporaryDirectory() as folder:
        write_code2(Path(folder), 12)
        return {name: (Path(folder) / name).read_bytes() for name in FILES}


def case(random: np.random.Generator, folder: Path) -> None:
    """Damage one file, and read the given and the built graphs."""
    data = folder / "ogbg_code2"
    for name, content in undamaged().items():
        (data / name).parent.mkdir(parents=True, exist_ok=True)
        (data / name).write_bytes(content)
    name = FILES[random.integers(len(FILES))]
    (data / name).write_bytes(damaged(undamaged()[name], random))
    for graphs in ("ogb", "dataflow"):
        with refusing():
            try:
                blocks = list(Code2(data).blocks(graphs, size=5))
            except REFUSALS as error:
                assert str(data) in str(error), f"{name} is not named: {error}"
                raise
            assert sum(map(len, blocks)) == 12 or "split" in name, f"functions are missing: {name}"
    shutil.rmtree(data)


def damaged(content: bytes, random: np.random.Generator) -> bytes:
    """A compressed file, cut off or with a changed byte, or with bytes of its text changed, removed or added."""
    at = int(random.integers(len(content)))
    match int(random.integers(5)):
        case 0:
            return content[:at]
        case 1:
            return content[:at] + random.bytes(1) + content[at + 1 :]
        case way:
            text = gzip.decompress(content)
            at, length = int(random.integers(len(text))), int(random.integers(1, 50))
            if way == 2:
                changed = text[:at] + random.bytes(1) + text[at + 1 :]
            elif way == 3:
                changed = text[:at] + text[at + length :]
            else:
                changed = text[:at] + INSERTED[random.integers(len(INSERTED))] + text[at:]
            return gzip.compress(changed)
