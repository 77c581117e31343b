"""Random graphs written as text in every legal dress (marks, headers, quotes, comments, line ends) are read equal."""

import json
from collections.abc import Callable
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

import numpy as np

import magnetite as mt
from tests.conftest import odd_digraph

CASES = 2_000

Edges = list[tuple[str, str, float]]

NAMES = ["main", "a b", "a,b", 'say "hi"', "Grüße", "日本", "C#", "x;y", "-", "1.5", "nan", "a\tb", "a\u2028b", "007"]
"""Names that need quotes or escapes in some format."""
ENDS = ["\n", "\r\n", "\r"]
HEADERS = [("source", "target", "weight"), ("Source", "TARGET", "Weight"), ("from", "to", "edge_weight")]


def case(random: np.random.Generator, folder: Path) -> None:
    size = int(random.integers(2, 14))
    graph, weights = odd_digraph(random, size)
    if graph.shape[1] == 0:
        graph, weights = np.array([[0], [1]]), np.array([2.0])
    formats: list[tuple[str, Callable[..., bytes]]] = [
        (".csv", _csv), (".tsv", _tsv), (".txt", _lines), (".graphml", _graphml), (".gml", _gml), (".json", _json),
    ]  # fmt: skip
    suffix, write = formats[int(random.integers(len(formats)))]
    names = [str(i) for i in range(size)]
    if random.random() < 0.6:
        plain = [f"node{i}" for i in range(size)]
        odd = [name for name in NAMES if suffix != ".txt" and not (suffix == ".graphml" and name == "a\tb")]
        names = [str(name) for name in random.permutation([*plain, *odd])[:size]]
    weighted = bool(random.random() < 0.5)
    edges = [
        (names[u], names[v], w if weighted else 1.0) for u, v, w in zip(*graph.tolist(), weights.tolist(), strict=True)
    ]
    path = folder / f"graph{suffix}"
    path.write_bytes(write(random, edges, weighted, names))
    read = mt.read(path)
    assert (read.weights is not None) == weighted
    assert listed(read) == sorted(edges), path.read_bytes()
    if suffix in (".graphml", ".gml", ".json"):
        assert read.names == names


def listed(graphs: mt.Digraphs) -> Edges:
    """The edges of one graph by the names of their nodes."""
    names, (source, target) = graphs.names or [], graphs.edges.tolist()
    return sorted((names[u], names[v], w) for u, v, w in zip(source, target, graphs.edge_weight.tolist(), strict=True))


def _csv(random: np.random.Generator, edges: Edges, weighted: bool, names: list[str]) -> bytes:
    return _separated(random, edges, weighted, str(random.choice([",", ",", ";", "\t"])))


def _tsv(random: np.random.Generator, edges: Edges, weighted: bool, names: list[str]) -> bytes:
    return _separated(random, edges, weighted, "\t")


def _separated(random: np.random.Generator, edges: Edges, weighted: bool, separator: str) -> bytes:
    def quoted(cell: str) -> str:
        needed = any(mark in cell for mark in '",;\t\n\r') or cell != cell.strip()
        space = " " * int(random.integers(2))
        return space + ('"' + cell.replace('"', '""') + '"' if needed or random.random() < 0.2 else cell + space)

    rows = [[u, v, *([repr(w)] if weighted else [])] for u, v, w in edges]
    header = HEADERS[int(random.integers(len(HEADERS)))][: 3 if weighted else 2]
    if random.random() < 0.7:
        order = random.permutation(len(header))
        rows = [list(header), *rows]
        rows = [[row[i] for i in order] for row in rows]
        if random.random() < 0.3:  # a column of something else, which is refused unless there are weights
            cell = "x" if weighted else str(random.choice(["", "Directed"]))
            rows = [[*row, "label" if i == 0 else cell] for i, row in enumerate(rows)]
    else:
        rows = [["source", "target", "weight"][: len(header)], *rows] if _may_be_header(rows) else rows
    end = str(random.choice(ENDS))
    lines = [separator.join(map(quoted, row)) for row in rows]
    return _dressed(random, end.join(lines), end)


