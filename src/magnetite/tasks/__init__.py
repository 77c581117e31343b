"""The tasks: data, splits, loss and metric of each in one file.

>>> from magnetite.tasks import Sorting
>>> next(Sorting().stream(seed=0, batch=64)).graphs
Digraphs(64 graphs, ...)
"""

from magnetite.tasks.examples import Examples, PairTargets, Split, Task, draw
from magnetite.tasks.playground import Playground, pair_targets
from magnetite.tasks.sorting import Sorting

TASKS: dict[str, type[Playground] | type[Sorting]] = {"playground": Playground, "sorting": Sorting}
"""The tasks by the names that the command line uses."""

__all__ = ["TASKS", "Examples", "PairTargets", "Playground", "Sorting", "Split", "Task", "draw", "pair_targets"]
