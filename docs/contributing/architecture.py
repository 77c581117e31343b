"""Draws architecture.svg: `python docs/contributing/architecture.py`."""

from pathlib import Path

from matplotlib import rcParams
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

LINE, FILL, FRAME = "#34558b", "#eef3fb", "#f7f7f4"
HEIGHT = 0.86

BOXES = {
    # name: (x, y, width, title, what happens, where it is)
    "source": (
        0.0,
        1.1,
        1.6,
        "source or generator",
        "files, networkx, PyG,\ncode, random data",
        "io/ · sorting/ · code/",
    ),
    "graphs": (2.1, 1.1, 1.6, "Digraphs", "many graphs, packed:\nnode_ptr, edges, features", "graphs.py"),
    "encoding": (4.2, 1.9, 1.6, "encoding", "eigenpairs, walks, …\nstored by content", "encodings/"),
    "batch": (6.3, 1.1, 1.6, "Batch", "packed [N, …]\n+ buckets [b, n]", "batching/"),
    "embed": (
        0.0,
        -0.75,
        1.6,
        "embedding + encoders",
        "features, encodings\n→ states [N, d]",
        "nn/embeddings.py, encoders/",
    ),
    "body": (2.1, -0.75, 1.6, "body", "attention, message passing;\nonly attention pads", "nn/models.py"),
    "head": (4.2, -0.75, 1.6, "head", "[graphs, c] · [nodes, c]\n[query pairs, c]", "nn/heads.py"),
    "loss": (6.3, -0.75, 1.6, "task", "loss, metrics", "tasks/"),
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
FRAMES = {
    # title: (x, y, width, height)
    "a model (nn/)": (-0.15, -0.95, 6.1, 1.42),
}
LAYERS = {
    # text: y
    "Below all of these: linalg/ (the mathematics) and kernels/ (compiled loops for CPU and CUDA).": -1.45,
    "Above all of these: training/ · transforms.py and datasets.py (PyG) · plots.py · the explorer · cli/.": -1.9,
}


def box(axes: Axes, x: float, y: float, width: float, title: str, text: str, place: str) -> None:
    """A box with a title, a text, and the place in the source tree."""
    axes.add_patch(FancyBboxPatch((x, y), width, HEIGHT, boxstyle="round,pad=0.06", fc=FILL, ec=LINE))
    middle = x + width / 2
    axes.text(middle, y + 0.75, title, ha="center", va="center", fontsize=9, fontweight="bold")
    axes.text(middle, y + 0.42, text, ha="center", va="center", fontsize=7)
    axes.text(middle, y + 0.07, place, ha="center", va="center", fontsize=7, color=LINE, family="monospace")


def arrow(axes: Axes, start: tuple[float, float], end: tuple[float, float], style: str = "arc3") -> None:
    """An arrow between two points."""
    axes.add_patch(FancyArrowPatch(start, end, arrowstyle="-|>", mutation_scale=11, connectionstyle=style, color=LINE))


def main() -> None:
    """Draw the picture."""
    rcParams["svg.hashsalt"] = "magnetite"
    figure = Figure(figsize=(9.6, 5.2))
    axes = figure.add_axes((0, 0, 1, 1))
    for title, (x, y, width, height) in FRAMES.items():
        axes.add_patch(FancyBboxPatch((x, y), width, height, boxstyle="round,pad=0.05", fc=FRAME, ec="0.7", ls="--"))
        axes.text(x + width - 0.05, y + height - 0.12, title, fontsize=8, color=LINE, ha="right", va="center")
    for values in BOXES.values():
        box(axes, *values)
    for first, second in ARROWS:
        (x, y, width, *_), (u, v, *_) = BOXES[first], BOXES[second]
        arrow(axes, (x + width + 0.07, y + HEIGHT / 2), (u - 0.07, v + HEIGHT / 2))
    batch, embed = BOXES["batch"], BOXES["embed"]
    arrow(axes, (batch[0] + 0.8, batch[1] - 0.07), (embed[0] + 0.8, embed[1] + HEIGHT + 0.08), "arc3,rad=-0.06")
    for text, y in LAYERS.items():
        axes.text(-0.15, y, text, fontsize=8, va="center")
    axes.set(xlim=(-0.35, 8.15), ylim=(-2.15, 3.0))
    axes.axis("off")
    figure.savefig(Path(__file__).with_suffix(".svg"), metadata={"Date": None})


if __name__ == "__main__":
    main()
