"""How figures look: sizes of the paper's columns, colours that colour-blind readers tell apart, names and markers.

The colours are those of Okabe and Ito. A family of encodings has one hue and one marker; its members have the dark and
the light shade of it and different lines, so no two of them differ in colour alone.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from rich.console import Console

from magnetite.plots import save_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLUMN, PAGE = 3.3, 6.75
"""Widths of a column and of a page, in inches: the two-column format of the paper."""

DPI = 200

BLACK, GREY, SILVER = "#000000", "#595959", "#A6A6A6"
BLUE, SKY = "#0072B2", "#56B4E9"
VERMILLION, ORANGE = "#D55E00", "#E69F00"
GREEN, MINT = "#009E73", "#80CEB9"
PURPLE, PINK = "#CC79A7", "#E8C4D8"
OLIVE, YELLOW = "#8A7B00", "#F0E442"

LIGHTER = {BLUE: SKY, VERMILLION: ORANGE, GREEN: MINT, PURPLE: PINK, OLIVE: YELLOW, BLACK: GREY, GREY: SILVER}
"""The light shade of each hue: training on fewer graphs."""

DASHED, DOTTED = (0, (4, 1.5)), (0, (1, 1.2))

RC: Any = {
    "font.size": 7,
    "axes.titlesize": 7.5,
    "axes.labelsize": 7,
    "xtick.labelsize": 6.5,
    "ytick.labelsize": 6.5,
    "legend.fontsize": 6.5,
    "figure.titlesize": 7.5,
    "axes.linewidth": 0.6,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "lines.linewidth": 1.1,
    "lines.markersize": 4.0,
    "hatch.linewidth": 0.5,
    "axes.titlepad": 4,
    "axes.labelpad": 2,
    "legend.frameon": False,
    "figure.constrained_layout.h_pad": 0.03,
    "figure.constrained_layout.w_pad": 0.03,
}
"""Settings of matplotlib at the printed size; no text is smaller than 6 points."""


@contextmanager
def picture(folder: Path, name: str, height: float, width: float = PAGE) -> Iterator["Figure"]:
    """A figure of this size in inches; it is written as PNG and SVG when the block ends.

    Args:
        folder: Folder of results.
        name: Name of the figure and of its files.
        height: Height in inches.
        width: Width in inches: `PAGE` or `COLUMN`.
    """
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(RC):
        figure = Figure(figsize=(width, height), layout="constrained")
        yield figure
        for axes in figure.axes:
            for patch in axes.patches:  # arrows and bars lie inside their axes; to measure them takes seconds
                patch.set_in_layout(False)
        for ending in (".png", ".svg"):
            save_figure(figure, folder / f"{name}{ending}", DPI, crop=False)


def lettered(place: int, title: str, width: int = 24) -> str:
    """The title of a panel with its letter, in several lines if it is longer than `width` characters.

    >>> lettered(1, "sequence")
    '(b) sequence'
    """
    return "\n".join(wrap(f"({chr(ord('a') + place)}) {title}", width))


def tell(folder: Path, name: str, numbers: Path) -> None:
    """Print where the figure and its numbers are."""
    Console(soft_wrap=True, highlight=False).print(f"figure: {folder / name}.png and .svg, numbers: {numbers}")


@dataclass(frozen=True)
class Look:
    """How a row of a table is drawn.

    Args:
        label: What it is, in words.
        colour: Colour of its lines and bars.
        marker: Marker of its points.
        line: Style of its lines.
        hatch: Pattern of its bars.
    """

    label: str
    colour: str = BLUE
    marker: str = "o"
    line: Any = "-"
    hatch: str = ""


LOOKS: dict[str, Look] = {
    # Encodings: magnetic in blue, walks in orange, and so on.
    "magnetic": Look("magnetic Laplacian", BLUE, "o"),
    "walks": Look("random walks", VERMILLION, "s", DASHED),
    "laplacian": Look("combinatorial Laplacian", GREEN, "^", "-."),
    "svd": Look("SVD", PURPLE, "D"),
    "sinusoidal": Look("sinusoidal", BLACK, "v", DOTTED),
    "magnetic-shorter": Look("magnetic Laplacian", BLUE, "o"),
    "walks-shorter": Look("random walks", VERMILLION, "s", DASHED),
    "relative-walks": Look("relative random walks", ORANGE, "s", DOTTED, "////"),
    "magnetic-signnet": Look("magnetic, SignNet", SKY, "o", DOTTED, "////"),
    "gnn": Look("message passing (GNN)", OLIVE, "P"),
    "magnet": Look("MagNet", YELLOW, "P", DASHED, "////"),
    # Variants of random walks.
    "forward": Look("forward only", GREY, "v", DOTTED),
    "reverse": Look("both directions", ORANGE, "s", DASHED),
    "pagerank": Look("both directions and PageRank", VERMILLION, "o"),
    # Message passing by the number of steps, and with encodings.
    "gnn-directed": Look("directed", OLIVE, "P"),
    "gnn-undirected": Look("undirected", SILVER, "X", DASHED),
    "gnn-directed-3": Look("directed", OLIVE, "P"),
    "gnn-undirected-3": Look("undirected", SILVER, "X", DASHED),
    "gnn-magnetic": Look("directed, magnetic Laplacian", BLUE, "o"),
    "gnn-walks": Look("directed, random walks", VERMILLION, "s", DASHED),
    # The models that were tuned for one task.
    "best-sorting": Look("relations of wires", GREY, "X"),
    "best-sorting-shorter": Look("relations of wires", GREY, "X", DASHED),
    "best-sorting-without-relations": Look("attention instead of relations", BLUE, "o"),
    "best-sorting-without-optimiser": Look("with the paper's optimiser", PURPLE, "D", "-."),
    "best-sorting-without-state": Look("with half the state", GREEN, "^", DOTTED),
    "quick-sorting-relations": Look("relations of wires", GREY, "X"),
    "quick-sorting-attention": Look("attention, magnetic Laplacian", BLUE, "o", DASHED),
    "tried-sorting-fast": Look("learning rate 0.002 (chosen)", GREY),
    "tried-sorting-slow": Look("learning rate 0.001", SILVER),
    "tried-sorting-narrow": Look("rate 0.001, state of 16", SILVER),
    "tried-sorting-small-batch": Look("rate 0.001, batches of 256", SILVER),
    "tried-sorting-reversed": Look("rate 0.001, reversed networks", SILVER),
    "tried-sorting-fresh": Look("rate 0.001, new networks each epoch", SILVER),
    "best-playground": Look("walks between the nodes", VERMILLION),
    "best-playground-shorter": Look("walks between the nodes", VERMILLION),
    "best-playground-without-walks": Look("without these walks", SILVER),
    "best-playground-without-root": Look("without square roots", SILVER),
    "best-playground-without-layer": Look("without the pair layer", SILVER),
    # What a general model needs for compact networks.
    **{
        f"{start}networks-{name}": look
        for start in ("", "quick-")
        for name, look in {
            "attention": Look("attention alone", BLUE),
            "repeated": Look("layers repeated", SKY, hatch="////"),
            "directions": Look("attention along paths", SKY),
            "messages": Look("messages with ports", OLIVE),
            "executing": Look("all three", YELLOW),
        }.items()
    },
    # Several potentials.
    **{
        f"multi-q-{kind}-{name}": Look(f"{label}, {graphs}", colour, hatch=hatch)
        for kind, graphs, hatch in (("dag", "DAGs", ""), ("general", "general", "////"))
        for name, (label, colour) in {
            "multi-q-spe": ("ten potentials, SPE, pairs", BLUE),
            "single-q-spe": ("one potential, SPE, pairs", SKY),
            "multi-q-spe-nodes": ("ten potentials, SPE, nodes", VERMILLION),
            "multi-q": ("ten potentials, MagLapNet", GREEN),
            "single-q": ("one potential, MagLapNet", MINT),
        }.items()
    },
    # Lengths of sorting networks, from short (dark) to long (light).
    "length 12": Look("length 12 (validation)", BLACK, "o"),
    "length 13": Look("length 13", BLUE, "s", DASHED),
    "length 14": Look("length 14", SKY, "^", "-."),
    "length 15": Look("length 15", ORANGE, "D", DOTTED),
    "length 16": Look("length 16", VERMILLION, "v"),
}
"""Rows of the tables of training runs by name."""

METRICS = {
    "f1": "F1 score",
    "accuracy": "accuracy",
    "balanced_accuracy": "balanced accuracy",
    "auc": "area under ROC curve",
    "rmse": "RMSE, edges",
    "mae": "mean absolute error, edges",
    "precision": "precision",
    "recall": "recall",
}
"""Axis titles of metrics, with their units; errors of distances are numbers of edges."""

WORDS = {
    "dag": "DAGs",
    "general": "general digraphs",
    "directed-distance": "directed distance",
    "undirected-distance": "undirected distance",
    "known": "smallest known",
}
"""Words for parts of the names of columns."""

SECOND = "-second"
"""End of the name of a row that differs in the seed alone."""


def look(row: str) -> Look:
    """How a row is drawn; a row that is not in `LOOKS` keeps its name.

    >>> look("walks-second").label
    'random walks'
    """
    row = row.removesuffix(SECOND)
    return LOOKS.get(row, Look(row.replace("-", " "), GREY))


def headings(column: str) -> tuple[str, str]:
    """The title of a panel and the title of its axis, from the name of a column of a table.

    >>> headings("directed-distance dag rmse"), headings("accuracy/12")
    (('directed distance,\\nDAGs', 'RMSE, edges'), ('length 12', 'accuracy'))
    """
    parts = column.replace("/", " ").replace(":", " ").split()
    metrics = [METRICS[part] for part in parts if part in METRICS]
    others = [WORDS.get(part, f"length {part}" if part.isdigit() else part) for part in parts if part not in METRICS]
    return ",\n".join(others), ", ".join(metrics)


def number_of_graphs(seen: int) -> str:
    """A number of training graphs for labels.

    >>> number_of_graphs(11_980_800), number_of_graphs(799_744), number_of_graphs(32_000)
    ('12 M graphs', '0.8 M graphs', '32,000 graphs')
    """
    return f"{seen / 1e6:.2g} M graphs" if seen >= 100_000 else f"{seen:,} graphs"
