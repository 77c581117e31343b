"""Thread pools for many small tasks, whose results do not depend on the number of threads."""

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
    """Number of threads to use: torch's own number outside `single_threaded`."""
    return _cores[0] if _cores else torch.get_num_threads()


@contextmanager
def single_threaded() -> Iterator[None]:
    """Let torch and its BLAS use one thread per call, so that a pool of callers does not oversubscribe the cores."""
    before = torch.get_num_threads()
    _cores.append(before)
    torch.set_num_threads(1)
    try:
        yield
    finally:
        _cores.pop()
        torch.set_num_threads(before)


def in_pool(work: Callable[[Any], None], items: Iterable[Any]) -> None:
    """Call `work` on every item, on all cores, with one torch thread per call; a single item needs no other thread.

    >>> seen = []
    >>> in_pool(seen.append, [1, 2, 3])
    >>> sorted(seen)
    [1, 2, 3]
    """
    items = list(items)
    with single_threaded():
        if len(items) == 1:
            work(items[0])
            return
        with ThreadPoolExecutor(cores()) as pool:
            list(pool.map(_as_here(work), items))


def on_cores(work: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
    """The results of `work` for all items, in order; for calls of milliseconds, inside `single_threaded`.

    The threads are kept, because starting them takes longer than such calls.

    >>> on_cores(lambda item: item + 1, [1, 2, 3])
    [2, 3, 4]
    """
    items = list(items)
    if len(items) == 1 or cores() == 1:
        return [work(item) for item in items]
    return list(_threads(cores(), torch.get_num_threads(), os.getpid()).map(_as_here(work), items))


def _as_here(work: Callable[[Any], Result]) -> Callable[[Any], Result]:
    """`work` in the inference mode of this thread, without which other threads may not write to its tensors."""
    if not torch.is_inference_mode_enabled():
        return work

    def run(item: Any) -> Result:
        with torch.inference_mode():
            return work(item)

    return run


@cache
def _threads(count: int, _torch_threads: int, _process: int) -> ThreadPoolExecutor:
    """A pool whose threads inherit the number of threads that torch used when they were started.

    A forked process inherits the pool but not its threads, so every process has its own.
    """
    return ThreadPoolExecutor(count)


def spread(work: Callable[[int, int], Result], count: int, step: int) -> list[Result]:
    """The results of `work(start, stop)` for consecutive ranges of length `step`, on `torch.get_num_threads()` threads.

    The ranges and their order do not depend on the number of threads.

    >>> spread(lambda start, stop: (start, stop), 5, 2)
    [(0, 2), (2, 4), (4, 5)]
    """
    spans = [(start, min(start + step, count)) for start in range(0, count, step)]
    return on_cores(lambda span: work(*span), spans)
