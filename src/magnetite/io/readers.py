"""Readers of users' graphs: edge lists, CSV, GraphML, node-link JSON and `.npz`, each as an `EdgeList`.

A file is read right or refused with the place of the mistake. Nothing in it is executed, and reading it needs memory in
proportion to its size. To add a format, write a function and name its extension in `READERS`.
"""

import csv
import io
import json
import math
import re
import zipfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import IO, Any
from xml.etree import ElementTree

import numpy as np

from magnetite.io.interop import EdgeList, from_edges, from_scipy, number_of
from magnetite.io.storage import distinct_keys

Row = tuple[int, list[str]]
"""The number of a line and its cells."""

COLUMNS = (
    ("source", "from", "src", "u", "tail"),
    ("target", "to", "dst", "destination", "v", "head"),
    ("weight", "w", "edgeweight", "value"),
)
"""Names of the columns that are recognised in a header, and in the last line those of weights in any format.

Names are compared by `_plain`: the case, spaces, `_` and `-` do not matter.
"""

FURTHER_COLUMNS = (
    ("fromid", "fromnode", "sourceid", "sourcenode", "node1", "start", "citing", "caller", "parent", "i"),
    ("toid", "tonode", "targetid", "targetnode", "node2", "end", "cited", "callee", "child", "j"),
    (),
)
"""Names of columns that are recognised where those in `COLUMNS` do not give a source and a target."""

WEIGHTS = COLUMNS[2]

NUMBERED = re.compile(r"node\d+")

NAMING = "name the columns source, target and, if there are weights, weight"

FREE_BYTES = 2**28
RATIO = 100
"""An archive may unpack to `FREE_BYTES`, or to `RATIO` times its size if that is more."""

FREE_NODES = 2**20
"""A file may have this number of nodes, or one node per byte if that is more."""


def read_edges(path: Path) -> EdgeList:
    """Read one graph in any format of `READERS`, with the names of its nodes if the format has names."""
    return READERS[path.suffix][0](path)


def check_cost(path: Path, num_nodes: int) -> None:
    """Raise an error if a small file claims to have a huge graph, because encoding it could exhaust the memory."""
    size = path.stat().st_size
    if num_nodes > max(FREE_NODES, size):
        raise ValueError(
            f"it has {num_nodes} nodes in {size} bytes: a file may have {FREE_NODES} nodes or one per byte; leave out "
            "isolated nodes, or build the graph with Digraphs.from_edges"
        )


def _text(path: Path) -> str:
    """The content of a text file in UTF-8, without a byte order mark."""
    content = path.read_bytes()
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise ValueError("it is encoded as UTF-16: save it as UTF-8")
    zero = content.find(b"\0")
    if zero >= 0:
        raise ValueError(f"line {_line_of(content, zero)} contains a NUL byte, so it is not text: save it as UTF-8")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = _line_of(content, error.start)
        raise ValueError(f"line {line} is not UTF-8 (byte 0x{content[error.start]:02x}): save it as UTF-8") from None
    mark = text.find("\ufeff")
    if mark >= 0:
        line = text.count("\n", 0, mark) + 1
        raise ValueError(f"line {line} contains a byte order mark, so files may have been joined: remove it")
    return text


def _line_of(content: bytes, position: int) -> int:
    return content.count(b"\n", 0, position) + 1


def _read_edge_list(path: Path) -> EdgeList:
    rows: list[Row] = []
    for number, line in enumerate(io.StringIO(_text(path), newline=None), 1):
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
    return _from_rows(rows)


def _read_csv(path: Path) -> EdgeList:
    text = _text(path)
    rows = _csv_rows(text, ",")
    _check_comments(text, rows)
    for other, name in ((";", "semicolons"), ("\t", "tabs")):
        if rows and any(other in cell for cell in rows[0][1]) and _is_separated(text, other):
            raise ValueError(f"it seems to be separated by {name}: separate the columns by commas")
    return _from_rows(rows)


def _is_separated(text: str, delimiter: str) -> bool:
    """Whether a delimiter splits every line into the same number of columns, more than one."""
    try:
        widths = {len(row) for _, row in _csv_rows(text, delimiter)}
    except ValueError:
        return False
    return len(widths) == 1 and widths != {1}


def _csv_rows(text: str, delimiter: str) -> list[Row]:
    lines = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True, skipinitialspace=True)
    try:
        return [(lines.line_num, [cell.strip() for cell in row]) for row in lines if row]
    except csv.Error as error:
        raise ValueError(f"line {lines.line_num} is not valid CSV: {error}") from None


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


