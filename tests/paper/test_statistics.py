"""Statistics against cases computed by hand, by enumeration, and against the normal theory."""

from itertools import product

import numpy as np
import pytest

from paper.statistics import Bootstrap, Spread, mean_and_error


def test_standard_error_by_hand():
    mean, error = mean_and_error([0.20, 0.22, 0.24])
    assert mean == pytest.approx(0.22)
    assert error == pytest.approx(0.02 / 3**0.5)  # the standard deviation is 0.02
    assert mean_and_error([0.2]) == (0.2, None)
    with pytest.raises(ValueError, match="no values"):
        mean_and_error([])


def test_resamples_are_all_draws_with_their_probabilities():
    counts, sums = np.array([1, 2, 5]), np.array([1.0, 0.5, 1.0])
    exact = {}
    for drawn in product(range(3), repeat=3):
        score = round(sums[list(drawn)].sum() / counts[list(drawn)].sum(), 9)
        exact[score] = exact.get(score, 0) + 1 / 27
    found = Bootstrap(counts, 100_000).scores(sums).round(9)
    values, times = np.unique(found, return_counts=True)
    assert set(values) == set(exact)
    for value, count in zip(values, times, strict=True):
        assert count / len(found) == pytest.approx(exact[value], abs=0.005)


def test_a_row_that_is_always_a_tenth_better_has_no_doubt():
    rng = np.random.default_rng(0)
    counts = rng.integers(1, 500, 40)
    sums = counts * rng.uniform(0.1, 0.5, 40)
    bootstrap = Bootstrap(counts)
    ratio = bootstrap.ratio(1.1 * sums, sums)
    assert (ratio.value, ratio.low, ratio.high) == pytest.approx((1.1, 1.1, 1.1))
    alone = bootstrap.score(sums)
    assert alone.high - alone.low > 0.02  # though the score itself is in doubt
    difference = bootstrap.difference(1.1 * sums, sums)
    assert (difference.low, difference.high) == pytest.approx((0.1 * alone.low, 0.1 * alone.high))


def test_projects_of_equal_size_give_the_interval_of_a_mean():
    rng = np.random.default_rng(1)
    scores = rng.normal(0.3, 0.05, 400)
    found = Bootstrap(np.ones(400)).score(scores)
    half = 1.96 * scores.std() / 20
    assert (found.low, found.high) == pytest.approx((scores.mean() - half, scores.mean() + half), abs=2e-4)


def test_the_value_is_that_of_all_functions():
    found = Bootstrap(np.array([1, 3]), 10).score(np.array([1.0, 0.0]))
    assert found.value == 0.25
    assert (found.low, found.high) == (0, 1)


def test_pieces_do_not_change_the_draws(monkeypatch):
    counts, sums = np.array([3, 4, 5]), np.array([1.0, 2.0, 1.5])
    whole = Bootstrap(counts, 1000).scores(sums)
    monkeypatch.setattr("paper.statistics.AT_ONCE", 100)
    np.testing.assert_array_equal(Bootstrap(counts, 1000).scores(sums), whole)


def test_input_is_checked():
    with pytest.raises(ValueError, match="one positive number per project"):
        Bootstrap(np.array([1, 0]))
    with pytest.raises(ValueError, match="each of 2 projects, got 3"):
        Bootstrap(np.array([1, 2])).scores(np.ones(3))


def test_ratios_to_a_row_that_may_score_nothing():
    found = Bootstrap(np.array([1, 2])).ratio(np.ones(2), np.array([0.0, 1.0]))
    assert (found.value, found.low, found.high) == (2, 1, np.inf)  # a quarter of the draws is the first project alone
    assert Bootstrap(np.array([1, 2])).ratio(np.ones(2), np.zeros(2)).value == np.inf


def test_the_pooled_spread_by_hand():
    spread = Spread.pooled([[1.0, 3.0], [10.0, 10.0, 13.0], [7.0]])
    assert spread.freedom == 3
    assert spread.deviation == pytest.approx(((1 + 1 + 1 + 1 + 4) / 3) ** 0.5)
    assert Spread.pooled([[1.0], [2.0]]) == Spread(None, 0)
    assert Spread(None, 0).interval(1.0, [1, 1]).high == float("inf")


@pytest.mark.parametrize("level", [0.8, 0.95])
def test_intervals_cover_the_true_difference_at_their_level(level):
    rng, covered = np.random.default_rng(0), []
    for _ in range(2000):
        groups = [rng.normal(mean, 0.3, size) for mean, size in ((0, 2), (5, 3), (2, 2))]
        first, second = groups[1], rng.normal(4.0, 0.3, 1)
        interval = Spread.pooled(groups).interval(first.mean() - second.mean(), [3, 1], level)
        covered.append(interval.low <= 1.0 <= interval.high)
    assert np.mean(covered) == pytest.approx(level, abs=0.025)


def test_more_seeds_and_a_lower_level_give_shorter_intervals():
    spread = Spread(1.0, 5)
    widths = [spread.interval(0.0, [runs, runs], level).high for runs, level in ((1, 0.95), (3, 0.95), (3, 0.8))]
    assert widths == sorted(widths, reverse=True)
    assert widths[0] == pytest.approx(widths[1] * 3**0.5)
