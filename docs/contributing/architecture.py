"""Draws architecture.svg: `python docs/contributing/architecture.py`."""

from pathlib import Path

from matplotlib import rcParams
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

BOXES = {
    # name: (x, y, width, title, what happens)
    "source": (0.0, 1.0, 1.5, "io · sorting · code · tasks", "files, generators, source code"),
    "graphs": (2.0, 1.0, 1.5, "Digraphs", "many graphs, packed\nnode_ptr, edges, features"),
    "encoding": (4.0, 1.6, 1.5, "encodings", "eigenpairs, walks, …\ncached by content"),
    "batch": (6.0, 1.0, 1.5, "Batch", "packed [N, …]\n+ buckets [b, n]"),
    "embed": (0.0, -0.6, 1.5, "embedding + encoder", "states [N, d]"),
    "body": (2.0, -0.6, 1.5, "blocks", "per node on [N, d];\nattention pads per bucket"),
    "head": (4.0, -0.6, 1.5, "head", "[graphs, c] · [nodes, c]\n[query pairs, c]"),
    "loss": (6.0, -0.6, 1.5, "task", "loss, metrics"),
}
ARROWS = [
    ("source", "graphs"),
    ("graphs", "batch"),
    ("graphs", "encoding"),
    ("encoding", "batch"),
    ("embed", "body"),
    ("body", "head"),
    ("head", "loss"),
]


def box(axes: Axes, x: float, y: float, width: float, title: str, text: str) -> None:
    """A box with a title and a text."""
    axes.add_patch(FancyBboxPatch((x, y), width, 0.7, boxstyle="round,pad=0.06", fc="#eef3fb", ec="#34558b"))
    axes.text(x + width / 2, y + 0.54, title, ha="center", va="center", fontsize=9, fontweight="bold")
    axes.text(x + width / 2, y + 0.2, text, ha="center", va="center", fontsize=7)


def arrow(axes: Axes, start: tuple[float, float], end: tuple[float, float], style: str = "arc3") -> None:
    """An arrow between two points."""
    axes.add_patch(
        FancyArrowPatch(start, end, arrowstyle="-|>", mutation_scale=11, connectionstyle=style, color="#34558b")
    )


def main() -> None:
    """Draw the picture."""
    rcParams["svg.hashsalt"] = "magnetite"
    figure = Figure(figsize=(9.2, 3.9))
    axes = figure.add_axes((0, 0, 1, 1))
    for values in BOXES.values():
        box(axes, *values)
    for first, second in ARROWS:
        (x, y, width, *_), (u, v, *_) = BOXES[first], BOXES[second]
        arrow(axes, (x + width + 0.07, y + 0.35), (u - 0.07, v + 0.35))
    batch, embed = BOXES["batch"], BOXES["embed"]
    arrow(axes, (batch[0] + 0.75, batch[1] - 0.07), (embed[0] + 0.75, embed[1] + 0.78), "arc3,rad=-0.06")
    axes.text(-0.1, 0.32, "model", fontsize=8, color="#34558b")
    axes.set(xlim=(-0.3, 7.8), ylim=(-0.9, 2.6))
    axes.axis("off")
    figure.savefig(Path(__file__).with_suffix(".svg"), metadata={"Date": None})


if __name__ == "__main__":
    main()
