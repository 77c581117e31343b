"""Figures of sorting networks: encodings by length, the potential, message passing."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from magnetite.training.config import configuration
from paper.cells import FOUR_MILLION, TWO_MILLION, Cell, Request, train_missing
from paper.charts import (
    LENGTHS,
    Lines,
    Panel,
    Training,
    by_length,
    caption,
    lengths,
    line_chart,
    measured,
    print_table,
    write,
)
from paper.style import SECOND

ENCODINGS = ("magnetic", "walks", "laplacian", "sinusoidal")
POTENTIALS = (0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
STEPS = (1, 2, 3, 4, 5)


def encoding_cells() -> list[Cell]:
    """Each encoding, trained in full; magnetic and walks also with a second seed."""
    first = [Cell(f"sorting-{encoding}", "sorting", encoding, {}) for encoding in ENCODINGS]
    second = [
        Cell(f"sorting-{encoding}-second", "sorting", encoding, {"run": {"seed": 1}}) for encoding in ENCODINGS[:2]
    ]
    return first + second


def potential_cells() -> list[Cell]:
    """Magnetic encodings by relative potential; the warm-up is as long as in a full training run.

    With a third of it, the loss stayed at that of guessing until the learning rate had decayed (see `hypotheses`).
    """
    warmup = configuration("sorting", "magnetic", "paper").optim.warmup / FOUR_MILLION
    return [
        Cell(
            f"sorting-magnetic-q{q:g}",
            "sorting",
            "magnetic",
            {"encoding": {"q": f"Relative({q:g})"}, "optim": {"warmup": warmup}},
            share=FOUR_MILLION,
        )
        for q in POTENTIALS
    ]


def message_cells() -> list[Cell]:
    """GNNs by the number of steps, directed and undirected; GNNs of three steps with encodings."""

    def cell(name: str, encoding: str, **options: Any) -> Cell:
        return Cell(
            f"sorting-gnn-{name}", "sorting", encoding, {"model": {"name": "gnn", **options}}, share=TWO_MILLION
        )

    kinds = {"directed": True, "undirected": False}
    alone = [
        cell(f"{kind}-{steps}", "none", steps=steps, directed=directed)
        for kind, directed in kinds.items()
        for steps in STEPS
    ]
    return alone + [cell(encoding, encoding, steps=3) for encoding in ("magnetic", "walks")]


def figure_sorting(request: Request) -> None:
    """Accuracy, F1 and AUC by length for each encoding."""
    by_length("figure-sorting", encoding_cells(), request)


def figure_potentials(request: Request) -> None:
    """Accuracy by relative potential and length."""
    record = request.record("figure-q-sweep")
    results = train_missing(potential_cells(), request)
    lines = {
        f"length {length}": measured(results, [(f"sorting-magnetic-q{q:g}", f"accuracy/{length}") for q in POTENTIALS])
        for length in LENGTHS
    }
    ticks = [f"{q:g}" for q in POTENTIALS]
    print_table(f"Accuracy by length and q': {caption(results)}", ticks, lines)
    panel = Panel(lines, ticks, "relative potential q'", "accuracy")
    training = Training({(cell, ""): result.graphs_seen for cell, result in results.items()})
    picture = partial(line_chart, request.out / record.name, [panel], training)
    write(record, request, {"potentials": list(POTENTIALS), "accuracy": lines}, results, picture)


def figure_gnn(request: Request) -> None:
    """Accuracy, F1 and AUC by length of GNNs: number of steps, direction, encodings."""
    by_length("figure-gnn", message_cells(), request, by_steps)


def by_steps(metrics: Mapping[str, Lines]) -> list[Panel]:
    """Accuracy by the number of steps at the shortest and the longest length, and by length with encodings."""
    accuracy = metrics["accuracy"]
    panels = []
    for place in (0, -1):
        lines = {
            f"gnn-{kind}{end}": [
                accuracy[name][place] if (name := f"gnn-{kind}-{steps}{end}") in accuracy else None for steps in STEPS
            ]
            for kind in ("directed", "undirected")
            for end in ("", SECOND)
        }
        ticks = [str(steps) for steps in STEPS]
        panels.append(Panel(lines, ticks, "message-passing steps", "accuracy", f"length {LENGTHS[place]}"))
    encoded = ("gnn-directed-3", "gnn-undirected-3", "gnn-magnetic", "gnn-walks")
    lines = {name: values for name, values in accuracy.items() if name.removesuffix(SECOND) in encoded}
    return [*panels, *(replace(panel, title="3 steps") for panel in lengths({"accuracy": lines}))]