def _from_rows(rows: list[Row]) -> EdgeList:
    """Rows `source target [weight]`, below a header or not. Names that are integers are sorted as numbers."""
    if not rows:
        raise ValueError("it contains no edges")
    header, width = rows[0][0], len(rows[0][1])
    columns, rows = _columns(rows)
    if not rows:
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
    if all(map(_is_integer, names)):
        names.sort(key=lambda name: (len(name.lstrip("0")), name.lstrip("0")))  # int() has a limit of digits
    position = {name: i for i, name in enumerate(names)}
    source, target, *weight = columns
    edges = np.array([[position[row[source]] for _, row in rows], [position[row[target]] for _, row in rows]])
    weights = np.array([_weight(row[weight[0]], number) for number, row in rows]) if weight else None
    return EdgeList(edges, len(names), weights, names)


def _columns(rows: list[Row]) -> tuple[list[int], list[Row]]:
    """The columns of source, target and weight, and the rows without the header.

    A header is recognised by the names in `COLUMNS` alone. A first row that may be a header or an edge is refused.
    """
    number, first = rows[0]
    cells = _header(first)
    found = _places(cells)
    if any(len(places) > 1 for places in found[:2]) or (found[0] and found[1] and len(found[2]) > 1):
        raise ValueError(f"line {number} names a column twice ({_shown(first)}): {NAMING}")
    if found[0] and found[1] and not _is_numbered_edge(rows, cells):
        columns = [places[0] for places in found if places]
        if len(cells) == 2 or (len(columns) == 2 and any(map(_is_number, cells))):
            _check_is_header(rows, cells)
        _check_further_columns(rows, columns)
        return columns, rows[1:]
    halves = [first[places[0]] for places in found[:2] if places]
    if len(halves) == 1:
        raise ValueError(
            f"line {number} may be a header, but only {halves[0]!r:.60} is the name of a column: {NAMING}, in a line "
            "above it if it is an edge"
        )
    if len(first) not in (2, 3):
        raise ValueError(f"line {number} has {len(first)} columns, expected 2 or 3; in a table of more, {NAMING}")
    words = not any(map(_is_number, first[:2]))
    if words and rows[1:] and all(_is_number(cell) for _, row in rows[1:] for cell in row[:2]):
        raise ValueError(f"line {number} ({_shown(first)}) may be a header or an edge: {NAMING}, or remove the line")
    if words and len(first) == 3 and not _is_number(first[2]) and rows[1:]:
        raise ValueError(
            f"the weight in line {number} must be a number, got {first[2]!r:.60}; if the line is a header, {NAMING}"
        )
    return list(range(len(first))), rows


@lru_cache(4096)
def _plain(name: str) -> str:
    """A name in lower case without spaces, `_` and `-`."""
    return re.sub(r"[\s_-]+", "", name.lower())


def _header(first: list[str]) -> list[str]:
    return [_plain(first[0].lstrip("# ")), *map(_plain, first[1:])]


def _places(cells: list[str]) -> list[list[int]]:
    """The places of the names of sources, targets and weights in a first row.

    A single letter, `node1` and `node2` may well be nodes, so they count only if there is a source and a target.
    """
    found = [[i for i, cell in enumerate(cells) if cell in names] for names in COLUMNS]
    if not (found[0] and found[1]):
        both = [own + further for own, further in zip(COLUMNS, FURTHER_COLUMNS, strict=True)]
        found = [[i for i, cell in enumerate(cells) if cell in names] for names in both]
    if not (found[0] and found[1]):
        weak = {i for i, cell in enumerate(cells) if len(cell) == 1 or NUMBERED.fullmatch(cell)}
        found = [[i for i in places if i not in weak] for places in found]
    return found


def _is_numbered_edge(rows: list[Row], cells: list[str]) -> bool:
    """Whether a first row such as `node1,node2,0.5` is an edge, like those below it."""
    if len(cells) != 3 or not _is_number(cells[2]):
        return False
    names = [*cells[:2], *(_plain(cell) for _, row in rows[1:] for cell in row[:2])]
    return all(map(NUMBERED.fullmatch, names))


