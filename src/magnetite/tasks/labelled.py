"""Graph files with tables.

`labels.csv` has targets of the graphs, `nodes.csv` features and targets of the nodes, `pairs.csv` targets of node
pairs, `links.csv` a split of the edges.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from magnetite.batching import QueryPairs
from magnetite.graphs import FORMATS, Digraphs, node_numbers, read_graphs
from magnetite.io.tables import TABLES, Table, existing, narrowed, read_table
from magnetite.packed import starts
from magnetite.tasks.base import SPLITS

TABLE_NAMES = LABELS, NODES, PAIRS, LINKS = "labels", "nodes", "pairs", "links"
"""Names of the tables."""

GRAPH, NODE, SOURCE, TARGET, SPLIT = "graph", "node", "source", "target", "split"
"""Columns of the tables that are neither features nor targets."""

SPLIT_MASKS = {"train": "train_mask", "valid": "val_mask", "test": "test_mask"}
"""The features of nodes and edges that hold their split."""

SPLIT_NAMES = {"train": "train", "valid": "valid", "val": "valid", "test": "test"}

Classes = dict[str, tuple[str, ...]]


@dataclass
class Labelled:
    """Graphs with features and targets from files and tables.

    Args:
        graphs: The graphs.
        names: The file of each graph.
        splits: The split of the graphs, by the name of its table.
        classes: The texts of the class numbers 0, 1, …, by the name of the column; −1 where there is none.
        pairs: Node pairs with targets.
        pair_target: Name of the column with the targets of the pairs.
    """

    graphs: Digraphs
    names: tuple[str, ...]
    splits: dict[str, dict[str, Tensor]] = field(default_factory=dict)
    classes: Classes = field(default_factory=dict)
    pairs: QueryPairs | None = None
    pair_target: str | None = None


def is_labelled(folder: Path) -> bool:
    """Whether a folder has graph files and a table of labels, nodes, node pairs or links."""
    return any(existing(folder, name, TABLES) for name in TABLE_NAMES) and bool(graph_files(folder))


def read_labelled(folder: Path) -> Labelled:
    """Read the graphs, sorted by the name of their file, and their tables; an error names the file and the line."""
    paths = graph_files(folder)
    found = Labelled(joined([(path, _one(path)) for path in paths]), tuple(path.name for path in paths))
    if (path := existing(folder, LABELS, TABLES)) is not None:
        _add_labels(found, read_table(path))
    if (path := existing(folder, NODES, TABLES)) is not None:
        _add_nodes(found, read_table(path))
    if (path := existing(folder, LINKS, TABLES)) is not None:
        _add_links(found, read_table(path))
    if (path := existing(folder, PAIRS, TABLES)) is not None:
        _add_pairs(found, read_table(path))
    return found


def graph_files(folder: Path) -> list[Path]:
    """The graph files of a folder, or of `graphs/` in it, sorted."""
    place = folder / "graphs" if (folder / "graphs").is_dir() else folder
    tables = {f"{name}{extension}" for name in TABLE_NAMES for extension in TABLES} | {"splits.json"}
    return sorted(
        path
        for path in place.iterdir()
        if path.is_file() and path.suffix in FORMATS and path.name not in tables and not path.name.startswith(".")
    )


def joined(parts: Sequence[tuple[Path, Digraphs]]) -> Digraphs:
    """The graphs of several files one after the other; an error names a file whose features differ from the first's."""
    first_path, first = parts[0]
    for path, graphs in parts[1:]:
        for group in ("node_features", "edge_features", "graph_features"):
            expected, found = getattr(first, group), getattr(graphs, group)
            what = group.replace("_", " ")
            if set(expected) != set(found):
                raise ValueError(
                    f"{path} has the {what} {_listed(found)}, but {first_path.name} has {_listed(expected)}: "
                    "give all files the same features"
                )
            for name, values in expected.items():
                if values.shape[1:] != found[name].shape[1:]:
                    raise ValueError(
                        f"{path}: {what} {name!r} have {_width(found[name])} columns, but {_width(values)} in "
                        f"{first_path.name}: give all files the same columns"
                    )
                if values.is_floating_point() != found[name].is_floating_point():
                    raise ValueError(
                        f"{path}: {what} {name!r} are {found[name].dtype}, but {values.dtype} in {first_path.name}: "
                        "give all files whole numbers, or none"
                    )
    return Digraphs.concat(graphs for _, graphs in parts)


def _one(path: Path) -> Digraphs:
    graphs = read_graphs(path)
    if len(graphs) != 1:
        raise ValueError(f"{path} has {len(graphs)} graphs, but labels are given by file: write one graph per file")
    return graphs


