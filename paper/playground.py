"""Figures of node pairs: four targets on two kinds of graphs for every encoding, and the study of random walks."""

from collections.abc import Mapping
from typing import Any

from paper.cells import HALF_MILLION, TWO_MILLION, WHOLE, Cell, Request
from paper.charts import Panel, by_column
from paper.style import headings

KINDS = {"dag": True, "general": False}
METRICS = {"adjacency": "f1", "reachability": "f1", "directed-distance": "rmse", "undirected-distance": "rmse"}
TARGETS = tuple(METRICS)
FULL = ("reachability", "directed-distance")
"""Targets for which the four main encodings are trained on all of the paper's 12 million graphs."""

COMPARED = ("magnetic", "walks")
"""Main encodings that are also trained on fewer graphs for those targets, to be compared with the appendix."""

MAIN: dict[str, tuple[str, Mapping[str, Any]]] = {
    "magnetic": ("magnetic", {}),
    "walks": ("walks", {}),
    "laplacian": ("laplacian", {}),
    "svd": ("svd", {}),
}
APPENDIX: dict[str, tuple[str, Mapping[str, Any]]] = {
    "relative-walks": ("walks+relative-walks", {}),
    "magnetic-signnet": ("magnetic", {"encoding": {"sign": "mlp"}}),
    "gnn": ("none", {"model": {"name": "gnn"}}),
    "magnet": ("none", {"model": {"name": "magnet"}}),
}
WALKS: dict[str, Mapping[str, Any]] = {
    "forward": {"reverse": False, "restart": None},
    "reverse": {"restart": None},
    "pagerank": {},
}
"""Random walks as in earlier work, with reversal, and with reversal and PageRank."""

STEPS = (1, 2, 3, 4, 5)


def cell_name(model: str, target: str, kind: str) -> str:
    """Name of a cell.

    >>> cell_name("magnetic", "reachability", "dag")
    'playground-reachability-dag-magnetic'
    """
    return f"playground-{target}-{kind}-{model}"


def playground_cells() -> list[Cell]:
    """All cells, the longest runs first."""
    full = [(name, *what, target, WHOLE) for target in FULL for name, what in MAIN.items()]
    shorter = {f"{name}-shorter": MAIN[name] for name in COMPARED}
    short = [
        (name, *what, target, TWO_MILLION)
        for target in TARGETS
        for name, what in ((shorter if target in FULL else MAIN) | APPENDIX).items()
    ]
    return [
        Cell(
            cell_name(name, target, kind),
            "distances",
            encoding,
            {**changes, "task": {"target": target, "acyclic": acyclic}},
            share=share,
        )
        for name, encoding, changes, target, share in full + short
        for kind, acyclic in KINDS.items()
    ]


def walk_cells() -> list[Cell]:
    """Steps × reversal × PageRank on general digraphs, for each target."""
    return [
        Cell(
            f"walks-{target}-{variant}-{steps}",
            "distances",
            "walks",
            {"task": {"target": target}, "encoding": {**options, "steps": steps}},
            share=HALF_MILLION,
        )
        for target in TARGETS
        for variant, options in WALKS.items()
        for steps in STEPS
    ]


def quick_cells() -> list[Cell]:
    """Reachability in DAGs, in minutes on two cores."""
    return [Cell(f"quick-{encoding}", "distances", encoding, {}, "quick") for encoding in ("magnetic", "laplacian")]


def figure_playground(request: Request) -> None:
    """F1 or RMSE of every target, kind of graphs and model."""
    columns = {f"{target} {kind} {METRICS[target]}": (target, kind) for kind in KINDS for target in TARGETS}
    models = (*MAIN, *(f"{name}-shorter" for name in COMPARED), *APPENDIX)
    rows = {
        model: {column: (cell_name(model, *place), METRICS[place[0]]) for column, place in columns.items()}
        for model in models
    }

    by_column("figure-playground", playground_cells(), rows, request)


def figure_walks(request: Request) -> None:
    """F1 or RMSE of random walks by the number of steps, without and with reversal and PageRank."""
    rows = {
        f"{variant} {steps}": {
            f"{target} {metric}": (f"walks-{target}-{variant}-{steps}", metric) for target, metric in METRICS.items()
        }
        for variant in WALKS
        for steps in STEPS
    }

    def by_steps(columns: Mapping[str, Mapping[str, float | None]]) -> list[Panel]:
        ticks = [str(steps) for steps in STEPS]
        panels = []
        for column, found in columns.items():
            title, axis = headings(column)
            lines = {variant: [found[f"{variant} {steps}"] for steps in STEPS] for variant in WALKS}
            panels.append(Panel(lines, ticks, "steps of the walk", axis, title))
        return panels

    by_column("figure-walks", walk_cells(), rows, request, by_steps)


def figure_quick(request: Request) -> None:
    """Reachability in DAGs: the magnetic against the combinatorial Laplacian."""
    cells, metrics = quick_cells(), ("f1", "precision", "recall", "accuracy")
    rows = {cell.encoding: {metric: (cell.name, metric) for metric in metrics} for cell in cells}
    by_column("figure-quick", cells, rows, request)
