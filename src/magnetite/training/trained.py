"""Training from Python: `train` returns a `Run`, which has the model, its metrics, and predictions for other graphs."""

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from magnetite.nn import GraphModel
from magnetite.tasks import Task
from magnetite.training import runs
from magnetite.training.checkpoints import load
from magnetite.training.config import Config, configuration


def train(
    task: Task | str,
    encoding: str = "magnetic",
    model: str = "transformer",
    preset: str = "quick",
    out: str | Path | None = None,
    *,
    seed: int = 0,
    device: str = "auto",
    devices: int = 1,
    resume: bool = False,
    settings: Mapping[str, Any] | None = None,
) -> "Run":
    """Train a model, and return the run.

    Args:
        task: A task such as `Supervised(graphs, target="y")`, or the name of one.
        encoding: Names of positional encodings, joined by + (magnetic+walks); none for none.
        model: Name of the model: transformer, gnn or magnet.
        preset: Name of one of the task's presets.
        out: Folder of the run; by default a new folder in `runs/`.
        seed: Seed of parameters, order of the graphs, and dropout.
        device: auto, cpu or cuda.
        devices: Number of processes, one per GPU.
        resume: Whether to continue the run in `out`.
        settings: Further settings by name, such as `{"optim.lr": 3e-4, "encoding.k": 16}`.
    """
    accelerator = runs.accelerator_named(device)
    changes: dict[str, dict[str, Any]] = {"model": {"name": model}, "run": {"seed": seed}}
    changes["run"]["compile"] = runs.compile_mode(accelerator)
    config = configuration(task, encoding, preset, changes, [f"{name}={value}" for name, value in (settings or {}).items()])
    folder = Path(out) if out is not None else Path("runs") / runs.default_name(config, preset)
    runs.train(config, folder, runs.Machine(accelerator, devices), resume)
    return Run(folder, config)


class Run:
    """A training run.

    Args:
        folder: Folder of the run.
        config: Its configuration, read from the folder by default.
    """

    def __init__(self, folder: str | Path, config: Config | None = None):
        self.folder = Path(folder)
        self._config = config

    def __repr__(self) -> str:
        return f"Run({str(self.folder)!r})"

    @cached_property
    def config(self) -> Config:
        """The configuration."""
        return self._config or runs.read_config(self.folder)

    @cached_property
    def model(self) -> GraphModel:
        """The model that was best in validation, in evaluation mode."""
        return load(self.folder)

    @property
    def metrics(self) -> dict[str, dict[str, float]]:
        """The metrics of each split by name."""
        return runs.read_result(self.folder)["figures"]

    def predict(self, graphs: Any) -> Tensor:
        """Predictions for other graphs: values, classes as written in the data, or probabilities of each label.

        Args:
            graphs: `Digraphs`, or PyG's `Data`, `Batch` or list of `Data`, with the features of the training graphs.
        """
        raise NotImplementedError
