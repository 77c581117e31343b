"""General recurrent networks: sorting networks of any length, and distances in DAGs, each with three seeds.

    python -m paper figure-recurrent                  # trains what is missing, each cell half an hour on one core
    python -m paper figure-recurrent --no-train       # the table of what has been trained

Both are `TopologicalGRU`, the recurrence in topological order, without code for a task: for sorting networks it reads
which output of a comparator an edge carries, and for distances it is asked about one marked source at a time.
"""

from paper.cells import Cell, Changes, Request
from paper.fair import Group, compare

SHORTER = 0.1
"""Fraction of the training in which changes are compared."""

WITHOUT: dict[str, Changes] = {
    "recurrence": {"model": {"network": "gnn", "steps": 3}},
    "ports": {"task": {"ports": False}},
    "shifts": {"task": {"places": 0}},
    "maximum": {"model": {"readout": "mean"}},
}
"""The model for sorting networks without one of its changes; without recurrence, with three message passing steps."""

DISTANCE: Changes = {"task": {"target": "directed-distance", "acyclic": True, "protocol": "multi-q"}}

LENGTHS = range(12, 21)


def groups() -> list[Group]:
    """Both models, and what each of their changes is worth."""
    by_length = {f"{length}": f"accuracy/{length}" for length in LENGTHS}
    errors = {name: name for name in ("rmse", "mae", "rmse_by_graph")}
    sorting = Cell("recurrent-sorting", "sorting", "none", {}, preset="best")
    shorter = [Cell("recurrent-sorting-shorter", "sorting", "none", {}, preset="best", share=SHORTER)] + [
        Cell(f"recurrent-sorting-without-{name}", "sorting", "none", changes, preset="best", share=SHORTER)
        for name, changes in WITHOUT.items()
    ]
    distance = Cell("recurrent-distance", "distances", "none", DISTANCE, preset="marked")
    unmarked = Cell(
        "recurrent-distance-without-marks",
        "distances",
        "none",
        {**DISTANCE, "model": {"marked": False}},
        preset="marked",
    )
    return [
        Group("sorting networks, accuracy by number of wires; trained on 7 to 10", [sorting], False, by_length),
        Group("a tenth of the training, without each change", shorter, False, by_length, seeds=(0,)),
        Group("distances in DAGs of the multi-q paper", [distance], False, errors),
        Group("without marked sources", [unmarked], False, errors, seeds=(0,)),
    ]


def figure(request: Request) -> None:
    """Mean and standard error over the seeds of every cell."""
    compare("figure-recurrent", groups(), request)
