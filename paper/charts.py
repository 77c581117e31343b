"""Tables and charts of the results of training runs."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from magnetite.io.record import Record
from magnetite.training.config import merge
from paper.cells import Cell, Request, train_missing
from paper.statistics import mean_and_error
from paper.store import SAME_TRAINING, Result
from paper.style import COLUMN, LIGHTER, PAGE, SECOND, Look, headings, lettered, look, number_of_graphs, picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LENGTHS = range(12, 17)
"""Lengths of sorting networks in validation (12) and test."""

TABLE_COLUMNS = 4
"""Number of columns that fit into a terminal."""

Values = Sequence[float | None]
"""Measured values; None where a cell has not been trained."""

Lines = Mapping[str, Values]
"""Values of each row of a table."""

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


def second_seeds(cells: Sequence[Cell], request: Request) -> dict[str, Result]:
    """Results that differ from those of the cells in the seed alone, by the cells' names with `-second`.

    They were trained for `hypotheses`. Cells that are such runs themselves are rows of their figure already.
    """
    known = {cell.name for cell in cells}
    found = {}
    for cell in cells:
        name = f"{cell.name}{SECOND}"
        if name not in known and "seed" not in cell.changes.get("run", {}):
            other = replace(cell, name=name, changes=merge(cell.changes, {"run": {"seed": request.seed + 1}}))
            result = other.result(request)
            if result is not None:
                found[name] = result
    return found


@dataclass(frozen=True)
class Panel:
    """One chart of lines.

    Args:
        lines: The values of each line, by the name of its row; rows with `-second` are other seeds of the same line.
        ticks: Labels of the values.
        across: Title of the horizontal axis.
        up: Title of the vertical axis.
        title: Title of the panel.
    """

    lines: Lines
    ticks: Sequence[str]
    across: str
    up: str
    title: str = ""


def by_length(
    name: str,
    cells: Sequence[Cell],
    request: Request,
    arrange: Callable[[Mapping[str, Lines]], Sequence[Panel]] | None = None,
) -> None:
    """A figure of sorting networks: accuracy, F1 and AUC of each cell by length, one panel each unless arranged."""
    record = request.record(name)
    results = train_missing(cells, request)
    others = second_seeds(cells, request)
    ticks = [str(length) for length in LENGTHS]
    panels: dict[str, dict[str, Values]] = {}
    seconds: dict[str, dict[str, Values]] = {}
    for kind in ("accuracy", "f1", "auc"):
        panels[kind] = _lines(results, [cell.name for cell in cells], kind)
        seconds[kind] = _lines(others, others, kind)
        print_table(f"{name}, {kind} by length: {caption(results)}", ticks, panels[kind])
    drawn = {kind: {**panels[kind], **seconds[kind]} for kind in panels}
    training = Training.of(results, {(cell.name.removeprefix("sorting-"), ""): cell.name for cell in cells})
    picture = partial(line_chart, request.out / name, (arrange or lengths)(drawn), training)
    more = {"second_seed": seconds} if others else {}
    write(record, request, {"lengths": list(LENGTHS), **panels, **more}, results | others, picture)


def _lines(results: Mapping[str, Result], names: Iterable[str], kind: str) -> dict[str, Values]:
    return {
        name.removeprefix("sorting-"): measured(results, [(name, f"{kind}/{n}") for n in LENGTHS]) for name in names
    }


def lengths(drawn: Mapping[str, Lines]) -> list[Panel]:
    """One panel for each metric, by the length of networks."""
    ticks = [str(length) for length in LENGTHS]
    return [Panel(lines, ticks, "length, wires", headings(kind)[1]) for kind, lines in drawn.items()]


@dataclass(frozen=True)
class Training:
    """How many graphs the rows of a figure were trained on; if the numbers differ, they are part of the labels.

    Args:
        seen: Number of graphs by row and column; the column is empty if all of a row are one training.
    """

    seen: Mapping[tuple[str, str], int] = field(default_factory=dict)

    @classmethod
    def of(cls, results: Mapping[str, Result], cells: Mapping[tuple[str, str], str]) -> "Training":
        """The training of cells, by row and column."""
        return cls({place: results[cell].graphs_seen for place, cell in cells.items() if cell in results})

    @property
    def equal(self) -> bool:
        """Whether all numbers are the same, up to the last incomplete batch."""
        return not self.seen or min(self.seen.values()) >= (1 - SAME_TRAINING) * max(self.seen.values())

    @property
    def title(self) -> str:
        """The number of graphs, if it is the same for all rows."""
        return f"trained on {number_of_graphs(max(self.seen.values()))}" if self.seen and self.equal else ""

    def look(self, row: str, column: str = "") -> Look:
        """How a row is drawn: the number of graphs in its label, if numbers differ; light if the same has one longer.

        >>> training = Training({("walks", ""): 12_000_000, ("walks-shorter", ""): 2_000_000})
        >>> training.look("walks").label, training.look("walks-shorter").label
        ('random walks, 12 M graphs', 'random walks, 2 M graphs')
        """
        known = look(row)
        seen = self.seen.get((row, column))
        if self.equal or seen is None:
            return known
        same = [graphs for (other, _), graphs in self.seen.items() if look(other).label == known.label]
        shorter = seen < (1 - SAME_TRAINING) * max(same)
        colour = LIGHTER.get(known.colour, known.colour) if shorter else known.colour
        return replace(known, label=f"{known.label}, {number_of_graphs(seen)}", colour=colour)


def by_column(
    name: str,
    cells: Sequence[Cell],
    rows: Mapping[str, Mapping[str, Place]],
    request: Request,
    arrange: Callable[[Mapping[str, Mapping[str, float | None]]], Sequence[Panel]] | None = None,
) -> None:
    """A figure with one panel per column: print the tables, draw bars, or lines if arranged, write the JSON file."""
    record = request.record(name)
    results = train_missing(cells, request)
    others = second_seeds(cells, request)
    columns = list(next(iter(rows.values())))
    values = {row: measured(results, list(places.values())) for row, places in rows.items()}
    for first in range(0, len(columns), TABLE_COLUMNS):
        part = slice(first, first + TABLE_COLUMNS)
        titles = [column.replace("-", " ") for column in columns[part]]  # so that they can be wrapped
        print_table(f"{name}, test: {caption(results)}", titles, {row: values[row][part] for row in rows})
    seconds = {
        f"{row}{SECOND}": found
        for row, places in rows.items()
        if _any(found := measured(others, [(f"{cell}{SECOND}", metric) for cell, metric in places.values()]))
    }
    drawn = {column: {row: line[i] for row, line in {**values, **seconds}.items()} for i, column in enumerate(columns)}
    cells_of = {(row, column): places[column][0] for row, places in rows.items() for column in columns}
    training = Training.of(results, cells_of)
    if arrange is None:
        picture = partial(bar_chart, request.out / name, drawn, training)
    else:
        picture = partial(line_chart, request.out / name, arrange(drawn), training)
    more = {"second_seed": seconds} if seconds else {}
    write(record, request, {"columns": columns, "rows": values, **more}, results | others, picture)


def _any(values: Values) -> bool:
    return any(value is not None for value in values)


def print_table(title: str, columns: Sequence[str], rows: Mapping[str, Values]) -> None:
    """Print one line per row; names are not wrapped, missing values are dashes."""
    table = Table(title=title)
    table.add_column("", no_wrap=True)
    for column in columns:
        table.add_column(column, justify="right")
    for name, values in rows.items():
        table.add_row(name, *("–" if value is None else f"{value:.4f}" for value in values))
    Console(soft_wrap=True).print(table)


def _by_seed(lines: Mapping[str, Any]) -> dict[str, list[Any]]:
    """The values of each row and of its other seeds.

    >>> _by_seed({"walks": 1, "svd": 2, "walks-second": 3})
    {'walks': [1, 3], 'svd': [2]}
    """
    found: dict[str, list[Any]] = {}
    for name, values in lines.items():
        found.setdefault(name.removesuffix(SECOND), []).append(values)
    return found


def _mean(values: Iterable[float | None]) -> tuple[float, float] | None:
    """The mean over seeds and its standard error, 0 for a single seed; None if nothing has been trained."""
    known = [value for value in values if value is not None]
    if not known:
        return None
    mean, error = mean_and_error(known)
    return mean, error or 0.0


def line_chart(path: Path, panels: Sequence[Panel], training: Training) -> None:
    """Write a PNG and an SVG file with one panel beside the other, and one legend below.

    Points are means over seeds; where there are several, error bars are standard errors.
    """
    names = list(dict.fromkeys(name for panel in panels for name in _by_seed(panel.lines)))
    entries = sum(any(_any(panel.lines.get(name, ())) for panel in panels) for name in names)
    narrow = len(panels) == 1
    columns = 2 if narrow else 3 if entries > 4 else max(entries, 1)
    legend = 0.14 * -(-entries // columns)
    height = 1.75 + legend + (0.15 if any(panel.title for panel in panels) else 0)
    with picture(path.parent, path.name, height, COLUMN if narrow else PAGE) as figure:
        handles: dict[str, Any] = {}
        several = False
        for place, panel in enumerate(panels):
            axes = figure.add_subplot(1, len(panels), place + 1)
            for name, seeds in _by_seed(panel.lines).items():
                means = {x: found for x, each in enumerate(zip(*seeds, strict=True)) if (found := _mean(each))}
                if means:  # a line without values stays out of the legend
                    known = training.look(name)
                    handles[known.label] = _draw_line(axes, means, known)
                    several |= len(seeds) > 1
            axes.set_xticks(range(len(panel.ticks)), panel.ticks)
            axes.set_xlim(-0.3, len(panel.ticks) - 0.7)
            axes.set_xlabel(panel.across)
            axes.set_ylabel(panel.up)
            axes.grid(axis="y", color="0.9", linewidth=0.5)
            if panel.title:
                axes.set_title(lettered(place, panel.title, 40))
        order = "outside lower center"
        figure.legend(handles.values(), handles.keys(), loc=order, ncols=columns, handlelength=3, columnspacing=1.5)
        _title(figure, training, several)


def _draw_line(axes: "Axes", means: Mapping[int, tuple[float, float]], known: Look) -> Any:
    (line,) = axes.plot(
        list(means), [mean for mean, _ in means.values()], color=known.colour, marker=known.marker,
        linestyle=known.line, markeredgewidth=0.4, markeredgecolor="white",
    )  # fmt: skip
    bars = {x: found for x, found in means.items() if found[1]}
    axes.errorbar(
        list(bars), [mean for mean, _ in bars.values()], [error for _, error in bars.values()], fmt="none",
        capsize=1.8, elinewidth=0.8, ecolor=known.colour,
    )  # fmt: skip
    return line


def bar_chart(path: Path, panels: Mapping[str, Mapping[str, float | None]], training: Training) -> None:
    """Write a PNG and an SVG file with one panel per column and one horizontal bar per row, with its value.

    If all values of a panel are close to each other, they are points on an axis that does not begin at zero.
    """
    bars: dict[str, tuple[Look, dict[str, tuple[float, float]]]] = {}
    longest: dict[str, int] = {}
    several = False
    for column, rows in panels.items():
        for row, seeds in _by_seed(rows).items():
            found = _mean(seeds)
            if found is not None:
                known = training.look(row, column)
                bars.setdefault(known.label, (known, {}))[1][column] = found
                longest[known.label] = 0 if training.equal else training.seen.get((row, column), 0)
                several |= len(seeds) > 1
    families = list(dict.fromkeys(known.marker for known, _ in bars.values()))
    # Members of a family are neighbours, those trained on most graphs first.
    order = sorted(bars, key=lambda label: (families.index(bars[label][0].marker), -longest[label]))
    columns = min(4, len(panels))
    lines = -(-len(panels) // columns)
    height = lines * (0.75 + 0.16 * len(order)) + 0.2
    with picture(path.parent, path.name, height) as figure:
        axes: Any = figure.subplots(lines, columns, sharey=True, squeeze=False)
        zoomed = all(_close([found[0] for _, values in bars.values() if (found := values.get(c))]) for c in panels)
        for each, column in zip(axes.flat, panels, strict=False):
            found = {place: bars[label][1][column] for place, label in enumerate(order) if column in bars[label][1]}
            _draw_bars(each, found, [bars[label][0] for label in order], zoomed)
            title, axis = headings(column)
            each.set_title(title)
            each.set_xlabel(axis)
        for each in axes.flat[len(panels) :]:
            each.set_axis_off()
        axes[0, 0].set_yticks(range(len(order)), order)
        axes[0, 0].set_ylim(len(order) - 0.4, -0.6)
        _title(figure, training, several)


def _close(values: Sequence[float]) -> bool:
    """Whether values are so close to each other that bars would look the same."""
    return len(values) > 1 and min(values) > 0.9 * max(values)


def _draw_bars(axes: "Axes", found: Mapping[int, tuple[float, float]], looks: Sequence[Look], zoomed: bool) -> None:
    for place, (mean, error) in found.items():
        known = looks[place]
        whisker = {"xerr": error, "ecolor": "black", "capsize": 1.5} if error else {}
        if zoomed:
            axes.errorbar(mean, place, marker="o", color=known.colour, **whisker)
        else:
            axes.barh(
                place, mean, 0.78, color=known.colour, hatch=known.hatch, edgecolor="0.2", linewidth=0.4,
                error_kw={"elinewidth": 0.8}, **whisker,
            )  # fmt: skip
        text = f"{mean:.2g}" if mean < 0.1 else f"{mean:.4f}" if zoomed else f"{mean:.2f}"
        axes.annotate(text, (mean + error, place), (4, 0), textcoords="offset points", va="center", fontsize=6)
    if zoomed:
        axes.margins(x=0.12)
    low, high = axes.get_xlim()
    axes.set_xlim(low if zoomed else 0, high + (0.4 if zoomed else 0.3) * (high - low))  # room for the numbers
    if all(mean <= 1 for mean, _ in found.values()):
        axes.set_xticks([tick for tick in axes.get_xticks() if axes.get_xlim()[0] <= tick <= 1])  # no score exceeds 1
    axes.tick_params(axis="y", length=0)


def _title(figure: "Figure", training: Training, several: bool) -> None:
    """How long the rows were trained, and what error bars are."""
    bars = "error bars: standard error where there are two seeds" if several else ""
    title = "; ".join(part for part in (training.title, bars) if part)
    if title:
        figure.suptitle(title[0].upper() + title[1:])
