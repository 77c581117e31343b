"""Tables and charts of the results of training runs."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from magnetite.io.record import Record
from magnetite.plots import save_figure
from paper.cells import Cell, Request, train_missing
from paper.store import Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LENGTHS = range(12, 17)
"""Lengths of sorting networks in validation (12) and test."""

TABLE_COLUMNS = 4
"""Number of columns that fit into a terminal."""

Values = Sequence[float | None]
"""Measured values; None where a cell has not been trained."""

Bars = Mapping[str, Mapping[str, float | None]]
"""One panel per metric, one bar per name."""


Place = tuple[str, str]
"""Where a value is found: the name of a cell and the name of a metric."""


def measured(results: Mapping[str, Result], places: Sequence[Place]) -> Values:
    """The values of these metrics of these cells."""
    return [results[cell].metrics.get(metric) if cell in results else None for cell, metric in places]


def caption(results: Mapping[str, Result]) -> str:
    """How long the cells were trained, for titles."""
    seen = sorted({result.graphs_seen for result in results.values()})
    budgets = sorted({result.content["result"]["config"]["optim"]["budget"] for result in results.values()})
    if not seen:
        return "nothing trained yet"
    span = f"{seen[0]:,}" if len(seen) == 1 else f"{seen[0]:,} to {seen[-1]:,}"
    return f"{span} graphs seen (budget {', '.join(f'{budget:g}' for budget in budgets)} of the preset's training)"


def write(
    record: Record,
    request: Request,
    result: Mapping[str, Any],
    results: Mapping[str, Result],
    draw: Callable[[], None],
) -> None:
    """Write the JSON file of a figure, draw it, and print the paths; without any result, there is nothing to write."""
    console = Console(soft_wrap=True)
    if not results:
        console.print(f"{record.name}: not written, because no cell has been trained")
        return
    cells = {name: cell.provenance() for name, cell in results.items()}
    path = request.write(record, {"budget": request.budget, **result, "cells": cells})
    draw()
    console.print(f"figure: {request.out / record.name}.png and .svg, numbers: {path}")


def by_length(name: str, cells: Sequence[Cell], request: Request) -> None:
    """A figure of sorting networks: accuracy, F1 and AUC of each cell by length."""
    record = request.record(name)
    results = train_missing(cells, request)
    ticks = [str(length) for length in LENGTHS]
    panels: dict[str, dict[str, Values]] = {}
    for kind in ("accuracy", "f1", "auc"):
        panels[kind] = {
            cell.name.removeprefix("sorting-"): measured(results, [(cell.name, f"{kind}/{n}") for n in LENGTHS])
            for cell in cells
        }
        print_table(f"{name}, {kind} by length: {caption(results)}", ticks, panels[kind])
    picture = partial(line_chart, request.out / name, panels, ticks, "length", results)
    write(record, request, {"lengths": list(LENGTHS), **panels}, results, picture)


def bar_chart(path: Path, panels: Bars, results: Mapping[str, Result]) -> None:
    """Write a PNG and an SVG file with one panel per metric and one bar per value."""
    from matplotlib.figure import Figure

    columns = min(4, len(panels))
    rows = -(-len(panels) // columns)
    figure = Figure(figsize=(3.4 * columns, 2.8 * rows), layout="constrained")
    for number, (heading, bars) in enumerate(panels.items(), start=1):
        axes = figure.add_subplot(rows, columns, number)
        heights = {name: value for name, value in bars.items() if value is not None}
        axes.bar(range(len(heights)), list(heights.values()))
        axes.set_xticks(range(len(heights)), list(heights), rotation=60, ha="right", fontsize=7)
        axes.set_title(heading, fontsize=8)
    _save(figure, path, caption(results))


def by_column(
    name: str,
    cells: Sequence[Cell],
    rows: Mapping[str, Mapping[str, Place]],
    request: Request,
    draw: Callable[[Path, Bars, Mapping[str, Result]], None] = bar_chart,
) -> None:
    """A figure with one panel per column: print the tables, draw the chart (bars by default), write the JSON file."""
    record = request.record(name)
    results = train_missing(cells, request)
    columns = list(next(iter(rows.values())))
    values = {row: measured(results, list(places.values())) for row, places in rows.items()}
    for first in range(0, len(columns), TABLE_COLUMNS):
        part = slice(first, first + TABLE_COLUMNS)
        headings = [column.replace("-", " ") for column in columns[part]]  # so that they can be wrapped
        print_table(f"{name}, test: {caption(results)}", headings, {row: values[row][part] for row in rows})
    panels = {column: {row: values[row][i] for row in rows} for i, column in enumerate(columns)}
    picture = partial(draw, request.out / name, panels, results)
    write(record, request, {"columns": columns, "rows": values}, results, picture)


def print_table(title: str, columns: Sequence[str], rows: Mapping[str, Values]) -> None:
    """Print one line per row; names are not wrapped, missing values are dashes."""
    table = Table(title=title)
    table.add_column("", no_wrap=True)
    for column in columns:
        table.add_column(column, justify="right")
    for name, values in rows.items():
        table.add_row(name, *("–" if value is None else f"{value:.4f}" for value in values))
    Console(soft_wrap=True).print(table)


def line_chart(
    path: Path,
    panels: Mapping[str, Mapping[str, Values]],
    ticks: Sequence[str],
    label: str,
    results: Mapping[str, Result],
) -> None:
    """Write a PNG and an SVG file with one panel per metric and one line per name through its values."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.2 * len(panels) + 1.6, 3.2), layout="constrained")
    drawn = {}
    for number, (heading, lines) in enumerate(panels.items(), start=1):
        axes = figure.add_subplot(1, len(panels), number)
        for turn, (name, values) in enumerate(lines.items()):
            known = {place: value for place, value in enumerate(values) if value is not None}
            style = f"C{turn % 10}o{'-' if turn < 10 else '--'}"  # there are ten colours
            if known:  # a name without values stays out of the legend
                (drawn[name],) = axes.plot(list(known), list(known.values()), style, markersize=3)
        axes.set_xticks(range(len(ticks)), ticks)
        axes.set_xlabel(label)
        axes.set_ylabel(heading)
    figure.legend(drawn.values(), drawn.keys(), fontsize=7, handlelength=3, loc="outside right upper")
    _save(figure, path, caption(results))


def _save(figure: "Figure", path: Path, title: str) -> None:
    figure.suptitle(title, fontsize=8)
    for ending in (".png", ".svg"):
        save_figure(figure, path.with_name(path.name + ending))
