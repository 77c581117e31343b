"""OGB's CSV layout: edges, features and labels of all graphs, each in one file, one line per edge, node or graph.

The files are in `raw/`, or in the folder itself, compressed (.csv.gz) or not (.csv):

- `num-node-list` and `num-edge-list`: the number of nodes and of edges of each graph;
- `edge`: source and target of each edge, numbered from 0 within their graph;
- `node-feat` and `edge-feat`: features `x` and `edge_attr`; if the first line has names, one feature per column;
- `node-feat-NAME`, `edge-feat-NAME`, `node_NAME`, `edge_NAME`: further features;
- `graph-label`, `node-label`: the targets, `y`; or several, `graph-label-NAME`, `node-label-NAME`.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from magnetite.io.readers import FREE_NODES
from magnetite.io.tables import Names, existing, narrowed, read_matrix, whole

EXTENSIONS = (".csv.gz", ".csv")
NODES, EDGES, COUNTS = "num-node-list", "edge", "num-edge-list"
WORDS = {"feat": "feature", "label": "label"}

Arrays = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class OgbGraphs:
    """The content of a folder as plain arrays.

    Args:
        nodes: Number of nodes of each graph.
        counts: Number of edges of each graph.
        edges: Sources and targets, `[2, edges]`, numbered within their graph.
        node_features: Arrays by name, with one row per node.
        edge_features: Arrays by name, with one row per edge.
        graph_labels: Targets by name, with one row per graph.
        node_labels: Targets by name, with one row per node.
    """

    nodes: np.ndarray
    counts: np.ndarray
    edges: np.ndarray
    node_features: Arrays
    edge_features: Arrays
    graph_labels: Arrays
    node_labels: Arrays


def is_ogb(folder: Path) -> bool:
    """Whether a folder has the files of OGB's layout."""
    return _place(folder) is not None


def read_ogb(folder: Path) -> OgbGraphs:
    """Read a folder; an error names the file and the line."""
    place = _place(folder) or folder
    nodes, counts = _counts(place, NODES, 1), _counts(place, COUNTS, 0)
    if len(nodes) != len(counts):
        raise ValueError(
            f"{place}: {NODES} has {len(nodes)} lines, but {COUNTS} has {len(counts)}: both need one line per graph"
        )
    rows = {"node": sum(nodes.tolist()), "edge": sum(counts.tolist()), "graph": len(nodes)}  # beyond 64 bits, too
    edges = _edges(place, nodes, counts, rows["edge"])
    features = {side: _files(place, side, "feat", rows[side]) for side in ("node", "edge")}
    labels = {side: _files(place, side, "label", rows[side]) for side in ("graph", "node")}
    if not features["node"] and not labels["node"]:
        _check_cost(_required(place, NODES), rows)
    return OgbGraphs(nodes, counts, edges, features["node"], features["edge"], labels["graph"], labels["node"])


def _place(folder: Path) -> Path | None:
    places = (folder / "raw", folder)
    return next((place for place in places for name in (NODES, COUNTS) if existing(place, name, EXTENSIONS)), None)


def _required(place: Path, stem: str) -> Path:
    path = existing(place, stem, EXTENSIONS)
    if path is None:
        raise ValueError(f"{place} has no {stem}.csv or {stem}.csv.gz, which OGB's layout needs: add it")
    return path


def _counts(place: Path, stem: str, least: int) -> np.ndarray:
    path = _required(place, stem)
    names, columns = read_matrix(path)
    if len(columns) != 1:
        raise ValueError(f"{path} has {len(columns)} columns, expected one number per line")
    first = 1 if names is None else 2
    counts = whole(columns[0], path, first)
    wrong = np.flatnonzero(counts < least)
    if wrong.size:
        row = int(wrong[0])
        raise ValueError(f"{path} line {row + first}: expected at least {least}, got {counts[row]}")
    return counts


