"""General recurrent networks: sorting networks of any length, real ones as well, and distances in DAGs.

    python -m paper table-recurrent                  # trains what is missing
    python -m paper table-recurrent --no-train       # the tables of what has been trained
    paper/series.sh runs/recurrent 14 table-recurrent   # many processes share one GPU, minutes in all

All are `TopologicalGRU`, the recurrence in topological order, without code for a task: for sorting networks it reads
which output of a comparator an edge carries, and for distances it is asked about one marked source at a time.
"""

from magnetite.training.config import merge
from paper.cells import Cell, Changes, Request
from paper.fair import Group, compare
from paper.store import Metric

SHORTER = 0.1
"""Fraction of the training in which changes are compared."""

WITHOUT: dict[str, Changes] = {
    "recurrence": {"model": {"network": "gnn", "steps": 3}},
    "second-pass": {"model": {"steps": 1}},
    "ports": {"task": {"ports": False}},
    "shifts": {"task": {"places": 0}},
    "maximum": {"model": {"readout": "mean"}},
}
"""The model for sorting networks without one of its changes; without recurrence, with three message passing steps."""

NETWORKS: dict[str, Changes] = {
    "recurrence": {},
    "single-pass": {"model": {"steps": 1}},
    "from-3-wires": {"task": {"shortest": 3}},
    "messages": {"model": {"network": "gnn", "steps": 3}},
    "more-messages": {"model": {"network": "gnn", "steps": 6}},
    "wide-messages": {"model": {"network": "gnn", "steps": 6, "width": 128}},
}
"""Networks to choose from: the recurrence, also with one pass or trained from 3 wires on, and message passing."""

SHORT: Changes = {"task": {"train_longest": 8}}
"""Training on 7 and 8 wires, so that 9 to 11, and not the lengths of the test, tell which network generalises."""

COMPACT: Changes = {"task": {"shortest": 3, "compact": 0.8, "test": 200, "longest": 16}}
"""The model for sorting networks, trained on networks without superfluous comparators, and evaluated on real ones.

Longer ones than these take long to generate.
"""

KNOWN: dict[str, tuple[str, Changes]] = {
    "inputs": ("inputs", {}),
    "whole": ("best", COMPACT),
}
"""Preset and changes of models for real networks: asked about single inputs, and about whole networks."""

DISTANCE: Changes = {"task": {"target": "directed-distance", "acyclic": True, "protocol": "multi-q"}}

LENGTHS = range(12, 21)

BY_LENGTH: dict[str, Metric] = {f"{length}": f"accuracy/{length}" for length in LENGTHS}
FROM_NINE: dict[str, Metric] = {f"{length}": f"accuracy/{length}" for length in range(9, LENGTHS.stop)}
ERRORS: dict[str, Metric] = {name: name for name in ("rmse", "mae", "rmse_by_graph")}
REAL: dict[str, Metric] = {
    "balanced accuracy": "known:balanced_accuracy",
    **{kind: f"known:accuracy/{kind}" for kind in ("smallest", "removed", "rewired")},
}


def groups() -> list[Group]:
    """The models, and what each of their changes is worth; the longest trainings first."""
    sorting = Cell("recurrent-sorting", "sorting", "none", {}, preset="best")
    known = [
        Cell(f"recurrent-known-{name}", "sorting", "none", changes, preset=preset)
        for name, (preset, changes) in KNOWN.items()
    ]
    choice = [
        Cell(f"choice-{name}", "sorting", "none", merge(SHORT, changes), preset="best", share=SHORTER)
        for name, changes in NETWORKS.items()
    ]
    shorter = [Cell("recurrent-sorting-shorter", "sorting", "none", {}, preset="best", share=SHORTER)] + [
        Cell(f"recurrent-sorting-without-{name}", "sorting", "none", changes, preset="best", share=SHORTER)
        for name, changes in WITHOUT.items()
    ]
    distance = Cell("marked-distance", "distances", "none", DISTANCE, preset="marked")
    without = {"marks": {"marked": False}, "recurrence": {"network": "gnn", "steps": 3}}
    changed = [
        Cell(f"marked-distance-without-{name}", "distances", "none", {**DISTANCE, "model": model}, preset="marked")
        for name, model in without.items()
    ]
    return [
        Group("sorting networks, accuracy by number of wires; trained on 7 to 10", [sorting], False, BY_LENGTH),
        Group("smallest sorting networks known, and copies with one comparator changed", known, False, REAL),
        Group("networks to choose from, a tenth of the training on 7 and 8 wires", choice, False, FROM_NINE),
        Group("a tenth of the training, without each change", shorter, False, BY_LENGTH),
        Group("distances in DAGs of the multi-q paper", [distance], False, ERRORS),
        Group("distances without each change", changed, False, ERRORS, seeds=(0,)),
    ]


def figure(request: Request) -> None:
    """Mean and standard error over the seeds of every cell."""
    compare("table-recurrent", groups(), request)
