"""A training run from start to result: its folder, its processes, the training, and the table of metrics."""

import json
import logging
import os
import re
import warnings
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, fields
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from rich.console import Console
from rich.table import Table

from magnetite.encodings.checks import unchanged_later
from magnetite.io.files import write_table
from magnetite.io.record import Record, read_record
from magnetite.io.storage import (
    LOCK,
    DamagedFile,
    check_writable,
    foreign_files,
    locked,
    read_json,
    remove_leftovers,
    write_json,
)
from magnetite.nn import GraphModel
from magnetite.tasks.base import SPLITS, Task
from magnetite.tasks.schema import Schema
from magnetite.training.checkpoints import FOLDER, Checkpoints
from magnetite.training.config import Config, changed
from magnetite.training.log import LOG
from magnetite.training.models import build_model

if TYPE_CHECKING:
    from lightning.fabric import Fabric

    from magnetite.training.loop import Evaluation, Trainer

CONFIG, SCHEMA, RESULT = "config.json", "schema.json", "result.json"
PREDICTIONS = "predictions.parquet"
"""Answers of the best model for the test split, of tasks that keep them."""

OWN = (CONFIG, SCHEMA, RESULT, LOG, "predictions*.parquet", "evaluation-*.json", f"{FOLDER}/*")
"""The files of a run, as patterns of paths in its folder."""

RESUMABLE = {
    "run": ("log_every", "checkpoint_minutes", "compile", "capture"),
    "data": ("mode", "memory", "pool", "cache"),
}
"""Options that may change when a run is resumed, because they do not change its batches (but see `_fixed`)."""

CHANGEABLE = "a resumed run may change data.mode, data.memory, data.pool, data.cache, logging and compilation only"
"""The same in words."""

LAUNCHERS = (("torchrun", "TORCHELASTIC_RUN_ID", "WORLD_SIZE"), ("srun", "SLURM_STEP_ID", "SLURM_STEP_NUM_TASKS"))
"""Programs that start processes, with the environment variables by which they are recognised and say how many."""