def _add_labels(found: Labelled, table: Table) -> None:
    """Add one graph feature per column, and the split."""
    if GRAPH not in table.columns:
        raise ValueError(f"{table.path} has no column {GRAPH!r} with the file of each graph: it has {_columns(table)}")
    numbers = _graph_numbers(found.names, table)
    rows = _rows(table, numbers, len(found.names), lambda number: found.names[number], "label")
    features = _features(found, table, rows, (GRAPH, SPLIT), found.graphs.graph_features, LABELS)
    found.graphs = found.graphs.replace(graph_features=features)
    if SPLIT in table.columns:
        found.splits[LABELS] = _split(table, rows)


def _add_nodes(found: Labelled, table: Table) -> None:
    """Add one node feature per column, and masks of the splits."""
    if NODE not in table.columns:
        raise ValueError(f"{table.path} has no column {NODE!r} with the name of each node: it has {_columns(table)}")
    graphs = found.graphs
    names = graphs.names or node_numbers(graphs)
    numbers = _graphs_of_rows(table, graphs, found.names)
    nodes = _node_numbers(table, NODE, numbers, graphs, names, found.names)
    rows = _rows(
        table,
        nodes,
        graphs.num_nodes,
        lambda node: f"node {names[node]!r} of {found.names[int(graphs.node_graph[node])]}",
        "row",
    )
    features = _features(found, table, rows, (GRAPH, NODE, SPLIT), graphs.node_features, NODES)
    if SPLIT in table.columns:
        features |= {SPLIT_MASKS[split]: mask for split, mask in _split(table, rows).items()}
    found.graphs = graphs.replace(node_features=features)


def _add_links(found: Labelled, table: Table) -> None:
    """Add masks of the edges."""
    graphs = found.graphs
    if SPLIT not in table.columns:
        raise ValueError(f"{table.path} has no column {SPLIT!r} with train, valid or test: it has {_columns(table)}")
    _, (source, target) = nodes_in_table(table, graphs, graphs.names or node_numbers(graphs), found.names)
    first, second = graphs.edge_index.numpy()
    known: dict[tuple[int, int], int] = {}
    for row, edge in enumerate(zip(source.tolist(), target.tolist(), strict=True)):
        if edge in known:
            line = table.lines[known[edge]]
            raise ValueError(f"{table.where(row)}: this edge is in {table.unit} {line} already: remove one of them")
        known[edge] = row
    rows = np.array([known.get(edge, -1) for edge in zip(first.tolist(), second.tolist(), strict=True)], dtype=np.int64)
    missing = np.setdiff1d(np.arange(len(table)), rows)
    if missing.size:
        row = int(missing[0])
        nodes = " to ".join(repr(table.texts(side)[row]) for side in (SOURCE, TARGET))
        raise ValueError(f"{table.where(row)}: the graph has no edge from {nodes}: remove the row, or add the edge")
    masks = _split(table, rows)
    masks = {SPLIT_MASKS[split]: mask & torch.from_numpy(rows >= 0) for split, mask in masks.items()}
    found.graphs = graphs.replace(edge_features={**graphs.edge_features, **masks})


def _add_pairs(found: Labelled, table: Table) -> None:
    """Add node pairs with the target in the only column beside those that name the pair, and the split."""
    graphs, names = found.graphs, found.graphs.names or node_numbers(found.graphs)
    graph, ends = nodes_in_table(table, graphs, names, found.names)
    targets = [name for name in table.columns if name not in (GRAPH, SOURCE, TARGET, SPLIT)]
    if len(targets) != 1:
        raise ValueError(
            f"{table.path} needs one column with a target beside those of the pair and the split, got "
            f"{', '.join(targets) or 'none'}"
        )
    order = np.argsort(graph, kind="stable")
    values = _features(found, table, order, [name for name in table.columns if name not in targets], {}, PAIRS)
    found.pair_target, labels = next(iter(values.items()))
    found.pairs = QueryPairs(
        node_ptr=graphs.node_ptr,
        query_ptr=starts(torch.bincount(torch.from_numpy(graph), minlength=len(graphs))),
        nodes=torch.from_numpy((ends - graphs.node_ptr.numpy()[graph])[:, order]),
        labels=labels,
    )
    if SPLIT in table.columns:
        found.splits[PAIRS] = _split(table, order)


