"""Checkpoints of a run: folders that are written atomically, in safetensors and JSON, without pickle."""

import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from magnetite.batching import BatchShape, Bucket
from magnetite.io.storage import (
    CHECKSUM,
    NEWER,
    DamagedFile,
    NotWritten,
    complete_folder,
    read_json,
    read_tensors,
    remove_folder,
    remove_leftovers,
    replacing_folder,
    settle_folder,
    write_json,
    write_tensors,
)
from magnetite.nn import GraphModel, checkpoint
from magnetite.nn.module import describe
from magnetite.version import __version__

FOLDER = "checkpoints"
"""Folder of the checkpoints in the folder of a run."""

STATE, OPTIMIZER, AVERAGE = "state.json", "optimizer.safetensors", "average.safetensors"


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
        """Complete or remove what a killed run left unfinished."""
        remove_leftovers(self.folder)
        for path in self.folder.glob(f"*{NEWER}"):
            settle_folder(path.with_name(path.name.removesuffix(NEWER)))

    def save_last(
        self,
        model: GraphModel,
        optimizer: torch.optim.Optimizer,
        progress: Progress,
        average: Mapping[str, torch.Tensor] | None = None,
    ) -> None:
        """Write everything that `restore` needs, then remove older checkpoints."""

        def write(folder: Path) -> None:
            version = {"version": __version__}
            state = {
                **version,
                "parameters": checkpoint.save(model, folder),
                "optimizer": write_tensors(folder / OPTIMIZER, _optimizer_tensors(optimizer), version),
                "progress": progress.to_dict(),
            }
            if average:
                state["average"] = write_tensors(folder / AVERAGE, dict(average), version)
            write_json(folder / STATE, state)

        self._write("last", progress.step, write)
        self._keep("last", progress.step)
        self._keep("best", progress.best_step)

    def save_best(self, model: GraphModel, step: int) -> None:
        """Write the best model so far; the previous one is kept until the next checkpoint refers to this one."""
        self._write("best", step, lambda folder: checkpoint.save(model, folder))

    def restore(
        self,
        model: GraphModel,
        optimizer: torch.optim.Optimizer,
        average: Mapping[str, torch.Tensor] | None = None,
    ) -> Progress:
        """Load model, optimiser and average from the last checkpoint if there is one, and return its progress."""
        steps = self._steps("last")
        if not steps:
            return Progress()
        folder = self._folder("last", steps[-1])
        try:
            progress, *checksums = _read_state(folder / STATE)
            names = [checkpoint.PARAMETERS, OPTIMIZER] + ([AVERAGE] if average else [])
            (_, found), (tensors, kept), *averages = [read_tensors(folder / name) for name in names]
            if [found[CHECKSUM], kept[CHECKSUM], *(other[CHECKSUM] for _, other in averages)] != checksums:
                raise DamagedFile(f"the files of {folder} are of several saves: remove this checkpoint")
            _load_model(folder, model)
            _load_optimizer(folder / OPTIMIZER, tensors, optimizer)
            for values, _ in averages:
                _load_average(folder / AVERAGE, values, average or {})
        except (DamagedFile, FileNotFoundError) as error:
            reason = str(error).rpartition(": ")[0]  # without the advice, which is for single files
            advice = "train again with another --out"
            if len(steps) > 1:
                advice = f"remove {folder} to continue from step {steps[-2]}, or {advice}"
            if self._steps("best"):
                advice += "; `magnetite evaluate` still uses its best model"
            raise DamagedFile(f"the run cannot be resumed ({reason}): {advice}") from error
        return progress

    def load_best(self, model: GraphModel, step: int) -> None:
        """Load the parameters of the best model, which was found at this step."""
        _load_model(self.best(step), model)

    def best(self, step: int) -> Path:
        """Folder of the best model."""
        folder = self._folder("best", step)
        if not folder.is_dir():
            raise DamagedFile(f"{folder} is missing: train again, or copy it back")
        return folder

    def models(self) -> list[Path]:
        """Folders of the stored models: the best one in validation and the last one."""
        return [self._folder(kind, step) for kind in ("best", "last") for step in self._steps(kind)]

    def progress(self) -> Progress:
        """Progress of the last checkpoint."""
        steps = self._steps("last")
        if not steps:
            raise ValueError(f"{self.folder} has no checkpoint yet: continue with `magnetite train … --resume`")
        return _read_state(self._folder("last", steps[-1]) / STATE)[0]

    def best_step(self) -> int:
        """Step of the best model: that of the last checkpoint, or the newest if there is no checkpoint to ask."""
        steps = self._steps("best")
        if not steps:
            raise ValueError(f"{self.folder} has no trained model yet: continue with `magnetite train … --resume`")
        try:
            known = _read_state(self._folder("last", self._steps("last")[-1]) / STATE)[0].best_step
        except (IndexError, ValueError, OSError):
            return steps[-1]
        return known if known in steps else steps[-1]

    def advice(self) -> str:
        """What to do after a failure: continue from the last checkpoint if there is one."""
        steps = self._steps("last")
        if not steps:
            return "there is no checkpoint yet, so train again with another --out"
        return f"the last good checkpoint is {self._folder('last', steps[-1])}"

    def _folder(self, kind: str, step: int) -> Path:
        return complete_folder(self.folder / f"{kind}-{step:08d}")

    def _steps(self, kind: str) -> list[int]:
        found = [re.fullmatch(rf"{kind}-(\d+)({NEWER})?", path.name) for path in self.folder.glob(f"{kind}-*")]
        return sorted({int(match[1]) for match in found if match})

    def _keep(self, kind: str, step: int) -> None:
        for other in self._steps(kind):
            if other != step:
                settle_folder(self.folder / f"{kind}-{other:08d}")
                remove_folder(self.folder / f"{kind}-{other:08d}")

    def _write(self, kind: str, step: int, write: Callable[[Path], object]) -> None:
        path = self.folder / f"{kind}-{step:08d}"
        try:
            with replacing_folder(path) as part:
                write(part)
        except NotWritten as error:
            steps = self._steps("last")
            kept = (
                f"the previous one is intact; free some space and continue with --resume from step {steps[-1]}"
                if steps
                else "there is no earlier one; free some space and start again with --resume"
            )
            raise OSError(f"the checkpoint {path} could not be written ({error.reason}): {kept}") from error


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
    if describe(loaded) != describe(model):
        raise DamagedFile(f"{folder} holds a model of another configuration: give the settings of the run")
    model.load_state_dict(loaded.state_dict())


def _load_optimizer(path: Path, tensors: Mapping[str, torch.Tensor], optimizer: torch.optim.Optimizer) -> None:
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


def _load_average(path: Path, tensors: Mapping[str, torch.Tensor], average: Mapping[str, torch.Tensor]) -> None:
    shapes, own = ({name: each.shape for name, each in found.items()} for found in (tensors, average))
    if shapes != own:
        raise DamagedFile(f"{path} belongs to another model: give the settings of the run")
    for name, value in average.items():
        value.copy_(tensors[name])


def _read_state(path: Path) -> tuple[Progress, *tuple[str, ...]]:
    """The progress, and the checksums of the parameters, of the state of the optimiser, and of averages if any."""
    content = read_json(path, "progress of a run", "remove this checkpoint")
    try:
        if content["version"] != __version__:
            raise ValueError(
                f"{path} was written by magnetite {content['version']}, this is {__version__}: resume with that version"
            )
        averages = [content["average"]] if "average" in content else []
        return Progress.from_dict(content["progress"]), content["parameters"], content["optimizer"], *averages
    except (KeyError, TypeError) as error:
        raise DamagedFile(f"{path} is not the progress of a run ({error!r}): remove this checkpoint") from error