def _check_is_header(rows: list[Row], cells: list[str]) -> None:
    """Refuse a first row such as `u,v` that may be a header or an edge; `source,target` is always a header."""
    number, first = rows[0]
    if set(cells) == {"source", "target"}:
        return
    nodes = {cell for _, row in rows[1:] for cell in row[:2]}
    short = all(len(cell) == 1 for cell in cells) and not all(map(_is_integer, nodes))
    numbered = any(map(NUMBERED.fullmatch, cells)) and any(NUMBERED.fullmatch(_plain(node)) for node in nodes)
    if short or numbered or any(map(_is_number, cells)) or set(first) & nodes:
        raise ValueError(
            f"line {number} ({_shown(first)}) may be a header or an edge: {NAMING}, in a line above it if it is an edge"
        )


def _check_further_columns(rows: list[Row], columns: list[int]) -> None:
    """Refuse undirected edges, and beside no weights any column that may contain them.

    A column is ignored if there are weights, if it is empty, or if it says of every edge that it is directed.
    """
    number, first = rows[0]
    for column in sorted(set(range(len(first))) - set(columns)):
        cells = [(line, row[column].lower()) for line, row in rows[1:] if column < len(row)]
        about = _plain(first[column])
        for line, cell in cells:
            if cell == "undirected" or not _says_directed(about, cell):
                raise ValueError(
                    f"line {line} is not directed by its column {first[column]!r:.60}: write an undirected edge as two "
                    "directed edges"
                )
        known = about in DIRECTED or about in UNDIRECTED or all(cell in ("", "directed") for _, cell in cells)
        if len(columns) == 2 and not known:
            raise ValueError(
                f"column {first[column]!r:.60} in line {number} is not read: name it weight if it contains the "
                "weights, otherwise remove it"
            )


DIRECTED, UNDIRECTED = ("directed", "isdirected"), ("undirected", "isundirected")
"""Names of columns and attributes that say whether an edge is directed."""


def _says_directed(name: str, value: str) -> bool:
    """Whether a cell of a column says that an edge is directed, or nothing about it."""
    if name in DIRECTED:
        return value in ("true", "1", "yes", "directed")
    return name not in UNDIRECTED or value in ("false", "0", "no", "directed")


def _shown(cells: list[str]) -> str:
    return f"{', '.join(cells)!r:.60}"


def _is_integer(text: str) -> bool:
    return text.isascii() and text.isdecimal()


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _weight(text: str, line: int) -> float:
    if not _is_number(text) or "_" in text:
        raise ValueError(f"the weight in line {line} must be a number, got {text!r:.60}")
    weight = float(text)
    if not 0 < weight < math.inf:
        raise ValueError(f"line {line} has weight {weight}: weights must be positive and finite")
    return weight


DATA = "write weights as <data> of a <key> for edges with the attr.name weight"

PARENTS = {
    "graph": ("graphml",),
    "key": ("graphml",),
    "node": ("graph",),
    "edge": ("graph",),
    "hyperedge": ("graph",),
}
"""Where the elements of GraphML that make the graph may be."""


class _Tree(ElementTree.TreeBuilder):
    """A tree of elements without namespaces. Document types are refused, because their entities can be bombs."""

    def start(self, tag: str, attrs: dict[str, str]) -> ElementTree.Element:
        return super().start(tag.rpartition("}")[2], attrs)

    def end(self, tag: str) -> ElementTree.Element:
        return super().end(tag.rpartition("}")[2])

    def doctype(self, name: str, pubid: str | None, system: str | None) -> None:  # noqa: ARG002
        raise ValueError("it has a document type declaration (<!DOCTYPE …>), which is not read: remove it")


def _read_graphml(path: Path) -> EdgeList:
    root = ElementTree.parse(path, ElementTree.XMLParser(target=_Tree())).getroot()
    graphs = root.findall("graph")
    if root.tag != "graphml" or len(graphs) != 1:
        raise ValueError(f"it contains {len(graphs)} graphs in <{root.tag:.60}>: write one graph in <graphml> per file")
    [graph] = graphs
    for part in ("node//graph", "edge//graph"):
        if graph.find(part) is not None:
            raise ValueError("it contains a graph within a node or an edge, which has no flat form: ungroup it first")
    if graph.find("hyperedge") is not None:
        raise ValueError("it contains hyperedges: replace each by edges")
    _check_structure(root)
    names = [_attribute(node, "id") for node in graph.findall("node")]
    position = _positions(names)
    keys = _edge_keys(root)
    key, default = _weight_key(keys)
    directed = _directed(graph.get("edgedefault"), "edgedefault of the graph", ("directed", "undirected"))
    edges, weights, both = [], [], []
    for element in graph.findall("edge"):
        ends = [_attribute(element, end) for end in ("source", "target")]
        where = f"edge {ends[0]!r} → {ends[1]!r}"
        for end in ends:
            if end not in position:
                raise ValueError(f"{where} refers to node {end!r}, which is not declared")
        for name in element.keys():  # noqa: SIM118 (an element is a sequence of elements)
            if _plain(name.rpartition("}")[2]) in WEIGHTS:
                raise ValueError(f"{where} has an attribute {name!r:.60}, which GraphML does not have: {DATA}")
        given = []
        for data in element.findall("data"):
            own = _attribute(data, "key")
            if own not in keys:
                raise ValueError(f"{where} has data with the key {own!r:.60}, which is not declared for edges: {DATA}")
            if own == key:
                given.append(data.text or "")
        if len(given) > 1:
            raise ValueError(f"{where} has several weights")
        text = given[0].strip() if given else default
        edges.append([position[end] for end in ends])
        weights.append(None if text is None else _parsed(text, where))
        flag = element.get("directed")
        both.append(not (directed if flag is None else _directed(flag, f"directed of {where}", ("true", "false"))))
    return _edge_list(edges, weights, both, names)


