"""Tables and charts that the trained figures share."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from magnetite.plots import save_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Panels = Mapping[str, Mapping[str, float | None]]
"""What bars are drawn of: one panel a measure, one bar a name."""


def print_table(title: str, heading: str, columns: Sequence[str], rows: Mapping[str, Sequence[float | None]]) -> None:
    """One row a name, which stays whole on a narrow terminal; what was not run is a dash."""
    table = Table(title=title)
    table.add_column(heading, no_wrap=True)
    for column in columns:
        table.add_column(column, justify="right")
    for name, values in rows.items():
        table.add_row(name, *("–" if value is None else f"{value:.4f}" for value in values))
    Console(soft_wrap=True).print(table)


def line_chart(
    path: Path, panels: Mapping[str, Mapping[str, Sequence[float | None]]], ticks: Sequence[str], label: str, title: str
) -> None:
    """One panel a measure, one line a name, over the same ticks, through what was run; as PNG and SVG."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.2 * len(panels) + 1.6, 3.2), layout="constrained")
    drawn = {}
    for number, (measure, lines) in enumerate(panels.items(), start=1):
        axes = figure.add_subplot(1, len(panels), number)
        for turn, (name, values) in enumerate(lines.items()):
            known = {place: value for place, value in enumerate(values) if value is not None}
            style = f"C{turn % 10}o{'-' if turn < 10 else '--'}"  # there are ten colours
            if known:  # else a name in the legend would look for its line
                (drawn[name],) = axes.plot(list(known), list(known.values()), style, markersize=3)
        axes.set_xticks(range(len(ticks)), ticks)
        axes.set_xlabel(label)
        axes.set_ylabel(measure)
    figure.legend(drawn.values(), drawn.keys(), fontsize=7, handlelength=3, loc="outside right upper")
    _save(figure, path, title)


def bar_chart(path: Path, panels: Panels, title: str) -> None:
    """One panel a measure, one bar a name that has a figure; as PNG and SVG."""
    from matplotlib.figure import Figure

    columns = min(4, len(panels))
    rows = -(-len(panels) // columns)
    figure = Figure(figsize=(3.4 * columns, 2.8 * rows), layout="constrained")
    for number, (measure, bars) in enumerate(panels.items(), start=1):
        axes = figure.add_subplot(rows, columns, number)
        heights = {name: value for name, value in bars.items() if value is not None}
        axes.bar(range(len(heights)), list(heights.values()))
        axes.set_xticks(range(len(heights)), list(heights), rotation=60, ha="right", fontsize=7)
        axes.set_title(measure, fontsize=8)
    _save(figure, path, title)


def _save(figure: "Figure", path: Path, title: str) -> None:
    figure.suptitle(title, fontsize=8)
    for ending in (".png", ".svg"):
        save_figure(figure, path.with_name(path.name + ending))
