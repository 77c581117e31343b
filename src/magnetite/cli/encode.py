"""`magnetite encode`: encodings of graphs in files."""

import time
from dataclasses import MISSING, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from magnetite.cli._device import device_named
from magnetite.cli._workers import FAILED, LISTED, RAY
from magnetite.encodings import (
    DEFAULT_SIZE,
    ENCODINGS,
    Depth,
    Eigenpairs,
    Laplacian,
    MagneticLaplacian,
    RandomWalk,
    Relatives,
    SparseRandomWalk,
    WalkSums,
)
from magnetite.encodings.advice import COLUMNS
from magnetite.encodings.advice import advise as find_advice
from magnetite.encodings.cache import Encoding, cached, shards
from magnetite.encodings.encoded import MANIFEST
from magnetite.encodings.stored import has_node_table, node_table
from magnetite.graphs import FORMATS, Digraphs, node_numbers, read_graphs
from magnetite.io.files import (
    TABLE_WRITERS,
    TENSOR_WRITERS,
    check_output,
    check_outputs,
    write_arrays,
    write_table,
)
from magnetite.linalg.phase import CONVENTIONS
from magnetite.linalg.potential import Potential, Relative
from magnetite.packed import Packed
from magnetite.version import __version__

if TYPE_CHECKING:
    from magnetite.corpus import Progress as EncodingProgress

SIZES = ("k", "rank", "width", "cap")
"""Fields that `--k` may set; each encoding has at most one of them."""


def _having(field: str) -> str:
    """The encodings that have a field, for a help text."""
    return ", ".join(name for name, kind in ENCODINGS.items() if field in {each.name for each in fields(kind)})


