"""The paper's playground: four targets on two kinds of graphs for every encoding, and the study of random walks."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from magnetite.io.record import Record
from magnetite.reproduce.cells import (
    HALF_MILLION,
    TWO_MILLION,
    WHOLE,
    Cell,
    Request,
    caption,
    figure,
    provenance,
    train_missing,
    write,
)
from magnetite.reproduce.charts import Panels, bar_chart, line_chart, print_table

KINDS = {"dag": True, "general": False}
TARGETS = ("adjacency", "reachability", "directed-distance", "undirected-distance")
MEASURES = {"adjacency": "f1", "reachability": "f1", "directed-distance": "rmse", "undirected-distance": "rmse"}
FULL = ("reachability", "directed-distance")
"""Targets that the four main encodings learn from all of the paper's 12 million graphs."""

COMPARED = ("magnetic", "walks")
"""Main encodings that learn those from fewer graphs, too, as the appendix does: it is compared with them."""

MAIN: dict[str, tuple[str, Mapping[str, Any]]] = {
    "magnetic": ("magnetic", {}),
    "walks": ("walks", {}),
    "laplacian": ("laplacian", {}),
    "svd": ("svd", {}),
}
APPENDIX: dict[str, tuple[str, Mapping[str, Any]]] = {
    "relative-walks": ("relative-walks", {}),
    "magnetic-signnet": ("magnetic", {"encoding": {"sign": "mlp"}}),
    "gnn": ("none", {"model": {"name": "gnn"}}),
    "magnet": ("none", {"model": {"name": "magnet"}}),
}
WALKS: dict[str, Mapping[str, Any]] = {
    "forward": {"reverse": False, "restart": 0.0},
    "reverse": {"restart": 0.0},
    "pagerank": {},
}
"""Random walks as in earlier work, with reversal, and with reversal and PageRank."""

STEPS = (1, 2, 3, 4, 5)


def cell_name(model: str, target: str, kind: str) -> str:
    """The name of a cell of the figure.

    >>> cell_name("magnetic", "reachability", "dag")
    'playground-reachability-dag-magnetic'
    """
    return f"playground-{target}-{kind}-{model}"


def shorter(model: str) -> str:
    """The name of a main encoding that learns from fewer graphs.

    >>> shorter("walks")
    'walks-shorter'
    """
    return f"{model}-shorter"


def longer(name: str) -> str:
    """The name of a cell, or of its model, that learns from more graphs than in its figure (`explanations`).

    >>> longer("gnn")
    'gnn-longer'
    """
    return f"{name}-longer"


def playground_cells() -> list[Cell]:
    """All cells, the longest trainings first."""
    full = [(name, *what, target, WHOLE) for target in FULL for name, what in MAIN.items()]
    short = [(name, *what, target, TWO_MILLION) for target in TARGETS for name, what in _short(target).items()]
    return [
        Cell(
            cell_name(name, target, kind),
            "playground",
            encoding,
            {**changes, "task": {"target": target, "acyclic": acyclic}},
            share=share,
        )
        for name, encoding, changes, target, share in full + short
        for kind, acyclic in KINDS.items()
    ]


def _short(target: str) -> dict[str, tuple[str, Mapping[str, Any]]]:
    """What learns a target from two million graphs."""
    main = {shorter(name): MAIN[name] for name in COMPARED} if target in FULL else MAIN
    return main | APPENDIX


def walk_cells() -> list[Cell]:
    """Steps × reversal × PageRank on general digraphs, each target."""
    return [
        Cell(
            f"walks-{target}-{variant}-{steps}",
            "playground",
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
    return [Cell(f"quick-{encoding}", "playground", encoding, {}, "quick") for encoding in ("magnetic", "laplacian")]


def reproduce_playground(request: Request) -> None:
    """F1 or RMSE of every target, kind of graphs and model."""
    columns = {f"{target} {kind} {MEASURES[target]}": (target, kind) for kind in KINDS for target in TARGETS}
    record = request.record("figure-playground")
    results = train_missing(playground_cells(), request)
    rows = {
        model: [figure(results, cell_name(model, target, kind), MEASURES[target]) for target, kind in columns.values()]
        for model in (*MAIN, *map(shorter, COMPARED), *APPENDIX)
    }

    def draw(path: Path, panels: Panels, title: str) -> None:
        def label(model: str, target: str, kind: str) -> str:
            """How many graphs were seen differs."""
            content = results.get(cell_name(model, target, kind))
            return f"{model}, {content['result']['graphs_seen'] / 1e6:.0f} M" if content else model

        bars = {
            column: {label(model, *place): value for model, value in panels[column].items()}
            for column, place in columns.items()
        }
        bar_chart(path, bars, title)

    finish(record, rows, list(columns), results, request, draw)


def reproduce_walks(request: Request) -> None:
    """F1 or RMSE of random walks over steps, without and with reversal and PageRank."""
    columns = {f"{target} {MEASURES[target]}": target for target in TARGETS}
    record = request.record("figure-walks")
    results = train_missing(walk_cells(), request)
    rows = {
        f"{variant} {steps}": [
            figure(results, f"walks-{target}-{variant}-{steps}", MEASURES[target]) for target in columns.values()
        ]
        for variant in WALKS
        for steps in STEPS
    }
    finish(record, rows, list(columns), results, request, _over_steps)


def _over_steps(path: Path, panels: Panels, title: str) -> None:
    """One line a variant of the walks."""
    lines = {
        column: {variant: [bars[f"{variant} {steps}"] for steps in STEPS] for variant in WALKS}
        for column, bars in panels.items()
    }
    line_chart(path, lines, [str(steps) for steps in STEPS], "steps", title)


def reproduce_quick(request: Request) -> None:
    """Reachability in DAGs: the magnetic against the combinatorial Laplacian."""
    record = request.record("figure-quick")
    cells = quick_cells()
    results = train_missing(cells, request)
    measures = ("f1", "precision", "recall", "accuracy")
    rows = {cell.encoding: [figure(results, cell.name, measure) for measure in measures] for cell in cells}
    finish(record, rows, list(measures), results, request)


def finish(
    record: Record,
    rows: Mapping[str, Sequence[float | None]],
    columns: Sequence[str],
    results: Mapping[str, Any],
    request: Request,
    draw: Callable[[Path, Panels, str], None] = bar_chart,
) -> None:
    """Print tables of four columns, which fit a terminal, draw one panel a column, write the JSON."""
    for first in range(0, len(columns), len(TARGETS)):
        part = slice(first, first + len(TARGETS))
        values = {row: values[part] for row, values in rows.items()}
        headings = [column.replace("-", " ") for column in columns[part]]  # may be broken into lines there
        print_table(f"{record.name}, test: {caption(results)}", "", headings, values)
    panels = {column: {row: values[place] for row, values in rows.items()} for place, column in enumerate(columns)}
    draw(request.out / record.name, panels, caption(results))
    write(record, request, {"columns": list(columns), "rows": rows, "cells": provenance(results)})
