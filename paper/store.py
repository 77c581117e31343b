"""Results of finished training runs: the files of `results/cells`, read once and found by configuration or by name."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from magnetite.io.record import ADVICE, read_record
from magnetite.io.storage import DamagedFile
from magnetite.tasks.base import SPLITS
from magnetite.training.config import Config

HASH_LENGTH = 12
SAME_TRAINING = 0.05
"""Training runs are compared if the numbers of graphs they have seen differ by at most this fraction."""


REPEAT = "repeat"
"""Folder of results that repeat others from the same seed; a GPU adds up in another order each time."""

Metric = str | tuple[str, ...]
"""A metric, or several of which the mean is taken."""


class NotRun(LookupError):
    """A result that a claim needs does not exist yet."""


@dataclass(frozen=True)
class Result:
    """The result of one training run.

    Args:
        name: Name of the cell, from the name of the file.
        content: What the file holds: the result and its provenance.
    """

    name: str
    content: Mapping[str, Any]

    @cached_property
    def hash(self) -> str | None:
        """Hash of the configuration, in which new options have their defaults; None if an option no longer exists."""
        try:
            return Config.from_dict(_as_trained(self.content["result"]["config"])).hash
        except ValueError:
            return None

    @cached_property
    def repeats(self) -> str | None:
        """Hash of the configuration without its seed, which repeated trainings share; None as for `hash`."""
        config = _as_trained(self.content["result"]["config"])
        try:
            return Config.from_dict({**config, "run": {**config.get("run", {}), "seed": 0}}).hash
        except ValueError:
            return None

    @property
    def graphs_seen(self) -> int:
        """Number of training graphs, repeated ones included."""
        return self.content["result"]["graphs_seen"]

    @cached_property
    def metrics(self) -> dict[str, float]:
        """Metrics of the test split, and those of validation for groups (such as `accuracy/12`) that only it has.

        Metrics of further sets of examples have the name of the set before them, as in `known:accuracy`.
        """
        splits = self.content["result"]["figures"]
        others = {
            f"{split}:{name}": value
            for split, figures in splits.items()
            if split not in SPLITS
            for name, value in figures.items()
        }
        return {**{name: value for name, value in splits["valid"].items() if "/" in name}, **splits["test"], **others}

    def has(self, metric: Metric) -> bool:
        """Whether the metric, or each of several, was measured."""
        return set(_names(metric)) <= self.metrics.keys()

    def value(self, metric: Metric) -> float:
        """A metric, or the mean of several."""
        values = [self.metrics[name] for name in _names(metric)]
        return sum(values) / len(values)

    def provenance(self) -> dict[str, Any]:
        """How the result was obtained."""
        details = ("hash", "graphs_seen", "best_step", "seconds_of_training", "graphs_per_second", "parameters")
        kept = {name: self.content[name] for name in ("commit", "device", "date", "seconds", "seed")}
        return kept | {name: self.content["result"][name] for name in details}


class Store:
    """All results in a folder.

    Args:
        folder: Folder with `cells/*.json` and the files of figures, such as `figure-examples.json`.
    """

    def __init__(self, folder: Path):
        self.folder = folder
        self._results: dict[Path, Result] = {}
        self._repeat: list[Result] | None = None
        self.refresh()

    def refresh(self) -> None:
        """Read the files that other processes have added."""
        for path in sorted((self.folder / "cells").glob(f"*-{'?' * HASH_LENGTH}.json")):
            if path not in self._results:
                self._results[path] = Result(path.stem[: -HASH_LENGTH - 1], _read(path))

    def find(self, name: str, hash: str) -> Result | None:
        """The result of the configuration with this hash, preferably of this name, since figures share cells."""
        found = [result for result in self._results.values() if result.hash == hash]
        return min(found, key=lambda result: result.name != name, default=None)

    def longest(self, name: str) -> Result | None:
        """The result of this name that saw the most graphs; of several, the one with the lowest seed."""
        found = [result for result in self._results.values() if result.name == name]
        return max(found, key=lambda result: (result.graphs_seen, -result.content.get("seed", 0)), default=None)

    def values(self, names: Sequence[str], metric: Metric) -> list[list[float]]:
        """A metric of several cells, of each the longest training and its repetitions with other seeds.

        All must have seen the same number of graphs.

        Args:
            names: Names of the cells.
            metric: Name of the metric, or names of several, of which the mean is taken.
        """
        results = []
        for name in names:
            result = self.longest(name)
            if result is None or not result.has(metric):
                raise NotRun(name)
            results.append(result)
        seen = [result.graphs_seen for result in results]
        if min(seen) < (1 - SAME_TRAINING) * max(seen):
            raise NotRun(f"{' and '.join(names)}, trained on the same number of graphs")
        return [[other.value(metric) for other in self.repeated(result)] for result in results]

    def repeated(self, result: Result) -> list[Result]:
        """The trainings that differ from one in nothing but the seed, itself included; `repeat/` has more of them."""
        others = [one for one in self._all() if one.repeats is not None and one.repeats == result.repeats]
        return others or [result]

    def groups(self, task: str, metric: Metric, beginnings: tuple[str, ...] = ("",)) -> list[list[float]]:
        """A metric of all repeated trainings of a task, group by group, from which its spread is estimated.

        Args:
            task: Name of the task; metrics of the same name mean other things for other tasks.
            metric: Name of the metric, or names of several, of which the mean is taken.
            beginnings: How the names of the trainings begin; those of other models and lengths spread differently.
        """
        found: dict[str, list[float]] = {}
        for one in self._all():
            known = one.repeats is not None and one.content["result"]["config"]["task"]["name"] == task
            if known and one.has(metric) and one.name.startswith(beginnings):
                found.setdefault(str(one.repeats), []).append(one.value(metric))
        return [values for values in found.values() if len(values) > 1]

    def _all(self) -> list[Result]:
        """All results, those of repetitions from the same seed, in `repeat/`, included."""
        if self._repeat is None:
            self._repeat = list(Store(self.folder / REPEAT)._results.values())
        return [*self._results.values(), *self._repeat]

    def row(self, figure: str, key: str, value: Any) -> dict[str, Any]:
        """The row of a figure's table whose `key` is `value`."""
        try:
            return next(row for row in self.figure(figure)["rows"] if row[key] == value)
        except (KeyError, TypeError, StopIteration) as error:
            raise DamagedFile(f"{self.folder / figure}.json has no row with {key} {value}: {ADVICE}") from error

    def figure(self, name: str) -> dict[str, Any]:
        """The result of a figure or a benchmark."""
        path = self.folder / f"{name}.json"
        if not path.exists():
            raise NotRun(name)
        return read_record(path)["result"]


