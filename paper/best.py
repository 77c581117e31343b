"""Beyond the paper: models that were tuned for one task, and ablations of each of their changes."""

from typing import Any

from magnetite.training.config import merge
from paper.cells import FOUR_MILLION, Cell, Changes, Request
from paper.charts import by_column, by_length

SHORTER = FOUR_MILLION
"""Fraction of the training in which changes are compared."""

OPTIMISER = {"lr": 2e-3, "betas": [0.9, 0.98], "clip": 0.075, "batch": 512, "epochs": 3.0, "warmup": 0.1}
SORTING: Changes = {"model": {"name": "relations", "state": 32, "wires": 11}, "optim": OPTIMISER}
"""Relations of wires, with their own optimiser settings."""

SORTING_WITHOUT: dict[str, tuple[str, Changes]] = {
    "relations": ("magnetic", {"model": {"name": "transformer"}}),
    "optimiser": ("none", {"optim": {"lr": 4e-4, "betas": [0.7, 0.9], "batch": 1536}}),
    "state": ("none", {"model": {"state": 16}}),
}
"""Encoding and options without one of the changes."""

CANDIDATES: dict[str, Changes] = {
    "fast": {},
    "slow": {"optim": {"lr": 1e-3}},
    "narrow": {"model": {"state": 16}, "optim": {"lr": 1e-3}},
    "small-batch": {"optim": {"batch": 256, "lr": 1e-3}},
    "reversed": {"task": {"train_reversed": True}, "optim": {"lr": 1e-3, "epochs": 2.0}},  # of 1.5 times the graphs
    "fresh": {"data": {"mode": "fresh"}, "optim": {"lr": 1e-3}},
}
"""The candidates from which `SORTING` was chosen; `fast` won."""

CHOOSING: Changes = {"task": {"train_longest": 10, "valid_longest": 12}}
"""Candidates are trained on lengths 7 to 10 and judged on 11 and 12; no test length is looked at."""

QUICK: Changes = {
    "task": {"train": 4000, "valid": 500, "test": 500, "train_longest": 8, "valid_longest": 9},
    "optim": {**OPTIMISER, "batch": 64, "epochs": 4.0, "warmup": 0.5},
    "data": {"tokens": 8192},
    "run": {"precision": "32-true"},
}
"""Minutes on two cores."""

DISTANCE: Changes = {
    "task": {"target": "directed-distance", "acyclic": True},
    "encoding": {"pair-walks": {"steps": 16}},
    "optim": {"epochs": 10.0, "warmup": 1.0},
}
"""Distances in DAGs, with walks between the two nodes in the head."""

DISTANCE_WITHOUT: dict[str, Changes] = {
    "walks": {"encoding": {"pair-walks": "none"}},
    "root": {"encoding": {"pair-walks": {"root": False}}},
    "layer": {"task": {"pair_layer": False}},
}


def sorting_cells() -> list[Cell]:
    """The model, trained in full; then trained on fewer graphs, with all of its changes and without each of them.

    >>> [cell.name for cell in sorting_cells()][:3]
    ['best-sorting', 'best-sorting-shorter', 'best-sorting-without-relations']
    """
    variants = {"shorter": ("none", {})} | {f"without-{name}": what for name, what in SORTING_WITHOUT.items()}
    return [Cell("best-sorting", "sorting", "none", SORTING)] + [
        Cell(f"best-sorting-{name}", "sorting", encoding, merge(SORTING, changes), share=SHORTER)
        for name, (encoding, changes) in variants.items()
    ]


def candidate_cells() -> list[Cell]:
    """The candidates from which the model was chosen."""
    return [
        Cell(f"tried-sorting-{name}", "sorting", "none", merge(merge(SORTING, CHOOSING), changes), share=SHORTER)
        for name, changes in CANDIDATES.items()
    ]


def quick_cells() -> list[Cell]:
    """Relations of wires, and the paper's attention over nodes with its own optimiser; minutes on two cores."""
    relations: Any = {"model": {"name": "relations", "width": 64, "state": 16, "wires": 8}}
    attention: Any = {
        "encoding": {"magnetic": {"k": 8}},
        "model": {"width": 64, "layers": 2},
        "optim": {"lr": 5e-4, "betas": [0.6, 0.9], "clip": 0.005},
    }
    return [
        Cell("quick-sorting-relations", "sorting", "none", merge(QUICK, relations)),
        Cell("quick-sorting-attention", "sorting", "magnetic", merge(QUICK, attention)),
    ]


def distance_cells() -> list[Cell]:
    """Directed distances in DAGs."""
    variants = {"shorter": {}} | {f"without-{name}": changes for name, changes in DISTANCE_WITHOUT.items()}
    return [Cell("best-playground", "distances", "walks", DISTANCE)] + [
        Cell(f"best-playground-{name}", "distances", "walks", merge(DISTANCE, changes), share=SHORTER)
        for name, changes in variants.items()
    ]


def figure_sorting(request: Request) -> None:
    """Accuracy, F1 and AUC by length of relations of wires."""
    by_length("figure-best-sorting", sorting_cells(), request)


def figure_quick(request: Request) -> None:
    """Accuracy, F1 and AUC by length after minutes on two cores."""
    by_length("figure-quick-sorting", quick_cells(), request)


def figure_candidates(request: Request) -> None:
    """Accuracy and AUC of the candidates on the two lengths of validation."""
    cells, metrics = candidate_cells(), [f"{name}/{length}" for name in ("accuracy", "auc") for length in (11, 12)]
    rows = {cell.name: {metric.replace("/", " "): (cell.name, metric) for metric in metrics} for cell in cells}
    by_column("figure-tried-sorting", cells, rows, request)


def figure_distance(request: Request) -> None:
    """Errors of directed distances in DAGs."""
    cells = distance_cells()
    rows = {cell.name: {metric: (cell.name, metric) for metric in ("rmse", "mae")} for cell in cells}
    by_column("figure-best-distance", cells, rows, request)
