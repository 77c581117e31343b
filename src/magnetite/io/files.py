"""Graphs from files of the usual formats, and encodings to files: what the command line reads and writes."""

import csv
import json
import zipfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from magnetite.encodings import Eigenpairs, NodeEncoding
from magnetite.graphs import Digraphs
from magnetite.io.storage import check_writable, replacing, write_tensors
from magnetite.packed import Packed
from magnetite.version import __version__

Row = tuple[int, list[str]]
"""A line's number and its cells."""

COLUMNS = (
    ("source", "from", "src", "u", "tail"),
    ("target", "to", "dst", "destination", "v", "head"),
    ("weight", "w", "edge_weight"),
)
"""What a CSV header may call its columns."""


@dataclass(frozen=True)
class NamedGraphs:
    """Graphs and, for every node of all graphs, its name in the file."""

    graphs: Digraphs
    names: list[str]


def read_graphs(path: str | Path) -> NamedGraphs:
    """Read a file by its ending: edge list, CSV, GraphML, JSON node-link, `.npz` (SciPy or edge_index), safetensors."""
    path = Path(path)
    if path.suffix in PICKLES:
        raise ValueError(
            f"{path} is a {path.suffix} file: it holds a Python pickle, which runs code when it is loaded; "
            "save the graph as safetensors (Digraphs.from_pyg(data).save(…)), GraphML or an edge list instead"
        )
    if path.is_dir():
        raise ValueError(f"{path} is a folder and not a file: give the files in it")
    if path.suffix not in READERS:
        raise ValueError(f"{path} has no known ending: use one of {' '.join(READERS)}")
    if not path.is_file():
        raise FileNotFoundError(f"{path} does not exist or is not a file: check the path")
    reader, form = READERS[path.suffix]
    try:
        return reader(path)
    except Exception as error:  # whatever a parser makes of a damaged file
        reason = " ".join(str(error).split()) or type(error).__name__
        raise ValueError(f"{path} cannot be read: {reason}; expected {form}") from error


def _read_edge_list(path: Path) -> NamedGraphs:
    lines = (line.split("#")[0].split() for line in path.read_text(encoding="utf-8").splitlines())
    return _from_rows([(number, row) for number, row in enumerate(lines, 1) if row])


def _read_csv(path: Path) -> NamedGraphs:
    with path.open(newline="", encoding="utf-8") as file:
        rows = [(number, [cell.strip() for cell in row]) for number, row in enumerate(csv.reader(file), 1) if row]
    return _from_rows(_without_header(rows))


def _without_header(rows: list[Row]) -> list[Row]:
    """Leave out a header: known names put the columns in order; a word above numbers is a header, too."""
    if not rows:
        return rows
    header = [cell.lower() for cell in rows[0][1]]
    places = [next((i for i, cell in enumerate(header) if cell in names), None) for names in COLUMNS]
    source, target, weight = places
    if source is not None and target is not None:
        chosen = [source, target] if weight is None else [source, target, weight]
        return [(number, [row[i] for i in chosen if i < len(row)]) for number, row in rows[1:]]
    rest = rows[1:] and all(_is_number(cell) for _, row in rows[1:] for cell in row)
    words = not any(_is_number(cell) for cell in header)
    return rows[1:] if words and (rest or len(header) == 3) else rows


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _from_rows(rows: Sequence[Row]) -> NamedGraphs:
    """Rows `source target [weight]`; whole numbers are put in numeric order, other names in order of appearance."""
    if not rows:
        raise ValueError("it holds no edges")
    for number, row in rows:
        if len(row) not in (2, 3):
            raise ValueError(f"line {number} has {len(row)} columns")
    weighted = any(len(row) == 3 for _, row in rows)
    names = list(dict.fromkeys(name for _, row in rows for name in row[:2]))
    if all(name.isdecimal() for name in names):
        names.sort(key=int)
    number_of = {name: i for i, name in enumerate(names)}
    edges = np.array([[number_of[row[0]], number_of[row[1]]] for _, row in rows]).T
    weights = (
        np.array([_number(row[2], number) if len(row) == 3 else 1.0 for number, row in rows]) if weighted else None
    )
    return NamedGraphs(Digraphs.from_edges(edges, len(names), weights), names)


def _number(text: str, line: int) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"line {line} has weight {text!r}, which is no number") from None


def _read_graphml(path: Path) -> NamedGraphs:
    import networkx as nx

    graph = nx.read_graphml(path)
    return NamedGraphs(Digraphs.from_networkx(graph), [str(node) for node in graph])


def _read_json(path: Path) -> NamedGraphs:
    import networkx as nx

    content = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(content, dict) or "nodes" not in content:
        raise ValueError("it has no nodes")
    edges = "links" if "links" in content else "edges"
    known = {node["id"] for node in content["nodes"]}
    for link in content[edges]:
        for end in ("source", "target"):
            if link[end] not in known:
                raise ValueError(f"an edge names node {link[end]!r}, which is not among the nodes")
    graph = nx.node_link_graph({"directed": True, **content}, edges=edges)
    return NamedGraphs(Digraphs.from_networkx(graph), [str(node) for node in graph])


