"""Uncertainty of scores: spread over repeated trainings with Student's t, and bootstrap intervals over projects.

Few trainings are repeated, so the spread of a metric is pooled over all that are.

Functions of one project resemble each other, so a test split holds as many independent samples as it has projects. Each
resample draws that many projects with replacement. A score is the mean over all functions of the drawn projects; a
ratio or a difference of two rows is computed on the same draw for both, because easy projects are easy for all rows.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import t as student

RESAMPLES = 10_000
LEVEL = 0.95
AT_ONCE = 2**22
"""Number of drawn projects that are held at a time, which limits the memory needed."""


@dataclass(frozen=True)
class Estimate:
    """A value with its interval.

    Args:
        value: The value of all trainings, or on all projects.
        low: Lower end of the interval.
        high: Upper end of the interval.
    """

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"


def mean_and_error(values: Sequence[float]) -> tuple[float, float | None]:
    """The mean of the values of several seeds, and its standard error `s / √n`; None for a single seed.

    >>> mean_and_error([1.0, 2.0, 3.0])
    (2.0, 0.5773502691896258)
    """
    if not values:
        raise ValueError("there are no values: give at least one")
    mean = float(np.mean(values))
    return mean, float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else None


@dataclass(frozen=True)
class Spread:
    """The standard deviation of a metric between trainings that differ in nothing but the seed.

    `s² = Σ_g Σ_i (x_gi − x̄_g)² / ν`, `ν = Σ_g (n_g − 1)`, over groups `g` of `n_g` repeated trainings. All groups are
    taken to have the same variance; for errors, `x` is the logarithm, so that it is their relative variation.

    Args:
        deviation: `s`; None if no training was repeated.
        freedom: `ν`, the degrees of freedom.

    >>> Spread.pooled([[1.0, 3.0], [5.0], [2.0, 2.0]])
    Spread(deviation=1.0, freedom=2)
    """

    deviation: float | None
    freedom: int

    @classmethod
    def pooled(cls, groups: Iterable[Sequence[float]]) -> "Spread":
        """The spread within groups of repeated trainings; groups of one add nothing.

        Args:
            groups: The values of the trainings of each group.
        """
        kept = [np.asarray(group, dtype=np.float64) for group in groups]
        freedom = sum(len(group) - 1 for group in kept)
        squares = sum(float(((group - group.mean()) ** 2).sum()) for group in kept)
        return cls((squares / freedom) ** 0.5 if freedom else None, freedom)

    def interval(self, value: float, seeds: Sequence[int], level: float = LEVEL) -> "Estimate":
        """The interval of a mean, or of a difference of means: `d ± t_{ν, (1+level)/2} · s · √(Σ_j 1/n_j)`.

        Args:
            value: The mean, or the difference.
            seeds: Number of trainings `n_j` behind each mean.
            level: Probability that the interval covers the true value.

        >>> Spread(1.0, 2).interval(0.0, [1, 1])
        Estimate(value=0.0, low=-6.08..., high=6.08...)
        """
        if self.deviation is None:
            return Estimate(value, -math.inf, math.inf)
        half = student.ppf((1 + level) / 2, self.freedom) * self.deviation * sum(1 / number for number in seeds) ** 0.5
        return Estimate(value, value - float(half), value + float(half))


@dataclass(frozen=True)
class Bootstrap:
    """Scores of resampled test splits: row by row, the same projects are drawn.

    Args:
        counts: Number of functions of each project.
        resamples: Number of resamples.
        seed: Seed of the draws.
        level: Share of the resamples that an interval covers.
    """

    counts: np.ndarray
    resamples: int = RESAMPLES
    seed: int = 0
    level: float = LEVEL

    def __post_init__(self) -> None:
        counts = np.asarray(self.counts, dtype=np.float64)
        if counts.ndim != 1 or not len(counts) or (counts < 1).any():
            raise ValueError("counts must have one positive number per project")
        object.__setattr__(self, "counts", counts)

    def scores(self, sums: np.ndarray) -> np.ndarray:
        """The score of each resample: `Σ_p m_p s_p / Σ_p m_p n_p`, where project `p` is drawn `m_p` times.

        Args:
            sums: Sum of the functions' scores of each project, `[projects]`, or `[projects, rows]` for several rows.
        """
        sums = np.asarray(sums, dtype=np.float64)
        projects = len(self.counts)
        if len(sums) != projects:
            raise ValueError(f"sums must have one value for each of {projects} projects, got {len(sums)}")
        rng = np.random.default_rng(self.seed)
        found = []
        for drawn in _pieces(self.resamples, max(1, AT_ONCE // projects)):
            times = rng.multinomial(projects, np.full(projects, 1 / projects), size=drawn).astype(np.float64)
            found.append((times @ sums) / (times @ self.counts).reshape(-1, *(1,) * (sums.ndim - 1)))
        return np.concatenate(found)

    def score(self, sums: np.ndarray) -> Estimate:
        """The score of a row, with its interval.

        Args:
            sums: Sum of the functions' scores of each project.
        """
        return self._estimate(sums.sum() / self.counts.sum(), self.scores(sums))

    def ratio(self, sums: np.ndarray, others: np.ndarray) -> Estimate:
        """The score of a row divided by that of another, with its interval; infinite where the other is 0.

        Args:
            sums: Sum of the functions' scores of each project.
            others: The same of the other row.
        """
        row, other = self.scores(np.stack([sums, others], axis=1)).T
        resampled = np.divide(row, other, out=np.full_like(row, np.inf), where=other > 0)
        value = sums.sum() / others.sum() if others.sum() > 0 else np.inf
        return self._estimate(value, resampled)

    def difference(self, sums: np.ndarray, others: np.ndarray) -> Estimate:
        """The score of a row less that of another, with its interval.

        Args:
            sums: Sum of the functions' scores of each project.
            others: The same of the other row.
        """
        return self.score(sums - others)

    def _estimate(self, value: float, resampled: np.ndarray) -> Estimate:
        tail = (1 - self.level) / 2
        # Between two infinite values there is nothing to interpolate.
        method = "linear" if np.isfinite(resampled).all() else "nearest"
        low, high = np.quantile(resampled, [tail, 1 - tail], method=method)
        return Estimate(float(value), float(low), float(high))


def _pieces(total: int, most: int) -> list[int]:
    """Sizes of at most `most` that add up to `total`.

    >>> _pieces(7, 3)
    [3, 3, 1]
    """
    return [min(most, total - first) for first in range(0, total, most)]