def _check_structure(root: ElementTree.Element) -> None:
    """Refuse elements in a place where they would be ignored although they are a part of the graph."""
    for parent in root.iter():
        for child in parent:
            if parent.tag not in PARENTS.get(child.tag, (parent.tag,)):
                raise ValueError(f"it contains a <{child.tag}> within a <{parent.tag:.60}>, which is not GraphML")
            if parent.tag == "edge" and _plain(child.tag) in WEIGHTS:
                raise ValueError(f"it contains a <{child.tag:.60}> within an <edge>, which is not GraphML: {DATA}")


def _edge_keys(root: ElementTree.Element) -> dict[str, ElementTree.Element]:
    """The keys of data of edges by their ids."""
    keys: dict[str, ElementTree.Element] = {}
    for key in root.findall("key"):
        if key.get("for", "all") in ("edge", "all"):
            own = _attribute(key, "id")
            if own in keys:
                raise ValueError(f"it declares several keys with the id {own!r:.60}: keep one")
            keys[own] = key
    return keys


def _weight_key(keys: Mapping[str, ElementTree.Element]) -> tuple[str | None, str | None]:
    """The id of the key of weights and the default weight, None where there is none."""
    names = {own: key.get("attr.name") or own for own, key in keys.items()}
    found = [own for own, name in names.items() if _plain(name) in WEIGHTS]
    if len(found) > 1:
        raise ValueError(
            f"it declares several keys with the name weight ({_shown([names[own] for own in found])}): keep one"
        )
    if not found:
        return None, None
    default = keys[found[0]].find("default")
    return found[0], None if default is None else (default.text or "").strip()


def _attribute(element: ElementTree.Element, name: str) -> str:
    value = element.get(name)
    if value is None:
        raise ValueError(f"a <{element.tag}> has no attribute {name}")
    return value


def _directed(text: str | None, where: str, words: tuple[str, str]) -> bool:
    if text not in words:
        raise ValueError(f"{where} must be {words[0]} or {words[1]}, got {text!r:.60}")
    return text == words[0]


def _parsed(text: str, where: str) -> float:
    if not _is_number(text) or "_" in text:
        raise ValueError(f"the weight of {where} must be a number, got {text!r:.60}")
    return float(text)


def _read_json(path: Path) -> EdgeList:
    try:
        content = json.loads(_text(path), object_pairs_hook=distinct_keys)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if not isinstance(content, dict) or "nodes" not in content:
        raise ValueError("it has no nodes")
    lists = [key for key in ("links", "edges") if key in content]
    if len(lists) != 1:
        raise ValueError(f"it must have either links or edges, got {' and '.join(lists) or 'neither'}")
    ids = [_identity(node["id"]) for node in _objects(content, "nodes", ("id",))]
    position, names = _positions(ids), [str(own) for own in ids]
    _positions(names)  # 1 and "1" are different ids with the same name
    directed, multigraph = _flag(content, "directed"), _flag(content, "multigraph")
    edges, weights = [], []
    for link in _objects(content, lists[0], ("source", "target")):
        ends = [_identity(link[end]) for end in ("source", "target")]
        for end in ends:
            if end not in position:
                raise ValueError(f"an edge refers to node {end!r:.60}, which is not in nodes")
        edges.append([position[end] for end in ends])
        where = f"edge {ends[0]!r:.60} → {ends[1]!r:.60}"
        _check_direction(link, directed is not False, where)
        named = [key for key in link if _plain(key) in WEIGHTS]
        if len(named) > 1:
            raise ValueError(f"{where} has several weights ({_shown(named)}): keep one")
        weights.append(number_of(link[named[0]], where) if named else None)
    undirected = directed is False
    seen = {tuple(sorted(edge)) if undirected else tuple(edge) for edge in edges}
    if multigraph is False and len(seen) < len(edges):
        raise ValueError("it has repeated edges, but multigraph is false: remove them, or set multigraph to true")
    return _edge_list(edges, weights, [undirected] * len(edges), names)