def _read_npz(path: Path) -> NamedGraphs:
    if not zipfile.is_zipfile(path):
        raise ValueError("it is no whole .npz archive")
    with np.load(path, allow_pickle=False) as arrays:
        if "format" in arrays:
            from scipy.sparse import load_npz

            return _numbered(Digraphs.from_scipy(load_npz(path)))
        if "edge_index" not in arrays:
            raise ValueError(f"it has no edge_index among {', '.join(arrays) or 'its arrays'}")
        size = arrays.get("num_nodes")
        size = None if size is None else int(size)
        return _numbered(Digraphs.from_edges(arrays["edge_index"], size, arrays.get("edge_weight")))


def _read_safetensors(path: Path) -> NamedGraphs:
    return _numbered(Digraphs.load(path))


def _numbered(graphs: Digraphs) -> NamedGraphs:
    return NamedGraphs(graphs, [str(i) for size in graphs.sizes.tolist() for i in range(size)])


LINES = "one `source target` or `source target weight` a line"
READERS: dict[str, tuple[Callable[[Path], NamedGraphs], str]] = {
    ".txt": (_read_edge_list, LINES),
    ".edges": (_read_edge_list, LINES),
    ".edgelist": (_read_edge_list, LINES),
    ".csv": (_read_csv, "one `source,target` or `source,target,weight` a line, separated by commas"),
    ".graphml": (_read_graphml, "a GraphML graph with positive edge weights, if any"),
    ".json": (_read_json, "node-link data with `nodes` and `links` or `edges`, as networkx writes it"),
    ".npz": (_read_npz, "a SciPy sparse matrix or plain arrays edge_index [2, m], edge_weight, num_nodes"),
    ".safetensors": (_read_safetensors, "a file of Digraphs.save"),
}
PICKLES = (".pt", ".pth", ".pkl", ".pickle")


def write_encoding(path: str | Path, encoding: Packed, names: Sequence[str]) -> None:
    """Write an encoding by the file's ending: `.npz` and `.safetensors` hold its tensors, tables one row a node."""
    path = Path(path)
    check_output(path)
    WRITERS[path.suffix](path, encoding, names)


def check_output(path: Path) -> None:
    """Refuse an ending that cannot be written, before any work is done."""
    if path.suffix not in WRITERS:
        raise ValueError(f"{path} has no known ending for an encoding: use one of {' '.join(WRITERS)}")
    check_writable(path)


def _write_npz(path: Path, encoding: Packed, names: Sequence[str]) -> None:
    arrays: dict[str, Any] = {name: tensor.cpu().numpy() for name, tensor in encoding.tensors().items()}
    with replacing(path) as part:
        np.savez(part, names=np.array(names), **arrays)


def _write_safetensors(path: Path, encoding: Packed, names: Sequence[str]) -> None:
    metadata = {"kind": type(encoding).__name__, "version": __version__, "names": json.dumps(list(names))}
    write_tensors(path, encoding.tensors(), metadata)


def _write_parquet(path: Path, encoding: Packed, names: Sequence[str]) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    columns = {key: pa.array(column) for key, column in _table(encoding, names).items()}
    with replacing(path) as part:
        parquet.write_table(pa.table(columns), part)


def _write_csv(path: Path, encoding: Packed, names: Sequence[str]) -> None:
    columns = _table(encoding, names)
    with replacing(path) as part, part.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*(_listed(column) for column in columns.values()), strict=True))


WRITERS: dict[str, Callable[[Path, Packed, Sequence[str]], None]] = {
    ".npz": _write_npz,
    ".safetensors": _write_safetensors,
    ".parquet": _write_parquet,
    ".csv": _write_csv,
}


def _table(encoding: Packed, names: Sequence[str]) -> dict[str, np.ndarray | Sequence[str]]:
    """One row a node: graph, node, and the columns of its vector; NaN beyond a graph's last eigenpair."""
    columns: dict[str, np.ndarray | Sequence[str]] = {"graph": encoding.node_graph.numpy(), "node": names}
    if isinstance(encoding, Eigenpairs):
        empty = ~encoding.mask[encoding.node_graph]
        values = encoding.values[encoding.node_graph].masked_fill(empty, torch.nan)
        real = encoding.vectors.real.masked_fill(empty, torch.nan)
        columns |= _numbered_columns("value", values) | _numbered_columns("re", real)
        if not encoding.vectors.is_complex():
            return columns
        return columns | _numbered_columns("im", encoding.vectors.imag.masked_fill(empty, torch.nan))
    if isinstance(encoding, NodeEncoding):
        return columns | _numbered_columns("x", encoding.values.view(len(names), -1))
    raise ValueError("an encoding of pairs of nodes is no table of nodes: write it to .npz or .safetensors")


def _numbered_columns(prefix: str, rows: Tensor) -> dict[str, np.ndarray]:
    """Columns `re_0, re_1, …` of `[n, k]`; `re_0_0, re_0_1, …` of `[n, Q, k]`: potential, then pair."""
    names = [prefix]
    for size in rows.shape[1:]:
        names = [f"{name}_{j}" for name in names for j in range(size)]
    return {name: column.numpy() for name, column in zip(names, torch.unbind(rows.flatten(1), dim=1), strict=True)}


def _listed(column: np.ndarray | Sequence[str]) -> Iterable[object]:
    return column.tolist() if isinstance(column, np.ndarray) else column
