"""Tasks: one file per task, with its data, splits, embedding, head, loss, metric, options and presets.

>>> from magnetite.tasks import Sorting
>>> next(Sorting().stream(seed=0, batch=64)).graphs
Digraphs(64 graphs, ...)
"""

from magnetite.tasks.base import Examples, PairTargets, Split, Task
from magnetite.tasks.datasets import DataSet
from magnetite.tasks.distances import Distances, pair_targets
from magnetite.tasks.links import split_links
from magnetite.tasks.naming import Naming
from magnetite.tasks.sorting import Sorting
from magnetite.tasks.supervised import Supervised

TASKS: dict[str, type[Task]] = {
    "distances": Distances,
    "naming": Naming,
    "sorting": Sorting,
    "supervised": Supervised,
}
"""The tasks by name; add your own to train it from the command line and from Python."""

__all__ = [
    "TASKS",
    "DataSet",
    "Distances",
    "Examples",
    "Naming",
    "PairTargets",
    "Sorting",
    "Split",
    "Supervised",
    "Task",
    "pair_targets",
    "split_links",
]
