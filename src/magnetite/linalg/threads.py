"""Work spread over threads in spans that do not depend on how many threads there are."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import torch

Result = TypeVar("Result")


def spread(work: Callable[[int, int], Result], count: int, step: int) -> list[Result]:
    """`work(start, stop)` for the spans of `step` that make up `0 … count`, on `torch.get_num_threads()` threads.

    The spans are the same for any number of threads, and so are the results and their order.

    >>> spread(lambda start, stop: (start, stop), 5, 2)
    [(0, 2), (2, 4), (4, 5)]
    """
    spans = [(start, min(start + step, count)) for start in range(0, count, step)]
    workers = min(torch.get_num_threads(), len(spans))
    if workers <= 1:
        return [work(start, stop) for start, stop in spans]
    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(lambda span: work(*span), spans))
