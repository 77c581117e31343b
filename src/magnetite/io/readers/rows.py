"""Edge lists, CSV and TSV: rows `source target [weight]`, below a header or not, and tables of nodes."""

import io
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from magnetite.io.delimited import Row, rows_of, text_of
from magnetite.io.interop import EdgeList
from magnetite.io.readers.attributes import (
    DIRECTED,
    UNDIRECTED,
    WEIGHTS,
    Weight,
    is_number,
    plain_name,
    shown,
    weight_name,
)
from magnetite.io.tables import Table, narrowed, read_table

COLUMNS = (
    ("source", "from", "src", "u", "tail"),
    ("target", "to", "dst", "destination", "v", "head"),
)
"""Names of the columns of sources and targets that are recognised in a header, compared by `plain_name`."""

FURTHER_COLUMNS = (
    ("fromid", "fromnode", "sourceid", "sourcenode", "node1", "start", "citing", "caller", "parent", "i"),
    ("toid", "tonode", "targetid", "targetnode", "node2", "end", "cited", "callee", "child", "j"),
)
"""Names of columns that are recognised where those in `COLUMNS` do not give a source and a target."""

NODE_COLUMNS = ("node", "id", "nodeid", "name", "nodename", "label")
"""Names of the column with the names of the nodes in a table of nodes; the first of these that it has."""

NUMBERED = re.compile(r"node\d+")

NAMING = "name the columns source, target and, if there are weights, weight"


@dataclass(frozen=True)
class Nodes:
    """The nodes of a graph from a table of their own.

    Args:
        path: The table.
        names: One name per node, in the order of the rows.
        features: Columns of numbers by name.
        header: The name of the column in a header of one column, which may also be the name of a node.
    """

    path: Path
    names: list[str]
    features: Mapping[str, np.ndarray]
    header: str | None = None


def read_edge_list(path: Path, weight: Weight, nodes: Nodes | None) -> EdgeList:
    """Rows separated by spaces or tabs, with comments."""
    rows: list[Row] = []
    for number, line in enumerate(io.StringIO(text_of(path), newline=None), 1):
        cells = line.split()
        if not cells or cells[0].startswith("%"):
            continue
        comment = next((i for i, cell in enumerate(cells) if cell.startswith("#")), len(cells))
        cells = cells[:comment]
        for cell in cells:
            if "#" in cell:
                raise ValueError(
                    f"line {number} has a # within {cell!r:.60}: put a space before a comment, or use .csv"
                )
            if cell.strip(",;") != cell:
                raise ValueError(f"line {number} is separated by {cell.strip()[-1]!r}, not by spaces: use .csv")
        if cells:
            rows.append((number, cells))
    return _from_rows(rows, weight, nodes)


def read_csv(path: Path, weight: Weight, nodes: Nodes | None) -> EdgeList:
    """Rows separated by commas, semicolons or tabs."""
    text = text_of(path)
    rows = rows_of(path, text)
    _check_comments(text, rows)
    return _from_rows(rows, weight, nodes)


def read_nodes(path: Path) -> Nodes:
    """A table with one row per node, or a list of names.

    A column called `node`, `id` or `name` holds the names; a file of one column needs no header. Columns of numbers are
    features.
    """
    if path.suffix in (".csv", ".tsv"):
        rows = rows_of(path, text_of(path))
        if rows and all(len(row) == 1 for _, row in rows):
            header = rows[0][1][0] if plain_name(rows[0][1][0]) in NODE_COLUMNS else None
            cells = [row[0] for _, row in rows[header is not None :]]
            if "" in cells:
                raise ValueError(f"line {rows[cells.index('') + (header is not None)][0]} has an empty cell")
            return Nodes(path, _distinct(cells, path), {}, header)
    table = read_table(path)
    key = next((name for own in NODE_COLUMNS for name in table.columns if plain_name(name) == own), None)
    if key is None:
        raise ValueError(
            f"it has no column 'node' with the name of each node, only {', '.join(map(repr, table.columns)):.200}"
        )
    others = {name: column for name in table.columns if name != key and (column := _numbers(table, name)) is not None}
    return Nodes(path, _distinct(table.texts(key), path), others)


def _distinct(names: list[str], path: Path) -> list[str]:
    if len(set(names)) < len(names):
        seen: set[str] = set()
        twice = next(name for name in names if name in seen or seen.add(name))
        raise ValueError(f"{path} has the node {twice!r:.60} twice: remove one of the rows")
    return names


def _numbers(table: Table, name: str) -> np.ndarray | None:
    """A column as a feature, or None if a cell is empty or text."""
    try:
        column = table.values(name)
    except ValueError:  # numbers beside text
        return None
    if not isinstance(column, np.ndarray) or (column.dtype.kind == "f" and not np.isfinite(column).all()):
        return None
    return narrowed(column)


