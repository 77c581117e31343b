"""`magnetite bench`: time per graph over the number of nodes, on every device, compared with torch, SciPy and NumPy."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
import typer
from rich.console import Console
from rich.progress import track
from rich.table import Table

from magnetite.encodings import MagneticLaplacian, RandomWalk
from magnetite.encodings.cache import Encoding
from magnetite.graphs import Digraphs
from magnetite.io.record import Record, read_record
from magnetite.linalg.potential import Adaptive, Relative

DEGREE = 5
"""Mean out-degree of the random digraphs, as in the paper's appendix on scalability."""

PATIENCE = 10.0
"""A method that took longer than this many seconds for one size is not measured at larger sizes."""


@dataclass(frozen=True)
class Method:
    """One curve of the figure.

    Args:
        name: The name in the table and the figure.
        encode: Function that encodes graphs.
        largest: Number of nodes of the largest graphs to measure.
        smallest: Number of nodes of the smallest graphs to measure.
    """

    name: str
    encode: Callable[[Digraphs], Any]
    largest: int
    smallest: int = 1


def bench(
    what: Annotated[
        str | None,
        typer.Argument(
            help="eigen (eigenpairs) or walks (random walks); both if omitted.",
            show_default=False,
            autocompletion=lambda: list(BENCHMARKS),
        ),
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for the figure and the JSON file.")] = Path("results"),
    seed: Annotated[int, typer.Option(help="Seed of the random graphs.")] = 0,
) -> None:
    """Measure the speed of the encodings on this machine: print a table, write a figure and JSON."""
    if what is not None and what not in BENCHMARKS:
        raise ValueError(f"unknown benchmark {what!r}: choose one of {', '.join(BENCHMARKS)}")
    if seed < 0:
        raise ValueError(f"--seed must be a non-negative integer, got {seed}")
    if out.exists() and not out.is_dir():
        raise ValueError(f"--out must be a folder, and {out} is a file")
    for name in BENCHMARKS if what is None else [what]:
        BENCHMARKS[name](out, seed)


def eigen(folder: Path, seed: int) -> None:
    """Eigenpairs with k = 25, real and complex, compared with torch (dense) and SciPy (sparse)."""
    methods = []
    for kind, q in (("complex", Relative(0.25)), ("real", 0.0)):
        encoding = MagneticLaplacian(k=25, q=q)
        methods += [Method(f"magnetite, {kind}, {device}", _on(device, encoding), 16_384) for device in _devices()]
        methods += [Method(f"torch eigh, {kind}, {device}", _torch(device, encoding), 2_048) for device in _devices()]
        methods += [Method(f"SciPy eigsh, {kind}", _scipy(encoding), 16_384, smallest=512)]
    _compare("figure-runtime-eigen", methods, [2**i for i in range(4, 15)], folder, seed)


def walks(folder: Path, seed: int) -> None:
    """Random walks, 3 steps and PageRank in both directions, compared with NumPy."""
    encoding = RandomWalk()
    methods = [Method(f"magnetite, {device}", _on(device, encoding), 1_024) for device in _devices()]
    methods += [Method("NumPy, one graph at a time", _numpy_walks(encoding), 1_024)]
    _compare("figure-runtime-walks", methods, [2**i for i in range(4, 11)], folder, seed)


BENCHMARKS: dict[str, Callable[[Path, int], None]] = {"eigen": eigen, "walks": walks}
"""The benchmarks by name."""


def _devices() -> list[str]:
    return ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]


def _on(device: str, encoding: Encoding[Any]) -> Callable[[Digraphs], Any]:
    return lambda graphs: encoding(graphs.to(device))


def _torch(device: str, encoding: MagneticLaplacian) -> Callable[[Digraphs], Any]:
    """Build each Laplacian with magnetite and call `torch.linalg.eigh` on the batch; all graphs have the same size."""

    def encode(graphs: Digraphs) -> Any:
        return torch.linalg.eigh(torch.stack([_dense(graph, encoding) for graph in graphs]).to(device))

    return encode


def _scipy(encoding: MagneticLaplacian) -> Callable[[Digraphs], Any]:
    """Build each Laplacian with magnetite and call `eigsh` with our tolerance, where it converges fastest."""

    def encode(graphs: Digraphs) -> Any:
        from scipy.sparse import eye_array
        from scipy.sparse.linalg import eigsh

        from magnetite.linalg.eigen_sparse import tolerance_for
        from magnetite.linalg.laplacian import Operator
        from magnetite.linalg.pairs import pair_edges
        from magnetite.linalg.sparse import sparse_laplacian

        operator = Operator(encoding.q if isinstance(encoding.q, Adaptive | Relative | float) else 0.0)
        found = []
        for graph in graphs:
            pairs = pair_edges(graph.edges, graph.edge_ptr, graph.sizes, None)
            matrix = sparse_laplacian(pairs, operator).to_scipy()
            flipped = 2 * eye_array(graph.num_nodes, dtype=matrix.dtype, format="csr") - matrix
            tolerance: Any = tolerance_for(graph.num_nodes)
            found.append(eigsh(flipped, k=encoding.k, which="LA", tol=tolerance))
        return found

    return encode


def _dense(graph: Digraphs, encoding: MagneticLaplacian) -> torch.Tensor:
    from magnetite.linalg.laplacian import Operator, dense_adjacency

    adjacency = dense_adjacency(graph.edges, graph.edge_graph, None, 1, graph.num_nodes)
    return Operator(encoding.q if isinstance(encoding.q, Adaptive | Relative | float) else 0.0).dense(adjacency)[0]