def _check_cost(path: Path, rows: Mapping[str, int]) -> None:
    """Refuse a huge number of nodes that no other file confirms, because encoding them could exhaust the memory.

    Rows are counted, not bytes, since files may be compressed.
    """
    most = max(FREE_NODES, 2 * rows["edge"] + rows["graph"])
    if rows["node"] > most:
        raise ValueError(
            f"{path} has {rows['node']} nodes in all, but {rows['edge']} edges, and no file has one row per node: give "
            f"at most {most} nodes, or add node-feat.csv"
        )


def _edges(place: Path, nodes: np.ndarray, counts: np.ndarray, total: int) -> np.ndarray:
    if not counts.any() and ((path := existing(place, EDGES, EXTENSIONS)) is None or not path.stat().st_size):
        return np.empty((2, 0), dtype=np.int32)
    path = _required(place, EDGES)
    names, columns = read_matrix(path)
    if len(columns) != 2:
        raise ValueError(f"{path} has {len(columns)} columns, expected two: source and target")
    first = 1 if names is None else 2
    edges = np.stack([whole(column, path, first) for column in columns])
    _check_rows(path, names, edges.shape[1], total, COUNTS, "edges")
    size = np.repeat(nodes, counts)
    wrong = np.flatnonzero(((edges < 0) | (edges >= size)).any(0))
    if wrong.size:
        row = int(wrong[0])
        graph = int(np.searchsorted(counts.cumsum(), row, side="right"))
        raise ValueError(
            f"{path} line {row + first}: edge {edges[0, row]} → {edges[1, row]}, but graph {graph} has nodes 0 to "
            f"{nodes[graph] - 1}: number the nodes of each graph from 0"
        )
    return edges.astype(np.int32)


def _files(place: Path, side: str, content: str, rows: int) -> dict[str, np.ndarray]:
    """The features or labels of graphs, nodes or edges, by name."""
    found: dict[str, np.ndarray] = {}
    for path in sorted(place.iterdir()):
        stem = next((path.name.removesuffix(each) for each in EXTENSIONS if path.name.endswith(each)), "")
        default = {"feat": {"node": "x", "edge": "edge_attr"}.get(side, ""), "label": "y"}[content]
        if stem == f"{side}-{content}":
            name = default
        elif given := re.fullmatch(f"{side}-{content}-(.+)", stem):
            name = given[1]
        elif content == "feat" and stem.startswith(f"{side}_"):
            name = stem
        else:
            continue
        names, columns = read_matrix(path)
        _check_rows(path, names, len(columns[0]), rows, COUNTS if side == "edge" else NODES, f"{side}s")
        if content == "feat":
            _check_complete(path, columns, 1 if names is None else 2)
        parts = {name: _stacked(columns, content)}
        if content == "feat" and names is not None:
            parts = dict(zip(names, columns, strict=True))
        for each, values in parts.items():
            if each in found:
                raise ValueError(
                    f"{path}: another file has a {side} {WORDS[content]} {each!r}, too: rename one of them"
                )
            found[each] = narrowed(values) if content == "feat" else values
    return found


def _stacked(columns: Sequence[np.ndarray], content: str) -> np.ndarray:
    """Features as a matrix, `[rows, columns]`; labels too, unless there is one column."""
    return columns[0] if content == "label" and len(columns) == 1 else np.stack(columns, 1)


def _check_rows(path: Path, names: Names | None, found: int, expected: int, counted: str, what: str) -> None:
    if found != expected:
        header = "" if names is None else f" below the names {', '.join(names)[:40]!r}"
        raise ValueError(
            f"{path} has {found} rows{header}, but {counted} has {expected} {what} in all: both must belong to the "
            "same graphs"
        )


def _check_complete(path: Path, columns: Sequence[np.ndarray], first: int) -> None:
    for number, column in enumerate(columns):
        if column.dtype.kind == "f" and not np.isfinite(column).all():
            row = int(np.flatnonzero(~np.isfinite(column))[0])
            value = "empty" if np.isnan(column[row]) else column[row]
            raise ValueError(f"{path} line {row + first}: column {number + 1} is {value}: give every row a number")
