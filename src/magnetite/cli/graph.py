"""`magnetite graph`: the graph of a function from the command line."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, get_args

import typer

from magnetite.code.drawing import to_svg
from magnetite.code.graph import CodeGraph
from magnetite.code.layout import LAYOUTS
from magnetite.code.source import Kind, Mask, find, functions, graph_of, parse, read_source
from magnetite.io.storage import check_writable, replacing

WRITERS: dict[str, Callable[[CodeGraph], str]] = {
    ".svg": to_svg,
    ".json": CodeGraph.to_json,
    ".graphml": CodeGraph.to_graphml,
}
"""File endings and what makes their text."""
KINDS: dict[str, Kind] = {kind: kind for kind in get_args(Kind)}
MASKS: dict[str, Mask] = {"strict": "strict", "paper": "paper", "none": None}


def graph(
    function: Annotated[
        str, typer.Argument(help="file.py::function or file.py::Class.method; a file with one function.")
    ],
    out: Annotated[Path, typer.Option(help="Where to write: .svg, .json or .graphml.")],
    kind: Annotated[str, typer.Option(help="dataflow, or ast as OGB Code2 has it.")] = "dataflow",
    mask: Annotated[
        str, typer.Option(help="Hide the function's name: strict (wherever it shows), paper or none.")
    ] = "strict",
    compare: Annotated[bool, typer.Option("--compare", help="Draw both kinds side by side; .svg only.")] = False,
    layout: Annotated[
        str, typer.Option(help="Places by graphviz if installed (auto), or by ourselves (layers).")
    ] = "auto",
) -> None:
    """Build the directed graph of a Python function and write it as a picture or as data."""
    for option, value, known in (("--kind", kind, KINDS), ("--mask", mask, MASKS), ("--layout", layout, LAYOUTS)):
        if value not in known:
            raise ValueError(f"{option} {value!r} is unknown: choose one of {', '.join(known)}")
    if out.suffix not in WRITERS:
        raise ValueError(f"{out} has no known ending for a graph: use one of {' '.join(WRITERS)}")
    if compare and out.suffix != ".svg":
        raise ValueError(f"--compare draws both kinds side by side, and {out} is no picture: use .svg")
    check_writable(out)
    path, _, name = function.partition("::")
    if not name and ":" in path and not Path(path).exists():
        raise ValueError(f"{path} does not exist: write file.py::function, with two colons")
    found = find(functions(parse(read_source(path), path)), name or None)
    graphs = [graph_of(found, KINDS[each], MASKS[mask], False) for each in (KINDS if compare else [kind])]
    text = to_svg(graphs, layout) if out.suffix == ".svg" else WRITERS[out.suffix](graphs[0])
    with replacing(out) as part:
        part.write_text(text, encoding="utf-8")
    typer.echo(f"{', '.join(map(str, graphs))} → {out}")
