import multiprocessing
import time
import warnings

import pytest
import torch

from magnetite.linalg.threads import in_pool, on_cores, spread


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_spans_and_order_do_not_depend_on_the_threads(workers):
    before = torch.get_num_threads()
    torch.set_num_threads(workers)
    try:
        assert spread(lambda start, stop: (start, stop), 10, 4) == [(0, 4), (4, 8), (8, 10)]
        assert spread(lambda start, stop: (start, stop), 0, 4) == []
    finally:
        torch.set_num_threads(before)


def test_errors_arrive():
    def fail(start: int, stop: int) -> None:
        raise ValueError(f"{start}…{stop}")

    with pytest.raises(ValueError, match="0…4"):
        spread(fail, 10, 4)


def _nap(part):
    time.sleep(0.05)
    return part


def test_a_forked_process_has_threads_of_its_own():
    """Data loaders fork: a pool whose threads the parent has started would wait forever in the child."""
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        assert on_cores(_nap, range(8)) == list(range(8))
        child = multiprocessing.get_context("fork").Process(target=on_cores, args=(_nap, range(8)))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns of forks beside threads
            child.start()
        child.join(timeout=20)
        code = child.exitcode
        child.kill()
    finally:
        torch.set_num_threads(before)
    assert code == 0


@pytest.mark.parametrize("pool", [in_pool, on_cores])
def test_threads_write_to_tensors_that_were_made_in_inference_mode(pool):
    with torch.inference_mode():
        result = torch.zeros(4)
        pool(lambda number: result[number].add_(number), range(4))
    assert result.tolist() == [0, 1, 2, 3]
    pool(lambda number: torch.ones(1, requires_grad=True), range(2))
