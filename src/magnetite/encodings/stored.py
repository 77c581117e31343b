"""Encodings in files: what `magnetite encode` writes, as tensors or as tables; and `magnetite.read`."""

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np
import torch
from torch import Tensor

from magnetite.encodings.cache import Encoding
from magnetite.encodings.encoded import Encoded, EncodedCorpus, is_corpus, is_encoded
from magnetite.encodings.results import RESULTS, Eigenpairs, NodeEncoding, PairEncoding, TopPairs
from magnetite.graphs import FORMATS, read_graphs
from magnetite.io.delimited import rows_of, text_of
from magnetite.io.files import TABLE_WRITERS, TENSOR_WRITERS, Column, explain_errors
from magnetite.io.readers.arrays import arrays_of
from magnetite.io.storage import read_tensors
from magnetite.io.tables import Table, read_table
from magnetite.linalg.eigen import equal_groups
from magnetite.packed import Named, Packed, packed_names, starts

KEYS = ("graph", "node")
"""The first columns of a table: the number of the graph and the name of the node."""

COLUMN = re.compile(r"(value|re|im|x)((?:_\d+){1,2})")

EXPECTED = "graph, node, and value_0, re_0 or x_0"
CONTENT = "a file written by magnetite encode"


def read(path: str | Path, weight: str | bool | None = True, nodes: str | Path | None = None) -> Any:
    """Read graphs, or an encoding that `magnetite encode` wrote; `names` holds the names of the nodes.

    The extension selects the format, and the content decides which of both it is: files of graphs give `Digraphs`, the
    others the result of the encoding, such as `Eigenpairs`. A folder that `magnetite encode` wrote gives an
    `EncodedCorpus` with `graphs` and `encoding`, one of its files an `Encoded`.

    Args:
        path: An edge list (.txt, .edges, .edgelist, .csv, .tsv), GraphML (.graphml), GML (.gml), node-link JSON
            (.json), a SciPy sparse matrix or `edge_index` (.npz), or a file written by `Digraphs.save` (.safetensors);
            or the output of `magnetite encode` (.npz, .safetensors, .parquet, .csv, .json, or a folder).
        weight: The edge attribute or column of the weights. True takes one called weight, w, edge_weight or value, if
            there is one; None reads no weights.
        nodes: A table with one row per node, for lists of edges with isolated nodes (.csv, .tsv, .parquet, .json).

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "calls.csv").write_text("source,target,calls\\nmain,parse,1\\nmain,run,2\\n")
    >>> _ = (folder / "nodes.csv").write_text("node\\nmain\\nrun\\nparse\\nhelp\\n")
    >>> graphs = read(folder / "calls.csv", weight="calls", nodes=folder / "nodes.csv")
    >>> graphs, graphs.names
    (Digraphs(1 graphs, 4 nodes, 2 edges, weighted), ['main', 'run', 'parse', 'help'])
    """
    path = Path(path)
    if is_corpus(path):
        return EncodedCorpus(path)
    if is_encoded(path):
        return Encoded.load(path)
    if not is_encoding(path):
        if path.suffix in FORMATS:
            return read_graphs(path, weight, nodes)
        with explain_errors(path, FORMATS | {".parquet": CONTENT}):
            _parts(read_table(path).columns)  # says what a table of an encoding has
    if nodes is not None or weight is not True:
        raise ValueError(f"{path} is an encoding, not a graph: leave out weight and nodes")
    return read_encoding(path)


def is_encoding(path: Path) -> bool:
    """Whether a file is an encoding rather than a graph, from its first lines or names of arrays."""
    look = LOOKS.get(path.suffix)
    if look is None or not path.is_file():
        return False
    try:
        return look(path)
    except Exception:  # the reader of the format says what is wrong with the file
        return False