def _check_direction(link: Mapping[str, Any], directed: bool, where: str) -> None:
    """Refuse a link that says otherwise than the graph whether it is directed."""
    for key, value in link.items():
        name = _plain(key)
        wrong = (name in DIRECTED and value is not directed) or (name in UNDIRECTED and value is not (not directed))
        if wrong or (directed and isinstance(value, str) and value.lower() == "undirected"):
            raise ValueError(
                f"{where} has {key!r:.60} {value!r:.60} in a graph that is {'' if directed else 'un'}directed: "
                "write an undirected edge as two directed edges"
            )


def _objects(content: Mapping[str, Any], key: str, needed: Iterable[str]) -> list[dict[str, Any]]:
    values = content[key]
    if not isinstance(values, list):
        raise ValueError(f"{key} must be a list, got {type(values).__name__}")
    for number, value in enumerate(values):
        for name in needed:
            if not isinstance(value, dict) or name not in value:
                raise ValueError(f"entry {number} of {key} must be an object with {name!r}, got {value!r:.60}")
    return values


def _flag(content: Mapping[str, Any], key: str) -> bool | None:
    value = content.get(key)
    other = next((name for name in content if name != key and _plain(name) == key), None)
    if other is not None:
        raise ValueError(f"it has {other!r:.60}, which is not read: write it {key!r}")
    if key in content and not isinstance(value, bool):
        raise ValueError(f"{key} must be true or false, got {value!r:.60}")
    return value


def _identity(value: Any) -> Any:
    """The id of a node: a string, a number, or a tuple of them, which JSON has as a list."""
    if isinstance(value, list):
        return tuple(map(_identity, value))
    if isinstance(value, bool) or not isinstance(value, str | int | float) or value != value:
        raise ValueError(f"the id of a node must be a string or a number, got {value!r:.60}")
    return value


def _positions(ids: Sequence[Any]) -> dict[Any, int]:
    position = {own: i for i, own in enumerate(ids)}
    if len(position) < len(ids):
        twice = next(own for i, own in enumerate(ids) if position[own] != i)
        raise ValueError(f"two nodes have the id {twice!r:.60}")
    return position


def _edge_list(edges: list[list[int]], weights: list[float | None], both: list[bool], names: list[str]) -> EdgeList:
    """Edges of which some stand for both directions; a missing weight is 1, as in networkx."""
    rows: list[tuple[int, int, float]] = []
    for (source, target), weight, undirected in zip(edges, weights, both, strict=True):
        weight = 1.0 if weight is None else weight
        rows.append((source, target, weight))
        if undirected and source != target:
            rows.append((target, source, weight))
    columns = list(zip(*rows, strict=True)) or [(), (), ()]
    weighted = any(weight is not None for weight in weights)
    return EdgeList(np.array(columns[:2], int), len(names), np.array(columns[2]) if weighted else None, names)


SPARSE = {
    "csr": ("data", "indices", "indptr"),
    "csc": ("data", "indices", "indptr"),
    "bsr": ("data", "indices", "indptr"),
    "dia": ("data", "offsets"),
    "coo": ("data", "row", "col"),
}
"""The arrays of SciPy's sparse formats in a file, beside `format` and `shape`."""


def _read_npz(path: Path) -> EdgeList:
    if not zipfile.is_zipfile(path):
        raise ValueError("it is not a complete .npz archive")
    arrays = _arrays(path)
    if "format" in arrays:
        return from_scipy(_sparse(arrays))
    _check_names(arrays, ("edge_index",), ("edge_weight", "num_nodes"))
    size = arrays.get("num_nodes")
    if size is not None and (size.size != 1 or size.dtype.kind not in "iu"):
        raise ValueError(f"num_nodes must be one integer, got shape {list(size.shape)}, dtype {size.dtype}")
    [item] = from_edges(arrays["edge_index"], None if size is None else int(size.item()), arrays.get("edge_weight"))
    return item