@dataclass(frozen=True)
class Machine:
    """Where a run is executed.

    Args:
        accelerator: cpu or cuda.
        devices: Number of processes per machine, one per GPU.
        machines: Number of machines.
    """

    accelerator: str = "cpu"
    devices: int = 1
    machines: int = 1

    def __post_init__(self) -> None:
        for name in ("devices", "machines"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")

    def fabric(self, precision: str) -> "Fabric":
        """Launch the processes, or join those that torchrun or SLURM launched."""
        from lightning.fabric import Fabric

        self._check_launched()
        # Fabric announces every process and its seed; a run reports by itself.
        for logger in ("lightning.fabric", "lightning.pytorch", "lightning_utilities"):
            logging.getLogger(logger).setLevel(logging.ERROR)
        warnings.filterwarnings("ignore", module="lightning")
        single = self.devices * self.machines == 1
        fabric = Fabric(
            accelerator=self.accelerator,
            devices=self.devices,
            num_nodes=self.machines,
            precision=precision,  # type: ignore[arg-type]
            strategy="auto" if single else "ddp",
        )
        fabric.launch()
        return fabric

    def _check_launched(self) -> None:
        """Raise an error if a launcher started another number of processes; each would train on its own."""
        for launcher, mark, variable in LAUNCHERS:
            launched = int(os.environ.get(variable, "1")) if mark in os.environ else 0
            if launched > 1 and launched != self.devices * self.machines:
                raise ValueError(
                    f"{launcher} started {launched} processes, but --devices {self.devices} × --machines "
                    f"{self.machines} are {self.devices * self.machines}: give the numbers of processes per machine "
                    "and of machines"
                )


def train(config: Config, folder: Path, machine: Machine, resume: bool = False) -> dict[str, Any]:
    """Train, evaluate the best model on validation and test, write `result.json`, and print the table.

    Args:
        config: The configuration of the run.
        folder: Folder of the run.
        machine: Where to run.
        resume: Whether to continue the run in the folder.

    Returns:
        The content of `result.json`.
    """
    from magnetite.training.loop import Trainer

    fabric = machine.fabric(config.run.precision)
    trainer = Trainer(config, folder, fabric)  # first, so that a model that cannot be built leaves no folder
    _check_sizes(config.task, trainer.encodings)
    main = fabric.is_global_zero
    if main:
        _check_folder(folder, resume)  # before anything is written, the lock included
    with locked(folder / LOCK, str(folder)) if main else nullcontext():
        if main:
            _claim(config, folder, resume)
            console = Console(stderr=True, soft_wrap=True, highlight=False)
            console.print(f"{'generating and ' if config.task.generates else ''}encoding graphs")
        fabric.barrier()
        record = Record(folder.name, config.run.seed)
        if resume:
            trainer.restore()
        record.started -= trainer.progress.elapsed
        try:
            trainer.run()
        except ValueError:
            if main and not resume and not trainer.progress.step:  # such as a batch larger than the data
                _give_up(config, folder)
            raise
        splits = {"valid": trainer.valid, "test": trainer.evaluation_data("test")}
        splits |= {name: trainer.evaluation_data(name) for name in config.task.reported}
        figures = {split: trainer.evaluate(data) for split, data in splits.items()}
        result = record.content(_result(trainer, figures))
        if main:
            write_predictions(trainer, "test", splits["test"], folder / PREDICTIONS)
            write_json(folder / RESULT, result)
            print_metrics(figures, f"{title(config)}: {folder / RESULT}")
    return result


def evaluate(folder: Path, split: str, machine: Machine, settings: Sequence[str] = ()) -> dict[str, float]:
    """Evaluate the best model of a run on a split: print the table, and write `evaluation-<split>.json`.

    Args:
        folder: Folder of the run.
        split: train, valid or test, or another set of examples that the task has.
        machine: Where to run.
        settings: Settings of the task's data that differ from those of the run, such as `task.longest=20`; the file is
            named after them.

    Returns:
        The metrics by name.
    """
    from magnetite.training.loop import Trainer

    config = read_config(folder)
    known = (*SPLITS, *config.task.evaluations)
    if split not in known:
        raise ValueError(f"unknown split {split!r}: choose one of {', '.join(known)}")
    for setting in settings:
        name = setting.partition("=")[0].strip()
        if not name.startswith("task.") or name.removeprefix("task.") in config.task.model_options:
            raise ValueError(f"{name} cannot be set in an evaluation: only settings of the task's data can, task.…")
    config = changed(config, [*settings, "run.compile=none"])
    suffix = "".join(f"-{re.sub(r'[^a-z0-9.]+', '-', each.removeprefix('task.').lower())}" for each in settings)
    trainer = Trainer(config, folder, machine.fabric(config.run.precision))
    trainer.load_best(trainer.checkpoints.best_step())
    record = Record(f"evaluation-{split}{suffix}", config.run.seed)
    data = trainer.evaluation_data(split)
    figures = {split: trainer.evaluate(data)}
    whole = split == "test" and not settings
    write_predictions(trainer, split, data, folder / (PREDICTIONS if whole else f"predictions-{split}{suffix}.parquet"))
    path = record.write(folder, {"config": config.to_dict(), "figures": figures})
    print_metrics(figures, f"{title(config)}: {path}")
    return figures[split]


def write_predictions(trainer: "Trainer", split: str, data: "Evaluation", path: Path) -> None:
    """Write the answers for a split to a file, for tasks that keep them; called by one process.

    Args:
        trainer: The run, with its best model.
        split: Name of the split.
        data: The split.
        path: File for the answers.
    """
    if data.share.processes > 1:  # this process has a part of the split
        data = type(data)(data.examples, trainer.encodings, trainer.config.data)
    answers = trainer.answers(data)
    if answers is not None:
        write_table(path, trainer.config.task.answer_table(split, answers))


CHANGE = "settings are changed with --set when a run is started; copy the file back, or train with another --out"
"""What to do with a configuration that is not as it was written."""


def read_config(folder: Path) -> Config:
    """The configuration of a run."""
    tables = read_tables(folder)
    try:
        return Config.from_dict(tables)
    except (TypeError, KeyError, AttributeError) as error:
        raise DamagedFile(f"{folder / CONFIG} is not the configuration of a run ({error!r}): {CHANGE}") from error


def read_tables(folder: Path) -> dict[str, dict[str, Any]]:
    """The configuration of a run as plain tables, without reading its data."""
    path = folder / CONFIG
    if not path.is_file():
        raise FileNotFoundError(f"{path} does not exist: give the folder of a run, written by `magnetite train`")
    tables = read_json(path, "configuration of a run", CHANGE)
    if not all(isinstance(tables.get(field.name), dict) for field in fields(Config)):
        raise DamagedFile(f"{path} is not the configuration of a run: {CHANGE}")
    return tables


def read_result(folder: Path) -> dict[str, Any]:
    """The result of a finished run."""
    path = folder / RESULT
    if not path.is_file():
        raise FileNotFoundError(f"{path} does not exist: the run has not ended; continue it with --resume")
    return read_record(path)["result"]


def read_schema(folder: Path) -> Schema:
    """What the model of a run reads and predicts."""
    path = folder / SCHEMA
    if not path.is_file():
        read_tables(folder)  # raises an error if the folder is not a run
        raise FileNotFoundError(f"{path} does not exist: only runs of the task supervised predict for other graphs")
    try:
        return Schema.from_dict(read_json(path, "schema of a run", "train again"))
    except (TypeError, KeyError) as error:
        raise DamagedFile(f"{path} is not the schema of a run ({error!r}): train again") from error


def check_not_own(path: Path, folder: Path) -> None:
    """Raise an error if an output would replace a file of a run.

    Args:
        path: The output.
        folder: Folder of the run.
    """
    real, inside = Path(os.path.realpath(path)), Path(os.path.realpath(folder))
    if real.is_relative_to(inside) and any(fnmatch(str(real.relative_to(inside)), pattern) for pattern in OWN):
        raise ValueError(f"{path} is a file of the run, which would be overwritten: choose another output")


def resumed_config(folder: Path, task: str, compile_mode: str, overrides: Sequence[str] = ()) -> Config:
    """The configuration of a run of this task, with the given settings, to continue on this machine."""
    config = read_config(folder)
    name = config.name_of("task")
    if name != task:
        raise ValueError(f"{folder} is a run of {name}, not of {task}: resume it with `magnetite train {name}`")
    return changed(config, [*overrides, f"run.compile={compile_mode}"])


def describe(config: Config) -> None:
    """Print the configuration, the sizes of the splits, and the parameters by module."""
    console = Console(soft_wrap=True, highlight=False)
    console.print_json(json.dumps(config.to_dict()))
    for split in SPLITS:
        part = config.task.split(split)
        console.print(f"{split}: {part.count:,}, sizes {part.sizes.start}–{part.sizes.stop - 1}")
    model = build_model(config.task, config.encoding, config.model, config.run.seed)
    console.print(_parameters(model))
    console.print(f"{model.parameter_count:,} parameters, configuration {config.hash}")


def title(config: Config) -> str:
    """Task, encoding, model, seed and budget in a few words.

    >>> from magnetite.training.config import configuration
    >>> title(configuration("distances", "walks", "quick"))
    'distances (reachability, dag), walks, transformer, seed 0'
    """
    variant = f" ({', '.join(config.task.variant)})" if config.task.variant else ""
    budget = "" if config.optim.budget == 1 else f", {config.optim.budget:g} of the training"
    names = f"{config.name_of('task')}{variant}, {encoding_name(config)}, {config.name_of('model')}"
    return f"{names}, seed {config.run.seed}{budget}"


def default_name(config: Config, preset: str) -> str:
    """Name of the folder of a run."""
    parts = [config.name_of("task"), *config.task.variant, encoding_name(config), preset, f"seed{config.run.seed}"]
    return "-".join(parts)


def default_folder(config: Config, preset: str, resume: bool = False) -> Path:
    """Folder of a run in `runs/`: a new one if the earlier ones have ended, or the last one to resume."""
    first = Path("runs") / default_name(config, preset)
    folders = [first]
    while (folders[-1] / RESULT).exists():
        folders.append(first.with_name(f"{first.name}-{len(folders) + 1}"))
    return folders[-2] if resume and len(folders) > 1 and not (folders[-1] / CONFIG).exists() else folders[-1]


def encoding_name(config: Config) -> str:
    """Names of the encodings as on the command line."""
    return "+".join(part.name for part in config.encoding.parts) or "none"


def print_metrics(figures: Mapping[str, Mapping[str, float]], heading: str) -> None:
    """Print a table with one row per split and one per group of a split."""
    names = list(dict.fromkeys(name for split in figures.values() for name in split if "/" not in name))
    table = Table("", *names, title=heading)
    for split, values in figures.items():
        groups = ["", *dict.fromkeys(name.partition("/")[2] for name in values if "/" in name)]
        for group in groups:
            cells = [values.get(f"{name}/{group}" if group else name) for name in names]
            shown = ["" if cell is None else f"{cell:.4f}" for cell in cells]
            table.add_row(f"{split} {group}".strip(), *shown)
    console = Console(soft_wrap=True)
    console.width = max(console.width, console.measure(table, options=console.options.update(width=1000)).maximum)
    console.print(table)  # in a narrow terminal lines are wrapped, and no metric is cut off


def accelerator_named(device: str) -> str:
    """`cpu` or `cuda`; `auto` is the GPU if there is one."""
    if device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    if device not in ("cpu", "cuda"):
        raise ValueError(f"unknown device {device!r}: choose auto, cpu or cuda")
    if device == "cuda" and not torch.cuda.is_available():
        raise ValueError("device 'cuda' is not available on this machine: use cpu")
    return device


def compile_mode(accelerator: str, compiles: bool | None = None) -> str:
    """How the model is compiled: by default, layer by layer on a GPU and not at all elsewhere."""
    return "layers" if (accelerator == "cuda" if compiles is None else compiles) else "none"


def _result(trainer: "Trainer", figures: Mapping[str, Any]) -> dict[str, Any]:
    config, progress = trainer.config, trainer.progress
    return {
        "config": config.to_dict(),
        "hash": config.hash,
        "parameters": trainer.model.parameter_count,
        "processes": trainer.share.processes,
        "graphs_seen": progress.step * config.optim.batch,
        "steps": progress.step,
        "best_step": progress.best_step,
        "seconds_of_training": round(progress.seconds, 2),
        "graphs_per_second": round(progress.step * config.optim.batch / max(progress.seconds, 1e-9), 1),
        "data": trainer.data.mode,
        "figures": dict(figures),
    }


def _check_sizes(task: Task, encodings: Mapping[str, Any]) -> None:
    """Raise an error if a graph of given data is too large for an encoding that has a `check_size`."""
    checks = [encoding.check_size for encoding in encodings.values() if hasattr(encoding, "check_size")]
    if checks and not task.generates:
        largest = max(task.split(name).sizes.stop - 1 for name in SPLITS)
        for check in checks:
            check(largest)


def _check_folder(folder: Path, resume: bool) -> None:
    """Raise an error unless the folder has a run to resume, or nothing that a new run could replace."""
    if resume:
        read_tables(folder)
        return
    if (folder / CONFIG).exists():
        raise ValueError(f"{folder} already contains a run: resume it, or choose another folder as out")
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder} is a file: give a folder for the run")
    others = foreign_files(folder)
    if others:
        raise ValueError(f"{folder} contains other files, such as {others[0].name}: choose a new or empty folder")