def nodes_in_table(
    table: Table, graphs: Digraphs, names: Sequence[str], files: Sequence[str] | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """The graph, and the packed numbers `[2, rows]` of source and target, of each row of a table.

    Args:
        table: A table with columns `source` and `target`, and `graph`, if there are several graphs.
        graphs: The graphs.
        names: The name of each node.
        files: The file of each graph, by which the column `graph` names it; otherwise by its number.
    """
    for side in (SOURCE, TARGET):
        if side not in table.columns:
            raise ValueError(f"{table.path} has no column {side!r} with the name of a node: it has {_columns(table)}")
    files = files or [str(number) for number in range(len(graphs))]
    numbers = _graphs_of_rows(table, graphs, files)
    sides = [_node_numbers(table, side, numbers, graphs, names, files) for side in (SOURCE, TARGET)]
    return np.array(numbers, dtype=np.int64), np.array(sides, dtype=np.int64).reshape(2, -1)


def _rows(table: Table, numbers: Sequence[int], count: int, named: Callable[[int], str], what: str) -> np.ndarray:
    """The row of each graph or node; an error if one has two rows, or none."""
    rows = np.full(count, -1)
    for row, number in enumerate(numbers):
        if rows[number] >= 0:
            raise ValueError(
                f"{table.where(row)}: {named(number)} is in {table.unit} {table.lines[rows[number]]} already: remove "
                "one of them"
            )
        rows[number] = row
    missing = np.flatnonzero(rows < 0)
    if missing.size:
        raise ValueError(
            f"{table.path} has no {what} for {named(int(missing[0]))}{_more(missing.size)}: add it, or remove the file"
        )
    return rows


def _node_numbers(
    table: Table, column: str, numbers: Sequence[int], graphs: Digraphs, names: Sequence[str], files: Sequence[str]
) -> list[int]:
    """The packed number of the node that each row names, in the graph of the row."""
    position = {key: node for node, key in enumerate(zip(graphs.node_graph.tolist(), names, strict=True))}
    if len(position) < len(names):
        raise ValueError(f"two nodes of a graph have the same name, so {table.path} cannot tell them apart: rename one")
    found = []
    for row, key in enumerate(zip(numbers, table.texts(column), strict=True)):
        if key not in position:
            raise ValueError(f"{table.where(row)}: {files[key[0]]} has no node {key[1]!r}: remove the row")
        found.append(position[key])
    return found


def _graphs_of_rows(table: Table, graphs: Digraphs, files: Sequence[str]) -> list[int]:
    """The graph of each row; a single graph need not be named."""
    if GRAPH in table.columns:
        return _graph_numbers(files, table)
    if len(graphs) > 1:
        raise ValueError(f"{table.path} has no column {GRAPH!r}, but there are {len(graphs)} graphs: add it")
    return [0] * len(table)


def _graph_numbers(names: Sequence[str], table: Table) -> list[int]:
    """The graph of each row, from the name of its file, with or without the extension."""
    stems: dict[str, list[int]] = {}
    for number, name in enumerate(names):
        for each in {name, Path(name).stem}:
            stems.setdefault(each, []).append(number)
    numbers: list[int] = []
    for row, name in enumerate(table.texts(GRAPH)):
        found = stems.get(name, [])
        if not found:
            raise ValueError(f"{table.where(row)}: there is no graph file {name!r}: remove the row, or add the file")
        if len(found) > 1:
            both = " or ".join(names[number] for number in found)
            raise ValueError(f"{table.where(row)}: graph {name!r} may be {both}: give the name of the file")
        numbers.append(found[0])
    return numbers


def _features(
    found: Labelled, table: Table, rows: np.ndarray, keys: Sequence[str], known: Mapping[str, Tensor], place: str
) -> dict[str, Tensor]:
    """The columns as tensors, in the order of `rows`, beside the features in `known`."""
    features = dict(known)
    for name in table.columns:
        if name in keys:
            continue
        if name in features:
            raise ValueError(f"{table.path}: the graph files have a feature {name!r}, too: rename the column")
        values = table.values(name)
        beside = {**found.graphs.graph_features, **found.graphs.node_features}
        if name in found.classes or (isinstance(values, list) and name in beside):
            raise ValueError(f"{table.path}: two tables have a column {name!r}, one of text: rename one of them")
        if isinstance(values, list):
            found.classes[name] = tuple(sorted({each for each in values if each}))
            number = {text: number for number, text in enumerate(found.classes[name])}
            values = [number.get(each, -1) for each in values]
        values = np.asarray(values)
        features[name] = torch.from_numpy((narrowed(values) if place == NODES else values)[rows])
    return features


def _split(table: Table, rows: np.ndarray) -> dict[str, Tensor]:
    """Masks from a column with train, valid, test or nothing."""
    cells = ["" if cell is None else str(cell).strip().lower() for cell in table.columns[SPLIT]]
    for row, cell in enumerate(cells):
        if cell and cell not in SPLIT_NAMES:
            raise ValueError(f"{table.where(row)}: split must be train, valid or test, got {cell!r}")
    split = np.array([SPLIT_NAMES.get(cell, "") for cell in cells])[rows]
    return {name: torch.from_numpy(split == name) for name in SPLITS}


def _listed(names: Mapping[str, Tensor]) -> str:
    return ", ".join(sorted(names)) or "none"


def _columns(table: Table) -> str:
    return ", ".join(table.columns) or "none"


def _width(values: Tensor) -> int:
    return 1 if values.ndim == 1 else int(values.shape[1])


def _more(count: int) -> str:
    return f" and {count - 1} more" if count > 1 else ""