def _arrays(path: Path) -> dict[str, np.ndarray]:
    """The arrays of an archive, without pickles, and without more memory than its size justifies."""
    with zipfile.ZipFile(path) as archive:
        members = archive.infolist()
        total = sum(member.file_size for member in members)
        if total > max(FREE_BYTES, RATIO * path.stat().st_size):
            raise ValueError(f"it unpacks to {total} bytes, more than {RATIO} times its size: save it uncompressed")
        arrays: dict[str, np.ndarray] = {}
        for member in members:
            name = member.filename.removesuffix(".npy")
            if name in arrays:
                raise ValueError(f"it has two arrays {name!r:.60}")
            with archive.open(member) as file:
                arrays[name] = _array(file, name, member.file_size)
    return arrays


def _array(file: IO[bytes], name: str, size: int) -> np.ndarray:
    version = np.lib.format.read_magic(file)
    if version not in ((1, 0), (2, 0)):
        raise ValueError(f"array {name!r:.60} has an unknown format or named fields")
    header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, by_columns, dtype = header(file)
    if dtype.hasobject:
        raise ValueError(f"array {name!r:.60} contains Python objects, a pickle, which runs code when it is loaded")
    if math.prod(shape) * dtype.itemsize != size - file.tell() or dtype.itemsize == 0:
        raise ValueError(
            f"array {name!r:.60} has {size - file.tell()} bytes, which is not shape {list(shape)} of {dtype}"
        )
    values = np.frombuffer(file.read(), dtype)
    return values.reshape(shape, order="F" if by_columns else "C")


def _check_names(arrays: Mapping[str, np.ndarray], needed: Sequence[str], optional: Sequence[str]) -> None:
    expected = ", ".join(needed) + (f" and optionally {', '.join(optional)}" if optional else "")
    for name in needed:
        if name not in arrays:
            raise ValueError(
                f"it has no array {name}, only {', '.join(map(repr, arrays)) or 'none':.200}; it needs {expected}"
            )
    for name in arrays:
        if name not in (*needed, *optional):
            raise ValueError(f"it has an unknown array {name!r:.60}; it may have {expected}: rename or remove it")


def _sparse(arrays: Mapping[str, np.ndarray]) -> Any:
    """The sparse matrix of a file by `scipy.sparse.save_npz`; its arrays are checked before SciPy's C++ sees them."""
    from scipy import sparse

    kind = arrays["format"].item() if arrays["format"].size == 1 else None
    name = kind.decode("ascii", "replace") if isinstance(kind, bytes) else kind
    if name not in SPARSE:
        raise ValueError(f"format must be one of {', '.join(SPARSE)}, got {name!r:.60}")
    if name == "coo" and "coords" in arrays and arrays["coords"].shape[:1] == (2,):
        row, col = arrays["coords"]
        arrays = {key: array for key, array in arrays.items() if key != "coords"} | {"row": row, "col": col}
    parts = SPARSE[name]
    _check_names(arrays, ("format", "shape", *parts), ("_is_array",))
    shape, data, *indices = (arrays[part] for part in ("shape", *parts))
    if shape.shape != (2,) or shape.dtype.kind not in "iu" or not 0 <= int(shape.min()) <= int(shape.max()) < 2**31:
        raise ValueError(f"shape must be two integers below 2**31, got {shape.tolist()!r:.60}")
    for part, index in zip(parts[1:], indices, strict=True):
        if index.ndim != 1 or index.dtype.kind not in "iu":
            raise ValueError(f"{part} must be a vector of integers, got shape {list(index.shape)}, dtype {index.dtype}")
    if data.dtype.kind not in "biuf" or data.ndim != {"bsr": 3, "dia": 2}.get(name, 1):
        raise ValueError(f"data must be real numbers, got shape {list(data.shape)}, dtype {data.dtype}")
    if name == "bsr" and (data.size == 0 or data.shape[0] != len(indices[0])):
        raise ValueError(
            f"data must be one block per index, got shape {list(data.shape)} for {len(indices[0])} indices"
        )
    indices = [index.astype(np.int64) for index in indices]
    data = data.astype(data.dtype.newbyteorder("="))
    square = tuple(int(size) for size in shape)
    if name == "coo":
        return sparse.coo_array((data, tuple(indices)), shape=square)
    build = {"csr": sparse.csr_array, "csc": sparse.csc_array, "bsr": sparse.bsr_array, "dia": sparse.dia_array}[name]
    return build((data, *indices), shape=square)


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
