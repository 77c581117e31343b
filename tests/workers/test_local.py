import os
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest

from magnetite.workers import local as module
from magnetite.workers.local import LocalWorkers


def double(number: int) -> int:
    if number < 0:
        os._exit(1)
    return 2 * number


def forked(count: int, initializer: object = None) -> ProcessPoolExecutor:
    """A pool that starts faster than one that imports everything again."""
    return ProcessPoolExecutor(count, mp_context=get_context("fork"))


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_process_that_dies_loses_one_item(monkeypatch):
    monkeypatch.setattr(module, "process_pool", forked)
    with LocalWorkers(double, 2) as workers:
        waiting = [workers.submit(items) for items in ([1, 2], [3, -1, 4], [5])]
        assert [wait() for wait in waiting] == [[2, 4], [6, None, 8], [10]]
        assert workers.submit([6])() == [12]


def test_one_worker_is_this_process():
    with LocalWorkers(len, 1) as workers:
        assert workers.submit(["ab", "c"])() == [2, 1]
    with pytest.raises(ValueError, match="workers must be a positive integer, got 0"):
        LocalWorkers(len, 0)


@pytest.mark.slow
def test_spawned_processes():
    with LocalWorkers(len, 2) as workers:
        waiting = [workers.submit([text]) for text in ("a", "bc", "def")]
        assert [wait() for wait in waiting] == [[1], [2], [3]]
