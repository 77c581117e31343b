"""A Sphinx directive that lists the arguments and options of a command of `magnetite`, from the program itself."""

from typing import Any

import typer
from docutils import nodes
from docutils.parsers.rst import Directive
from docutils.statemachine import StringList

from magnetite import cli


def found(path: list[str]) -> Any:
    """The command of a path such as `["train", "sorting"]`."""
    command = typer.main.get_command(cli.app)
    for name in path:
        command = command.get_command(command.make_context("magnetite", [], resilient_parsing=True), name)
    return command


def rows(command: Any) -> list[str]:
    """One definition per argument and option: its names, its help and its default."""
    lines = []
    for parameter in command.params:
        if getattr(parameter, "hidden", False) or parameter.name in ("help", "install_completion", "show_completion"):
            continue
        names = [parameter.name.upper()] if parameter.param_type_name == "argument" else parameter.opts
        names = [*names, *getattr(parameter, "secondary_opts", ())]
        shown = getattr(parameter, "show_default", None)
        default = shown if isinstance(shown, str) else parameter.default
        known = default not in (None, False, (), []) and isinstance(default, str | int | float)
        text = " ".join((getattr(parameter, "help", "") or "").split()).replace("*", r"\*").replace("|", r"\|")
        lines += [", ".join(f"``{name}``" for name in names)]
        lines += [f"    {text}{f' Default: {default}.' if known else ''}" if text or known else "    \\ ", ""]
    return lines


class Command(Directive):
    """`.. command:: train sorting`."""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        """The help of the command, and a list of its arguments and options."""
        command = found(self.arguments[0].split())
        text = (command.help or "").split("\n\n")[0]
        lines = [" ".join(text.split()), "", *rows(command)]
        section = nodes.container()
        self.state.nested_parse(StringList(lines, "command"), self.content_offset, section)
        return section.children


def setup(app: Any) -> dict[str, bool]:
    """Add the directive to Sphinx."""
    app.add_directive("command", Command)
    return {"parallel_read_safe": True}
