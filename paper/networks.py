"""What a general digraph model needs to learn compact sorting networks: hypotheses, each one training.

All cells see the same networks: half random, a quarter compact, a quarter that begin like a merge sort, paired by
size and depth. Every model is general: what a cell changes is an option of the library.
"""

from typing import Any

from magnetite.training.config import merge
from paper.cells import FOUR_MILLION, Cell, Request
from paper.charts import by_column

DATA: Any = {"task": {"compact": 0.25, "merging": 0.25}}
"""Half of the networks are compact."""

MESSAGES: Any = {"task": {"ports": True}, "model": {"local": 2, "local_added": True}}

HYPOTHESES: dict[str, Any] = {
    # The flat general model alone.
    "attention": {},
    # Depth: few layers, applied many times, about as many as a network has parallel steps.
    "repeated": {"model": {"layers": 2, "repeats": 8}},
    # Causality: a comparator depends on its ancestors, and what it does matters for its descendants.
    "directions": {"model": {"reach": "directions"}},
    # Ports: edges say which output they carry, and messages along them are added to the states.
    "messages": MESSAGES,
    # Execution: messages along edges with ports, many times with the same parameters, and attention along the edges.
    "executing": merge(MESSAGES, {"model": {"layers": 2, "repeats": 8, "local": 1, "reach": "directions"}}),
}
"""What may be missing, and the options that add it."""

QUICK: Any = {
    "task": {
        "train": 10_000, "valid": 1_000, "test": 1_000,
        "shortest": 4, "train_longest": 5, "valid_longest": 6, "longest": 7,
        "compact": 0.5, "merging": 0.5,
    },
    "optim": {"batch": 64, "epochs": 3.0},
}  # fmt: skip
"""Minutes on one core: lengths 4 and 5, validated at 6 and tested at 7."""

COLUMNS = (
    "accuracy", "accuracy/random", "accuracy/compact", "accuracy/merging", "known:balanced_accuracy", "known:auc",
)  # fmt: skip


def cells() -> list[Cell]:
    """The hypotheses at equal numbers of graphs.

    >>> [cell.name for cell in cells()][:2]
    ['networks-attention', 'networks-repeated']
    """
    return [
        Cell(f"networks-{name}", "sorting", "magnetic", merge(DATA, changes), preset="flat", share=FOUR_MILLION)
        for name, changes in HYPOTHESES.items()
    ]


def quick_cells() -> list[Cell]:
    """The same on short networks, with small models and fewer repeats."""
    fewer: Any = {"model": {"repeats": 3}}
    return [
        Cell(
            f"quick-networks-{name}",
            "sorting",
            "magnetic",
            merge(merge(QUICK, changes), fewer if "repeats" in changes.get("model", {}) else {}),
            preset="quick",
        )
        for name, changes in HYPOTHESES.items()
    ]


def figure(request: Request) -> None:
    """Accuracy on each kind of networks, and balanced accuracy on the smallest known."""
    _table("figure-networks", cells(), request)


def figure_quick(request: Request) -> None:
    """The same after minutes on one core."""
    _table("figure-quick-networks", quick_cells(), request)


def _table(name: str, found: list[Cell], request: Request) -> None:
    rows = {cell.name: {metric: (cell.name, metric) for metric in COLUMNS} for cell in found}
    by_column(name, found, rows, request)
