"""Why some of the paper's claims do not hold here: hypotheses, and the training runs that test them."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from rich.console import Console

from magnetite.io.record import read_record
from magnetite.training.config import configuration, merge
from paper.cells import SIX_MILLION, TWO_MILLION, WHOLE, Cell, Changes, Request, train_missing
from paper.playground import COMPARED, KINDS, cell_name, playground_cells, walk_cells
from paper.sorting import STEPS, encoding_cells, message_cells, potential_cells
from paper.store import Result

FIGURES = {
    "figure-playground": playground_cells,
    "figure-walks": walk_cells,
    "figure-sorting": encoding_cells,
    "figure-gnn": message_cells,
    "figure-q-sweep": potential_cells,
}
BY_LENGTH = ("accuracy/12", "accuracy/16", "auc/12", "auc/16")
"""Metrics of sorting networks: accuracy depends on a threshold, AUC does not."""


@dataclass(frozen=True)
class Hypothesis:
    """A possible reason why a claim does not hold.

    Args:
        claim: Numbers of the claims.
        text: The hypothesis.
        cells: Training runs that test it.
        beside: Names of cells of figures that they are compared with.
        metrics: Metrics to show.
        distances: Statistics of directed distances to show, by their names in `distributions.json`.
    """

    claim: str
    text: str
    cells: tuple[Cell, ...]
    beside: tuple[str, ...]
    metrics: tuple[str, ...] = ("rmse",)
    distances: tuple[str, ...] = ()


@cache
def figure_cells() -> dict[str, tuple[str, Cell]]:
    """Figure and cell by the name of the cell."""
    return {cell.name: (figure, cell) for figure, cells in FIGURES.items() for cell in cells()}


def changed(name: str, suffix: str, changes: Changes) -> Cell:
    """A cell of a figure with other options."""
    cell = figure_cells()[name][1]
    return replace(cell, name=f"{name}-{suffix}", changes=merge(cell.changes, changes))


def second(name: str) -> Cell:
    """A cell of a figure with another seed."""
    return changed(name, "second", {"run": {"seed": 1}})


def longer(name: str, share: float = SIX_MILLION) -> Cell:
    """A cell of a figure, trained on more graphs."""
    return replace(figure_cells()[name][1], name=f"{name}-longer", share=share)


def small(encoding: str, times: int) -> Cell:
    """The quick preset (minutes on two cores), trained on a multiple of its 10,000 graphs."""
    task = {"target": "undirected-distance", "train": times * 10_000}
    return Cell(f"quick-undirected-{encoding}-{times}", "distances", encoding, {"task": task}, "quick")


def hypotheses() -> list[Hypothesis]:
    """All hypotheses."""
    return [*_distances(), *_walks(), *_sorting()]


def _distances() -> list[Hypothesis]:
    def directed(*models: str, kind: str = "general") -> tuple[str, ...]:
        return tuple(cell_name(model, "directed-distance", kind) for model in models)

    encodings = ("magnetic", "laplacian", "svd")
    undirected = tuple(cell_name(encoding, "undirected-distance", "dag") for encoding in encodings)
    shorter = directed(*(f"{model}-shorter" for model in COMPARED))
    ahead = directed("gnn", kind="dag") + directed("gnn", "magnet", "magnetic-signnet")
    return [
        Hypothesis(
            "1",
            "directed distances in DAGs: few pairs have a different undirected distance, so direction matters little",
            (),
            directed("magnetic", "laplacian", kind="dag"),
            distances=("share_that_differs", "rmse_of_its_best_function"),
        ),
        Hypothesis(
            "2",
            "directed distances: the order of walks and magnetic depends on the seed and the length of training",
            tuple(map(second, shorter)),
            directed(*COMPARED) + shorter,
        ),
        Hypothesis(
            "1, 3",
            "undirected distances: after more graphs, magnetic and combinatorial are equal, and SVD is further behind",
            tuple(map(longer, undirected)),
            undirected,
        ),
        Hypothesis(
            "1, 3",
            "undirected distances, small networks: the same",
            tuple(small(encoding, times) for times in (1, 3, 9) for encoding in encodings),
            (),
        ),
        Hypothesis(
            "1",
            "undirected distances: an eigenvector of the magnetic Laplacian has two numbers per node instead of one",
            (changed(undirected[1], "twice", {"encoding": {"laplacian": {"k": 32}}}),),
            undirected[:2],
        ),
        Hypothesis(
            "4",
            "directed distances: magnetic needs more than two million graphs, and gains more from them than the others",
            tuple(longer(name, WHOLE) for name in ahead),
            tuple(name for kind in KINDS for name in directed("magnetic-shorter", "magnetic", kind=kind)) + ahead,
        ),
        Hypothesis(
            "4",
            "directed distances: in DAGs nearly all are within reach of three GNN steps from both nodes",
            (),
            tuple(name for kind in KINDS for name in directed("magnetic", "gnn-longer", kind=kind)),
            distances=("share_up_to_3", "share_up_to_6"),
        ),
    ]


def _walks() -> list[Hypothesis]:
    steps = [
        f"walks-{target}-{kind}-{count}"
        for target in ("reachability", "directed-distance", "undirected-distance")
        for count in (1, 2, 3)
        for kind in ("reverse", "pagerank")
    ]
    more = {"reachability": "walks-shorter", "directed-distance": "walks-shorter", "undirected-distance": "walks"}
    return [
        Hypothesis(
            "5",
            "PageRank sees beyond the steps of the walk, so one or two steps gain more from it than three",
            (),
            tuple(steps),
            ("f1", "rmse"),
        ),
        Hypothesis(
            "5",
            "PageRank: three steps gain from it after more graphs",
            tuple(longer(f"walks-{target}-reverse-3", TWO_MILLION) for target in more),
            tuple(cell_name(model, target, "general") for target, model in more.items()),
            ("f1", "rmse"),
        ),
    ]


def _sorting() -> list[Hypothesis]:
    messages = ("sorting-gnn-directed-3", "sorting-gnn-walks")
    potentials = tuple(f"sorting-magnetic-q{q:g}" for q in (0.01, 0.05, 0.25, 0.5))
    warmup = {"optim": {"warmup": configuration("sorting", "magnetic", "paper").optim.warmup}}
    return [
        Hypothesis(
            "7",
            "GNNs: whether walks hurt depends on the seed, the length of training and the length of the networks",
            (*map(second, messages), *map(longer, messages)),
            messages,
            BY_LENGTH,
        ),
        Hypothesis(
            "7",
            "GNNs: the gain of four and five steps over three comes from the longest networks",
            (),
            tuple(f"sorting-gnn-directed-{steps}" for steps in STEPS[2:]),
            BY_LENGTH,
        ),
        Hypothesis(
            "7",
            "the potential: with a third of the warm-up, most q' learn little or nothing before the rate decays",
            tuple(changed(name, "hurried", warmup) for name in potentials),
            potentials,
            BY_LENGTH,
        ),
        Hypothesis(
            "7",
            "the potential: the order of 0.25 and 0.5 depends on the seed, as do results at length 16",
            tuple(map(second, potentials[2:])),
            (*potentials[2:], "sorting-magnetic", "sorting-magnetic-second"),
            BY_LENGTH,
        ),
    ]


def show(request: Request) -> None:
    """Train what is missing; show the metrics of each hypothesis beside those of the cells it is compared with."""
    record, found = request.record("hypotheses"), hypotheses()
    results = train_missing([cell for one in found for cell in one.cells], request)
    console = Console(soft_wrap=True, highlight=False)
    rows, used = [], {}
    for one in found:
        names = [*one.beside, *(cell.name for cell in one.cells)]
        of_names = {name: results.get(name) or request.store.longest(name) for name in names}
        used |= {name: result.provenance() for name, result in of_names.items() if result is not None}
        lines = {name: _line(result, one.metrics) for name, result in of_names.items()}
        lines |= _statistics(request.out / "distributions.json", one.distances)
        console.print(f"[bold]Claim {one.claim}: {one.text}[/bold]")
        for name, line in lines.items():
            text = ", ".join(f"{key} {value:,}" for key, value in line.items())
            figure = figure_cells()[name][0] if name in figure_cells() else "hypotheses"
            console.print(f"  {name}: {text or f'not run: python -m paper {figure}'}")
        rows.append({"claim": one.claim, "hypothesis": one.text, "measured": lines})
    path = request.write(record, {"budget": request.budget, "hypotheses": rows, "cells": used})
    console.print(f"written: {path}")


def _line(result: Result | None, metrics: tuple[str, ...]) -> dict[str, Any]:
    """Graphs seen and metrics of a cell; empty if it has not been trained."""
    if result is None:
        return {}
    found = {name: round(result.metrics[name], 4) for name in metrics if name in result.metrics}
    return {"graphs seen": result.graphs_seen, **found}


def _statistics(path: Path, names: tuple[str, ...]) -> dict[str, Mapping[str, Any]]:
    """Statistics of directed distances in both kinds of graphs, as `benchmarks/distributions.py` wrote them."""
    if not names or not path.exists():
        return {}
    found = read_record(path)["result"]["directed_distances"]
    return {
        f"distances in {kind} graphs": {
            name.replace("_", " "): round(known[name], 4) for name in names if name in known
        }
        for kind, known in found.items()
    }