def read_encoding(path: Path) -> Named:
    """Read a file written by `magnetite encode`.

    Files of tensors give back all tensors, bit for bit. Tables give back values, vectors and the mask, bit for bit, in
    single precision where that is exact. `group` is derived again from the eigenvalues, and `anchored` is false, since
    tables do not say whether phases are.
    """
    with explain_errors(path, dict.fromkeys((*TENSOR_WRITERS, *TABLE_WRITERS), CONTENT)):
        if path.suffix == ".safetensors":
            kind = read_tensors(path, verify=False)[1].get("kind", "")
            return RESULTS[kind].load(path)  # pyright: ignore[reportReturnType]
        return _of_arrays(arrays_of(path)) if path.suffix == ".npz" else _of_table(read_table(path))


def has_node_table(encoding: Encoding[Packed]) -> bool:
    """Whether the results of an encoding can be written as a table with one row per node, as far as it says.

    >>> from magnetite.encodings import Depth, Relatives
    >>> has_node_table(Depth()), has_node_table(Relatives())
    (True, False)
    """
    kind = get_type_hints(type(encoding).__call__).get("return")
    return kind not in (PairEncoding, TopPairs)


def node_table(encoding: Packed, names: list[str]) -> dict[str, Column]:
    """Columns with one row per node: graph, name, and the encoding; NaN beyond the last eigenpair of a graph."""
    columns: dict[str, Column] = {"graph": encoding.node_graph.numpy(), "node": names}
    if isinstance(encoding, Eigenpairs):
        missing = ~encoding.mask[encoding.node_graph]
        values = encoding.values[encoding.node_graph].masked_fill(missing, torch.nan)
        real = encoding.vectors.real.masked_fill(missing, torch.nan)
        columns |= _numbered_columns("value", values) | _numbered_columns("re", real)
        if not encoding.vectors.is_complex():
            return columns
        return columns | _numbered_columns("im", encoding.vectors.imag.masked_fill(missing, torch.nan))
    if isinstance(encoding, NodeEncoding):
        return columns | _numbered_columns("x", encoding.values.view(len(names), -1))
    raise ValueError(
        "an encoding of node pairs cannot be written as a table with one row per node: "
        f"use {' or '.join(TENSOR_WRITERS)}"
    )


def _numbered_columns(prefix: str, rows: Tensor) -> dict[str, np.ndarray]:
    """Columns `re_0, re_1, …` of `[n, k]`, or `re_0_0, re_0_1, …` (potential, eigenpair) of `[n, Q, k]`."""
    names = [prefix]
    for size in rows.shape[1:]:
        names = [f"{name}_{j}" for name in names for j in range(size)]
    return {name: column.numpy() for name, column in zip(names, torch.unbind(rows.flatten(1), dim=1), strict=True)}


def _of_arrays(arrays: Mapping[str, np.ndarray]) -> Named:
    arrays = dict(arrays)
    names = arrays.pop("names", None)
    kind = "Eigenpairs" if "vectors" in arrays else "TopPairs" if "landing" in arrays else "NodeEncoding"
    kind = "PairEncoding" if "pair_ptr" in arrays else kind
    tensors = {name: torch.from_numpy(array.copy()) for name, array in arrays.items()}
    result: Any = RESULTS[kind].from_tensors(tensors)
    return result if names is None else result.replace(names=[str(name) for name in names.tolist()])


def _of_table(table: Table) -> Named:
    parts = _parts(table.columns)
    names = ["" if cell is None else str(cell) for cell in table.columns["node"]]
    graph = np.asarray(table.values("graph"))
    steps = np.diff(graph, prepend=0)
    if graph.dtype.kind not in "iu" or not len(graph) or graph[0] or not np.isin(steps, (0, 1)).all():
        raise ValueError("the graphs must be numbered from 0 in the column 'graph', one after the other")
    node_ptr = starts(torch.from_numpy(np.bincount(graph)))
    arrays = {prefix: _stacked(table, columns) for prefix, columns in parts.items()}
    if "x" in arrays:
        values = arrays["x"].squeeze(1) if arrays["x"].shape[1] == 1 else arrays["x"]
        return NodeEncoding(node_ptr=node_ptr, values=values, **packed_names(names, node_ptr))
    every = arrays["value"]
    values = every[node_ptr[:-1]]
    same = (every == values[torch.from_numpy(graph)]) | every.isnan()
    if not bool(same.all()):
        row = int((~same).flatten(1).any(1).nonzero()[0])
        raise ValueError(f"{table.unit} {table.lines[row]} has other eigenvalues than the nodes before it in its graph")
    mask, real = ~values.isnan(), arrays["re"].nan_to_num(0.0)
    vectors = torch.complex(real, arrays["im"].nan_to_num(0.0)) if "im" in arrays else real
    values = values.nan_to_num(0.0)
    group = equal_groups(values.flatten(0, -2).double(), mask.flatten(0, -2)).view_as(mask)
    named = packed_names(names, node_ptr)
    result = Eigenpairs(
        node_ptr=node_ptr,
        values=values,
        vectors=vectors,
        mask=mask,
        group=group,
        anchored=torch.zeros_like(mask),
        **named,
    )
    result.check()
    return result


