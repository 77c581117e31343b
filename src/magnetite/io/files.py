"""Users' files: graphs are read as edge lists, results are written as tensors or as tables.

To add a format, write a function and name its extension in `READERS`, `TENSOR_WRITERS` or `TABLE_WRITERS`.
"""

import csv
import json
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from magnetite.io.interop import EdgeList, from_edges, from_networkx, from_scipy
from magnetite.io.storage import check_writable, replacing, write_tensors

Row = tuple[int, list[str]]
"""The number of a line and its cells."""

Column = np.ndarray | Sequence[str]

COLUMNS = (
    ("source", "from", "src", "u", "tail"),
    ("target", "to", "dst", "destination", "v", "head"),
    ("weight", "w", "edge_weight"),
)
"""Names of the columns that are recognised in a CSV header."""

PICKLES = (".pt", ".pth", ".pkl", ".pickle")


def read_edges(path: Path) -> EdgeList:
    """Read one graph in any format of `READERS`, with the names of its nodes if the format has names."""
    return READERS[path.suffix][0](path)


@contextmanager
def explain_errors(path: Path, formats: Mapping[str, str]) -> Iterator[None]:
    """Check that `path` can be read, and make any error within the context say the file and the expected content.

    Args:
        path: The file that is read.
        formats: The expected content by file extension.
    """
    if path.suffix in PICKLES:
        raise ValueError(
            f"{path} is a {path.suffix} file, a Python pickle, which runs code when it is loaded: "
            "save the graph as safetensors (Digraphs.from_pyg(data).save(…)), GraphML or an edge list instead"
        )
    if path.is_dir():
        raise ValueError(f"{path} is a folder, not a file: give the files in it")
    if path.suffix not in formats:
        raise ValueError(f"{path} has an unknown file extension: use one of {' '.join(formats)}")
    if not path.is_file():
        raise FileNotFoundError(f"{path} does not exist or is not a file: check the path")
    try:
        yield
    except Exception as error:  # parsers raise many types on damaged files
        reason = " ".join(str(error).split()) or type(error).__name__
        raise ValueError(f"{path} cannot be read: {reason}; expected {formats[path.suffix]}") from error


def _read_edge_list(path: Path) -> EdgeList:
    lines = (line.split("#")[0].split() for line in path.read_text(encoding="utf-8").splitlines())
    return _from_rows([(number, row) for number, row in enumerate(lines, 1) if row])


def _read_csv(path: Path) -> EdgeList:
    with path.open(newline="", encoding="utf-8") as file:
        rows = [(number, [cell.strip() for cell in row]) for number, row in enumerate(csv.reader(file), 1) if row]
    return _from_rows(_without_header(rows))


def _without_header(rows: list[Row]) -> list[Row]:
    """Remove the header. Known names set the order of the columns; words above numbers are a header, too."""
    if not rows:
        return rows
    header = [cell.lower() for cell in rows[0][1]]
    source, target, weight = (next((i for i, cell in enumerate(header) if cell in names), None) for names in COLUMNS)
    if source is not None and target is not None:
        columns = [source, target] if weight is None else [source, target, weight]
        return [(number, [row[i] for i in columns if i < len(row)]) for number, row in rows[1:]]
    numbers_below = rows[1:] and all(_is_number(cell) for _, row in rows[1:] for cell in row)
    only_words = not any(_is_number(cell) for cell in header)
    return rows[1:] if only_words and (numbers_below or len(header) == 3) else rows


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _from_rows(rows: Sequence[Row]) -> EdgeList:
    """Rows `source target [weight]`. Integer names are sorted as numbers, others keep their order of appearance."""
    if not rows:
        raise ValueError("it contains no edges")
    for number, row in rows:
        if len(row) not in (2, 3):
            raise ValueError(f"line {number} has {len(row)} columns")
    weighted = any(len(row) == 3 for _, row in rows)
    names = list(dict.fromkeys(name for _, row in rows for name in row[:2]))
    if all(name.isdecimal() for name in names):
        names.sort(key=int)
    number_of = {name: i for i, name in enumerate(names)}
    edges = np.array([[number_of[row[0]], number_of[row[1]]] for _, row in rows]).T
    weights = [_weight(row[2], number) if len(row) == 3 else 1.0 for number, row in rows]
    return EdgeList(edges, len(names), np.array(weights) if weighted else None, names)


def _weight(text: str, line: int) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"the weight in line {line} must be a number, got {text!r}") from None


def _read_graphml(path: Path) -> EdgeList:
    import networkx as nx

    return _named(nx.read_graphml(path))


