"""The view Results: the measured results of a clone, as tables and figures, each with the command that made it."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from magnetite.explorer.limits import Refused

FIGURES = {".svg": "image/svg+xml", ".png": "image/png"}
NAME = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9_-]{0,80}")
"""Names of results; they have no dots or slashes, so no path leads out of the folder."""

LARGEST = 8 * 2**20
"""Size of a file that is read, in bytes."""

MOST_ROWS = 400
"""Number of rows of a table that is shown."""


COMMANDS = {
    "figure-runtime-eigen": "magnetite bench eigen --out results",
    "figure-runtime-walks": "magnetite bench walks --out results",
    "figure-": "python -m paper {}",
    "table-": "python -m paper {}",
    "claims": "python -m paper {}",
    "robustness-": "python -m paper {}",
    "hypotheses": "python -m paper {}",
    "namer": "python -m paper ship-namer RUN",
    "sorting-model": "python -m paper ship-sorting RUN",
    "benchmark-data": "python benchmarks/data.py",
    "benchmark-large": "python benchmarks/large.py",
    "choosing-mlp-20000": (
        "python benchmarks/choosing.py --networks mlp --models cycle-5 cycle-5-easy cycle-5-hard --sizes 20000 "
        "--name {}"
    ),
    "choosing-gps-20000": (
        "python benchmarks/choosing.py --networks gps --models cycle-5 --sizes 20000 --grid 0.2 0.3333333333333333 "
        "--no-relative --name {}"
    ),
    "choosing-gps": "python benchmarks/choosing.py --networks gps --models cycle-5 cycle-5-easy cycle-5-hard --name {}",
    "choosing-transformer-300": (
        "python benchmarks/choosing.py --networks transformer --models cycle-5 cycle-5-easy cycle-5-hard --sizes 300 "
        "--grid 0.2 --no-relative --name {}"
    ),
    "choosing-transformer-hard": (
        "python benchmarks/choosing.py --networks transformer --models cycle-5-hard --sizes 2000 "
        "--grid 0.2 --no-relative --name {}"
    ),
    "choosing-transformer-20000-hard": (
        "python benchmarks/choosing.py --networks transformer --models cycle-5-hard --sizes 20000 --epochs 4 "
        "--grid 0.2 --no-relative --name {}"
    ),
    "choosing-transformer": (
        "python benchmarks/choosing.py --networks transformer --models cycle-5 cycle-5-easy --sizes 2000 "
        "--grid 0.2 --no-relative --name {}"
    ),
    "choosing-20000": (
        "python benchmarks/choosing.py --networks transformer --models cycle-5 --sizes 20000 --epochs 4 "
        "--grid 0.2 --no-relative --name {}"
    ),
    "large-models-million-cuda": "python benchmarks/large_models.py million --device cuda",
    "large-models-steps-cuda": "python benchmarks/large_models.py steps --device cuda",
    "large-models-million": "python benchmarks/large_models.py million",
    "large-models-steps": "python benchmarks/large_models.py steps",
    "large-models-growth": "python benchmarks/large_models.py growth",
    "large-models-accuracy": "python benchmarks/large_models.py accuracy",
    "run-": "magnetite train sorting --preset flat",
    "reliability": "python -m tests.fuzz",
}
"""Commands of results that do not hold their own, by the beginning of their names; others are benchmarks with a file
of their own."""


class Results:
    """A folder of results.

    Args:
        folder: The folder; None if there is none.
    """

    def __init__(self, folder: Path | None):
        self.folder = folder

    def listed(self) -> list[dict[str, Any]]:
        """All results: name, command, provenance, and whether there is a figure."""
        paths = sorted(self.folder.glob("*.json")) if self.folder is not None and self.folder.is_dir() else []
        return [entry for path in paths if (entry := self._entry(path)) is not None]

    def table(self, name: str) -> dict[str, Any]:
        """One result as tables."""
        content = self._content(self._path(name, ".json"))
        return {**_about(name, content), "tables": list(tables(content["result"]))}

    def figure(self, name: str, suffix: str) -> tuple[bytes, str]:
        """The bytes of a figure and its media type."""
        return self._path(name, suffix).read_bytes(), FIGURES[suffix]

    def _entry(self, path: Path) -> dict[str, Any] | None:
        try:
            content = self._content(path)
        except Refused:
            return None
        figures = [suffix for suffix in FIGURES if path.with_suffix(suffix).is_file()]
        return {**_about(path.stem, content), "figures": figures}

    def _path(self, name: str, suffix: str) -> Path:
        if not NAME.fullmatch(name) or self.folder is None:
            raise Refused(f"there is no result {name!r:.60}", 404)
        path = self.folder / f"{name}{suffix}"
        if not path.is_file() or path.resolve().parent != self.folder.resolve():
            raise Refused(f"there is no result {name!r:.60}", 404)
        return path

    def _content(self, path: Path) -> dict[str, Any]:
        try:
            if path.stat().st_size > LARGEST:
                raise ValueError
            content = json.loads(path.read_text(encoding="utf-8"))
        except (ValueError, OSError, RecursionError):
            raise Refused(f"the result {path.stem!r} cannot be read") from None
        if not isinstance(content, dict) or not isinstance(content.get("result"), dict):
            raise Refused(f"{path.name} is not a result")
        return content


def command_of(name: str) -> str:
    """The command that wrote a result of a version that did not store it.

    >>> command_of("benchmark-eigen-gpu"), command_of("figure-sorting"), command_of("verification")
    ('python benchmarks/eigen_gpu.py', 'python -m paper figure-sorting', 'python benchmarks/verification.py')
    """
    for start, command in COMMANDS.items():
        if name.startswith(start):
            return command.format(name)
    return f"python benchmarks/{name.removeprefix('benchmark-').replace('-', '_')}.py"


def tables(result: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The parts of a result as tables: lists of objects, objects of objects, and single values.

    >>> [table["title"] for table in tables({"k": 3, "rows": [{"n": 1}, {"n": 2}]})]
    ['', 'rows']
    """
    single = {key: value for key, value in result.items() if not isinstance(value, dict | list) or _is_flat(value)}
    if single:
        yield {"title": "", "columns": ["", "value"], "rows": [[key, _cell(value)] for key, value in single.items()]}
    heads = result.get("columns") or [f"length {length}" for length in result.get("lengths", ())]
    for key, value in result.items():
        if key in single:
            continue
        named = (
            [({}, row) for row in value] if isinstance(value, list) else [({"": k}, row) for k, row in value.items()]
        )
        rows = [name | _fields(row, heads) for name, row in named]
        columns = list(dict.fromkeys(column for row in rows for column in row))
        body = [[_cell(row.get(column)) for column in columns] for row in rows[:MOST_ROWS]]
        yield {"title": key, "columns": columns, "rows": body}


