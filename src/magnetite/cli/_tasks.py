"""Commands that take the name of a task: one subcommand per task, whose options are the fields of its dataclass."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import MISSING
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from magnetite.tasks import TASKS
from magnetite.training.options import Option, check_choice, is_names, options_of, parse, plain

PLAIN = (bool, int, float, str)
"""Types that typer parses; other values are written as in TOML, lists also without brackets."""

OWN_DATA = "supervised"
"""The task that is meant if data are given, but no task."""

HIDDEN = ("fingerprint",)
"""Options that configurations store and nobody types; help does not list them."""


def task_commands(
    command: Callable[..., None],
    example: str,
    data_only: bool = False,
    others: Mapping[str, typer.Typer] | None = None,
) -> typer.Typer:
    """A group with one subcommand per entry of `TASKS`, made when it is called, so that tasks may be added at any time.

    Args:
        command: Called with the name of the task, a dict of the task's options that were typed, and its own options.
        example: A command line for the help.
        data_only: Whether to offer only tasks that generate data, and only the options that change them.
        others: Further subcommands by name, which are not tasks.
    """
    further = dict(others or {})

    def offered() -> tuple[str, ...]:
        return tuple(name for name, kind in TASKS.items() if kind.generates or not data_only)

    class TaskCommands(TyperGroup):
        def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002
            return [*offered(), *further]

        def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
            if args and args[0].startswith("-") and not data_only:
                implied = _implied(args)
                if not (implied or ctx.resilient_parsing or {"-h", "--help"} & {*args}):
                    raise ValueError(
                        f"what to train is missing before {args[0]}: a task ({', '.join(offered())}), --data FOLDER "
                        "for your own graphs, or --out RUN --resume"
                    )
                args = [*implied, *args]
            return super().parse_args(ctx, args)

        def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002
            if cmd_name in further:
                return typer.main.get_command(further[cmd_name])
            check_choice("task", cmd_name, (*offered(), *further))
            single = typer.Typer(add_completion=False, context_settings={"help_option_names": ["-h", "--help"]})
            single.command(cmd_name, help=_help(command, cmd_name), epilog=f"Example: {example}")(
                _with_options(command, cmd_name, data_only)
            )
            return typer.main.get_command(single)

    return typer.Typer(
        cls=TaskCommands,
        help=inspect.getdoc(command),
        epilog=f"Example: {example}",
        no_args_is_help=True,
        subcommand_metavar="TASK [OPTIONS]",
    )


def _implied(args: list[str]) -> list[str]:
    """The task that is meant without its name by `train --data FOLDER …` and `train --out RUN --resume`."""
    from magnetite.training.runs import read_tables

    given = dict(_option(*each) for each in zip(args, [*args[1:], ""], strict=True))
    if "--data" in given:
        return [OWN_DATA]
    if "--resume" in given and "--out" in given:
        return [str(read_tables(Path(given["--out"]))["task"].get("name", ""))]
    return []


def _option(arg: str, after: str) -> tuple[str, str]:
    """An option and its value, which is part of the argument or the next one."""
    name, equals, value = arg.partition("=")
    return name, value if equals else after


def _help(command: Callable[..., None], task: str) -> str:
    summary = (inspect.getdoc(TASKS[task]) or task).split("\n\n")[0]
    return f"{summary}\n\n{inspect.getdoc(command)}"


def _with_options(command: Callable[..., None], task: str, data_only: bool) -> Callable[..., None]:
    """The command as a function of its own options and those of the task, as typer reads it."""
    own = list(inspect.signature(command, eval_str=True).parameters.values())[2:]
    taken = {parameter.name for parameter in own}
    options = {
        f"task_{name}" if name in taken else name: option
        for name, option in options_of(TASKS[task]).items()
        if not (data_only and name in TASKS[task].model_options)
    }

    def run(**given: Any) -> None:
        values = {name: given.pop(name) for name in options}
        typed = {
            options[name].name: _value(value, options[name]) for name, value in values.items() if value is not None
        }
        command(task, typed, **given)

    keywords = [parameter.replace(kind=parameter.KEYWORD_ONLY) for parameter in own]
    parameters = [
        *keywords,
        *(_parameter(name, option, data_only, TASKS[task].generates) for name, option in options.items()),
    ]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


def _parameter(name: str, option: Option, data_only: bool, preset: bool) -> inspect.Parameter:
    """An option of the task; in training its default may be that of the preset."""
    kind = option.hint if option.hint in PLAIN else str
    default: str | bool = False if option.default is MISSING else str(plain(option.default))
    if not data_only:
        shown = isinstance(option.default, int | str) and option.default not in (False, "")
        default = "from the preset" if preset else shown and str(option.default)
    elif option.hint is bool:
        default = name.replace("_", "-") if option.default else f"no-{name.replace('_', '-')}"
    details = typer.Option(
        help=option.help,
        metavar="NAME,…" if is_names(option.hint) else None,
        show_default=default,
        rich_help_panel="Options of the task",
        hidden=option.name in HIDDEN,
    )
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[kind | None, details]
    )


def _value(given: Any, option: Option) -> Any:
    """What was typed as the type of the option.

    >>> _value("0.8, 0.1, 0.1", Option("splits", Any, None)), _value("area,delay", Option("target", str | tuple, "y"))
    ([0.8, 0.1, 0.1], ['area', 'delay'])
    """
    if option.hint in PLAIN:
        return given
    if "," not in given or given.strip().startswith("["):
        return parse(given)
    return [parse(part) for part in given.strip().removesuffix(",").split(",")]
