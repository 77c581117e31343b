"""Worker processes of this machine."""

import gc
import os
import signal
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import parent_process
from typing import Generic

from magnetite.workers.base import Item, Result
from magnetite.workers.processes import process_pool


class LocalWorkers(Generic[Item, Result]):
    """Worker processes that apply one function to lists of items.

    Args:
        function: A function of one item, defined in a module.
        count: Number of processes; with one, everything happens in this process.
    """

    def __init__(self, function: Callable[[Item], Result], count: int):
        if count < 1:
            raise ValueError(f"workers must be a positive integer, got {count}")
        self.function, self.count = function, count
        self._pool: ProcessPoolExecutor | None = None
        self._careful: ProcessPoolExecutor | None = None

    def __enter__(self) -> "LocalWorkers[Item, Result]":
        return self

    def __exit__(self, *error: object) -> None:
        for pool in (self._pool, self._careful):
            if pool is not None:
                pool.shutdown(cancel_futures=True)

    def submit(self, items: Sequence[Item]) -> Callable[[], list[Result | None]]:
        """Start with some items.

        Args:
            items: The items.

        Returns:
            A function that waits for the results; None is the result of an item whose process died.
        """
        if self.count == 1:
            return lambda: [self.function(item) for item in items]
        future: Future[list[Result]] | None
        self._pool = pool = self._pool or process_pool(self.count, _prepare)
        try:
            future = pool.submit(_each, self.function, items)
        except BrokenProcessPool:
            future = None

        def wait() -> list[Result | None]:
            try:
                if future is not None:
                    return list(future.result())
            except BrokenProcessPool:
                pass
            if self._pool is pool:
                self._pool = None  # later items get a new one; whoever waits for the old one comes here as well
            together = self._carefully(items)
            if together is not None or len(items) == 1:
                return list(together or [None])
            alone = [self._carefully([item]) for item in items]
            return [None if found is None else found[0] for found in alone]

        return wait

    def _carefully(self, items: Sequence[Item]) -> list[Result] | None:
        """The results of items in a process that does nothing else; None if it dies."""
        self._careful = self._careful or process_pool(1, _prepare)
        try:
            return self._careful.submit(_each, self.function, items).result()
        except BrokenProcessPool:
            self._careful = None
            return None


def _prepare() -> None:
    gc.freeze()  # imported modules need not be scanned
    gc.set_threshold(100_000)  # syntax trees have many nodes and no cycles
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends its workers
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _each(function: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    return [function(item) for item in items]
