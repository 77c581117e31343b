"""What was measured, and a row of the README's table."""

from pathlib import Path
from typing import Any

from magnetite.io.record import read_record

ROOT = Path(__file__).parent.parent

Row = tuple[str, str, str, str]
"""What, against what, the figure, the command."""


def content(name: str) -> dict[str, Any]:
    """What one command wrote: the result, and how it was obtained."""
    return read_record(ROOT / "results" / f"{name}.json")


def result(name: str) -> dict[str, Any]:
    """The measured result of one command."""
    return content(name)["result"]