def encode(
    inputs: Annotated[
        list[Path],
        typer.Argument(
            help=f"Files with graphs: {' '.join(FORMATS)}; or a corpus: folders of files, of `magnetite data` or of "
            "OGB, or module:name of a PyG data set.",
            show_default=False,
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            help=f"Output file: {' '.join(TENSOR_WRITERS)} for all tensors, {' '.join(TABLE_WRITERS)} for a table with "
            "one row per node; for a corpus, a folder, and the same command continues after an interruption. Needed "
            "unless --advise.",
            show_default=False,
        ),
    ] = None,
    encoding: Annotated[
        str, typer.Option(help=f"One of {', '.join(ENCODINGS)}.", autocompletion=lambda: list(ENCODINGS))
    ] = "magnetic",
    k: Annotated[
        int | None,
        typer.Option(
            help="Number of eigenvectors (magnetic, laplacian), rank (svd), width (sinusoidal) or largest depth "
            "(depth).",
            show_default=f"{DEFAULT_SIZE}; depth: {Depth.cap}",
        ),
    ] = None,
    q: Annotated[
        list[float] | None,
        typer.Option(
            help="magnetic: absolute potential in \\[0, 0.5]; repeat it for several potentials.", show_default=False
        ),
    ] = None,
    relative_q: Annotated[
        list[float] | None,
        typer.Option(
            help="magnetic: relative potential q', where q = q' / min(number of one-way edges, number of nodes); "
            "repeat it for several potentials. Without --q and --relative-q, q is found for each graph (Adaptive).",
            show_default=False,
        ),
    ] = None,
    normalised: Annotated[
        bool | None,
        typer.Option(
            help="magnetic, laplacian: whether to normalise the Laplacian by the degrees.", show_default="normalised"
        ),
    ] = None,
    convention: Annotated[
        str | None,
        typer.Option(
            help=f"magnetic: definition of the Laplacian, one of {', '.join(CONVENTIONS)}.",
            show_default=MagneticLaplacian.convention,
            autocompletion=lambda: list(CONVENTIONS),
        ),
    ] = None,
    steps: Annotated[
        int | None, typer.Option(help=f"{_having('steps')}: number of steps.", show_default=str(RandomWalk.steps))
    ] = None,
    restart: Annotated[
        float | None,
        typer.Option(
            help=f"{_having('restart')}: restart probability of PageRank.", show_default=str(RandomWalk.restart)
        ),
    ] = None,
    top: Annotated[
        int | None,
        typer.Option(
            help=f"{_having('top')}: largest number of nodes kept per node, the likeliest or nearest.",
            show_default=f"{SparseRandomWalk.top}; walk-sums: {WalkSums.top}; relatives: {Relatives.top}",
        ),
    ] = None,
    reach: Annotated[
        int | None,
        typer.Option(help=f"{_having('reach')}: largest number of steps.", show_default=str(Relatives.reach)),
    ] = None,
    weight: Annotated[
        str | None,
        typer.Option(
            help="Edge attribute or column that holds the weights.",
            show_default="weight, w, edge_weight or value, if there is one",
        ),
    ] = None,
    unweighted: Annotated[bool, typer.Option("--unweighted", help="Ignore weights.")] = False,
    nodes: Annotated[
        Path | None,
        typer.Option(
            help="Table with one row per node, with a column node, for a list of edges with isolated nodes.",
            show_default=False,
        ),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(
            help="magnetic, laplacian: also draw an eigenvector (.png, .svg, .pdf); node sizes show the real part, "
            "colours the imaginary part.",
            show_default=False,
        ),
    ] = None,
    vector: Annotated[
        int | None,
        typer.Option(help="Number of the eigenvector that --plot draws, from 0.", show_default="0"),
    ] = None,
    cache: Annotated[
        Path | None,
        typer.Option(help="Folder to cache results in, from which later runs resume.", show_default=False),
    ] = None,
    device: Annotated[str, typer.Option(help="Device to compute on: cpu, cuda, cuda:1, …")] = "cpu",
    advise: Annotated[
        bool, typer.Option("--advise", help="Only print which encoding suits the graphs, why, and what each costs.")
    ] = False,
    workers: Annotated[
        int | None,
        typer.Option(min=1, help="Number of processes that encode a corpus.", show_default="all cores, or all GPUs"),
    ] = None,
    ray: Annotated[str | None, typer.Option(help=RAY, show_default=False)] = None,
    file_format: Annotated[
        str | None,
        typer.Option(
            "--format",
            help="Files of a corpus: safetensors, or parquet with one row per graph.",
            show_default="safetensors",
        ),
    ] = None,
) -> None:
    """Encode the nodes of directed graphs in files, or a whole corpus of graphs.

    Exit code 0: everything was encoded. 3: some inputs of a corpus failed, the others were written; the same command
    tries the failed ones again. 2: the input was rejected.
    """
    if advise:
        print_advice(_read(inputs, weight, unweighted, nodes))
        return
    if out is None:
        raise ValueError("--out is missing: name the file to write, or use --advise")
    options = {"k": k, "q": q, "relative_q": relative_q, "normalised": normalised, "convention": convention}
    method = make_encoding(encoding, options | {"steps": steps, "restart": restart, "top": top, "reach": reach})
    corpus = {"--workers": workers, "--ray": ray, "--format": file_format}
    if any(value is not None for value in corpus.values()) or any(_is_corpus(path) for path in inputs):
        left_out = {"--nodes": nodes, "--plot": plot, "--vector": vector, "--cache": cache}
        for option, value in left_out.items():
            if value is not None:
                raise ValueError(f"{option} does not apply to a corpus (a folder, or --workers): leave it out")
        _encode_corpus(inputs, method, out, file_format, workers, ray, device, _weights(weight, unweighted))
        return
    check_outputs([out, *([plot] if plot else [])], [*inputs, *([nodes] if nodes else [])])
    _check_cache(cache, inputs)
    check_output(out)
    if out.suffix in TABLE_WRITERS and not has_node_table(method):
        raise ValueError(
            f"{encoding} encodes node pairs, not nodes: use {' or '.join(TENSOR_WRITERS)} instead of {out}"
        )
    if vector is not None and plot is None:
        raise ValueError("--vector chooses what --plot draws: give --plot, too")
    if plot is not None:
        _check_plot(method, encoding, plot, vector or 0)
    graphs = _read(inputs, weight, unweighted, nodes)
    if plot is not None:
        from magnetite.plots import check_drawable

        check_drawable(graphs, vector or 0)
    names = graphs.names or node_numbers(graphs)
    unnamed = graphs.replace(names=None)  # the cache is found by content, whatever the nodes are called
    result = _with_progress(method, unnamed.to(device_named(device)), cache).to("cpu")
    if out.suffix in TABLE_WRITERS:
        write_table(out, node_table(result, names))
    else:
        write_arrays(out, result.tensors(), names, {"kind": type(result).__name__, "version": __version__})
    if plot is not None and isinstance(result, Eigenpairs):
        from magnetite.plots import plot_eigenvectors

        plot_eigenvectors(graphs, result, plot, vector=vector or 0)
    typer.echo(f"{result} of {graphs} → {out}" + (f", {plot}" if plot else ""))


def print_advice(graphs: Digraphs) -> None:
    """Print `mt.advise(graphs)` as a table."""
    advice = find_advice(graphs)
    typer.echo(f"{graphs}\n{advice.summary()}")
    table = Table(*COLUMNS)
    for row in advice.rows():
        table.add_row(*row)
    Console().print(table)


def make_encoding(name: str, options: dict[str, Any]) -> Encoding[Packed]:
    """Build an encoding from the options that were typed; those that are None keep the encoding's defaults.

    >>> make_encoding("svd", {"k": 4, "steps": None})
    SVD(rank=4, dtype=torch.float32)
    >>> make_encoding("svd", {"k": 4, "steps": 3})
    Traceback (most recent call last):
    ValueError: --steps does not apply to the encoding svd, which takes --k: leave it out
    """
    if name not in ENCODINGS:
        raise ValueError(f"unknown encoding {name!r}: choose one of {', '.join(ENCODINGS)}")
    known = {field.name: field for field in fields(ENCODINGS[name])}
    size = next((field for field in SIZES if field in known), None)
    field_of = {"k": size, "relative_q": "q"}
    typed = {option: value for option, value in options.items() if value is not None}
    for option in typed:
        if field_of.get(option, option) not in known:
            taken = " ".join(_flag(other) for other in options if field_of.get(other, other) in known) or "no options"
            raise ValueError(
                f"{_flag(option)} does not apply to the encoding {name}, which takes {taken}: leave it out"
            )
    if size is not None and known[size].default is MISSING:
        typed.setdefault("k", DEFAULT_SIZE)
    if "q" in typed and "relative_q" in typed:
        raise ValueError("--q and --relative-q were both given: choose an absolute or a relative potential")
    values = {field_of.get(option, option): _potentials(option, value) for option, value in typed.items()}
    return ENCODINGS[name](**values)


