"""The paper's figures and tables from one command each: a printed table, a figure, and JSON that says how."""

from collections.abc import Callable
from pathlib import Path

from magnetite.reproduce import best, claims, examples, hypotheses, playground, sorting, topological
from magnetite.reproduce.cells import Request

FIGURES: dict[str, Callable[[Path, int], None]] = {
    "figure-examples": examples.reproduce,
    "figure-topological-sorts": topological.reproduce,
}
"""What takes seconds: each writes to a folder with a seed."""

TRAINED: dict[str, Callable[[Request], None]] = {
    "figure-quick": playground.reproduce_quick,
    "figure-playground": playground.reproduce_playground,
    "figure-walks": playground.reproduce_walks,
    "figure-sorting": sorting.reproduce_encodings,
    "figure-q-sweep": sorting.reproduce_potentials,
    "figure-gnn": sorting.reproduce_messages,
    "figure-quick-sorting": best.reproduce_quick,
    "figure-tried-sorting": best.reproduce_tried,
    "figure-best-sorting": best.reproduce_sorting,
    "figure-best-distance": best.reproduce_distance,
    "hypotheses": hypotheses.reproduce,
    "claims": claims.reproduce,
}
"""What is made of trainings: each trains what is missing, and takes what is there; claims only judge."""
