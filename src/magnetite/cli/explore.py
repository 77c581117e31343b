"""`magnetite explore`: a local page that shows graphs, code, sorting networks and results."""

import webbrowser
from pathlib import Path
from typing import Annotated

import typer

SOURCE = ".py"
"""Extension of files that open the view of code."""


def explore(
    file: Annotated[
        Path | None,
        typer.Argument(
            help="File to open: a graph of any format of `magnetite encode`, or Python source.", show_default=False
        ),
    ] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; another one if it is taken.")] = 8000,
    host: Annotated[
        str,
        typer.Option(
            help="Address to listen on; others than this machine can then open the page, too, without password."
        ),
    ] = "127.0.0.1",
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Whether to open the page.")] = True,
    results: Annotated[
        Path | None,
        typer.Option(help="Folder of results to show.", show_default="results of the clone"),
    ] = None,
    sorting_model: Annotated[
        Path | None,
        typer.Option(help="Folder of a run of the task sorting, whose verdicts are shown.", show_default=False),
    ] = None,
) -> None:
    """Open a page to explore graphs and their encodings, code graphs, sorting networks and results.

    The page works offline. Files and code that it is given are read, never executed.
    """
    from magnetite.explorer.server import Explorer, check_library, free_socket, serve

    check_library()
    opened = None if file is None else _checked(file)
    if results is not None and not results.is_dir():
        raise ValueError(f"{results} is not a folder: give the folder of results, or leave --results out")
    if sorting_model is not None:
        from magnetite.training.trained import Run

        sorting_model = sorting_model.resolve()
        if Run(sorting_model).config.to_dict()["task"]["name"] != "sorting":
            raise ValueError(
                f"{sorting_model} is not a run of the task sorting: train one with `magnetite train sorting`"
            )
    listening = free_socket(host, port)
    number = listening.getsockname()[1]
    names = () if host in ("0.0.0.0", "::") else (f"[{host}]" if ":" in host else host,)
    anywhere = _own_names() if not names else ()
    explorer = Explorer(
        results=results or _results(),
        file=opened,
        sorting_model=None if sorting_model is None else str(sorting_model),
        hosts=(*names, *anywhere),
    )
    shown = "127.0.0.1" if not names else names[0]
    address = f"http://{shown}:{number}/" + ("#view=code" if file is not None and file.suffix == SOURCE else "")

    def ready() -> None:
        typer.echo(f"The explorer is at {address} (Ctrl-C stops it).")
        if browser:
            webbrowser.open(address)

    serve(explorer, listening, ready)


def _checked(file: Path) -> tuple[str, bytes]:
    """Name and content of the file to open; an error now rather than on the page if it cannot be read."""
    from magnetite.code.source import read_source
    from magnetite.explorer.graph_view import plain
    from magnetite.explorer.limits import Limits
    from magnetite.graphs import read_graphs

    if file.suffix == SOURCE:
        if file.is_dir() or not file.is_file():
            raise FileNotFoundError(f"{file} does not exist or is not a file: check the path")
        text = read_source(file)
        if len(text) > Limits.source:
            raise ValueError(f"{file} has {len(text):,} characters, more than {Limits.source:,}: give one function")
        return file.name, text.encode()
    if file.is_file() and file.stat().st_size > Limits.bytes:
        raise ValueError(f"{file} is larger than {Limits.bytes // 2**20} MiB: encode it with `magnetite encode`")
    plain(read_graphs(file), Limits())
    return file.name, file.read_bytes()


def _results() -> Path | None:
    """The folder of results of the clone, or of the working directory."""
    clone = Path(__file__).parents[3]
    for folder in (Path.cwd() / "results", clone / "results"):
        if any(folder.glob("*.json")) and (folder.parent / "pyproject.toml").is_file():
            return folder
    return None


def _own_names() -> tuple[str, ...]:
    """Names and addresses of this machine."""
    import socket

    name = socket.gethostname()
    try:
        addresses = {str(found[4][0]) for found in socket.getaddrinfo(name, None)}
    except OSError:
        addresses = set()
    return (name, *(f"[{each}]" if ":" in each else each for each in sorted(addresses)))