def _is_flat(value: Any) -> bool:
    parts = value.values() if isinstance(value, dict) else value
    return isinstance(value, list) and not any(isinstance(part, dict | list) for part in parts)


def _fields(row: Any, heads: list[Any]) -> dict[str, Any]:
    """A row by column; a list has those that the result names."""
    if isinstance(row, list) and len(row) == len(heads):
        return dict(zip(map(str, heads), row, strict=True))
    return row if isinstance(row, dict) else {"value": row}


def _cell(value: Any) -> Any:
    """A value for a table: numbers stay numbers, nested values become short text."""
    if isinstance(value, float):
        return float(f"{value:.6g}") if value == value and abs(value) != float("inf") else str(value)
    if value is None or isinstance(value, str | int | bool):
        return value if not isinstance(value, str) else value[:400]
    if isinstance(value, list) and not any(isinstance(part, dict | list) for part in value):
        return ", ".join(str(_cell(part)) for part in value)[:400]
    if isinstance(value, dict) and not any(isinstance(part, dict | list) for part in value.values()):
        return ", ".join(f"{key} {_cell(part)}" for key, part in value.items())[:400]
    return json.dumps(value, ensure_ascii=False)[:400]


def _about(name: str, content: dict[str, Any]) -> dict[str, Any]:
    known = {key: content.get(key) for key in ("seed", "commit", "device", "date", "seconds")}
    kind = "figure" if name.startswith("figure-") else "benchmark" if name.startswith("benchmark-") else "study"
    return {"name": name, "kind": kind, "command": content.get("command") or command_of(name), **known}
