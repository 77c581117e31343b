"""Checkpoints of a training: folders that appear whole or not at all, in safetensors and JSON, no pickle."""

import re
import shutil
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError

from magnetite.batching import Shape
from magnetite.io.storage import DamagedFile, read_json, read_tensors, write_json, write_tensors
from magnetite.nn import GraphModel, checkpoint
from magnetite.version import __version__

FOLDER = "checkpoints"
"""Where a run keeps them."""

UNFINISHED = ".part-"
STATE, OPTIMIZER = "state.json", "optimizer.safetensors"


@dataclass
class Position:
    """Where a training stands: what decides how it goes on, beside the model and the optimiser.

    `seconds` were spent on steps; `elapsed` since the beginning, not counting the time between a stop and its resuming.
    """

    step: int = 0
    shapes: tuple[Shape, ...] = ()
    losses: tuple[float, int] = (0.0, 0)
    best: float | None = None
    best_step: int = 0
    worse: int = 0
    seconds: float = 0.0
    elapsed: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """In JSON's types."""
        return asdict(self)

    @classmethod
    def from_dict(cls, table: Mapping[str, Any]) -> "Position":
        """From JSON's types."""
        shapes, losses = tuple(Shape(**shape) for shape in table["shapes"]), tuple(table["losses"])
        position = cls(**{**table, "shapes": shapes, "losses": losses})
        numbers = (position.step, *losses, position.best_step, position.worse, position.seconds, position.elapsed)
        if not all(isinstance(number, int | float) for number in numbers):
            raise TypeError(f"{numbers} are not all numbers")
        return position


class Checkpoints:
    """The checkpoints of a run: `last-<step>` to go on from, `best-<step>` with the model that validation chose."""

    def __init__(self, folder: Path):
        self.folder = folder

    def clean(self) -> None:
        """Remove what a killed run had begun to write."""
        for part in self.folder.glob(f"{UNFINISHED}*"):
            shutil.rmtree(part, ignore_errors=True)

    def save_last(self, model: GraphModel, optimizer: torch.optim.Optimizer, position: Position) -> None:
        """Write everything that `restore` needs; older ones are removed once it is there."""
        kept = self._steps("last")

        def write(folder: Path) -> None:
            checkpoint.save(model, folder)
            write_tensors(folder / OPTIMIZER, _optimizer_tensors(optimizer), {"version": __version__})
            write_json(folder / STATE, {"version": __version__, "position": position.to_dict()})

        self._write(f"last-{position.step:08d}", write)
        self._remove("last", [step for step in kept if step != position.step])
        self._remove("best", [step for step in self._steps("best") if step < position.best_step])

    def save_best(self, model: GraphModel, step: int) -> None:
        """Write the model that is the best so far; the one before stays until the position that names it is saved."""
        self._write(f"best-{step:08d}", lambda folder: checkpoint.save(model, folder))

    def restore(self, model: GraphModel, optimizer: torch.optim.Optimizer) -> Position:
        """Fill model and optimiser from the last checkpoint, if there is one, and say where it stands."""
        steps = self._steps("last")
        if not steps:
            return Position()
        folder = self.folder / f"last-{steps[-1]:08d}"
        try:
            _load_model(folder, model)
            _load_optimizer(folder / OPTIMIZER, optimizer)
            return _load_position(folder / STATE)
        except (DamagedFile, FileNotFoundError) as error:
            reason = str(error).rpartition(": ")[0]  # without the advice, which is for files that stand alone
            raise DamagedFile(
                f"the run cannot go on ({reason}): train again with another --out; `magnetite evaluate` takes what was "
                "the best model so far"
            ) from error

    def best(self, step: int) -> Path:
        """The folder of the best model."""
        folder = self.folder / f"best-{step:08d}"
        if not folder.is_dir():
            raise DamagedFile(f"{folder} is missing: train again, or copy it back")
        return folder

    def best_step(self) -> int:
        """The newest of the best models."""
        steps = self._steps("best")
        if not steps:
            raise ValueError(f"{self.folder} holds no trained model yet: go on with `magnetite train … --resume`")
        return steps[-1]

    def _steps(self, kind: str) -> list[int]:
        found = [re.fullmatch(rf"{kind}-(\d+)", path.name) for path in self.folder.glob(f"{kind}-*")]
        return sorted(int(match[1]) for match in found if match)

    def _remove(self, kind: str, steps: list[int]) -> None:
        for step in steps:
            shutil.rmtree(self.folder / f"{kind}-{step:08d}", ignore_errors=True)

    def _write(self, name: str, write: Any) -> None:
        """Write into a folder beside it, then give it its name in one step."""
        part: Path | None = None
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            part = Path(tempfile.mkdtemp(prefix=UNFINISHED, dir=self.folder))
            write(part)
            with suppress(FileNotFoundError):
                shutil.rmtree(self.folder / name)  # the same step, from a run that went on from an older one
            part.rename(self.folder / name)
        except (OSError, SafetensorError) as error:
            if part is not None:
                shutil.rmtree(part, ignore_errors=True)
            raise OSError(
                f"the checkpoint {self.folder / name} could not be written ({error}): the one before it is whole; make "
                "room and go on with --resume"
            ) from error


def load(run: str | Path, device: torch.device | str = "cpu") -> GraphModel:
    """The model of a run that validation chose so far, in evaluation mode."""
    checkpoints = Checkpoints(Path(run) / FOLDER)
    return checkpoint.load(checkpoints.best(checkpoints.best_step()), device).eval()


def _optimizer_tensors(optimizer: torch.optim.Optimizer) -> dict[str, torch.Tensor]:
    state = optimizer.state_dict()["state"]
    return {f"{number}.{name}": tensor for number, entry in state.items() for name, tensor in entry.items()}


def _load_model(folder: Path, model: GraphModel) -> None:
    loaded = checkpoint.load(folder)
    wanted, found = model.state_dict(), loaded.state_dict()
    wrong = [name for name in wanted if name not in found or found[name].shape != wanted[name].shape]
    if wrong or len(found) != len(wanted):
        raise DamagedFile(f"{folder} holds another model than the configuration describes: give the run's own settings")
    model.load_state_dict(found)


def _load_optimizer(path: Path, optimizer: torch.optim.Optimizer) -> None:
    tensors, _ = read_tensors(path)
    state: dict[int, dict[str, torch.Tensor]] = {}
    for name, tensor in tensors.items():
        number, _, key = name.partition(".")
        state.setdefault(int(number), {})[key] = tensor
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    if any(
        number >= len(parameters) or entry["exp_avg"].shape != parameters[number].shape
        for number, entry in state.items()
    ):
        raise DamagedFile(f"{path} belongs to another model: give the run's own settings")
    optimizer.load_state_dict({**optimizer.state_dict(), "state": state})


def _load_position(path: Path) -> Position:
    content = read_json(path, "position of a training", "remove this checkpoint")
    try:
        if content["version"] != __version__:
            raise ValueError(
                f"{path} was written by magnetite {content['version']}, this is {__version__}: go on with that version"
            )
        return Position.from_dict(content["position"])
    except (KeyError, TypeError) as error:
        raise DamagedFile(f"{path} is no position of a training ({error!r}): remove this checkpoint") from error
