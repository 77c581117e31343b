"""A run from nothing to its result: the folder, the processes, the training, the table."""

import json
import logging
import shutil
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from rich.console import Console
from rich.table import Table

from magnetite.io.record import Record
from magnetite.io.storage import DamagedFile, check_writable, read_json, write_json
from magnetite.nn import GraphModel
from magnetite.tasks import Playground
from magnetite.training.checkpoints import FOLDER, Checkpoints
from magnetite.training.config import Config
from magnetite.training.models import build_model
from magnetite.training.presets import changed

if TYPE_CHECKING:
    from lightning.fabric import Fabric

    from magnetite.training.loop import Trainer

CONFIG, RESULT = "config.json", "result.json"
UNWATCHED = {"run": ("log_every", "checkpoint_minutes", "compile", "capture"), "data": ("mode", "memory", "pool")}
"""Options that a resumed training may change: its batches stay the same (but see `_watched`)."""


@dataclass(frozen=True)
class Machine:
    """Where a training runs: cpu or cuda, processes a machine, machines."""

    accelerator: str = "cpu"
    devices: int = 1
    nodes: int = 1

    def __post_init__(self) -> None:
        if self.devices < 1 or self.nodes < 1:
            raise ValueError(f"devices={self.devices}, nodes={self.nodes} leave no process: give numbers from 1")

    def fabric(self, precision: str) -> "Fabric":
        """The processes, started."""
        from lightning.fabric import Fabric

        # Fabric announces every process and its seed; a run says what matters by itself.
        for logger in ("lightning.fabric", "lightning.pytorch", "lightning_utilities"):
            logging.getLogger(logger).setLevel(logging.ERROR)
        warnings.filterwarnings("ignore", module="lightning")
        alone = self.devices * self.nodes == 1
        fabric = Fabric(
            accelerator=self.accelerator,
            devices=self.devices,
            num_nodes=self.nodes,
            precision=precision,  # type: ignore[arg-type]
            strategy="auto" if alone else "ddp",
        )
        fabric.launch()
        return fabric


def train(config: Config, folder: Path, machine: Machine, resume: bool = False) -> dict[str, Any]:
    """Train, measure what validation chose on validation and test, write `result.json`, print the table."""
    fabric = machine.fabric(config.run.precision)
    if fabric.is_global_zero:
        _claim(config, folder, resume)
        console = Console(stderr=True, soft_wrap=True, highlight=False)
        console.print("drawing and encoding graphs; the first time on a machine, kernels are compiled before")
    fabric.barrier()
    from magnetite.training.loop import Trainer

    record = Record(folder.name, config.run.seed)
    trainer = Trainer(config, folder, fabric, resume)
    record.started -= trainer.position.elapsed
    trainer.run()
    splits = {"valid": trainer.valid, "test": trainer.evaluation_data("test")}
    figures = {split: trainer.evaluate(data) for split, data in splits.items()}
    result = record.content(_result(trainer, figures))
    if fabric.is_global_zero:
        write_json(folder / RESULT, result)
        print_figures(figures, f"{describe_briefly(config)}: {folder / RESULT}")
    return result


def evaluate(folder: Path, split: str, machine: Machine) -> None:
    """Measure the model of a run on a split."""
    from magnetite.training.loop import Trainer

    config = changed(read_config(folder), ["run.compile=none"])
    trainer = Trainer(config, folder, machine.fabric(config.run.precision))
    trainer.load_best(trainer.checkpoints.best_step())
    record = Record(f"evaluation-{split}", config.run.seed)
    figures = {split: trainer.evaluate(trainer.evaluation_data(split))}
    path = record.write(folder, {"config": config.to_dict(), "figures": figures})
    print_figures(figures, f"{describe_briefly(config)}: {path}")


def read_config(folder: Path) -> Config:
    """The configuration of a run."""
    path = folder / CONFIG
    if not path.is_file():
        raise FileNotFoundError(f"{path} does not exist: give the folder of a run of `magnetite train`")
    try:
        return Config.from_dict(read_json(path, "configuration of a run", "train again"))
    except (TypeError, KeyError, AttributeError) as error:
        raise DamagedFile(f"{path} is no configuration of a run ({error!r}): train again") from error


def settings_of(folder: Path, task: str, compile_mode: str, overrides: Sequence[str] = ()) -> Config:
    """The settings of a run of this task, with those that were typed, to go on with on this machine."""
    config = read_config(folder)
    name = config.to_dict()["task"]["name"]
    if name != task:
        raise ValueError(f"the run in {folder} is of {name}, not of {task}: resume it with `magnetite train {name}`")
    return changed(config, [*overrides, f"run.compile={compile_mode}"])


