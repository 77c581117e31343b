"""The command line: one file per command, put together into the program `magnetite`."""

import sys
from typing import Annotated

import torch
import typer
from rich.console import Console

from magnetite.cli import bench, data, encode, evaluate, explore, graph, name, predict, train
from magnetite.version import __version__

app = typer.Typer(
    help="Positional encodings and transformers for directed graphs.",
    epilog="Example: magnetite encode graph.graphml --k 16 --out pe.npz --plot pe.png",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command(
    epilog="Example: magnetite encode graph.graphml --encoding magnetic --k 16 --out pe.npz --plot pe.png\n\n"
    "Example: magnetite encode a.csv b.csv --encoding walks --steps 4 --out walks.safetensors\n\n"
    "Example: magnetite encode graphs/ --k 8 --workers 8 --out encoded"
)(encode.encode)
app.add_typer(data.app, name="data")
app.add_typer(train.app, name="train")
app.command(epilog="Example: magnetite evaluate runs/sorting-magnetic-paper-seed0 --split test")(evaluate.evaluate)
app.command(epilog="Example: magnetite predict runs/mine circuits/ --out answers.parquet")(predict.predict)
app.command(
    epilog="Example: magnetite graph file.py::function --kind dataflow --out graph.svg\n\n"
    "Example: magnetite graph file.py::Class.method --compare --out both.svg"
)(graph.graph)
app.command(epilog="Example: magnetite name package/ --only-bad\n\nExample: magnetite name file.py --top 3 --json")(
    name.name
)
app.command(epilog="Example: magnetite explore\n\nExample: magnetite explore graph.graphml --port 8080 --no-browser")(
    explore.explore
)
app.command(epilog="Example: magnetite bench eigen --out results")(bench.bench)

INTERRUPTED = 130
"""The exit code that typer returns after Ctrl-C."""

EXTRAS = {
    "lightning": "train",
    "ray": "ray",
    "starlette": "web",
    "tensorboard": "train",
    "torch_geometric": "pyg",
    "uvicorn": "web",
}
"""The extra that installs each optional dependency."""


@app.callback(invoke_without_command=True)
def _main(
    version: Annotated[bool, typer.Option("--version", "-V", help="Print the version.")] = False,
) -> None:
    if version:
        typer.echo(f"magnetite {__version__}")
        raise typer.Exit


def main(commands: typer.Typer = app, name: str = "magnetite") -> None:
    """Run a command line: an error is one line on standard error and exit code 2.

    Args:
        commands: The commands.
        name: Name of the program in messages.
    """
    command = typer.main.get_command(commands)
    try:
        code = command.main(prog_name=name, standalone_mode=False) or 0
        if code == INTERRUPTED:
            _print_error(name, "stopped")
        sys.exit(code)
    except Exception as error:
        line = _one_line(error)
        if line is None:
            raise
        _print_error(name, line)
        sys.exit(2)


def _print_error(name: str, line: str) -> None:
    if line:
        Console(stderr=True, soft_wrap=True, markup=False, highlight=False).print(f"{name}: {line}")


def _one_line(error: Exception) -> str | None:
    """The message for the user, or None for a bug in magnetite, which deserves a traceback."""
    if hasattr(error, "format_message"):  # a usage error of click
        message = error.format_message()  # type: ignore[attr-defined]
        return f"{message.rstrip('.')} (see --help)" if message else ""  # without a message, click has printed the help
    if isinstance(error, ValueError | OSError | ArithmeticError):
        return " ".join(str(error).split())
    if isinstance(error, torch.OutOfMemoryError):
        reason = ". ".join(str(error).split(". ")[:2])
        return f"{reason}: free GPU memory; training needs less with --set data.mode=pooled, also when resumed"
    if isinstance(error, MemoryError) or "DefaultCPUAllocator: can't allocate memory" in str(error):
        return f"not enough memory ({_first_line(error)}): choose smaller sizes, or fewer graphs"
    if isinstance(error, RecursionError):
        return f"the input is nested too deeply ({_first_line(error)}): make it flatter"
    if isinstance(error, ModuleNotFoundError) and (extra := EXTRAS.get((error.name or "").split(".")[0])):
        return f"{error.name} is not installed: pip install 'magnetite[{extra}]'"
    return None


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
