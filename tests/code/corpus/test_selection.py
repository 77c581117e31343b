import numpy as np
import pytest

from magnetite.code.corpus.selection import DUPLICATE, Candidates, limit_per_group, select, split_of
from magnetite.code.corpus.settings import Settings


def test_duplicates_are_removed_across_projects():
    kept, left_out = select(Candidates("aabb", ["f", "g", "h", "i"], ["1", "2", "1", "3"]), Settings())
    assert kept.tolist() == [True, True, False, True]
    assert left_out == {DUPLICATE: 1}


def test_limits():
    generator = np.random.default_rng(0)
    project = [f"p{number}" for number in generator.integers(0, 5, 1000)]
    name = [f"f{number}" for number in generator.integers(0, 20, 1000)]
    hashes = [str(number) for number in generator.integers(0, 2000, 1000)]
    settings = Settings(per_name=20, per_project=50)
    kept, left_out = select(Candidates(project, name, hashes), settings)
    assert kept.sum() + left_out.total() == 1000
    assert len(left_out) == 3
    for values, most in ((name, 20), (project, 50), (hashes, 1)):
        assert np.unique(np.array(values)[kept], return_counts=True)[1].max() <= most
    again, _ = select(Candidates(project, name, hashes), settings)
    assert (again == kept).all()
    other, _ = select(Candidates(project, name, hashes), Settings(per_name=20, per_project=50, seed=1))
    assert (other != kept).any()


def test_shares_of_the_split():
    names = [f"project-{number}" for number in range(4000)]
    splits = [split_of(name, Settings(shares=(0.7, 0.2, 0.1))) for name in names]
    assert abs(splits.count("train") / 4000 - 0.7) < 0.03
    assert abs(splits.count("test") / 4000 - 0.1) < 0.03
    assert {split_of(name, Settings(shares=(0, 0, 1))) for name in names} == {"test"}
    assert {split_of(name, Settings(shares=(1, 0, 0))) for name in names} == {"train"}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"lines": 0}, "lines must be a positive integer, got 0"),
        ({"per_name": 1.5}, "per_name must be a positive integer"),
        ({"shares": (0.5, 0.5, 0.5)}, "shares must be three numbers"),
        ({"shares": (1.5, -0.5, 0)}, "shares must be three numbers"),
        ({"shares": (0.5, 0.5)}, "shares must be three numbers"),
        ({"time_limit": float("nan")}, "time_limit must be a positive number"),
        ({"seed": 0.5}, "seed must be an integer"),
    ],
)
def test_bad_settings(settings, message):
    with pytest.raises(ValueError, match=message):
        Settings(**settings)


def test_large_groups_are_cut_first():
    assert limit_per_group([1, 2, 50, 60], 23) == 10
    assert limit_per_group([], 5) == 0
    assert limit_per_group([3, 3], 0) == 0
