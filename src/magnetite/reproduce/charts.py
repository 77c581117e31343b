"""Tables and charts that the trained figures share."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from magnetite.plots import save_figure


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
    path: Path, panels: Mapping[str, Mapping[str, Sequence[float | None]]], ticks: Sequence[str], label: str
) -> None:
    """One panel a measure, one line a name, over the same ticks, through what was run; as PNG and SVG."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.2 * len(panels), 3.2), layout="constrained")
    for number, (measure, lines) in enumerate(panels.items(), start=1):
        axes = figure.add_subplot(1, len(panels), number)
        for name, values in lines.items():
            known = {place: value for place, value in enumerate(values) if value is not None}
            if known:  # else a name in the legend would look for its line
                axes.plot(list(known), list(known.values()), "-o", markersize=3, label=name)
        axes.set_xticks(range(len(ticks)), ticks)
        axes.set_xlabel(label)
        axes.set_ylabel(measure)
    if figure.axes:
        figure.axes[-1].legend(fontsize=7)
    for ending in (".png", ".svg"):
        save_figure(figure, path.with_name(path.name + ending))


def bar_chart(path: Path, panels: Mapping[str, Mapping[str, float | None]]) -> None:
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
    for ending in (".png", ".svg"):
        save_figure(figure, path.with_name(path.name + ending))
