"""A function applied to many items by worker processes, of this machine or of a Ray cluster.

A process may die without taking the others' work along: its items are tried again, and an item that ends every process
has the result None.
"""

from collections.abc import Callable

from magnetite.kernels._compat import available_cores
from magnetite.workers.base import Item, Result, Workers
from magnetite.workers.local import LocalWorkers

__all__ = ["Workers", "start"]


def start(
    function: Callable[[Item], Result], count: int | None = None, ray: str | None = None, gpu: bool = False
) -> Workers[Item, Result]:
    """Worker processes for a function.

    Args:
        function: A function of one item, defined in a module.
        count: Number of processes; by default one per core of this machine, or per core or GPU of the cluster.
        ray: Address of a Ray cluster; "auto" for the one that runs on this machine, "local" for a new one; None for
            processes of this machine without Ray.
        gpu: Whether each process needs a GPU of its own, on Ray; on this machine without Ray, the default is one
            process.

    >>> with start(len, 1) as workers:
    ...     workers.submit(["ab", "c"])()
    [2, 1]
    """
    if ray is None:
        return LocalWorkers(function, (1 if gpu else available_cores()) if count is None else count)
    from magnetite.workers.on_ray import RayWorkers

    return RayWorkers(function, count, ray, gpu)
