"""Work spread over threads: many small problems, or the parts of a large one, the same for any number of threads."""

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import Any, TypeVar

import torch

Result = TypeVar("Result")

_cores: list[int] = []


def cores() -> int:
    """Threads that may work at once: as many as torch was allowed outside `single_threaded`."""
    return _cores[0] if _cores else torch.get_num_threads()


@contextmanager
def single_threaded() -> Iterator[None]:
    """Let torch and its BLAS use one thread a call, so that a pool of callers does not fight over the cores."""
    before = torch.get_num_threads()
    _cores.append(before)
    torch.set_num_threads(1)
    try:
        yield
    finally:
        _cores.pop()
        torch.set_num_threads(before)


def in_pool(work: Callable[[Any], None], parts: Iterable[Any]) -> None:
    """Call `work` on every part, on all cores, with torch at one thread a call.

    >>> seen = []
    >>> in_pool(seen.append, [1, 2, 3])
    >>> sorted(seen)
    [1, 2, 3]
    """
    with single_threaded(), ThreadPoolExecutor(cores()) as pool:
        list(pool.map(work, parts))


def on_cores(work: Callable[[Any], Any], parts: Iterable[Any]) -> list[Any]:
    """What `work` returns for every part, in order; for calls of milliseconds, inside `single_threaded`.

    The threads stay, because to start them anew would take longer than such calls.

    >>> on_cores(lambda part: part + 1, [1, 2, 3])
    [2, 3, 4]
    """
    if cores() == 1:
        return [work(part) for part in parts]
    return list(_threads(cores(), torch.get_num_threads(), os.getpid()).map(work, parts))


@cache
def _threads(count: int, _torch_threads: int, _process: int) -> ThreadPoolExecutor:
    """Threads that were started while torch used so many threads itself, and so go on with that number.

    A process that forks takes the object along but not its threads: every process has its own.
    """
    return ThreadPoolExecutor(count)


def spread(work: Callable[[int, int], Result], count: int, step: int) -> list[Result]:
    """`work(start, stop)` for the spans of `step` that make up `0 … count`, on `torch.get_num_threads()` threads.

    The spans are the same for any number of threads, and so are the results and their order.

    >>> spread(lambda start, stop: (start, stop), 5, 2)
    [(0, 2), (2, 4), (4, 5)]
    """
    spans = [(start, min(start + step, count)) for start in range(0, count, step)]
    return on_cores(lambda span: work(*span), spans)
