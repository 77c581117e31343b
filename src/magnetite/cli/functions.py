"""`magnetite data functions`: a corpus of Python functions."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar
from rich.table import Table

from magnetite.cli._workers import FAILED, LISTED, RAY
from magnetite.code.corpus.settings import Settings
from magnetite.training.options import options_of, parse

if TYPE_CHECKING:
    from magnetite.code.corpus.statistics import Progress
    from magnetite.code.corpus.stored import Corpus

app = typer.Typer(
    add_completion=False, context_settings={"help_option_names": ["-h", "--help"]}, pretty_exceptions_enable=False
)
DEFAULTS = Settings()
HELP = {name: option.help for name, option in options_of(Settings).items()}


@app.command(
    "functions",
    epilog="Example: magnetite data functions --from stdlib --out corpus\n\n"
    "Example: magnetite data functions --from recipe --package flask --package click --out corpus",
)
def functions(
    origin: Annotated[
        str,
        typer.Option(
            "--from",
            help="stdlib; site-packages (what is installed here); recipe (packages that ship as a list with hashes, "
            "downloaded from the index that pip is configured for); a .tsv file, which is another recipe; or a folder "
            "with one entry per project.",
        ),
    ],
    out: Annotated[
        Path, typer.Option(help="Folder of the corpus; run the same command again to continue after an interruption.")
    ],
    package: Annotated[
        list[str] | None, typer.Option(help="Package of the recipe to use; may be repeated; all by default.")
    ] = None,
    downloads: Annotated[
        Path | None, typer.Option(help="Folder to keep the downloaded files in; by default they are removed.")
    ] = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Number of processes; all cores by default.")] = None,
    ray: Annotated[str | None, typer.Option(help=RAY, show_default=False)] = None,
    lines: Annotated[int, typer.Option(help=HELP["lines"])] = DEFAULTS.lines,
    nodes: Annotated[int, typer.Option(help=HELP["nodes"])] = DEFAULTS.nodes,
    per_project: Annotated[int, typer.Option(help=HELP["per_project"])] = DEFAULTS.per_project,
    per_name: Annotated[int, typer.Option(help=HELP["per_name"])] = DEFAULTS.per_name,
    shares: Annotated[str, typer.Option(help=HELP["shares"])] = ",".join(map(str, DEFAULTS.shares)),
    seed: Annotated[int, typer.Option(help=HELP["seed"])] = DEFAULTS.seed,
    any_licence: Annotated[bool, typer.Option("--any-licence", help=HELP["any_licence"])] = DEFAULTS.any_licence,
    time_limit: Annotated[float, typer.Option(help=HELP["time_limit"])] = DEFAULTS.time_limit,
) -> None:
    """Build a corpus of Python functions as Parquet files; code is read, never run.

    Exit code 0: the corpus is complete. 3: some packages failed, the others were written; the same command tries the
    failed ones again. 2: the input was rejected.
    """
    from magnetite.code.corpus.writing import write

    settings = Settings(lines, nodes, per_project, per_name, _shares(shares), seed, any_licence, time_limit)
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("projects"))
    with Bar(
        *columns, TextColumn("{task.fields[functions]:,} functions"), TimeElapsedColumn(), console=console,
        disable=not console.is_terminal,
    ) as bar:  # fmt: skip
        row = bar.add_task("functions", total=None, functions=0)

        def advance(now: "Progress") -> None:
            bar.update(row, completed=now.done, total=now.total, functions=now.functions)

        corpus = write(origin, out, settings, workers, package or (), downloads, advance, ray)
    _report(corpus)
    if not corpus.complete:
        raise typer.Exit(FAILED)


def _shares(text: str) -> Any:
    values = tuple(parse(part) for part in text.strip("[]()").split(","))
    if not all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
        raise ValueError(f"--shares must be three numbers such as 0.8,0.1,0.1, got {text!r}")
    return values


def _report(corpus: "Corpus") -> None:
    """Print what was found, what was kept, and what was left out and why."""
    info = corpus.info
    table = Table(box=None, pad_edge=False)
    table.add_column("")
    table.add_column("number", justify="right")
    projects, files, functions = info["projects"], info["files"], info["functions"]
    left_out = {reason: len(names) for reason, names in projects["left_out"].items()}
    if projects["failed"]:
        left_out["failed"] = len(projects["failed"])
    for what, found, kept, reasons in (
        ("projects", projects["found"], ("read", projects["read"]), left_out),
        ("files", files["found"], ("read", files["read"]), files["left_out"]),
        ("functions", functions["found"], ("kept", functions["kept"]), functions["left_out"]),
    ):
        table.add_row(f"[bold]{what} found", f"[bold]{found:,}")
        for reason, count in reasons.items():
            table.add_row(f"  − {escape(reason)}", f"{count:,}")
        table.add_row(f"  = {kept[0]}", f"{kept[1]:,}")
    for split, counts in info["splits"].items():
        table.add_row(f"[bold]{split}[/] ({counts['projects']:,} projects)", f"{counts['functions']:,}")
    nodes = info["statistics"]["nodes"]
    table.add_row("nodes per data-flow graph: mean", f"{nodes['mean']:,}")
    table.add_row("nodes per data-flow graph: 99% are below", f"{nodes['99%']:,}")
    table.add_row("words per name", f"{info['statistics']['words_per_name']}")
    table.add_row("different words", f"{info['statistics']['distinct_words']:,}")
    Console(soft_wrap=True, highlight=False).print(table)
    _list("failed", projects["failed"])
    named = {
        f"{project}: {path}": f"{reason}; {details}".rstrip("; ") for project, path, reason, details in info["problems"]
    }
    _list("left out", named)
    empty = [split for split, counts in info["splits"].items() if not counts["functions"]]
    if empty:
        typer.echo(f"{' and '.join(empty)} without functions: projects are split as a whole, so use more of them")
    typer.echo(f"{corpus} → {corpus.folder}")
    if not corpus.complete:
        typer.echo(f"{len(projects['failed'])} packages failed: run the same command again to try them again")


def _list(title: str, problems: Mapping[str, str]) -> None:
    for name, reason in list(problems.items())[:LISTED]:
        typer.echo(f"{title}: {name} ({reason})")
    if len(problems) > LISTED:
        typer.echo(f"{title}: {len(problems) - LISTED:,} more, see corpus.json")
