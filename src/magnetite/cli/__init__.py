"""The command line: `magnetite encode`, `data`, `graph`, `train`, `evaluate`, `reproduce`, `bench`."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from magnetite.cli import data, train
from magnetite.cli.evaluate import evaluate
from magnetite.cli.graph import graph
from magnetite.encodings import SVD, Depth, Eigenpairs, Laplacian, MagneticLaplacian, RandomWalk, Sinusoidal
from magnetite.encodings.cache import Encoding, cached, shards
from magnetite.graphs import Digraphs
from magnetite.io.files import check_output, read_graphs, write_encoding
from magnetite.linalg.potential import Potential, Relative
from magnetite.packed import Packed
from magnetite.version import __version__

app = typer.Typer(
    help="Positional encodings and transformers for directed graphs.",
    epilog="Example: magnetite encode graph.graphml --k 16 --out pe.npz --plot pe.png",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

ENCODINGS: dict[str, Callable[[dict[str, Any]], Encoding[Packed]]] = {
    "magnetic": lambda o: MagneticLaplacian(o["k"], o["q"], o["normalised"], o["convention"]),
    "laplacian": lambda o: Laplacian(o["k"], o["normalised"]),
    "walk": lambda o: RandomWalk(o["steps"], o["restart"]),
    "svd": lambda o: SVD(o["k"]),
    "sinusoidal": lambda o: Sinusoidal(o["k"]),
    "depth": lambda o: Depth(o["k"]),
}
"""Encodings by their names on the command line, made from its options."""


STOPPED = 130
"""The exit code that typer makes of Ctrl-C."""

EXTRAS = {"lightning": "train", "tensorboard": "train", "torch_geometric": "pyg"}
"""Which extra of the package brings what a command may miss."""


@app.callback(invoke_without_command=True)
def _main(version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False) -> None:
    if version:
        typer.echo(f"magnetite {__version__}")
        raise typer.Exit


@app.command(epilog="Example: magnetite encode graph.graphml --encoding magnetic --k 16 --out pe.npz --plot pe.png")
def encode(
    inputs: Annotated[
        list[Path],
        typer.Argument(
            help="Graphs: .txt .edges .edgelist (source target weight), .csv, .graphml, .json, .npz, .safetensors."
        ),
    ],
    out: Annotated[Path, typer.Option(help="Where to write: .npz, .safetensors, .parquet or .csv.")],
    encoding: Annotated[str, typer.Option(help=f"One of {', '.join(ENCODINGS)}.")] = "magnetic",
    k: Annotated[int, typer.Option(help="Eigenvectors; rank of svd, width of sinusoidal, cap of depth.")] = 16,
    q: Annotated[list[float] | None, typer.Option(help="Absolute potential in [0, 0.5]; repeat for multi-q.")] = None,
    relative_q: Annotated[
        list[float] | None,
        typer.Option(help="Relative potential q', q = q'/min(one-way edges, nodes); 0.25 if left out"),
    ] = None,
    normalised: Annotated[bool, typer.Option(help="Degree-normalised Laplacian, or L_U.")] = True,
    convention: Annotated[str, typer.Option(help="paper, networkx, pygsd or multi-q.")] = "paper",
    steps: Annotated[int, typer.Option(help="Steps of the random walks.")] = 3,
    restart: Annotated[float, typer.Option(help="Restart probability of the walks' PageRank.")] = 0.05,
    plot: Annotated[
        Path | None, typer.Option(help="Also draw: node size = Re, colour = Im of the first vector.")
    ] = None,
    cache: Annotated[Path | None, typer.Option(help="Folder that keeps shards, to resume and to reuse.")] = None,
    device: Annotated[str, typer.Option(help="Where to compute: cpu, cuda, cuda:1 …")] = "cpu",
) -> None:
    """Encode the nodes of directed graphs from files."""
    if encoding not in ENCODINGS:
        raise ValueError(f"unknown encoding {encoding!r}: choose one of {', '.join(ENCODINGS)}")
    options = {"k": k, "q": _potential(q, relative_q), "normalised": normalised, "convention": convention}
    method = ENCODINGS[encoding]({**options, "steps": steps, "restart": restart})
    check_output(out)
    if plot is not None:
        _check_plot(encoding, plot)
    parts = [read_graphs(path) for path in inputs]
    graphs = Digraphs.concat(part.graphs for part in parts)
    result = _with_progress(method, graphs.to(_device(device)), cache).to("cpu")
    write_encoding(out, result, [name for part in parts for name in part.names])
    if plot is not None and isinstance(result, Eigenpairs):
        from magnetite.plots import plot_eigenvectors

        plot_eigenvectors(graphs, result, plot)
    typer.echo(f"{result} of {graphs} → {out}" + (f", {plot}" if plot else ""))


app.add_typer(data.app, name="data")
app.add_typer(train.app, name="train")
app.command(epilog="Example: magnetite evaluate runs/sorting-magnetic-paper-seed0 --split test")(evaluate)
app.command(epilog="Example: magnetite graph file.py::function --kind dataflow --out graph.svg")(graph)


@app.command(epilog="Example: magnetite reproduce figure-sorting --budget 0.5 --only magnetic --out half")
def reproduce(
    what: Annotated[
        str,
        typer.Argument(
            help="figure-examples, figure-topological-sorts; after training what is missing: figure-quick and "
            "figure-quick-sorting (minutes), figure-sorting, figure-q-sweep, figure-gnn, figure-playground, "
            "figure-walks, figure-tried-sorting, figure-best-sorting, figure-best-distance, hypotheses (why claims may "
            "not hold); claims (judged by results)."
        ),
    ],
    out: Annotated[
        Path, typer.Option(help="Folder for the table, the figure and the JSON, and of the results that claims judge.")
    ] = Path("results"),
    seed: Annotated[int, typer.Option(help="Seed of everything random.")] = 0,
    budget: Annotated[float, typer.Option(help="Share of the trainings that is done.")] = 1.0,
    only: Annotated[str, typer.Option(help="Train only the cell of this name, or those whose name holds this.")] = "",
    runs: Annotated[Path, typer.Option(help="Folder of the trainings under way.")] = Path("runs"),
    device: Annotated[str, typer.Option(help="Where to train: auto, cpu or cuda.")] = "auto",
    train: Annotated[bool, typer.Option("--train/--no-train", help="Whether to train what is missing.")] = True,
) -> None:
    """Reproduce a figure or table of the paper: print the table, write figure and JSON."""
    from magnetite.reproduce import FIGURES, TRAINED, Request

    if what in FIGURES and (only or budget != 1):
        raise ValueError(f"{what} trains nothing: leave --only and --budget out")
    if what in FIGURES:
        FIGURES[what](out, seed)
    elif what in TRAINED:
        TRAINED[what](Request(out, seed, budget, only, runs, device, train))
    else:
        raise ValueError(f"unknown figure {what!r}: choose one of {', '.join([*FIGURES, *TRAINED])}")


@app.command(epilog="Example: magnetite bench eigen --out results")
def bench(
    what: Annotated[str | None, typer.Argument(help="eigen or walks, over n; both if left out.")] = None,
    out: Annotated[Path, typer.Option(help="Folder for the figure and the JSON.")] = Path("results"),
    seed: Annotated[int, typer.Option(help="Seed of the random graphs.")] = 0,
) -> None:
    """Measure speed on this machine against torch, SciPy and NumPy: print the table, write figure and JSON."""
    from magnetite.reproduce.runtime import BENCHES

    if what is not None and what not in BENCHES:
        raise ValueError(f"unknown benchmark {what!r}: choose one of {', '.join(BENCHES)}")
    for name in BENCHES if what is None else [what]:
        BENCHES[name](out, seed)


def main() -> None:
    """Run the command line: an error is one line on standard error and exit code 2."""
    command = typer.main.get_command(app)
    try:
        code = command.main(prog_name="magnetite", standalone_mode=False) or 0
        if code == STOPPED:
            _tell("stopped")
        sys.exit(code)
    except Exception as error:
        line = _one_line(error)
        if line is None:
            raise
        _tell(line)
        sys.exit(2)


def _tell(line: str) -> None:
    if line:
        Console(stderr=True, soft_wrap=True, markup=False, highlight=False).print(f"magnetite: {line}")


def _one_line(error: Exception) -> str | None:
    """What to tell the user; None for what is our own mistake and deserves a traceback."""
    if hasattr(error, "format_message"):  # click's errors of usage
        message = error.format_message()  # type: ignore[attr-defined]
        return f"{message} See --help." if message else ""  # the help was printed instead
    if isinstance(error, ValueError | OSError | ArithmeticError):
        return " ".join(str(error).split())
    if isinstance(error, torch.OutOfMemoryError):
        reason = ". ".join(str(error).split(". ")[:2])
        return f"{reason}: free the GPU; a training takes less with --set data.mode=pooled, also when it is resumed"
    if isinstance(error, ModuleNotFoundError) and (extra := EXTRAS.get((error.name or "").split(".")[0])):
        return f"{error.name} is not installed: pip install 'magnetite[{extra}]'"
    return None


def _device(name: str) -> torch.device:
    try:
        torch.empty(0, device=name)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).split("\n")[0]
        raise ValueError(f"device {name!r} cannot be used ({reason}): use cpu, or cuda where there is a GPU") from error
    return torch.device(name)


def _potential(absolute: list[float] | None, relative: list[float] | None) -> Potential | tuple[Potential, ...]:
    if absolute and relative:
        raise ValueError("--q and --relative-q were both given: absolute and relative potentials are alternatives")
    potentials: list[Potential] = [*absolute] if absolute else [Relative(value) for value in relative or [0.25]]
    return potentials[0] if len(potentials) == 1 else tuple(potentials)


def _with_progress(method: Encoding[Packed], graphs: Digraphs, cache: Path | None) -> Packed:
    columns = (TextColumn("encoding"), BarColumn(), MofNCompleteColumn(), TextColumn("graphs"), TimeRemainingColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("encoding", total=len(graphs))
        if cache is not None:
            return cached(method, graphs, cache, progress=lambda done: progress.advance(task, done))
        results = []
        for shard in shards(graphs):
            results.append(method(shard))
            progress.advance(task, len(shard))
    return type(results[0]).concat(results)


def _check_plot(encoding: str, path: Path) -> None:
    from magnetite.plots import check_figure

    if encoding not in ("magnetic", "laplacian"):
        raise ValueError(f"--plot draws eigenvectors and {encoding} has none: use --encoding magnetic or laplacian")
    check_figure(path)
