"""`magnetite train` and `magnetite evaluate`."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from magnetite.training.encodings import ENCODINGS

TABLE_NAMES = "task, encoding, model, optim, data, run"
SETTINGS = ("encoding", "preset", "target", "acyclic", "seed", "epochs", "budget", "precision")
"""Options that make a configuration; the others change it, or say where and how it runs."""


def train(
    context: typer.Context,
    task: Annotated[str, typer.Argument(help="What is learned: sorting or playground.")],
    encoding: Annotated[str, typer.Option(help=f"One of {', '.join(ENCODINGS)}.")] = "magnetic",
    preset: Annotated[str, typer.Option(help="quick (minutes on two cores), paper (its settings) or best.")] = "quick",
    target: Annotated[
        str | None, typer.Option(help="playground: adjacency, reachability, directed-distance, …")
    ] = None,
    acyclic: Annotated[bool | None, typer.Option(help="playground: DAGs, or general digraphs.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of parameters, order and dropout.")] = 0,
    epochs: Annotated[float | None, typer.Option(help="Passes over the training graphs.")] = None,
    budget: Annotated[float, typer.Option(help="Share of the training that is done, warm-up included.")] = 1.0,
    out: Annotated[Path | None, typer.Option(help="Folder of the run; under runs/ if left out.")] = None,
    resume: Annotated[
        bool,
        typer.Option("--resume", help="Go on where the run stands; with --out and --set alone, by its settings."),
    ] = False,
    devices: Annotated[int, typer.Option(help="Processes on this machine, one a GPU.")] = 1,
    nodes: Annotated[int, typer.Option(help="Machines.")] = 1,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    precision: Annotated[str | None, typer.Option(help="32-true or bf16-mixed.")] = None,
    compiled: Annotated[
        bool | None, typer.Option("--compile/--no-compile", help="torch.compile; on a GPU unless told otherwise.")
    ] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help=f"table.option=value of {TABLE_NAMES}; may be repeated.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print configuration and model, train nothing.")] = False,
) -> None:
    """Train a model; the run is a folder with config.json, log.jsonl, checkpoints and result.json."""
    from magnetite.training import session
    from magnetite.training.presets import configuration

    accelerator = session.accelerator_named(device)
    run: dict[str, Any] = {"seed": seed, "precision": precision}
    run["compile"] = session.compile_mode(accelerator, compiled)
    changes = {
        "task": {"target": target, "acyclic": acyclic},
        "optim": {"epochs": epochs, "budget": budget},
        "run": run,
    }
    if resume and out is not None and not any(map(_typed(context), SETTINGS)):
        config = session.settings_of(out, task, run["compile"], settings or ())
    else:
        config = configuration(task, encoding, preset, _given(changes), settings or ())
    if dry_run:
        session.describe(config)
        return
    folder = out or Path("runs") / session.default_name(config, preset)
    machine = session.Machine(accelerator, devices, nodes)
    session.train(config, folder, machine, resume)


def evaluate(
    run: Annotated[Path, typer.Argument(help="Folder of a run of `magnetite train`.")],
    split: Annotated[str, typer.Option(help="train, valid or test.")] = "test",
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
) -> None:
    """Measure the model of a run on a split: print the table, write evaluation-<split>.json into the run's folder."""
    from magnetite.tasks.examples import check_split
    from magnetite.training import session

    check_split(split)
    session.evaluate(run, split, session.Machine(session.accelerator_named(device)))


def _typed(context: typer.Context) -> Callable[[str], bool]:
    """Whether an option was typed, and does not stand at its default; by name, as typer may carry its own click."""
    return lambda name: getattr(context.get_parameter_source(name), "name", "DEFAULT") != "DEFAULT"


def _given(changes: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """The options that were given; those of the preset stand for the rest."""
    return {
        table: {name: value for name, value in options.items() if value is not None}
        for table, options in changes.items()
    }
