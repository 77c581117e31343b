"""Many cores: one thread each for many small problems."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import torch


@contextmanager
def single_threaded() -> Iterator[None]:
    """Let torch and its BLAS use one thread a call, so that a pool of callers does not fight over the cores."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def in_pool(work: Callable[[Any], None], parts: Iterable[Any]) -> None:
    """Call `work` on every part, as many at a time as torch may use threads.

    >>> seen = []
    >>> in_pool(seen.append, [1, 2, 3])
    >>> sorted(seen)
    [1, 2, 3]
    """
    workers = torch.get_num_threads()
    with single_threaded(), ThreadPoolExecutor(workers) as pool:
        list(pool.map(work, parts))
