"""Graphs from files of the usual formats, and encodings to files: what the command line reads and writes."""

import csv
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from magnetite.encodings import Eigenpairs, NodeEncoding
from magnetite.graphs import Digraphs
from magnetite.packed import Packed
from magnetite.storage import replacing, write_tensors
from magnetite.version import __version__


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
    if path.suffix not in READERS:
        raise ValueError(f"{path} has no known ending: use one of {' '.join(READERS)}")
    if not path.is_file():
        raise FileNotFoundError(f"{path} does not exist or is not a file: check the path")
    try:
        return READERS[path.suffix](path)
    except (ValueError, KeyError, OSError, SyntaxError) as error:
        reason = f"missing {error}" if isinstance(error, KeyError) else str(error)
        raise ValueError(f"{path} cannot be read: {' '.join(reason.split())}") from error


def _read_edge_list(path: Path) -> NamedGraphs:
    lines = (line.split("#")[0].split() for line in path.read_text(encoding="utf-8").splitlines())
    return _from_rows([(number, row) for number, row in enumerate(lines, 1) if row])


def _read_csv(path: Path) -> NamedGraphs:
    with path.open(newline="", encoding="utf-8") as file:
        rows = [(number, [cell.strip() for cell in row]) for number, row in enumerate(csv.reader(file), 1) if row]
    if rows and rows[0][1][0].lower() in ("source", "from", "src", "u"):
        rows = rows[1:]
    return _from_rows(rows)


def _from_rows(rows: Sequence[tuple[int, list[str]]]) -> NamedGraphs:
    """Rows `source target [weight]`; whole numbers are put in numeric order, other names in order of appearance."""
    if not rows:
        raise ValueError("it holds no edges; write one `source target [weight]` a line")
    width = len(rows[0][1])
    for number, row in rows:
        if len(row) not in (2, 3) or len(row) != width:
            raise ValueError(f"line {number} has {len(row)} columns; write `source target` or `source target weight`")
    names = list(dict.fromkeys(name for _, row in rows for name in row[:2]))
    if all(name.isdecimal() for name in names):
        names.sort(key=int)
    number_of = {name: i for i, name in enumerate(names)}
    edges = np.array([[number_of[row[0]], number_of[row[1]]] for _, row in rows]).T
    weights = None if width == 2 else np.array([_number(row[2], number) for number, row in rows])
    return NamedGraphs(Digraphs.from_edges(edges, len(names), weights), names)


def _number(text: str, line: int) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"line {line} has weight {text!r}; write a number") from None


def _read_graphml(path: Path) -> NamedGraphs:
    import networkx as nx

    graph = nx.read_graphml(path)
    return NamedGraphs(Digraphs.from_networkx(graph), [str(node) for node in graph])


def _read_json(path: Path) -> NamedGraphs:
    import networkx as nx

    content = json.loads(path.read_text(encoding="utf-8"))
    edges = "links" if "links" in content else "edges"
    known = {node["id"] for node in content["nodes"]}
    for link in content[edges]:
        for end in ("source", "target"):
            if link[end] not in known:
                raise ValueError(f"an edge names node {link[end]!r}, which is not among the nodes; add it there")
    graph = nx.node_link_graph({"directed": True, **content}, edges=edges)
    return NamedGraphs(Digraphs.from_networkx(graph), [str(node) for node in graph])


def _read_npz(path: Path) -> NamedGraphs:
    with np.load(path, allow_pickle=False) as arrays:
        if "format" in arrays:
            from scipy.sparse import load_npz

            return _numbered(Digraphs.from_scipy(load_npz(path)))
        size = arrays.get("num_nodes")
        size = None if size is None else int(size)
        return _numbered(Digraphs.from_edges(arrays["edge_index"], size, arrays.get("edge_weight")))


def _read_safetensors(path: Path) -> NamedGraphs:
    return _numbered(Digraphs.load(path))


def _numbered(graphs: Digraphs) -> NamedGraphs:
    return NamedGraphs(graphs, [str(i) for size in graphs.sizes.tolist() for i in range(size)])


READERS: dict[str, Callable[[Path], NamedGraphs]] = {
    ".txt": _read_edge_list,
    ".edges": _read_edge_list,
    ".edgelist": _read_edge_list,
    ".csv": _read_csv,
    ".graphml": _read_graphml,
    ".json": _read_json,
    ".npz": _read_npz,
    ".safetensors": _read_safetensors,
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
    """One row a node: graph, node, and the columns of its vector."""
    columns: dict[str, np.ndarray | Sequence[str]] = {"graph": encoding.node_graph.numpy(), "node": names}
    if isinstance(encoding, Eigenpairs):
        vectors = encoding.vectors.flatten(1)
        values = encoding.values.flatten(1)[encoding.node_graph]
        columns |= _numbered_columns("value", values) | _numbered_columns("re", vectors.real)
        return columns | (_numbered_columns("im", vectors.imag) if vectors.is_complex() else {})
    if isinstance(encoding, NodeEncoding):
        return columns | _numbered_columns("x", encoding.values.view(len(names), -1))
    raise ValueError("an encoding of pairs of nodes is no table of nodes: write it to .npz or .safetensors")


def _numbered_columns(prefix: str, matrix: Tensor) -> dict[str, np.ndarray]:
    return {f"{prefix}_{j}": column.numpy() for j, column in enumerate(torch.unbind(matrix, dim=1))}


def _listed(column: np.ndarray | Sequence[str]) -> Iterable[object]:
    return column.tolist() if isinstance(column, np.ndarray) else column