def _claim(config: Config, folder: Path, resume: bool) -> None:
    """Write the configuration to a new folder, or check that the folder's configuration is the same."""
    _check_folder(folder, resume)
    remove_leftovers(folder)
    if not resume:
        check_writable(folder / CONFIG)
        write_json(folder / CONFIG, config.to_dict())
    else:
        Checkpoints(folder / FOLDER).clean()
        _check_same(config, folder)
    schema = config.task.schema()
    if schema is not None and not (folder / SCHEMA).exists():
        write_json(folder / SCHEMA, schema.to_dict())
    for name, content in config.task.files().items():
        if not (folder / name).exists():
            write_json(folder / name, content)


def _give_up(config: Config, folder: Path) -> None:
    """Remove the files of a run that could not take its first step, so that the folder can be used again."""
    for name in (CONFIG, SCHEMA, LOG, *config.task.files()):
        (folder / name).unlink(missing_ok=True)


def _check_same(config: Config, folder: Path) -> None:
    """Raise an error if a setting of the run in the folder would change that decides its result."""
    tables = (read_tables(folder), config.to_dict())
    fresh = any(each["data"].get("mode") == "fresh" for each in tables)
    found, given = (_fixed(each, fresh) for each in tables)
    for table, added in _added(config).items():
        for name in dict.fromkeys([*found[table], *given[table]]):
            before, now = found[table].get(name), given[table].get(name)
            if before != now and not (name in added and name not in found[table]):
                raise ValueError(
                    f"the run in {folder} was started with {table}.{name}={before!r}, not {now!r}: {CHANGEABLE}"
                )


