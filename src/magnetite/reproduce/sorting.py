"""The paper's figures of sorting networks: encodings by length, the potential, message passing."""

from collections.abc import Sequence

from magnetite.reproduce.cells import (
    FOUR_MILLION,
    TWO_MILLION,
    Cell,
    Request,
    caption,
    figure,
    provenance,
    train_missing,
    write,
)
from magnetite.reproduce.charts import line_chart, print_table
from magnetite.training.presets import configuration

LENGTHS = range(12, 17)
ENCODINGS = ("magnetic", "walks", "laplacian", "sinusoidal")
POTENTIALS = (0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
STEPS = (1, 2, 3, 4, 5)


def encoding_cells() -> list[Cell]:
    """Each encoding at full length; magnetic and walks with a second seed."""
    first = [Cell(f"sorting-{encoding}", "sorting", encoding, {}) for encoding in ENCODINGS]
    second = [
        Cell(f"sorting-{encoding}-second", "sorting", encoding, {"run": {"seed": 1}}) for encoding in ENCODINGS[:2]
    ]
    return first + second


def potential_cells() -> list[Cell]:
    """Magnetic encodings over the relative potential; the warm-up stays as long as in the whole training.

    With a third of it the loss stayed at that of guessing until the rate had fallen again (`hypotheses`).
    """
    warmup = configuration("sorting", "magnetic", "paper").optim.warmup / FOUR_MILLION
    return [
        Cell(
            f"sorting-magnetic-q{q:g}",
            "sorting",
            "magnetic",
            {"encoding": {"q": q}, "optim": {"warmup": warmup}},
            share=FOUR_MILLION,
        )
        for q in POTENTIALS
    ]


def message_cells() -> list[Cell]:
    """GNNs: over the number of steps, both ways and undirected; three steps with encodings."""
    gnn = {"name": "gnn"}
    cells = [
        Cell(
            f"sorting-gnn-{'directed' if directed else 'undirected'}-{steps}",
            "sorting",
            "none",
            {"model": {**gnn, "steps": steps, "directed": directed}},
            share=TWO_MILLION,
        )
        for directed in (True, False)
        for steps in STEPS
    ]
    paired = [
        Cell(f"sorting-gnn-{encoding}", "sorting", encoding, {"model": {**gnn, "steps": 3}}, share=TWO_MILLION)
        for encoding in ("magnetic", "walks")
    ]
    return cells + paired


def reproduce_encodings(request: Request) -> None:
    """Accuracy and F1 by length for each encoding."""
    by_length("figure-sorting", encoding_cells(), request)


def reproduce_potentials(request: Request) -> None:
    """Accuracy over the relative potential, by length."""
    record = request.record("figure-q-sweep")
    results = train_missing(potential_cells(), request)
    lines = {
        f"length {length}": [figure(results, f"sorting-magnetic-q{q:g}", f"accuracy/{length}") for q in POTENTIALS]
        for length in LENGTHS
    }
    ticks = [f"{q:g}" for q in POTENTIALS]
    print_table(f"Accuracy by length over q': {caption(results)}", "", ticks, lines)
    line_chart(request.out / record.name, {"accuracy": lines}, ticks, "relative potential q'", caption(results))
    write(record, request, {"potentials": list(POTENTIALS), "accuracy": lines, "cells": provenance(results)})


def reproduce_messages(request: Request) -> None:
    """Accuracy by length of GNNs: steps, direction, encodings."""
    by_length("figure-gnn", message_cells(), request)


def by_length(name: str, cells: Sequence[Cell], request: Request) -> None:
    """Train what is missing; accuracy, F1 and AUC by length."""
    record = request.record(name)
    results = train_missing(cells, request)
    panels: dict[str, dict[str, list[float | None]]] = {}
    for measure in ("accuracy", "f1", "auc"):
        rows = {
            cell.name.removeprefix("sorting-"): [figure(results, cell.name, f"{measure}/{n}") for n in LENGTHS]
            for cell in cells
        }
        panels[measure] = rows
        print_table(f"{name}, {measure} by length: {caption(results)}", "", [str(n) for n in LENGTHS], rows)
    line_chart(request.out / name, panels, [str(n) for n in LENGTHS], "length", caption(results))
    write(record, request, {"lengths": list(LENGTHS), **panels, "cells": provenance(results)})