def _check_comments(text: str, rows: list[Row]) -> None:
    """Refuse lines that begin with a `#` without quotes, which may be comments, except for a header in the first."""
    lines = list(io.StringIO(text, newline=""))
    end = 0
    for i, (number, row) in enumerate(rows):
        begin = next(line for line in range(end, number) if lines[line].strip("\r\n"))  # a row may have several lines
        end = number
        if lines[begin].lstrip().startswith("#") and (i > 0 or not all(_places(_header(row))[:2])):
            raise ValueError(
                f"line {begin + 1} starts with '#', but CSV has no comments: remove it, or write a name in quotes"
            )


def _from_rows(rows: list[Row], weight: Weight, nodes: Nodes | None) -> EdgeList:
    """Rows `source target [weight]`, below a header or not. Names that are integers are sorted as numbers."""
    if not rows and nodes is None:
        raise ValueError("it contains no edges")
    if not rows and nodes is not None:
        return EdgeList(np.zeros((2, 0), int), len(nodes.names), None, nodes.names, nodes.features)
    header, width = rows[0][0], len(rows[0][1])
    columns, rows = _columns(rows, weight)
    if not rows and nodes is None:
        raise ValueError(f"it contains no edges below the header in line {header}")
    for number, row in rows:
        if len(row) != width:
            raise ValueError(f"line {number} has {len(row)} columns, but line {header} has {width}")
        for column in columns:
            if not row[column]:
                raise ValueError(
                    f"line {number} has an empty cell in column {column + 1}: leave out the line or fill it"
                )
    names = list(dict.fromkeys(row[column] for _, row in rows for column in columns[:2]))
    if nodes is not None:
        _check_known(rows, columns, nodes)
        names = nodes.names
    elif all(map(_is_integer, names)):
        names.sort(key=lambda name: (len(name.lstrip("0")), name.lstrip("0")))  # int() has a limit of digits
    position = {name: i for i, name in enumerate(names)}
    source, target, *heavy = columns
    edges = np.array([[position[row[source]] for _, row in rows], [position[row[target]] for _, row in rows]], int)
    weights = np.array([_weight(row[heavy[0]], number) for number, row in rows]) if heavy else None
    return EdgeList(edges, len(names), weights, names, nodes.features if nodes else {})


def _check_known(rows: list[Row], columns: list[int], nodes: Nodes) -> None:
    """Refuse edges of nodes that the table of nodes does not have."""
    known = set(nodes.names)
    for number, row in rows:
        for name in (row[columns[0]], row[columns[1]]):
            if name == nodes.header:
                raise ValueError(
                    f"line {number} has the node {name!r:.60}, which may be a node or the header of {nodes.path}: "
                    "write the header 'node' and, below it, all nodes"
                )
            if name not in known:
                raise ValueError(
                    f"line {number} has the node {name!r:.60}, which is not in {nodes.path}: add it there, or remove "
                    "the edge"
                )


def _columns(rows: list[Row], weight: Weight) -> tuple[list[int], list[Row]]:
    """The columns of source, target and weight, and the rows without the header.

    A header is recognised by the names in `COLUMNS` alone. A first row that may be a header or an edge is refused.
    """
    number, first = rows[0]
    cells = _header(first)
    found = _places(cells, weight)
    if any(len(places) > 1 for places in found[:2]) or (found[0] and found[1] and len(found[2]) > 1):
        raise ValueError(
            f"line {number} names a column twice ({shown(first)}): {NAMING}, or choose the weight with weight=…"
        )
    if found[0] and found[1] and not _is_numbered_edge(rows, cells):
        if isinstance(weight, str) and not found[2]:
            further = [cell for i, cell in enumerate(first) if i not in (found[0][0], found[1][0])]
            weight_name(weight, further)
        columns = [places[0] for places in found if places]
        if len(cells) == 2 or (len(columns) == 2 and any(map(is_number, cells))):
            _check_is_header(rows, cells)
        _check_further_columns(rows, columns, weight)
        return columns, rows[1:]
    if isinstance(weight, str):
        raise ValueError(
            f"line {number} ({shown(first)}) does not name the columns source and target, so there is no column "
            f"{weight!r:.60}: add a header"
        )
    halves = [first[places[0]] for places in found[:2] if places]
    if len(halves) == 1:
        raise ValueError(
            f"line {number} may be a header, but only {halves[0]!r:.60} is the name of a column: {NAMING}, in a line "
            "above it if it is an edge"
        )
    if len(first) not in (2, 3):
        raise ValueError(f"line {number} has {len(first)} columns, expected 2 or 3; in a table of more, {NAMING}")
    words = not any(map(is_number, first[:2]))
    if words and rows[1:] and all(is_number(cell) for _, row in rows[1:] for cell in row[:2]):
        raise ValueError(f"line {number} ({shown(first)}) may be a header or an edge: {NAMING}, or remove the line")
    if words and len(first) == 3 and not is_number(first[2]) and rows[1:]:
        raise ValueError(
            f"the weight in line {number} must be a number, got {first[2]!r:.60}; if the line is a header, {NAMING}"
        )
    return list(range(len(first) if weight else 2)), rows