def _parts(columns: Mapping[str, Any]) -> dict[str, list[str]]:
    """The columns of a table by their prefix; an error if it is not the table of an encoding."""
    parts: dict[str, list[str]] = {}
    for name in columns:
        if found := COLUMN.fullmatch(name):
            parts.setdefault(found[1], []).append(name)
        elif name not in KEYS:
            raise ValueError(f"the column {name!r:.60} is not one of an encoding, which has {EXPECTED}")
    if not set(KEYS) <= set(columns) or set(parts) not in ({"x"}, {"value", "re"}, {"value", "re", "im"}):
        raise ValueError(f"it has the columns {', '.join(columns):.200}, but an encoding has {EXPECTED}")
    return parts


def _stacked(table: Table, columns: list[str]) -> Tensor:
    """Columns `x_0, x_1, …` as `[n, k]`, or `x_0_0, …` as `[n, Q, k]`."""
    places = [tuple(map(int, COLUMN.fullmatch(name)[2].split("_")[1:])) for name in columns]  # pyright: ignore[reportOptionalSubscript]
    shape = tuple(place + 1 for place in max(places))
    if len(places) != np.prod(shape) or sorted(places) != list(np.ndindex(*shape)):
        raise ValueError(f"the columns {columns[0]} to {columns[-1]} are not complete: some are missing")
    rows = []
    for _, name in sorted(zip(places, columns, strict=True)):
        values = table.values(name)
        if not isinstance(values, np.ndarray) or values.ndim != 1 or values.dtype.kind not in "iuf":
            raise ValueError(f"column {name!r:.60} must have numbers")
        rows.append(values)
    stacked = np.stack(rows, 1).reshape(len(table), *shape)
    if stacked.dtype.kind == "f":
        single = stacked.astype(np.float32)
        if np.array_equal(single.astype(np.float64), stacked, equal_nan=True):
            stacked = single
    return torch.from_numpy(stacked)


def _looks_npz(path: Path) -> bool:
    import zipfile

    with zipfile.ZipFile(path) as archive:
        return "node_ptr.npy" in archive.namelist()


def _looks_safetensors(path: Path) -> bool:
    return read_tensors(path, verify=False)[1].get("kind") in RESULTS


def _looks_table(names: Any) -> bool:
    names = list(names)
    return names[:2] == list(KEYS) and all(COLUMN.fullmatch(name) for name in names[2:]) and len(names) > 2


def _looks_json(path: Path) -> bool:
    text = text_of(path).lstrip()
    return text.startswith("[") and _looks_table(json.loads(text)[0])


def _looks_csv(path: Path) -> bool:
    with path.open(encoding="utf-8-sig", errors="replace") as file:
        first = file.readline(2**24)
    return _looks_table(rows_of(path, first)[0][1])


def _looks_parquet(path: Path) -> bool:
    from pyarrow import parquet

    return _looks_table(parquet.read_schema(path).names)


LOOKS: dict[str, Callable[[Path], bool]] = {
    ".npz": _looks_npz,
    ".safetensors": _looks_safetensors,
    ".parquet": _looks_parquet,
    ".csv": _looks_csv,
    ".json": _looks_json,
}
"""For each format, whether a file of it is an encoding."""
