"""What was measured, as judges of claims read it, and when figures are called equal or apart."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from magnetite.io.record import ADVICE, read_record
from magnetite.io.storage import DamagedFile
from magnetite.reproduce.cells import figures_of, longest_trained
from magnetite.reproduce.playground import MEASURES, cell_name
from magnetite.reproduce.sorting import LENGTHS

EQUAL = 0.10
"""Shares, such as F1, are equal within this difference, errors within this ratio to each other."""

APART_SHARES, APART_ERRORS = 0.01, 0.05
"""A share is ahead of another by more than this, an error by more than this part of the other.

So a figure may be ahead of another and equal to it: "equal" is what a claim calls alike, "ahead" what is not chance.
"""

VANISHED = 0.02
"""A gain of a share that is none."""

SVD_TIMES, WALKS_BELOW_SVD = (3.0, 5.0), (0.2, 0.4)
"""What counts as up to 4 times an error, and as 30% below it."""

SAME_TRAINING = 0.05
"""Trainings are compared that saw as many graphs, up to this part."""

THRESHOLDS = {
    "equal": EQUAL,
    "ahead_in_shares": APART_SHARES,
    "ahead_in_errors": APART_ERRORS,
    "graphs_seen_alike": SAME_TRAINING,
    "gain_that_vanished": VANISHED,
    "up_to_4_times": SVD_TIMES,
    "30_percent_below": WALKS_BELOW_SVD,
}


class NotRun(LookupError):
    """A figure that a claim needs was not measured yet."""


@dataclass(frozen=True)
class Found:
    """The figures that decide a part of a claim, in words, and whether they bear it out."""

    figures: str
    holds: bool


Part = Callable[[], Found]
"""A part of a claim, which may not have been measured yet."""


class Results:
    """Cells by name, figures of other commands by file."""

    def __init__(self, folder: Path):
        self.folder = folder

    def cells(self, names: tuple[str, ...], figure: str) -> list[float]:
        """A figure of several cells, of each the result that saw the most graphs, if they saw as many as each other."""
        found = [longest_trained(self.folder / "cells", name) for name in names]
        for name, content in zip(names, found, strict=True):
            if content is None or figure not in figures_of(content):
                raise NotRun(name)
        contents = [content for content in found if content is not None]
        seen = [content["result"]["graphs_seen"] for content in contents]
        if min(seen) < (1 - SAME_TRAINING) * max(seen):
            raise NotRun(f"{' and '.join(names)}, trained as long as each other")
        return [figures_of(content)[figure] for content in contents]

    def playground(self, models: tuple[str, ...], target: str, kind: str) -> list[float]:
        """F1 or RMSE of cells of the playground."""
        return self.cells(tuple(cell_name(model, target, kind) for model in models), MEASURES[target])

    def sorting(self, names: tuple[str, ...], length: int, measure: str = "accuracy") -> list[float]:
        """A measure of sorting cells at a length."""
        return self.cells(tuple(f"sorting-{name}" for name in names), f"{measure}/{length}")

    def sorting_mean(self, names: tuple[str, ...], measure: str) -> list[float]:
        """The mean of a measure of sorting cells over all lengths."""
        by_length = [self.sorting(names, length, measure) for length in LENGTHS]
        return [sum(values) / len(values) for values in zip(*by_length, strict=True)]

    def row(self, figure: str, key: str, value: Any) -> dict[str, Any]:
        """Of the table of a figure that needs no training, the row whose key has this value."""
        path = self.folder / f"{figure}.json"
        if not path.exists():
            raise NotRun(figure)
        try:
            return next(row for row in read_record(path)["result"]["rows"] if row[key] == value)
        except (KeyError, TypeError, StopIteration) as error:
            raise DamagedFile(f"{path} has no row of {key} {value}: {ADVICE}") from error


def ahead(target: str, first: float, second: float) -> bool:
    """Whether the first figure of a target is better than the second, by more than chance might do.

    >>> ahead("reachability", 0.9, 0.5), ahead("directed-distance", 0.98, 1.0)
    (True, False)
    """
    if MEASURES[target] == "f1":
        return first > second + APART_SHARES
    return first < second * (1 - APART_ERRORS)


def behind(target: str, first: float, second: float) -> bool:
    """Whether the second figure is ahead of the first.

    >>> behind("reachability", 0.5, 0.9)
    True
    """
    return ahead(target, second, first)


def close(target: str, first: float, second: float) -> bool:
    """Whether two figures of a target are equal within a tenth.

    >>> close("reachability", 0.95, 0.90), close("directed-distance", 0.2, 0.1)
    (True, False)
    """
    if MEASURES[target] == "f1":
        return abs(first - second) <= EQUAL
    return abs(first / second - 1) <= EQUAL


def fails(target: str, first: float, second: float) -> bool:
    """Whether the first figure is worse than the second, and not equal to it.

    >>> fails("directed-distance", 1.2, 1.0), fails("directed-distance", 1.05, 1.0)
    (True, False)
    """
    return behind(target, first, second) and not close(target, first, second)


def no_better(target: str, first: float, second: float) -> bool:
    """Whether the first figure is not ahead of the second.

    >>> no_better("reachability", 0.905, 0.9)
    True
    """
    return not ahead(target, first, second)
