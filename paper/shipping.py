"""What the commands that ship a trained model have in common: the run that it comes from, and a folder with a card."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from magnetite.code import names
from magnetite.io.record import Record
from magnetite.io.storage import read_json
from magnetite.training.checkpoints import FOLDER, Checkpoints
from magnetite.training.runs import RESULT, read_tables

CARD = names.CARD
"""What is known about a model: data and metrics."""

TEXT = "card.md"
"""The card for readers."""

KEPT = ("parameters", "graphs_seen", "seconds_of_training", "best_step")
"""Facts about a run that the card has."""


def config_of(run: Path, task: str) -> dict[str, Any]:
    """Configuration of a run of a task.

    Args:
        run: Folder of the run.
        task: Name of the task.
    """
    config = read_tables(run)
    if config["task"].get("name") != task:
        raise ValueError(f"{run} is a run of the task {config['task'].get('name')}: give one of the task {task}")
    return config


def finished(run: Path, task: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Configuration and result of a finished run of a task.

    Args:
        run: Folder of the run.
        task: Name of the task.
    """
    config = config_of(run, task)
    return config, read_json(run / RESULT, "result of a run", "finish the run with --resume")


def so_far(run: Path, record: Record, config: Mapping[str, Any], parameters: int) -> dict[str, Any]:
    """What `result.json` would say about a run that was stopped, without metrics.

    Args:
        run: Folder of the run.
        record: The record of the measurement.
        config: The configuration of the run.
        parameters: Number of parameters of its model.
    """
    done = Checkpoints(run / FOLDER).progress()
    values = parameters, done.step * config["optim"]["batch"], done.seconds, done.best_step
    about = record.content(dict(zip(KEPT, values, strict=True)))
    return {**about, "seed": config["run"]["seed"]}


def of_run(run: Path, config: Mapping[str, Any], result: Mapping[str, Any]) -> dict[str, Any]:
    """What the card says about the run: provenance, size, configuration.

    Args:
        run: Folder of the run.
        config: Its configuration.
        result: Its result.
    """
    task = {name: value for name, value in config["task"].items() if name != "data"}  # a path of that machine
    return {
        "name": run.resolve().name,
        **{name: result[name] for name in ("seed", "commit", "device", "versions", "date")},
        **{name: result["result"][name] for name in KEPT},
        "config": {**config, "task": task},
    }


def with_provenance(record: Record, found: Mapping[str, Any]) -> dict[str, Any]:
    """The content of `card.json`: what was found, with commit, device, versions and date.

    Args:
        record: The record of the measurement.
        found: What was found.
    """
    about = record.content(None)
    return {name: about[name] for name in ("commit", "device", "versions", "date")} | dict(found)
