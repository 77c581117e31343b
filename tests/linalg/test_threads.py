import pytest
import torch

from magnetite.linalg.threads import spread


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
