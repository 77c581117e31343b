"""A few cases of every fuzzer in CI, all of them in `make slow`; and the runner itself."""

from pathlib import Path

import numpy as np
import pytest

from tests.fuzz import Target, random_of, targets
from tests.fuzz.__main__ import failure_of, outcomes

TARGETS = targets()
FEW = 5
MINUTES = 10
"""Time limit of a target in `make slow`."""


@pytest.mark.parametrize("name", TARGETS)
def test_a_few_cases(name: str) -> None:
    for number in range(FEW):
        assert failure_of(TARGETS[name], 0, number) is None, f"case {number}"


@pytest.mark.slow
@pytest.mark.parametrize("name", TARGETS)
def test_all_cases(name: str) -> None:
    tried = dict(outcomes(name, 0, range(TARGETS[name].cases), 60 * MINUTES))
    assert len(tried) >= min(FEW, TARGETS[name].cases)
    assert not {number: failure for number, failure in tried.items() if failure is not None}


def test_a_failure_is_one_line_and_repeats() -> None:
    def case(random: np.random.Generator, folder: Path) -> None:
        assert not list(folder.iterdir())
        if random.random() < 0.5:
            raise RuntimeError(f"two\nlines {random.random()}")

    target = Target("own", "", 10, case)
    first = [failure_of(target, 3, number) for number in range(20)]
    assert first == [failure_of(target, 3, number) for number in range(20)]
    assert 0 < sum(line is not None for line in first) < 20
    assert all(line is None or line.startswith("RuntimeError: two lines 0.") for line in first)


def test_a_crash_is_a_failed_case_and_the_next_case_runs() -> None:
    ends = [int(random_of("_crash", 0, number).integers(3)) for number in range(8)]
    assert set(ends) == {0, 1, 2}
    expected = ["SIGSEGV", "ValueError: no crash", None]
    assert dict(outcomes("_crash", 0, range(8), seconds=600)) == {i: expected[end] for i, end in enumerate(ends)}
