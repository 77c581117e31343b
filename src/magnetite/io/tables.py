"""Users' tables: matrices of numbers from CSV files, and columns by name from CSV, TSV, Parquet or JSON."""

import csv
import gzip
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from magnetite.io.delimited import rows_of, text_of

TABLES = (".csv", ".tsv", ".csv.gz", ".tsv.gz", ".parquet", ".json")
"""Extensions of tables with names of columns."""

Names = tuple[str, ...]

MISSING = ("", "nan")
"""Cells without a value, in lower case."""


def existing(folder: Path, stem: str, extensions: Sequence[str]) -> Path | None:
    """The file of this name in the folder, with one of these extensions; an error if there are several."""
    found = [path for extension in extensions if (path := folder / f"{stem}{extension}").is_file()]
    if len(found) > 1:
        raise ValueError(f"{folder} has both {found[0].name} and {found[1].name}: remove one of them")
    return found[0] if found else None


def read_matrix(path: Path) -> tuple[Names | None, list[np.ndarray]]:
    """The columns of a CSV file (.gz or not) of numbers, and their names if its first line has any.

    A column has integers, truth values or floating-point numbers; a missing number is NaN.
    """
    from pyarrow import ArrowInvalid, float64, types

    with _explained(path):
        first = _first_row(path)
        names = tuple(first) if any(not _is_number(cell) for cell in first) else None
        _check_names(path, names or ())
        forced: dict[str, Any] = {}
        while True:
            try:
                table = _arrow(path, names is not None, forced, threads=True)
            except ArrowInvalid as error:
                # Types are guessed from the first block: a column of whole numbers may have fractions further below.
                found = re.match(r"In CSV column #(\d+): ", str(error))
                if not found or f"f{found[1]}" in forced:
                    raise _located(path, names is not None, forced) from error
                forced[f"f{found[1]}"] = float64()
                continue
            words = [
                field.name
                for field in table.schema
                if not (types.is_integer(field.type) or types.is_floating(field.type) or types.is_boolean(field.type))
            ]
            if names is not None and len(names) != table.num_columns:
                raise ValueError(f"{path} line 2 has {table.num_columns} columns, but the first line has {len(names)}")
            if not words:
                return names, [_array(column) for column in table.columns]
            forced |= dict.fromkeys(words, float64())


def read_ids(path: Path) -> np.ndarray:
    """A CSV file (.gz or not) with one whole number per line."""
    names, columns = read_matrix(path)
    if len(columns) != 1:
        raise ValueError(f"{path} has {len(columns)} columns, expected one whole number per line")
    return whole(columns[0], path, 1 if names is None else 2)


def whole(column: np.ndarray, path: Path, first_line: int) -> np.ndarray:
    """The column if it has whole numbers only; an error names the line."""
    if column.dtype.kind in "iu" or not column.size:
        return column.astype(np.int64)
    wrong = np.flatnonzero(~np.isfinite(column) | (column != np.floor(column))) if column.dtype.kind == "f" else [0]
    line = first_line + int(wrong[0]) if len(wrong) else first_line
    value = column[line - first_line]
    raise ValueError(f"{path} line {line}: expected a whole number, got {'nothing' if value != value else value}")


def narrowed(values: np.ndarray) -> np.ndarray:
    """Floating-point features as float32, as models read them, unless a value is too large for it; others unchanged.

    >>> narrowed(np.array([0.5, 1e38])).dtype, narrowed(np.array([0.5, 1e39])).dtype, narrowed(np.array([1])).dtype
    (dtype('float32'), dtype('float64'), dtype('int64'))
    """
    if values.dtype.kind != "f" or (np.isfinite(values) & (np.abs(values) > np.finfo(np.float32).max)).any():
        return values
    return values.astype(np.float32)


