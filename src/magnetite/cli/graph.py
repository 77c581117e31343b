"""`magnetite graph`: the graph of a Python function."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, get_args

import typer

from magnetite.code.drawing import to_svg
from magnetite.code.graph import CodeGraph
from magnetite.code.layout import LAYOUTS
from magnetite.code.source import Kind, Mask, find, functions, graph_of, parse, read_source
from magnetite.io.files import check_outputs
from magnetite.io.storage import check_writable, replacing

WRITERS: dict[str, Callable[[CodeGraph], str]] = {
    ".svg": to_svg,
    ".json": CodeGraph.to_json,
    ".graphml": CodeGraph.to_graphml,
}
"""Functions that return the content of a file, by its extension."""
KINDS: dict[str, Kind] = {kind: kind for kind in get_args(Kind)}
COMPARED = ("dataflow", "ast")
MASKS: dict[str, Mask] = {"strict": "strict", "paper": "paper", "none": None}


def graph(
    function: Annotated[
        str,
        typer.Argument(
            help="file.py::function or file.py::Class.method; file.py alone if it contains one function.",
            show_default=False,
        ),
    ],
    out: Annotated[Path, typer.Option(help=f"Output file: {' '.join(WRITERS)}.")],
    kind: Annotated[
        str,
        typer.Option(
            help="Kind of graph: dataflow, ast (syntax tree as in OGB Code2), ast-directed (no inverse edges), "
            "tokens (a path), or dataflow-sequential (statements as in the text).",
            autocompletion=lambda: list(KINDS),
        ),
    ] = "dataflow",
    mask: Annotated[
        str,
        typer.Option(
            help="Hide the name of the function: strict (everywhere), paper (as in the paper's data) or none.",
            autocompletion=lambda: list(MASKS),
        ),
    ] = "strict",
    compare: Annotated[bool, typer.Option("--compare", help="Draw dataflow and ast side by side; .svg only.")] = False,
    layout: Annotated[
        str,
        typer.Option(
            help="Layout of the picture: auto (graphviz if it is installed) or layers (built in).",
            autocompletion=lambda: list(LAYOUTS),
        ),
    ] = "auto",
) -> None:
    """Build the directed graph of a Python function and write it as a picture or as data."""
    for option, value, known in (("--kind", kind, KINDS), ("--mask", mask, MASKS), ("--layout", layout, LAYOUTS)):
        if value not in known:
            raise ValueError(f"{option} must be one of {', '.join(known)}, got {value!r}")
    if out.suffix not in WRITERS:
        raise ValueError(f"{out} has an unknown file extension: use one of {' '.join(WRITERS)}")
    if compare and out.suffix != ".svg":
        raise ValueError(f"--compare draws a picture, but {out} is not an SVG file: use .svg")
    path, _, name = function.partition("::")
    if Path(path).is_dir():
        raise ValueError(f"{path} is a folder: give the path of a Python file")
    check_outputs([out], [Path(path)])
    check_writable(out)
    if not name and ":" in path and not Path(path).exists():
        raise ValueError(f"{path} does not exist: write file.py::function, with two colons")
    found = find(functions(parse(read_source(path), path)), name or None)
    graphs = [graph_of(found, KINDS[each], MASKS[mask], False) for each in (COMPARED if compare else [kind])]
    text = to_svg(graphs, layout) if out.suffix == ".svg" else WRITERS[out.suffix](graphs[0])
    with replacing(out) as part:
        part.write_text(text, encoding="utf-8")
    typer.echo(f"{', '.join(map(str, graphs))} → {out}")