def _lines(random: np.random.Generator, edges: Edges, weighted: bool, names: list[str]) -> bytes:
    end, lines = str(random.choice(ENDS)), []
    if _may_be_header([[u, v] for u, v, _ in edges]):
        lines.append("source target weight" if weighted else "source target")
    for u, v, w in edges:
        between = str(random.choice([" ", "\t", "   "]))
        lines.append(between.join([u, v, *([repr(w)] if weighted else [])]))
        lines[-1] += str(random.choice(["", " ", " # a comment, with words"]))
        lines += [str(random.choice(["", "# a b", "% a b 1"]))] if random.random() < 0.3 else []
    return _dressed(random, end.join(lines), end)


def _dressed(random: np.random.Generator, text: str, end: str) -> bytes:
    text += end * int(random.integers(3))
    return text.encode("utf-8-sig" if random.random() < 0.5 else "utf-8")


def _may_be_header(rows: list[list[str]]) -> bool:
    """Words above numbers, or the names `node1` and `node2` of columns, which are refused without a header."""

    def number(text: str) -> bool:
        try:
            float(text)
        except ValueError:
            return False
        return True

    if {"node1", "node2"} == set(rows[0][:2]):
        return True
    return not any(map(number, rows[0][:2])) and all(number(cell) for row in rows[1:] for cell in row[:2])


def _graphml(random: np.random.Generator, edges: Edges, weighted: bool, names: list[str]) -> bytes:
    default = edges[0][2] if weighted and random.random() < 0.5 else None
    key = "<key id='d0' for='edge' attr.name='weight' attr.type='double'>"
    key += ("" if default is None else f"<default>{default!r}</default>") + "</key>"
    parts = [f"<node id={quoteattr(name)}/>" for name in names]
    directed = bool(random.random() < 0.5)
    for u, v, w in edges:
        flag = "" if directed else " directed='true'"
        data = f"<data key='d0'>{escape(repr(w))}</data>" if weighted and w != default else ""
        parts.append(f"<edge source={quoteattr(u)} target={quoteattr(v)}{flag}>{data}</edge>")
    space = "xmlns='http://graphml.graphdrawing.org/xmlns'" if random.random() < 0.7 else ""
    kind = "directed" if directed else "undirected"
    text = f"<graphml {space}>{key if weighted else ''}<graph edgedefault='{kind}'>{''.join(parts)}</graph></graphml>"
    encoding = str(random.choice(["utf-8", "utf-8-sig", "utf-16"]))
    return text.encode(encoding)


def _gml(random: np.random.Generator, edges: Edges, weighted: bool, names: list[str]) -> bytes:
    def text(name: str) -> str:
        plain = name.replace("&", "&amp;").replace('"', "&quot;")
        return f'"{plain.encode("ascii", "xmlcharrefreplace").decode() if random.random() < 0.5 else plain}"'

    ids = random.permutation(10 * len(names))[: len(names)].tolist()
    number = dict(zip(names, ids, strict=True))
    space = str(random.choice([" ", "\n", "\r\n  ", "\t"]))
    parts = [f"node [ id {own} label {text(name)} ]" for name, own in number.items()]
    parts += [
        f"edge [ source {number[u]} target {number[v]}{f' weight {w!r}' if weighted else ''} ]" for u, v, w in edges
    ]
    if random.random() < 0.5:
        parts = [str(part) for part in random.permutation(parts[len(names) :])] + parts[: len(names)]
    body = space.join(["directed 1", *parts])
    return f'Creator "fuzz"{space}graph [{space}{body}{space}]'.encode(
        "utf-8-sig" if random.random() < 0.3 else "utf-8"
    )


def _json(random: np.random.Generator, edges: Edges, weighted: bool, names: list[str]) -> bytes:
    links = [{"source": u, "target": v, **({"weight": w} if weighted else {})} for u, v, w in edges]
    content = {"nodes": [{"id": name} for name in names], str(random.choice(["links", "edges"])): links, "graph": {}}
    if random.random() < 0.5:
        content |= {"directed": True, "multigraph": True}
    text = json.dumps(content, ensure_ascii=bool(random.random() < 0.5), indent=1 if random.random() < 0.5 else None)
    return text.encode("utf-8-sig" if random.random() < 0.3 else "utf-8")