def _read_json(path: Path) -> EdgeList:
    import networkx as nx

    content = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(content, dict) or "nodes" not in content:
        raise ValueError("it has no nodes")
    edges = "links" if "links" in content else "edges"
    known = {node["id"] for node in content["nodes"]}
    for link in content[edges]:
        for end in ("source", "target"):
            if link[end] not in known:
                raise ValueError(f"an edge refers to node {link[end]!r}, which is not in nodes")
    return _named(nx.node_link_graph({"directed": True, **content}, edges=edges))


def _named(graph: Any) -> EdgeList:
    item = from_networkx(graph, "weight")
    return EdgeList(item.edges, item.num_nodes, item.weights, [str(node) for node in graph])


def _read_npz(path: Path) -> EdgeList:
    if not zipfile.is_zipfile(path):
        raise ValueError("it is not a complete .npz archive")
    with np.load(path, allow_pickle=False) as arrays:
        if "format" in arrays:
            from scipy.sparse import load_npz

            return from_scipy(load_npz(path))
        if "edge_index" not in arrays:
            raise ValueError(f"it has no array edge_index, only {', '.join(arrays) or 'none'}")
        size = arrays.get("num_nodes")
        size = None if size is None else int(size)
        [item] = from_edges(arrays["edge_index"], size, arrays.get("edge_weight"))
        return item


LINES = "one `source target` or `source target weight` per line"
READERS: dict[str, tuple[Callable[[Path], EdgeList], str]] = {
    ".txt": (_read_edge_list, LINES),
    ".edges": (_read_edge_list, LINES),
    ".edgelist": (_read_edge_list, LINES),
    ".csv": (_read_csv, "one `source,target` or `source,target,weight` per line, separated by commas"),
    ".graphml": (_read_graphml, "a GraphML graph; edge weights, if any, must be positive"),
    ".json": (_read_json, "node-link data with `nodes` and `links` or `edges`, as written by networkx"),
    ".npz": (_read_npz, "a SciPy sparse matrix or arrays edge_index [2, m], edge_weight, num_nodes"),
}
"""Readers by file extension, each with a description of the expected content."""


def check_output(path: Path) -> None:
    """Raise an error for an unknown file extension or a path that cannot be written to, before any work is done."""
    known = [*TENSOR_WRITERS, *TABLE_WRITERS]
    if path.suffix not in known:
        raise ValueError(f"{path} has an unknown file extension: use one of {' '.join(known)}")
    check_writable(path)


def write_arrays(path: Path, tensors: Mapping[str, Tensor], names: Sequence[str], metadata: Mapping[str, str]) -> None:
    """Write named tensors and one name per node, in a format of `TENSOR_WRITERS`.

    Args:
        path: The file; its extension sets the format.
        tensors: Tensors by name.
        names: One name per node.
        metadata: Strings that are stored in the header, where the format has one.
    """
    TENSOR_WRITERS[path.suffix](path, tensors, names, metadata)


def write_table(path: Path, columns: Mapping[str, Column]) -> None:
    """Write columns of equal length, in a format of `TABLE_WRITERS`.

    Args:
        path: The file; its extension sets the format.
        columns: Arrays or lists of strings by the name of the column.
    """
    TABLE_WRITERS[path.suffix](path, columns)


def _write_npz(path: Path, tensors: Mapping[str, Tensor], names: Sequence[str], _metadata: Mapping[str, str]) -> None:
    arrays: dict[str, Any] = {name: tensor.cpu().numpy() for name, tensor in tensors.items()}
    with replacing(path) as part:
        np.savez(part, names=np.array(names), **arrays)


def _write_safetensors(
    path: Path, tensors: Mapping[str, Tensor], names: Sequence[str], metadata: Mapping[str, str]
) -> None:
    write_tensors(path, tensors, {**metadata, "names": json.dumps(list(names))})


def _write_parquet(path: Path, columns: Mapping[str, Column]) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    with replacing(path) as part:
        parquet.write_table(pa.table({name: pa.array(column) for name, column in columns.items()}), part)


def _write_csv(path: Path, columns: Mapping[str, Column]) -> None:
    with replacing(path) as part, part.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*(_listed(column) for column in columns.values()), strict=True))


def _listed(column: Column) -> Iterable[object]:
    return column.tolist() if isinstance(column, np.ndarray) else column


TENSOR_WRITERS = {".npz": _write_npz, ".safetensors": _write_safetensors}
TABLE_WRITERS = {".parquet": _write_parquet, ".csv": _write_csv}
