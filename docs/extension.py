"""What the documentation adds to Sphinx.

- `.. command:: train sorting` lists the arguments and options of a command of `magnetite`, from the program itself.
- Formulas are MathML, which browsers draw themselves: pages need no script from elsewhere, and work offline.
"""

from typing import Any

import typer
from docutils import nodes
from docutils.parsers.rst import Directive
from docutils.statemachine import StringList
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.util import logging

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


def formula(node: nodes.Element, as_block: bool = False) -> str:
    """A formula as MathML; one with an unknown command is a warning that names the page."""
    try:
        return tex2mathml(node.astext(), as_block=as_block)
    except MathError as error:
        logging.getLogger(__name__).warning("%s in the formula %s", error, node.astext(), location=node)
        return ""


def inline_formula(translator: Any, node: nodes.math) -> None:
    """Write a formula in a sentence."""
    translator.body.append(formula(node))
    raise nodes.SkipNode


def displayed_formula(translator: Any, node: nodes.math_block) -> None:
    """Write a formula on a line of its own."""
    translator.body.append(f'<div class="math">{formula(node, as_block=True)}</div>')
    raise nodes.SkipNode


def setup(app: Any) -> dict[str, bool]:
    """Add them to Sphinx."""
    app.add_directive("command", Command)
    app.add_html_math_renderer("mathml", (inline_formula, None), (displayed_formula, None))
    return {"parallel_read_safe": True}
