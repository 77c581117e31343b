"""Tasks: one file per task, with its data, splits, embedding, head, loss, metric, options and presets.

>>> from magnetite.tasks import Sorting
>>> next(Sorting().stream(seed=0, batch=64)).graphs
Digraphs(64 graphs, ...)
"""

from magnetite.tasks.base import Examples, PairTargets, Split, Task
from magnetite.tasks.distances import Distances, pair_targets
from magnetite.tasks.sorting import Sorting

TASKS: dict[str, type[Task]] = {"distances": Distances, "sorting": Sorting}
"""The tasks by name; add your own to train it from the command line and from Python."""

__all__ = ["TASKS", "Distances", "Examples", "PairTargets", "Sorting", "Split", "Task", "pair_targets"]
