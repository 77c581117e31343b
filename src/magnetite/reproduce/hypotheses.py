"""Why some of the paper's claims do not hold here: what was trained to test it, beside what it is compared with."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console

from magnetite.io.record import read_record
from magnetite.reproduce.cells import Request, figures_of, longest_trained, provenance, train_missing
from magnetite.reproduce.explanations import FIGURES, hypotheses


def reproduce(request: Request) -> None:
    """Train what is missing; the figures of each hypothesis beside those that they are compared with."""
    record, found = request.record("hypotheses"), hypotheses()
    results = train_missing([cell for one in found for cell in one.cells], request)
    console = Console(soft_wrap=True, highlight=False)
    rows, known = [], {}
    for one in found:
        names = [*one.beside, *(cell.name for cell in one.cells)]
        contents = {name: results.get(name) or longest_trained(request.cells, name) for name in names}
        known |= {name: content for name, content in contents.items() if content is not None}
        lines = {name: _line(content, one.measures) for name, content in contents.items()}
        lines |= _distances(request.out, one.distances)
        console.print(f"[bold]Claim {one.claim}: {one.text}[/bold]")
        for name, line in lines.items():
            console.print(f"  {name}: {_told(line) or f'not run: magnetite reproduce {_figure_of(name)}'}")
        rows.append({"claim": one.claim, "hypothesis": one.text, "measured": lines})
    result = {"budget": request.budget, "hypotheses": rows, "cells": provenance(known)}
    console.print(f"figures: {record.write(request.out, result)}")


def _line(content: Mapping[str, Any] | None, measures: tuple[str, ...]) -> dict[str, Any]:
    """Graphs seen and figures of a cell; nothing of one that was not trained."""
    if content is None:
        return {}
    figures = figures_of(content)
    measured = {name: round(figures[name], 4) for name in measures if name in figures}
    return {"graphs seen": content["result"]["graphs_seen"], **measured}


def _told(line: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value:,}" for name, value in line.items())


def _figure_of(name: str) -> str:
    """What trains a cell."""
    figures = (figure for figure, cells in FIGURES.items() if any(cell.name == name for cell in cells()))
    return next(figures, "hypotheses")


def _distances(folder: Path, figures: tuple[str, ...]) -> dict[str, dict[str, Any]]:
    """What is known of directed distances in graphs of both kinds."""
    path = folder / "distributions.json"
    if not (figures and path.exists()):
        return {}
    found = read_record(path)["result"]["directed_distances"]
    return {
        f"distances in {kind} graphs": {
            name.replace("_", " "): round(known[name], 4) for name in figures if name in known
        }
        for kind, known in found.items()
    }
