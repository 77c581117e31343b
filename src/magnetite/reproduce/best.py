"""What the presets `best` reach, and what each of their changes is worth, at equal width and budget."""

from collections.abc import Mapping
from typing import Any

from magnetite.record import Record
from magnetite.reproduce.cells import Cell, Request, figure, train_missing
from magnetite.reproduce.playground import finish
from magnetite.reproduce.sorting import by_length
from magnetite.training.presets import ablations, merge

SHORTER = 1 / 3
"""The share of the training that is enough to compare changes."""

DISTANCES = {"task": {"target": "directed-distance", "acyclic": True}}


def best_cells(task: str, encoding: str, changes: Mapping[str, Mapping[str, Any]]) -> list[Cell]:
    """The preset at full length; then shorter, with all of its changes and without each of them.

    >>> [cell.name for cell in best_cells("sorting", "magnetic", {})][:3]
    ['best-sorting', 'best-sorting-shorter', 'best-sorting-without-places']
    """
    name = f"best-{task}"
    cells = [
        Cell(name, task, encoding, changes, "best"),
        Cell(f"{name}-shorter", task, encoding, changes, "best", SHORTER),
    ]
    return cells + [
        Cell(f"{name}-without-{change}", task, encoding, merge(changes, tables), "best", SHORTER)
        for change, tables in ablations(task, "best").items()
    ]


def sorting_cells() -> list[Cell]:
    """Sorting networks."""
    return best_cells("sorting", "magnetic", {})


def distance_cells() -> list[Cell]:
    """Directed distances in DAGs."""
    return best_cells("playground", "multi-q", DISTANCES)


def reproduce_sorting(request: Request) -> None:
    """Accuracy and F1 by length."""
    by_length("figure-best-sorting", sorting_cells(), request)


def reproduce_distance(request: Request) -> None:
    """Errors of distances."""
    record, cells = Record("figure-best-distance", request.seed), distance_cells()
    results = train_missing(cells, request)
    measures = ("rmse", "mae")
    rows = {cell.name: [figure(results, cell.name, measure) for measure in measures] for cell in cells}
    finish(record, rows, measures, results, request)
