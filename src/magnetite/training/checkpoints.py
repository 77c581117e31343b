"""Checkpoints of a run: folders that are written atomically, in safetensors and JSON, without pickle."""

import re
import shutil
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError

from magnetite.batching import BatchShape, Bucket
from magnetite.io.storage import DamagedFile, read_json, read_tensors, write_json, write_tensors
from magnetite.nn import GraphModel, checkpoint
from magnetite.version import __version__

FOLDER = "checkpoints"
"""Folder of the checkpoints in the folder of a run."""

UNFINISHED = ".part-"
STATE, OPTIMIZER = "state.json", "optimizer.safetensors"


@dataclass
class Progress:
    """Progress of a run: everything needed to resume it, apart from model and optimiser.

    Args:
        step: Number of completed steps.
        shapes: Shapes of the micro-batches of a step.
        losses: Sum and number of the losses since the last line of the log.
        best: Best value of the validation metric so far.
        best_step: Step of the best value.
        worse: Number of evaluations since then.
        seconds: Time spent on training steps.
        elapsed: Time since the start, without interruptions.
    """

    step: int = 0
    shapes: tuple[BatchShape, ...] = ()
    losses: tuple[float, int] = (0.0, 0)
    best: float | None = None
    best_step: int = 0
    worse: int = 0
    seconds: float = 0.0
    elapsed: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """The progress in JSON types."""
        return asdict(self)

    @classmethod
    def from_dict(cls, table: Mapping[str, Any]) -> "Progress":
        """The inverse of `to_dict`."""
        shapes = tuple(
            BatchShape(**{**shape, "buckets": tuple(Bucket(**bucket) for bucket in shape["buckets"])})
            for shape in table["shapes"]
        )
        losses = tuple(table["losses"])
        progress = cls(**{**table, "shapes": shapes, "losses": losses})
        numbers = (progress.step, *losses, progress.best_step, progress.worse, progress.seconds, progress.elapsed)
        if not all(isinstance(number, int | float) for number in numbers):
            raise TypeError(f"{numbers} must all be numbers")
        return progress


class Checkpoints:
    """The checkpoints of a run: `last-<step>` to resume from, and `best-<step>`, the model that is best in validation.

    Args:
        folder: Folder of the checkpoints.
    """

    def __init__(self, folder: Path):
        self.folder = folder

    def clean(self) -> None:
        """Remove unfinished checkpoints of a killed run."""
        for part in self.folder.glob(f"{UNFINISHED}*"):
            shutil.rmtree(part, ignore_errors=True)

    def save_last(self, model: GraphModel, optimizer: torch.optim.Optimizer, progress: Progress) -> None:
        """Write everything that `restore` needs, then remove older checkpoints."""
        kept = self._steps("last")

        def write(folder: Path) -> None:
            checkpoint.save(model, folder)
            write_tensors(folder / OPTIMIZER, _optimizer_tensors(optimizer), {"version": __version__})
            write_json(folder / STATE, {"version": __version__, "progress": progress.to_dict()})

        self._write(f"last-{progress.step:08d}", write)
        self._remove("last", [step for step in kept if step != progress.step])
        self._remove("best", [step for step in self._steps("best") if step < progress.best_step])

    def save_best(self, model: GraphModel, step: int) -> None:
        """Write the best model so far; the previous one is kept until the next checkpoint refers to this one."""
        self._write(f"best-{step:08d}", lambda folder: checkpoint.save(model, folder))

    def restore(self, model: GraphModel, optimizer: torch.optim.Optimizer) -> Progress:
        """Load model and optimiser from the last checkpoint if there is one, and return its progress."""
        steps = self._steps("last")
        if not steps:
            return Progress()
        folder = self.folder / f"last-{steps[-1]:08d}"
        try:
            _load_model(folder, model)
            _load_optimizer(folder / OPTIMIZER, optimizer)
            return _load_progress(folder / STATE)
        except (DamagedFile, FileNotFoundError) as error:
            reason = str(error).rpartition(": ")[0]  # without the advice, which is for single files
            raise DamagedFile(
                f"the run cannot be resumed ({reason}): train again with another --out; `magnetite evaluate` still "
                "uses its best model"
            ) from error

    def best(self, step: int) -> Path:
        """Folder of the best model."""
        folder = self.folder / f"best-{step:08d}"
        if not folder.is_dir():
            raise DamagedFile(f"{folder} is missing: train again, or copy it back")
        return folder

    def best_step(self) -> int:
        """Step of the newest best model."""
        steps = self._steps("best")
        if not steps:
            raise ValueError(f"{self.folder} has no trained model yet: continue with `magnetite train … --resume`")
        return steps[-1]

    def _steps(self, kind: str) -> list[int]:
        found = [re.fullmatch(rf"{kind}-(\d+)", path.name) for path in self.folder.glob(f"{kind}-*")]
        return sorted(int(match[1]) for match in found if match)

    def _remove(self, kind: str, steps: list[int]) -> None:
        for step in steps:
            shutil.rmtree(self.folder / f"{kind}-{step:08d}", ignore_errors=True)

    def _write(self, name: str, write: Callable[[Path], None]) -> None:
        """Write into a temporary folder, then rename it in one step."""
        part: Path | None = None
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            part = Path(tempfile.mkdtemp(prefix=UNFINISHED, dir=self.folder))
            write(part)
            with suppress(FileNotFoundError):
                shutil.rmtree(self.folder / name)  # the same step of a run that was resumed from an older one
            part.rename(self.folder / name)
        except (OSError, SafetensorError) as error:
            if part is not None:
                shutil.rmtree(part, ignore_errors=True)
            raise OSError(
                f"the checkpoint {self.folder / name} could not be written ({error}): the previous one is intact; free "
                "some space and continue with --resume"
            ) from error


def load(run: str | Path, device: torch.device | str = "cpu") -> GraphModel:
    """The best model of a run so far, in evaluation mode.

    Args:
        run: Folder of the run.
        device: Where to load the model.
    """
    checkpoints = Checkpoints(Path(run) / FOLDER)
    return checkpoint.load(checkpoints.best(checkpoints.best_step()), device).eval()


def _optimizer_tensors(optimizer: torch.optim.Optimizer) -> dict[str, torch.Tensor]:
    state = optimizer.state_dict()["state"]
    return {f"{number}.{name}": tensor for number, entry in state.items() for name, tensor in entry.items()}


def _load_model(folder: Path, model: GraphModel) -> None:
    loaded = checkpoint.load(folder)
    expected, found = model.state_dict(), loaded.state_dict()
    wrong = [name for name in expected if name not in found or found[name].shape != expected[name].shape]
    if wrong or len(found) != len(expected):
        raise DamagedFile(f"{folder} holds a model of another configuration: give the settings of the run")
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
        raise DamagedFile(f"{path} belongs to another model: give the settings of the run")
    optimizer.load_state_dict({**optimizer.state_dict(), "state": state})


def _load_progress(path: Path) -> Progress:
    content = read_json(path, "progress of a run", "remove this checkpoint")
    try:
        if content["version"] != __version__:
            raise ValueError(
                f"{path} was written by magnetite {content['version']}, this is {__version__}: resume with that version"
            )
        return Progress.from_dict(content["progress"])
    except (KeyError, TypeError) as error:
        raise DamagedFile(f"{path} is not the progress of a run ({error!r}): remove this checkpoint") from error
