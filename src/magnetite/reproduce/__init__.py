"""The paper's figures and tables from one command each: a printed table, a figure, and JSON that says how."""

from collections.abc import Callable
from pathlib import Path

from magnetite.reproduce import examples, topological

FIGURES: dict[str, Callable[[Path, int], None]] = {
    "figure-examples": examples.reproduce,
    "figure-topological-sorts": topological.reproduce,
}
"""What `magnetite reproduce` knows: each writes to a folder with a seed."""