def _header(first: list[str]) -> list[str]:
    return [plain_name(first[0].lstrip("# ")), *map(plain_name, first[1:])]


def _places(cells: list[str], weight: Weight = True) -> list[list[int]]:
    """The places of the names of sources, targets and weights in a first row.

    A single letter, `node1` and `node2` may well be nodes, so they count only if there is a source and a target.
    """
    weights = (plain_name(weight),) if isinstance(weight, str) else WEIGHTS if weight else ()
    names = [*COLUMNS, weights]
    found = [[i for i, cell in enumerate(cells) if cell in own] for own in names]
    if not (found[0] and found[1]):
        names = [*(own + further for own, further in zip(COLUMNS, FURTHER_COLUMNS, strict=True)), weights]
        found = [[i for i, cell in enumerate(cells) if cell in own] for own in names]
    if not (found[0] and found[1]):
        weak = {i for i, cell in enumerate(cells) if len(cell) == 1 or NUMBERED.fullmatch(cell)}
        found = [[i for i in places if i not in weak] for places in found]
    return found


def _is_numbered_edge(rows: list[Row], cells: list[str]) -> bool:
    """Whether a first row such as `node1,node2,0.5` is an edge, like those below it."""
    if len(cells) != 3 or not is_number(cells[2]):
        return False
    names = [*cells[:2], *(plain_name(cell) for _, row in rows[1:] for cell in row[:2])]
    return all(map(NUMBERED.fullmatch, names))


def _check_is_header(rows: list[Row], cells: list[str]) -> None:
    """Refuse a first row such as `u,v` that may be a header or an edge; `source,target` is always a header."""
    number, first = rows[0]
    if set(cells) == {"source", "target"}:
        return
    nodes = {cell for _, row in rows[1:] for cell in row[:2]}
    short = all(len(cell) == 1 for cell in cells) and not all(map(_is_integer, nodes))
    numbered = any(map(NUMBERED.fullmatch, cells)) and any(NUMBERED.fullmatch(plain_name(node)) for node in nodes)
    if short or numbered or any(map(is_number, cells)) or set(first) & nodes:
        raise ValueError(
            f"line {number} ({shown(first)}) may be a header or an edge: {NAMING}, in a line above it if it is an edge"
        )


def _check_further_columns(rows: list[Row], columns: list[int], weight: Weight) -> None:
    """Refuse undirected edges, and beside no weights any column that may contain them.

    A column is ignored if there are weights or none are asked for, if it is empty, or if it says of every edge that it
    is directed.
    """
    number, first = rows[0]
    for column in sorted(set(range(len(first))) - set(columns)):
        cells = [(line, row[column].lower()) for line, row in rows[1:] if column < len(row)]
        about = plain_name(first[column])
        for line, cell in cells:
            if cell == "undirected" or not _says_directed(about, cell):
                raise ValueError(
                    f"line {line} is not directed by its column {first[column]!r:.60}: write an undirected edge as two "
                    "directed edges"
                )
        known = about in DIRECTED or about in UNDIRECTED or all(cell in ("", "directed") for _, cell in cells)
        if weight and len(columns) == 2 and not known:
            raise ValueError(
                f"column {first[column]!r:.60} in line {number} is not read: name it weight, or choose it with "
                f"weight={first[column]!r:.60} (encode --weight), if it contains the weights; otherwise remove it, "
                "or ignore it with weight=None (encode --unweighted)"
            )


def _says_directed(name: str, value: str) -> bool:
    """Whether a cell of a column says that an edge is directed, or nothing about it."""
    if name in DIRECTED:
        return value in ("true", "1", "yes", "directed")
    return name not in UNDIRECTED or value in ("false", "0", "no", "directed")


def _is_integer(text: str) -> bool:
    return text.isascii() and text.isdecimal()


def _weight(text: str, line: int) -> float:
    if not is_number(text) or "_" in text:
        raise ValueError(f"the weight in line {line} must be a number, got {text!r:.60}")
    weight = float(text)
    if not 0 < weight < math.inf:
        raise ValueError(f"line {line} has weight {weight}: weights must be positive and finite")
    return weight
