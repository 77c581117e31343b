"""Text files and their rows of cells: the one parser of CSV, with any of three separators."""

import csv
import gzip
import io
import re
from pathlib import Path

Row = tuple[int, list[str]]
"""The number of a line and its cells."""

SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs"}
"""Separators of a `.csv` file; those of a `.tsv` file are tabs."""


def text_of(path: Path) -> str:
    """The content of a text file (`.gz` or not) in UTF-8, without a byte order mark."""
    content = path.read_bytes()
    if path.suffix == ".gz":
        content = gzip.decompress(content)
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise ValueError("it is encoded as UTF-16: save it as UTF-8")
    zero = content.find(b"\0")
    if zero >= 0:
        raise ValueError(f"line {_line_of(content, zero)} contains a NUL byte, so it is not text: save it as UTF-8")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = _line_of(content, error.start)
        raise ValueError(f"line {line} is not UTF-8 (byte 0x{content[error.start]:02x}): save it as UTF-8") from None
    mark = text.find("\ufeff")
    if mark >= 0:
        line = text.count("\n", 0, mark) + 1
        raise ValueError(f"line {line} contains a byte order mark, so files may have been joined: remove it")
    return text


def rows_of(path: Path, text: str, strip: bool = True) -> list[Row]:
    """The rows of a `.csv` or `.tsv` file without those that are empty.

    A `.csv` file is separated by whichever of `SEPARATORS` splits all lines into the same number of columns, more than
    one. If several do, quotes decide, and otherwise the file is refused.

    Args:
        path: The file.
        text: Its content.
        strip: Whether to remove spaces around a cell.

    >>> rows_of(Path("a.csv"), 'a;"b;c"')
    [(1, ['a', 'b;c'])]
    >>> rows_of(Path("a.csv"), "a;b,c")
    Traceback (most recent call last):
    ValueError: it may be separated by commas or by semicolons: write names that contain one of them in quotes
    """
    if path.name.removesuffix(".gz").endswith(".tsv"):
        return _parsed(text, "\t", strip)
    used = [separator for separator in SEPARATORS if separator in text] or [","]
    if len(used) == 1:
        return _parsed(text, used[0], strip)
    found: dict[str, list[Row]] = {}
    for separator in used:
        try:
            found[separator] = _parsed(text, separator, strip)
        except ValueError:
            continue
    even = [separator for separator, rows in found.items() if len(w := {len(row) for _, row in rows}) == 1 and w != {1}]
    if len(even) > 1:
        even = [separator for separator in even if _is_well_quoted(text, separator)] or even
    if len(even) > 1:
        names = " or by ".join(SEPARATORS[separator] for separator in even)
        raise ValueError(f"it may be separated by {names}: write names that contain one of them in quotes")
    if even:
        return found[even[0]]
    # No separator fits all lines: the one of the most columns in the first line leads to the line that is wrong.
    widest = max(used, key=lambda separator: len(found[separator][0][1]) if found.get(separator) else 0)
    return _parsed(text, widest, strip)


def _parsed(text: str, separator: str, strip: bool) -> list[Row]:
    lines = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True, skipinitialspace=strip)
    try:
        return [(lines.line_num, [cell.strip() for cell in row] if strip else row) for row in lines if row]
    except csv.Error as error:
        raise ValueError(f"line {lines.line_num} is not valid CSV: {error}") from None


def _is_well_quoted(text: str, separator: str) -> bool:
    """Whether quotes enclose whole cells only."""
    cell = re.escape(separator)
    return '"' not in re.sub(rf'(?:(?<=[{cell}\r\n])|(?<!.|\n)) *"(?:[^"]|"")*" *(?=[{cell}\r\n]|\Z)', "", text)


def _line_of(content: bytes, position: int) -> int:
    return content.count(b"\n", 0, position) + 1
