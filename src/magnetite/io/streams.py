"""Large text files as streams: rows of whole numbers, lines of text, and the rows of a table in JSON.

Nothing is kept but the current part of a file, however long it is. Every error names the file.
"""

import gzip
import json
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from magnetite.io.storage import DamagedFile

PART = 2**20
"""Number of bytes or characters that are read at a time."""

LONGEST = 2**26
"""Number of characters of the longest row of a JSON table."""


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Make the error of a reader name the file, in one line."""
    from pyarrow import ArrowException

    try:
        yield
    except FileNotFoundError:
        raise FileNotFoundError(f"{path} does not exist: add it, or download the data again") from None
    except (ArrowException, OSError, EOFError, UnicodeError, zlib.error, RecursionError) as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise DamagedFile(f"{path} cannot be read ({reason[:200]}): download it again") from error


class IntegerRows:
    """The rows of a file of whole numbers, separated by commas and without a header (`.csv.gz` or `.csv`).

    Args:
        path: The file.
        columns: Number of columns.
    """

    def __init__(self, path: Path, columns: int = 1):
        self.path, self.columns = path, columns
        self.read = 0
        self.parts = self._parts()
        self.part = np.empty((0, columns), dtype=np.int64)

    def take(self, count: int, why: str) -> np.ndarray:
        """The next rows, `[count, columns]`.

        Args:
            count: Number of rows.
            why: What says that there are so many, for the error if there are fewer.
        """
        found = list(self._next(count, why))
        return found[0] if len(found) == 1 else np.concatenate([np.empty((0, self.columns), np.int64), *found])

    def skip(self, count: int, why: str) -> None:
        """Leave out the next rows; the arguments are those of `take`."""
        for _ in self._next(count, why):
            pass

    def rest(self) -> np.ndarray:
        """All remaining rows."""
        return np.concatenate([self.part, *self.parts])

    def finish(self, why: str) -> None:
        """Raise an error if there are more rows.

        Args:
            why: What says that there are none.
        """
        more = len(self.part) + sum(map(len, self.parts))
        if more:
            raise DamagedFile(
                f"{self.path} has {self.read + more} rows, but {why}: both must belong to the same graphs"
            )

    def _next(self, count: int, why: str) -> Iterator[np.ndarray]:
        while count:
            if not len(self.part):
                part = next(self.parts, None)
                if part is None:
                    raise DamagedFile(
                        f"{self.path} ends after {self.read} rows, but {why}: both must belong to the same graphs"
                    )
                self.part = part
            given, self.part = self.part[:count], self.part[count:]
            count -= len(given)
            self.read += len(given)
            yield given

    def _parts(self) -> Iterator[np.ndarray]:
        import pyarrow as pa
        from pyarrow import csv

        names = [str(number) for number in range(self.columns)]
        types = dict.fromkeys(names, pa.int64())
        with explained(self.path), pa.input_stream(self.path) as file:
            try:
                reader = csv.open_csv(
                    file,
                    csv.ReadOptions(use_threads=False, block_size=PART, column_names=names),
                    convert_options=csv.ConvertOptions(column_types=types, null_values=[]),
                )
            except pa.ArrowInvalid as error:
                if "Empty CSV" in str(error):
                    return
                raise
            with reader:
                for batch in reader:
                    yield np.stack([column.to_numpy() for column in batch.columns], 1)


def text_lines(path: Path) -> Iterator[str]:
    """The lines of a text file in UTF-8 (`.gz` or not), without their ends.

    Args:
        path: The file.
    """
    with explained(path), _open(path) as file:
        for line in file:
            yield line.rstrip("\r\n")


def json_rows(path: Path, column: str) -> Iterator[Any]:
    """One column of a table of pandas in `orient="split"`: `{"columns": […], "index": […], "data": [[…], …]}`.

    Args:
        path: The file (`.gz` or not).
        column: Name of the column.
    """
    columns: list[str] | None = None
    with explained(path), _open(path) as file:
        text = _Text(file, path)
        text.expect("{")
        while True:
            key = text.value()
            text.expect(":")
            if key == "data":
                if columns is None:
                    raise DamagedFile(f"{path} has no columns before its data: write it with pandas, orient='split'")
                if column not in columns:
                    raise DamagedFile(f"{path} has no column {column!r}, but {', '.join(map(str, columns))[:100]}")
                place = columns.index(column)
                for number, row in enumerate(text.items()):
                    if not isinstance(row, list) or len(row) != len(columns):
                        raise DamagedFile(f"{path}: row {number} of its data does not have {len(columns)} entries")
                    yield row[place]
            elif key == "columns":
                columns = text.value()
                if not isinstance(columns, list):
                    raise DamagedFile(f"{path}: its columns are not a list: write it with pandas, orient='split'")
            elif key == "index":
                for _ in text.items():
                    pass
            else:
                raise DamagedFile(
                    f"{path} has an unknown entry {str(key)[:40]!r}: write it with pandas, orient='split'"
                )
            if text.next() != ",":
                break
            text.expect(",")
        text.expect("}")


class _Text:
    """A JSON text that is decoded value by value, of which only the current part is kept."""

    def __init__(self, file: Any, path: Path):
        self.file, self.path = file, path
        self.part, self.at = "", 0
        self.decode = json.JSONDecoder().raw_decode

    def next(self) -> str:
        """The next character that is not a space, which stays; empty at the end of the text."""
        while True:
            while self.at < len(self.part):
                if not self.part[self.at].isspace():
                    return self.part[self.at]
                self.at += 1
            if not self._more():
                return ""

    def expect(self, character: str) -> None:
        """Pass over a character."""
        found = self.next()
        if found != character:
            raise DamagedFile(
                f"{self.path} is cut off or is not a table that pandas wrote: expected {character!r}, got {found!r}"
            )
        self.at += 1

    def value(self) -> Any:
        """The next value; it is complete if another character follows, since a number could go on."""
        self.next()
        while True:
            try:
                value, end = self.decode(self.part, self.at)
                if end < len(self.part):
                    self.at = end
                    return value
            except json.JSONDecodeError as error:
                if len(self.part) - self.at > LONGEST:
                    raise DamagedFile(f"{self.path} is not valid JSON: {error.msg}") from None
            except ValueError as error:  # a number of thousands of digits
                raise DamagedFile(f"{self.path} is not valid JSON: {error}") from None
            if not self._more():
                raise DamagedFile(f"{self.path} is cut off or is not valid JSON: download it again")

    def items(self) -> Iterator[Any]:
        """The values of a list, one by one."""
        self.expect("[")
        if self.next() == "]":
            self.expect("]")
            return
        while True:
            yield self.value()
            if self.next() != ",":
                break
            self.expect(",")
        self.expect("]")

    def _more(self) -> bool:
        """Read more; what has been decoded is dropped."""
        more = self.file.read(PART)
        self.part, self.at = self.part[self.at :] + more, 0
        return bool(more)


def _open(path: Path) -> Any:
    if path.suffix == ".gz":
        return gzip.open(path, "rt", encoding="utf-8", newline="\n")
    return path.open(encoding="utf-8", newline="\n")