def _flag(option: str) -> str:
    return "--" + option.replace("_", "-")


def _potentials(option: str, value: Any) -> Any:
    """The value of the field that an option sets: one potential, or a tuple of several; other values are unchanged."""
    if option not in ("q", "relative_q"):
        return value
    potentials: list[Potential] = [Relative(q) for q in value] if option == "relative_q" else value
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


def _check_cache(cache: Path | None, inputs: list[Path]) -> None:
    if cache is None:
        return
    if cache.exists() and not cache.is_dir():
        raise ValueError(f"--cache must be a folder, but {cache} is a file: choose another")
    inside = [path for path in inputs if path.suffix == ".safetensors" and path.resolve().parent == cache.resolve()]
    if inside:
        raise ValueError(f"{inside[0]} is in the folder of --cache, whose files may be replaced: choose another folder")


def _read(inputs: list[Path], weight: str | None, unweighted: bool, nodes: Path | None) -> Digraphs:
    """The graphs of all files or folders, without features, which may differ between them."""
    chosen = _weights(weight, unweighted)
    if any(map(_is_corpus, inputs)):
        from magnetite.corpus import read_corpus

        if nodes is not None:
            raise ValueError("--nodes does not apply to a corpus (a folder): leave it out")
        return read_corpus(inputs, chosen)
    if nodes is not None and len(inputs) > 1:
        raise ValueError(f"--nodes belongs to one file of edges, got {len(inputs)} files: encode them one by one")
    graphs = [read_graphs(path, chosen, nodes) for path in inputs]
    return Digraphs.concat(each.replace(node_features={}, edge_features={}, graph_features={}) for each in graphs)


def _weights(weight: str | None, unweighted: bool) -> str | bool | None:
    if weight is not None and unweighted:
        raise ValueError("--weight and --unweighted were both given: choose one of them")
    return None if unweighted else True if weight is None else weight


def _is_corpus(path: Path) -> bool:
    return path.is_dir() or (not path.exists() and ":" in path.name)


def _encode_corpus(
    inputs: list[Path],
    method: Encoding[Packed],
    out: Path,
    file_format: str | None,
    workers: int | None,
    ray: str | None,
    device: str,
    weight: str | bool | None,
) -> None:
    """Encode a corpus with a progress bar, and list the inputs that failed."""
    from magnetite.corpus import encode_corpus

    if out.suffix in (*TENSOR_WRITERS, *TABLE_WRITERS):
        raise ValueError(f"--out must be a folder for a corpus (a folder, or --workers), got the file {out}")
    if ray is None:
        device_named(device)
    columns = (TextColumn("encoding"), BarColumn(), MofNCompleteColumn(), TextColumn("graphs {task.fields[rate]}"))
    console = Console(stderr=True)
    started = time.monotonic()
    with Progress(*columns, TimeElapsedColumn(), console=console, disable=not console.is_terminal) as bar:
        row = bar.add_task("encoding", total=None, rate="")

        def advance(now: "EncodingProgress") -> None:
            rate = (now.graphs - now.kept) / (time.monotonic() - started)
            bar.update(row, completed=now.graphs, total=now.total, rate=f"({rate:,.0f} per second)")

        corpus = encode_corpus(
            inputs,
            method,
            out,
            format=file_format or "safetensors",
            workers=workers,
            ray=ray,
            device=device,
            weight=weight,
            progress=advance,
        )
    for name, reason in list(corpus.failed.items())[:LISTED]:
        typer.echo(f"failed: {name} ({reason})")
    if len(corpus.failed) > LISTED:
        typer.echo(f"failed: {len(corpus.failed) - LISTED:,} more, see {out / MANIFEST.name}")
    typer.echo(f"{corpus} → {out}")
    if not corpus.complete:
        typer.echo(f"{len(corpus.failed)} inputs failed: repair or remove them, and run the same command again")
        raise typer.Exit(FAILED)


def _check_plot(method: Any, encoding: str, path: Path, vector: int) -> None:
    from magnetite.plots import check_figure

    if not isinstance(method, MagneticLaplacian | Laplacian):
        raise ValueError(f"--plot draws eigenvectors, which {encoding} does not have: use magnetic or laplacian")
    if not 0 <= vector < method.k:
        raise ValueError(f"--vector must be from 0 to {method.k - 1}, got {vector}: increase --k to compute more")
    check_figure(path)