def _added(config: Config) -> dict[str, list[str]]:
    """By table, the options that an older version may not have stored, and that have their defaults."""
    parts = config.encoding.parts
    encoding = [f"{part.name}.{name}" for part in parts for name in part.to_dict().keys() - part.deciding().keys()]
    tables = {field.name: getattr(config, field.name) for field in fields(config)}
    return {name: encoding if name == "encoding" else unchanged_later(value) for name, value in tables.items()}


def _fixed(tables: dict[str, dict[str, Any]], fresh: bool) -> dict[str, dict[str, Any]]:
    """The options that must not change; for fresh data that includes how they are generated."""
    free = {"run": RESUMABLE["run"]} if fresh else RESUMABLE
    parts = tables["encoding"].items()
    flat = {f"{part}.{name}": value for part, options in parts for name, value in options.items()}
    return {
        table: {name: value for name, value in options.items() if name not in free.get(table, ())}
        for table, options in {**tables, "encoding": flat}.items()
    }


def _parameters(model: GraphModel) -> Table:
    table = Table("module", "shapes", "parameters")
    for name, part in model.named_children():
        shapes = ", ".join("×".join(map(str, parameter.shape)) for parameter in part.parameters())
        count = sum(parameter.numel() for parameter in part.parameters())
        table.add_row(name, shapes, f"{count:,}")
    for name, parameter in model.named_parameters(recurse=False):
        table.add_row(name, "×".join(map(str, parameter.shape)), f"{parameter.numel():,}")
    return table
