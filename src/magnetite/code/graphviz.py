"""Positions by graphviz's `dot`, where that program is installed."""

import shutil
import subprocess
from collections import defaultdict
from collections.abc import Sequence

from magnetite.code.layout import Layout, Pair, Point

SECONDS = 60
"""How long graphviz may think."""
INCH = 72.0


def available() -> bool:
    """Whether there is a program `dot`."""
    return shutil.which("dot") is not None


def placed(edges: Sequence[Pair], sizes: Sequence[Point]) -> Layout | None:
    """Lay nodes of the given sizes out; None where graphviz fails or takes too long."""
    try:
        done = subprocess.run(
            ["dot", "-Tplain"], input=_dot(edges, sizes), capture_output=True, text=True, timeout=SECONDS
        )
        return None if done.returncode else _read(done.stdout, edges, len(sizes))
    except (OSError, subprocess.TimeoutExpired, ValueError, LookupError):
        return None


def _dot(edges: Sequence[Pair], sizes: Sequence[Point]) -> str:
    nodes = [f"{i} [width={width / INCH:.4f} height={height / INCH:.4f}]" for i, (width, height) in enumerate(sizes)]
    arrows = [f"{source} -> {target}" for source, target in edges]
    return "\n".join(["digraph {", 'node [shape=box fixedsize=true label=""]', *nodes, *arrows, "}"])


def _read(plain: str, edges: Sequence[Pair], size: int) -> Layout:
    """Graphviz's plain format: inches, the y axis points up, an edge is a row of Bézier points."""
    rows = [line.split() for line in plain.splitlines() if line.strip()]
    width, height = (float(number) for number in rows[0][2:4])

    def points(numbers: list[str]) -> tuple[Point, ...]:
        values = [float(number) for number in numbers]
        return tuple((INCH * x, INCH * (height - y)) for x, y in zip(values[::2], values[1::2], strict=True))

    nodes = {int(row[1]): points(row[2:4])[0] for row in rows if row[0] == "node"}
    routes: dict[Pair, list[tuple[Point, ...]]] = defaultdict(list)
    for row in rows:
        if row[0] == "edge":
            ends, count = (int(row[1]), int(row[2])), int(row[3])
            routes[ends].append(_on_curve(points(row[4 : 4 + 2 * count])))
    return Layout(
        width=INCH * width,
        height=INCH * height,
        nodes=tuple(nodes[node] for node in range(size)),
        edges=tuple(routes[edge].pop() for edge in edges),
    )


def _on_curve(points: tuple[Point, ...]) -> tuple[Point, ...]:
    """The points of a Bézier curve that it passes: the first, and each third after it."""
    return points[::3]
