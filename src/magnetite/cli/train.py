"""`magnetite train`: train a model on a task."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING
from pathlib import Path
from typing import Annotated, Any

import typer

from magnetite.cli._tasks import task_commands
from magnetite.tasks import TASKS
from magnetite.training.encodings import names_known
from magnetite.training.models import MODELS
from magnetite.training.options import options_of

TABLES = "task, encoding, model, optim, data, run"
SETTINGS = ("encoding", "model", "preset", "seed", "epochs", "budget", "precision")
"""Options, besides those of the task, that select a configuration; the others change it, or say where it runs."""


def train(
    task: str,
    options: dict[str, Any],
    context: typer.Context,
    encoding: Annotated[
        str | None,
        typer.Option(
            help=f"Positional encodings, joined by + (magnetic+walks): {', '.join(names_known())}.",
            show_default="that of the preset, or magnetic",
        ),
    ] = None,
    model: Annotated[str, typer.Option(help=f"Model: {', '.join(MODELS)}.")] = "transformer",
    preset: Annotated[
        str,
        typer.Option(
            help="Preset of settings: quick (minutes on two cores), paper, best or authors (as the code of the paper's "
            "authors); for your own data quick, default or large."
        ),
    ] = "quick",
    seed: Annotated[int, typer.Option(help="Seed of parameters, order of the graphs, and dropout.")] = 0,
    epochs: Annotated[float | None, typer.Option(help="Number of passes over the training graphs.")] = None,
    budget: Annotated[float, typer.Option(help="Fraction of the training to run; warm-up is shortened as well.")] = 1.0,
    out: Annotated[Path | None, typer.Option(help="Folder of the run; by default a new folder in runs/.")] = None,
    resume: Annotated[
        bool,
        typer.Option("--resume", help="Continue the run in --out; its settings need not be repeated."),
    ] = False,
    devices: Annotated[int, typer.Option(help="Number of processes on this machine, one per GPU.")] = 1,
    machines: Annotated[int, typer.Option(help="Number of machines.")] = 1,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    precision: Annotated[str | None, typer.Option(help="Precision: 32-true or bf16-mixed.")] = None,
    compiled: Annotated[
        bool | None, typer.Option("--compile/--no-compile", help="Use torch.compile; by default on a GPU only.")
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set", help=f"Change a setting: table.option=value, where table is one of {TABLES}; may be repeated."
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print all options and the number of parameters by module, and exit.")
    ] = False,
) -> None:
    """Train a model; the run is a folder with config.json, log.jsonl, checkpoints and result.json."""
    from magnetite.training import runs
    from magnetite.training.config import configuration

    accelerator = runs.accelerator_named(device)
    run: dict[str, Any] = {"seed": seed, "precision": precision}
    run["compile"] = runs.compile_mode(accelerator, compiled)
    chosen = {"name": model} if _typed(context)("model") else {}
    changes = {"task": options, "model": chosen, "optim": {"epochs": epochs, "budget": budget}, "run": run}
    given = [*options, *filter(_typed(context), SETTINGS)]
    if resume and out is not None and given:
        _check_repeated(task, options, settings or (), out, given)
    if resume and out is not None and not given:
        config = runs.resumed_config(out, task, run["compile"], settings or ())
    else:
        config = configuration(task, encoding, preset, _given(changes), settings or ())
    if dry_run:
        runs.describe(config)
        return
    folder = out or runs.default_folder(config, preset, resume)
    runs.train(config, folder, runs.Machine(accelerator, devices, machines), resume)


def _check_repeated(
    task: str, options: Mapping[str, Any], settings: Sequence[str], out: Path, given: Sequence[str]
) -> None:
    """Refuse options that would change a run that is resumed, where the command does not repeat those it started with.

    Args:
        task: Name of the task.
        options: Options of the task that were typed.
        settings: Settings that were typed with `--set`.
        out: Folder of the run.
        given: Names of all options that were typed and select a configuration.
    """
    from magnetite.training import runs

    set_ = {each.partition("=")[0].strip() for each in settings}
    missing = [
        name
        for name, option in options_of(TASKS[task]).items()
        if option.default is MISSING and name not in options and f"task.{name}" not in set_
    ]
    if missing:
        runs.read_tables(out)  # raises an error if the folder is not a run
        typed = ", ".join(f"--{name.replace('_', '-')}" for name in given)
        raise ValueError(
            f"a resumed run keeps its configuration: leave out {typed}, or repeat the whole command with "
            f"--{missing[0]}; {runs.CHANGEABLE}"
        )


def _typed(context: typer.Context) -> Callable[[str], bool]:
    """Whether an option was typed; the source is compared by name, since typer may bring its own click."""
    return lambda name: getattr(context.get_parameter_source(name), "name", "DEFAULT") != "DEFAULT"


def _given(changes: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """The options that were given; the preset decides the others."""
    return {
        table: {name: value for name, value in options.items() if value is not None}
        for table, options in changes.items()
    }


app = task_commands(
    train,
    "magnetite train sorting --encoding magnetic --preset quick\n\n"
    "Example: magnetite train --data FOLDER --target y --level graph --kind regression",
)