@dataclass(frozen=True)
class Table:
    """Columns by name, as they are written.

    Args:
        path: The file.
        columns: Cells by column: text in CSV files; numbers, text, lists or None in others.
        lines: The line of each row in a CSV file, or its number.
        unit: `line` or `row`.
    """

    path: Path
    columns: Mapping[str, Sequence[Any]]
    lines: Sequence[int]
    unit: str

    def __len__(self) -> int:
        return len(self.lines)

    def where(self, row: int) -> str:
        """File and line of a row, for messages."""
        return f"{self.path} {self.unit} {self.lines[row]}"

    def texts(self, name: str) -> list[str]:
        """A column as text; an error if a cell is empty."""
        cells = ["" if cell is None else str(cell).strip() for cell in self.columns[name]]
        for row, cell in enumerate(cells):
            if not cell:
                raise ValueError(f"{self.where(row)}: column {name!r} is empty")
        return cells

    def values(self, name: str) -> np.ndarray | list[str]:
        """A column as integers, truth values, floating-point numbers (NaN where a cell is empty) or text (or "")."""
        cells = [cell.strip() if isinstance(cell, str) else cell for cell in self.columns[name]]
        if any(isinstance(cell, list) for cell in cells):
            return self._rows(name, cells)
        if (numbers := _all_numbers(cells)) is not None:
            return numbers
        parsed = [_number(cell) for cell in cells]
        words = [row for row, value in enumerate(parsed) if isinstance(value, str)]
        if not words:
            known = [value for value in parsed if value is not None]
            if len(known) == len(parsed) and all(isinstance(value, bool) for value in known):
                return np.array(parsed, dtype=bool)
            if len(known) == len(parsed) and all(isinstance(value, int) and abs(value) < 2**63 for value in known):
                return np.array(parsed, dtype=np.int64)
            return np.array(
                [self._float(name, row, np.nan if each is None else each) for row, each in enumerate(parsed)]
            )
        for row, value in enumerate(parsed):
            if value is not None and not isinstance(value, str):
                raise ValueError(
                    f"{self.where(row)}: column {name!r} is {_shown(cells[row])}, but "
                    f"{self.unit} {self.lines[words[0]]} has the text {parsed[words[0]]!r}: give numbers or text"
                )
        return ["" if value is None else str(value) for value in parsed]

    def _rows(self, name: str, cells: Sequence[Any]) -> np.ndarray:
        """A matrix from lists of equal length."""
        first = next(cell for cell in cells if isinstance(cell, list))
        for row, cell in enumerate(cells):
            width = len(cell) if isinstance(cell, list) else 1
            if not isinstance(cell, list) or width != len(first):
                raise ValueError(f"{self.where(row)}: {name!r} has {width} columns, but {len(first)} in the first row")
            if not all(isinstance(value, int | float) for value in cell):
                raise ValueError(f"{self.where(row)}: {name!r} must be a list of numbers, got {_shown(cell)}")
        if any(abs(value) >= 2**63 for cell in cells for value in cell if isinstance(value, int)):
            cells = [[self._float(name, row, value) for value in cell] for row, cell in enumerate(cells)]
        return np.array(cells)

    def _float(self, name: str, row: int, value: Any) -> float:
        """A number as a float; an error names the row of an integer that no float can hold."""
        try:
            return float(value)
        except OverflowError:
            raise ValueError(
                f"{self.where(row)}: {name!r} has an integer of {len(str(abs(value)))} digits, which is too large: "
                "give a number below 1.8e308"
            ) from None


def read_table(path: Path) -> Table:
    """A table of a format in `TABLES`; columns `x[0]`, `x[1]`, … become one column of lists, `x`."""
    with _explained(path):
        extension = next((each for each in TABLES if path.name.endswith(each)), None)
        if extension is None:
            raise ValueError(f"{path} has an unknown file extension: use one of {' '.join(TABLES)}")
        return _joined_lists(_READERS[extension.removesuffix(".gz")](path))


def read_splits(folder: Path) -> dict[str, dict[str, np.ndarray]]:
    """The splits in `splits.json` and in `split/NAME/` or `splits/NAME/`, with the ids of train, valid and test.

    `splits.json` has one list of ids for each of train, valid and test, or such an object for each name of a split.
    """
    found: dict[str, dict[str, np.ndarray]] = {}
    if (folder / "splits.json").is_file():
        found |= _splits_of_json(folder / "splits.json")
    for parent in (folder / "split", folder / "splits"):
        if not parent.is_dir():
            continue
        for place in (parent, *sorted(each for each in parent.iterdir() if each.is_dir())):
            parts = {part: existing(place, part, (".csv", ".csv.gz")) for part in PARTS}
            ids = {part: read_ids(path) for part, path in parts.items() if path is not None}
            if ids:
                found[place.name] = ids
    return found


