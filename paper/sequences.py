"""Encodings of a sequence (the paper's section 2, appendix D.4): sine waves, Fourier modes, eigenvectors, SVD."""

from pathlib import Path
from typing import Any

import numpy as np
import torch

from magnetite.encodings import SVD, Laplacian, MagneticLaplacian
from magnetite.graphs import Digraphs
from magnetite.io.record import Record
from magnetite.linalg.potential import Relative
from magnetite.plots import draw_bitmap
from paper.examples import example_graphs
from paper.style import VERMILLION, lettered, picture, tell

NODES = 100
BASE = 1_000.0
"""Base of the wavelengths of sinusoidal encodings in the paper's figure; in its experiments it is 10,000."""


def sinusoidal(nodes: int, width: int, base: float = BASE) -> np.ndarray:
    """`sin(v / base^(2j / width))` above `cos(v / base^(2j / width))`: `[width, nodes]`.

    >>> sinusoidal(3, 4)[:, 0].tolist()
    [0.0, 0.0, 1.0, 1.0]
    """
    angles = np.arange(nodes) / base ** (2 * np.arange(width // 2)[:, None] / width)
    return np.concatenate([np.sin(angles), np.cos(angles)])


def fourier(nodes: int, width: int) -> np.ndarray:
    """`sin(2πjv / n)` above `cos(2πjv / n)` of the lowest frequencies `j`: `[width, nodes]`.

    >>> fourier(4, 4).round(6).tolist()[1]
    [0.0, 1.0, 0.0, -1.0]
    """
    angles = 2 * np.pi / nodes * np.arange(nodes) * np.arange(width // 2)[:, None]
    return np.concatenate([np.sin(angles), np.cos(angles)])


def figure_bitmaps(folder: Path, seed: int) -> None:
    """Sinusoidal encodings, Fourier modes and eigenvectors of a sequence of 100 nodes, as images."""
    record = Record("figure-bitmaps", seed)
    graph = example_graphs(NODES)[0]
    real = Laplacian(k=NODES, normalised=False, dtype=torch.float64)(graph)[0].vectors.numpy().T
    pairs = MagneticLaplacian(k=NODES // 2, q=Relative(0.25), normalised=False, dtype=torch.float64)(graph)
    magnetic = pairs[0].vectors.numpy().T
    panels = {
        "sinusoidal": (sinusoidal(NODES, NODES), "sine", "cosine"),
        "Fourier modes (DFT)": (fourier(NODES, NODES), "sine", "cosine"),
        "combinatorial Laplacian": (real.real / np.abs(real).max(), "", ""),
        "magnetic Laplacian": (
            np.concatenate([magnetic.imag, magnetic.real]) / np.abs(magnetic).max(),
            "imag.",
            "real",
        ),
    }
    result = {name: (panel[0].round(3) + 0.0).tolist() for name, panel in panels.items()}
    path = record.write(folder, {"nodes": NODES, "base": BASE, "relative_potential": 0.25, "images": result})
    with picture(folder, record.name, height=2.1) as figure:
        axes: Any = figure.subplots(1, len(panels), sharey=True)
        for place, (name, (image, upper, lower)) in enumerate(panels.items()):
            draw_bitmap(image, axes[place], limit=1.0)
            axes[place].set_title(lettered(place, name, 40))
            axes[place].set_xlabel("node")
            if upper:
                axes[place].axhline(NODES / 2 - 0.5, color="black", linewidth=0.6)
                for height, word in ((0.97, upper), (0.47, lower)):
                    box = {"facecolor": "white", "edgecolor": "none", "pad": 1.2}
                    axes[place].text(
                        0.97, height, word, transform=axes[place].transAxes, ha="right", va="top", bbox=box
                    )
        axes[0].set_ylabel("component")
        bar = figure.colorbar(axes[0].images[0], ax=axes.tolist(), aspect=18, pad=0.01, ticks=[-1, 0, 1])
        bar.set_label("value / largest modulus")
    tell(folder, record.name, path)


def figure_svd(folder: Path, seed: int) -> None:
    """An adjacency matrix and its approximation by two singular values: edges of a sequence disappear."""
    record = Record("figure-svd", seed)
    nodes, rank = 5, 2
    path_graph = Digraphs.from_edges([list(range(nodes - 1)), list(range(1, nodes))])
    adjacency = path_graph.to_scipy()[0].toarray().astype(float)
    left, right = SVD(rank=rank, dtype=torch.float64)(path_graph)[0].numpy().reshape(nodes, 2, rank).swapaxes(0, 1)
    product = left @ right.T
    kept = [rank_kept(adjacency, each) for each in range(nodes)]
    result = {
        "nodes": nodes,
        "rank": rank,
        "singular_values": np.linalg.svd(adjacency, compute_uv=False).round(9).tolist(),
        "adjacency": adjacency.tolist(),
        "left": _clean(left),
        "right": _clean(right),
        "product": _clean(product),
        "share_of_squared_norm_by_rank": kept,
    }
    path = record.write(folder, result)
    panels = {
        "(a) adjacency matrix": adjacency,
        "(b) U√S": left,
        "(c) (V√S)ᵀ": right.T,
        f"(d) product, rank {rank}": product,
    }
    with picture(folder, record.name, height=1.75) as figure:
        axes: Any = figure.subplots(1, 4, width_ratios=[nodes, rank, nodes, nodes])
        for each, (title, matrix) in zip(axes, panels.items(), strict=True):
            draw_bitmap(matrix, each, limit=2.5)  # pale colours, on which numbers are readable
            each.set_aspect("equal")
            each.set_axis_off()
            each.set_title(title)
            rows, columns = matrix.shape
            each.set_ylim((rows + nodes) / 2 - 0.4, (rows - nodes) / 2 - 0.6)  # cells of all panels have the same size
            each.add_patch(_frame(-0.5, -0.5, columns, rows, "black"))
            for (row, column), value in np.ndenumerate(matrix):
                each.text(column, row, _number(value), ha="center", va="center", fontsize=6.5)
        lost = np.argwhere((adjacency == 1) & (np.abs(product) < 0.5))
        for row, column in lost:
            for each in (axes[0], axes[3]):
                each.add_patch(_frame(column - 0.5, row - 0.5, 1, 1, VERMILLION))
    tell(folder, record.name, path)


def rank_kept(matrix: np.ndarray, rank: int) -> float:
    """Fraction of the squared Frobenius norm in the `rank` largest singular values.

    >>> rank_kept(np.eye(4), 1)
    0.25
    """
    values = np.linalg.svd(matrix, compute_uv=False) ** 2
    return round(float(values[:rank].sum() / values.sum()), 9)


def _clean(matrix: np.ndarray) -> list[list[float]]:
    return (matrix.round(9) + 0.0).tolist()


def _number(value: float) -> str:
    rounded = round(value, 2) + 0.0
    return f"{rounded:.0f}" if rounded == int(rounded) else f"{rounded:.2f}".replace("-", "−")


def _frame(left: float, top: float, width: float, height: float, colour: str) -> Any:
    from matplotlib.patches import Rectangle

    return Rectangle((left, top), width, height, fill=False, edgecolor=colour, linewidth=1.0, clip_on=False)