def _numpy_walks(encoding: RandomWalk) -> Callable[[Digraphs], Any]:
    """A plain NumPy implementation: powers by `matrix_power`, PageRank by `inv`, in both directions."""

    def one_direction(adjacency: np.ndarray) -> list[np.ndarray]:
        degree = adjacency.sum(1, keepdims=True)
        step = np.where(degree > 0, adjacency / np.where(degree > 0, degree, 1), np.eye(len(adjacency)))
        powers = [np.linalg.matrix_power(step, count + 1) for count in range(encoding.steps)]
        restart = encoding.restart or 1.0
        return [*powers, restart * np.linalg.inv(np.eye(len(step)) - (1 - restart) * step)]

    def encode(graphs: Digraphs) -> Any:
        dense = [matrix.toarray() for matrix in graphs.to_scipy()]
        return [np.stack([*one_direction(matrix.T)[::-1], *one_direction(matrix)], axis=-1) for matrix in dense]

    return encode


def _random_graphs(size: int, count: int, seed: int) -> Digraphs:
    rng = np.random.default_rng([seed, size])
    return Digraphs.from_edges([rng.integers(0, size, (2, DEGREE * size)) for _ in range(count)], [size] * count)


def _milliseconds(method: Method, graphs: Digraphs) -> float:
    """Time per graph of a second call; the first one compiles and warms up."""
    method.encode(graphs[:1])
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    start = time.perf_counter()
    method.encode(graphs)
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return 1e3 * (time.perf_counter() - start) / len(graphs)


def _compare(name: str, methods: list[Method], sizes: list[int], folder: Path, seed: int) -> None:
    record = Record(name, seed)
    curves: dict[str, dict[int, float]] = {method.name: {} for method in methods}
    slow: set[str] = set()
    console = Console(stderr=True)
    for size in track(sizes, description=name, console=console, disable=not console.is_terminal):
        graphs = _random_graphs(size, max(2, min(256, 16_384 // size)), seed)
        for method in methods:
            if method.smallest <= size <= method.largest and method.name not in slow:
                curves[method.name][size] = round(_milliseconds(method, graphs), 4)
                if curves[method.name][size] * len(graphs) > 1e3 * PATIENCE:
                    slow.add(method.name)
    path = record.write(folder, {"degree": DEGREE, "milliseconds_per_graph": curves})
    _picture(name, curves, folder)
    out = Console(width=max(100, 34 + 9 * len(sizes)))
    out.print(_table(curves, sizes))
    out.print(f"figure: {folder / name}.png and .svg, data: {path}")


def _table(curves: dict[str, dict[int, float]], sizes: list[int]) -> Table:
    table = Table("milliseconds per graph of n nodes", *map(str, sizes))
    for name, points in curves.items():
        table.add_row(name, *(f"{points[size]:.3g}" if size in points else "" for size in sizes))
    return table


LIBRARIES = {
    "magnetite": ("#0072B2", "o"), "torch eigh": ("#D55E00", "s"), "SciPy eigsh": ("#009E73", "^"),
    "NumPy": ("#CC79A7", "D"),
}  # fmt: skip
"""Colours and markers of libraries, from Okabe and Ito's palette for colour-blind readers."""

DEVICES = {"cpu": ("-", "CPU"), "cuda": ("--", "GPU")}
"""Lines and labels of devices."""


def _picture(name: str, curves: dict[str, dict[int, float]], folder: Path) -> None:
    """One panel for real and one for complex matrices; or a single one, for a column."""
    import matplotlib
    from matplotlib.figure import Figure

    from magnetite.plots import save_figure

    kinds = [kind for kind in ("real", "complex") if any(kind in curve.split(", ") for curve in curves)]
    sizes: Any = {"font.size": 7, "lines.markersize": 3.5, "lines.linewidth": 1.1, "legend.frameon": False}
    with matplotlib.rc_context(sizes):
        figure = Figure(figsize=(6.75 if kinds else 3.3, 2.6), layout="constrained")
        panels: Any = figure.subplots(1, len(kinds) or 1, sharey=True, squeeze=False)[0]
        handles = {}
        for axes, kind in zip(panels, kinds or [""], strict=True):
            for curve, points in curves.items():
                library, *rest = curve.split(", ")
                if kind and kind not in rest:
                    continue
                colour, marker = LIBRARIES.get(library, ("black", "v"))
                line, device = DEVICES["cuda" if "cuda" in rest else "cpu"]
                (handles[f"{library}, {device}"],) = axes.loglog(
                    [int(size) for size in points], list(points.values()), marker=marker, linestyle=line,
                    color=colour, markeredgecolor="white", markeredgewidth=0.4,
                )  # fmt: skip
            axes.set_title(f"{kind} matrices" if kind else "random walks", fontsize=7.5)
            axes.set_xlabel("nodes per graph")
            axes.grid(color="0.9", linewidth=0.5)
        panels[0].set_ylabel("time per graph, milliseconds")
        figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=5 if kinds else 2)
        for extension in (".png", ".svg"):
            save_figure(figure, folder / f"{name}{extension}", dpi=200, crop=False)


def redraw(name: str, folder: Path) -> Path:
    """Draw a benchmark's figure again from its JSON file, without measuring, and return the path of that file.

    Args:
        name: A key of `BENCHMARKS`.
        folder: Folder of the JSON file and the figure.
    """
    path = folder / f"figure-runtime-{name}.json"
    _picture(path.stem, read_record(path)["result"]["milliseconds_per_graph"], folder)
    return path