def describe(config: Config) -> None:
    """Print the configuration, the counts of the data, and the parameters by module."""
    console = Console(soft_wrap=True, highlight=False)
    console.print_json(json.dumps(config.to_dict()))
    for split in ("train", "valid", "test"):
        part = config.task.split(split)
        console.print(f"{split}: {part.count:,} drawn, sizes {part.sizes.start}–{part.sizes.stop - 1}")
    model = build_model(config.task, config.encoding, config.model, config.run.seed)
    console.print(_parameters(model))
    console.print(f"{model.parameter_count:,} parameters, configuration {config.hash}")


def describe_briefly(config: Config) -> str:
    """Task, encoding, seed and budget in a few words."""
    names = {part: table.get("name", "") for part, table in config.to_dict().items()}
    target = f" {config.task.target}{' on DAGs' * config.task.acyclic}" if isinstance(config.task, Playground) else ""
    share = "" if config.optim.budget == 1 else f", {config.optim.budget:g} of the training"
    return f"{names['task']}{target}, {names['encoding']}, {names['model']}, seed {config.run.seed}{share}"


def default_name(config: Config, preset: str) -> str:
    """The name of a run's folder."""
    tables = config.to_dict()
    parts = [tables["task"]["name"]]
    if isinstance(config.task, Playground):
        parts += [config.task.target, "dag" if config.task.acyclic else "general"]
    return "-".join([*parts, tables["encoding"]["name"], preset, f"seed{config.run.seed}"])


def print_figures(figures: Mapping[str, Mapping[str, float]], title: str) -> None:
    """A table: one row for a whole split, and one for each of its groups."""
    names = list(dict.fromkeys(name for split in figures.values() for name in split if "/" not in name))
    table = Table("", *names, title=title)
    for split, values in figures.items():
        groups = ["", *dict.fromkeys(name.partition("/")[2] for name in values if "/" in name)]
        for group in groups:
            cells = [values.get(f"{name}/{group}" if group else name) for name in names]
            shown = ["" if cell is None else f"{cell:.4f}" for cell in cells]
            table.add_row(f"{split} {group}".strip(), *shown)
    Console(soft_wrap=True).print(table)


def accelerator_named(device: str) -> str:
    """`cpu` or `cuda`; `auto` takes the GPU where there is one."""
    if device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    if device not in ("cpu", "cuda"):
        raise ValueError(f"device {device!r} is not known: choose auto, cpu or cuda")
    if device == "cuda" and not torch.cuda.is_available():
        raise ValueError("device 'cuda' cannot be used (there is no GPU here): use cpu")
    return device


def compile_mode(accelerator: str, wanted: bool | None = None) -> str:
    """How a model is compiled: in layers on a GPU, not at all elsewhere, unless told otherwise."""
    return "layers" if (accelerator == "cuda" if wanted is None else wanted) else "none"


def _result(trainer: "Trainer", figures: Mapping[str, Any]) -> dict[str, Any]:
    config, position = trainer.config, trainer.position
    return {
        "config": config.to_dict(),
        "hash": config.hash,
        "parameters": trainer.model.parameter_count,
        "processes": trainer.share.processes,
        "graphs_seen": position.step * config.optim.batch,
        "steps": position.step,
        "best_step": position.best_step,
        "seconds_of_training": round(position.seconds, 2),
        "graphs_per_second": round(position.step * config.optim.batch / max(position.seconds, 1e-9), 1),
        "data": trainer.data.mode,
        "figures": dict(figures),
    }


def _claim(config: Config, folder: Path, resume: bool) -> None:
    """Make the folder this configuration's, or see that it is."""
    if not resume:
        if (folder / CONFIG).exists():
            raise ValueError(f"{folder} holds a run already: go on with --resume, or choose another --out")
        if folder.exists() and not folder.is_dir():
            raise ValueError(f"{folder} is a file: give a folder for the run")
        check_writable(folder / CONFIG)
        shutil.rmtree(folder / FOLDER, ignore_errors=True)
        write_json(folder / CONFIG, config.to_dict())
        return
    Checkpoints(folder / FOLDER).clean()
    configs = (read_config(folder), config)
    fresh = any(each.data.mode == "fresh" for each in configs)
    found, wanted = (_watched(each.to_dict(), fresh) for each in configs)
    for table in wanted:
        for name, value in wanted[table].items():
            if found[table].get(name) != value:
                raise ValueError(
                    f"the run in {folder} was started with {table}.{name}={found[table].get(name)!r}, not {value!r}: "
                    "resume it with all of its own settings, or with none but --set"
                )


def _watched(tables: dict[str, dict[str, Any]], fresh: bool) -> dict[str, dict[str, Any]]:
    """The options that must stay; where data are drawn anew without end, how they are drawn, too."""
    free = {"run": UNWATCHED["run"]} if fresh else UNWATCHED
    return {
        table: {name: value for name, value in options.items() if name not in free.get(table, ())}
        for table, options in tables.items()
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