PARTS = ("train", "valid", "val", "test")


def _splits_of_json(path: Path) -> dict[str, dict[str, np.ndarray]]:
    with _explained(path):
        content = json.loads(path.read_text(encoding="utf-8-sig"))
    if not isinstance(content, dict) or not content:
        raise ValueError(f'{path} must hold an object such as {{"train": [0, 2], "valid": [1], "test": [3]}}')
    named = {"splits": content} if set(content) & set(PARTS) else content
    found: dict[str, dict[str, np.ndarray]] = {}
    for name, parts in named.items():
        if not isinstance(parts, dict) or not set(parts) <= set(PARTS):
            raise ValueError(f"{path}: split {name!r} must have lists of ids for train, valid and test, got {parts!r}")
        for part, ids in parts.items():
            if not isinstance(ids, list) or not all(type(each) is int and abs(each) < 2**63 for each in ids):
                raise ValueError(f"{path}: {part} of split {name!r} must be a list of whole numbers, got {_shown(ids)}")
            found.setdefault(name, {})[part] = np.array(ids, dtype=np.int64)
    return found


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Make any error of a parser say the file."""
    from pyarrow import ArrowException

    try:
        yield
    except (ArrowException, OSError, EOFError, UnicodeError, csv.Error, json.JSONDecodeError, RecursionError) as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise ValueError(f"{path} cannot be read: {reason}") from error
    except ValueError as error:
        if str(path) in str(error):
            raise
        raise ValueError(f"{path} cannot be read: {error}") from error


def _open(path: Path) -> TextIO:
    if path.suffix == ".gz":
        return gzip.open(path, "rt", encoding="utf-8-sig", newline="")
    return path.open(encoding="utf-8-sig", newline="")


def _first_row(path: Path) -> list[str]:
    with _open(path) as file:
        row = next(csv.reader(file), None)
    if row is None:
        raise ValueError(f"{path} is empty")
    return [cell.strip() for cell in row] or [""]


def _arrow(path: Path, header: bool, forced: Mapping[str, Any], threads: bool) -> Any:
    from pyarrow import csv as reader

    return reader.read_csv(
        path,
        reader.ReadOptions(autogenerate_column_names=True, skip_rows=int(header), use_threads=threads),
        reader.ParseOptions(ignore_empty_lines=False),
        reader.ConvertOptions(column_types=dict(forced)),
    )


def _located(path: Path, header: bool, forced: Mapping[str, Any]) -> ValueError:
    """The error of a file, with the line, which only a single thread counts."""
    from pyarrow import ArrowInvalid

    try:
        _arrow(path, header, forced, threads=False)
    except ArrowInvalid as error:
        text = " ".join(str(error).split())
        row = re.search(r"Row #(\d+): ", text)
        place = f"{path} line {int(row[1])}" if row else str(path)
        if value := re.search(r"invalid value (.*)", text):
            return ValueError(f"{place}: expected a number, got {value[1]}")
        if cells := re.search(r"Expected (\d+) columns, got (\d+)", text):
            return ValueError(f"{place} has {cells[2]} columns, but the first line has {cells[1]}")
        return ValueError(f"{path} cannot be read: {text}")
    return ValueError(f"{path} cannot be read as numbers")


def _array(column: Any) -> np.ndarray:
    from pyarrow import float64, types

    if types.is_boolean(column.type) and column.null_count:
        column = column.cast("int8").cast(float64())
    return np.require(column.to_numpy(), requirements="W")  # NaN where integers are missing


def _check_names(path: Path, names: Sequence[str]) -> None:
    for number, name in enumerate(names):
        if not name:
            raise ValueError(f"{path}: column {number + 1} of the first line has no name")
        if name in names[:number]:
            raise ValueError(f"{path} has two columns {name!r}: rename one of them")


def _read_text(path: Path) -> Table:
    rows = [(line, row) for line, row in rows_of(path, text_of(path), strip=False) if len(row) > 1 or row[0].strip()]
    if not rows:
        raise ValueError(f"{path} is empty: its first line must name the columns")
    header, lines, cells = (
        [cell.strip() for cell in rows[0][1]],
        [line for line, _ in rows[1:]],
        [row for _, row in rows[1:]],
    )
    _check_names(path, header)
    for line, row in rows[1:]:
        if len(row) != len(header):
            raise ValueError(f"{path} line {line} has {len(row)} columns, but the first line {len(header)}")
    columns = zip(*cells, strict=True) if cells else [()] * len(header)
    return Table(path, dict(zip(header, columns, strict=True)), lines, "line")


def _read_parquet(path: Path) -> Table:
    from pyarrow import parquet

    table = parquet.read_table(path)
    _check_names(path, table.column_names)
    columns = {name: table[name].to_pylist() for name in table.column_names}
    return Table(path, columns, range(1, table.num_rows + 1), "row")


def _read_json(path: Path) -> Table:
    """A list of objects, or an object of lists."""
    content = json.loads(path.read_text(encoding="utf-8-sig"))
    if isinstance(content, list) and all(isinstance(row, dict) for row in content):
        names = list(dict.fromkeys(name for row in content for name in row))
        columns = {name: [row.get(name) for row in content] for name in names}
    elif isinstance(content, dict) and all(isinstance(column, list) for column in content.values()):
        columns = content
    else:
        raise ValueError(f"{path} must hold a list of objects, one per row, or an object of lists, one per column")
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"{path} has columns of different lengths: {lengths}")
    _check_names(path, list(columns))
    return Table(path, columns, range(1, next(iter(lengths.values()), 0) + 1), "row")


_READERS: dict[str, Callable[[Path], Table]] = {
    ".csv": _read_text,
    ".tsv": _read_text,
    ".parquet": _read_parquet,
    ".json": _read_json,
}


def _joined_lists(table: Table) -> Table:
    """The table with the columns `x[0]`, `x[1]`, … replaced by one column of lists, `x`."""
    groups: dict[str, dict[int, str]] = {}
    for name in table.columns:
        if found := re.fullmatch(r"(.+)\[(\d+)\]", name):
            groups.setdefault(found[1], {})[int(found[2])] = name
    columns = dict(table.columns)
    for name, parts in groups.items():
        if name in columns or sorted(parts) != list(range(len(parts))):
            raise ValueError(f"{table.path}: the columns of {name!r} must be {name}[0] to {name}[{len(parts) - 1}]")
        values = [table.values(parts[number]) for number in range(len(parts))]
        for number, column in enumerate(values):
            if not isinstance(column, np.ndarray) or column.ndim != 1:
                raise ValueError(f"{table.path}: column {parts[number]!r} must have numbers")
        columns[name] = np.stack([np.asarray(column) for column in values], 1).tolist()
        for part in parts.values():
            del columns[part]
    return Table(table.path, columns, table.lines, table.unit)


def _all_numbers(cells: Sequence[Any]) -> np.ndarray | None:
    """The numbers in cells of text, if there is one in each, which is the usual case, and converted faster."""
    if not all(isinstance(cell, str) and "_" not in cell for cell in cells):
        return None
    for kind, dtype in ((int, np.int64), (float, np.float64)):
        try:
            return np.array([kind(cell) for cell in cells], dtype=dtype)
        except (ValueError, OverflowError):
            continue
    return None


def _is_number(cell: str) -> bool:
    return not cell or not isinstance(_number(cell), str)


def _number(cell: Any) -> int | float | bool | str | None:
    """The number or truth value in a cell, None if it has none, otherwise its text."""
    if cell is None or (isinstance(cell, float) and cell != cell):
        return None
    if isinstance(cell, bool | int | float):
        return cell
    text = str(cell)
    if text.lower() in MISSING:
        return None
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for kind in (int, float):
        if "_" not in text:  # Python reads 1_000 as a number
            try:
                return kind(text)
            except ValueError:
                continue
    return text


def _shown(value: Any) -> str:
    text = repr(value)
    return "empty" if value in (None, "") else text if len(text) <= 60 else f"{text[:57]}…"