def lost(old: Any, new: Any, place: str = "") -> str | None:
    """The first place with a value in `old` and none in `new`; lists of what has not been run may become shorter.

    >>> lost({"f1": [0.5, None]}, {"f1": [0.5, 0.7]})
    >>> lost({"f1": [0.5, 0.7]}, {"f1": [0.5, None]})
    'f1/1'
    """
    if isinstance(old, Mapping):
        parts = [(str(name), value, new.get(name) if isinstance(new, Mapping) else None) for name, value in old.items()]
    elif isinstance(old, list | tuple):
        others = list(new) if isinstance(new, list | tuple) else []
        parts = [(str(i), value, others[i] if i < len(others) else None) for i, value in enumerate(old)]
    else:
        return place if old is not None and new is None else None
    found = (lost(value, other, f"{place}/{name}".lstrip("/")) for name, value, other in parts if name != "not_run")
    return next((gone for gone in found if gone is not None), None)


def _names(metric: Metric) -> tuple[str, ...]:
    return (metric,) if isinstance(metric, str) else metric


def _read(path: Path) -> dict[str, Any]:
    content = read_record(path)
    missing = {"config", "figures", "graphs_seen"} - content["result"].keys()
    if missing:
        raise DamagedFile(
            f"{path} is not the result of a training run (missing: {', '.join(sorted(missing))}): {ADVICE}"
        )
    return content


def _as_trained(config: dict[str, Any]) -> dict[str, Any]:
    """A configuration in which options that it does not have, because they are newer, have the values of that time."""
    if not isinstance(config.get("encoding"), dict):
        return config
    scaled = {
        name: {"scaling": "none", **table} if table.get("encoder") in ("maglapnet", "spe") else table
        for name, table in config["encoding"].items()
    }
    return {**config, "encoding": scaled}
