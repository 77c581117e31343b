"""A folder in the layout of OGB's Code2 from magnetite's own functions."""

import ast
import csv
import gzip
import io
import json
from collections import Counter
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import magnetite
from magnetite.code.ast_graph import NODE_TYPES, UNKNOWN
from magnetite.code.code2 import NO_ATTRIBUTE
from magnetite.code.source import build

PYTHON_2 = "def show_all(xs):\n    print xs\n"
"""A function of the data set that Python 3 cannot parse; its graph in the files is that of another."""


@cache
def own_functions() -> tuple[tuple[str, str], ...]:
    """Names and sources of the functions of magnetite, in a fixed order; some methods are indented."""
    found: dict[str, str] = {}
    root = Path(magnetite.__file__).parent
    for path in sorted(root.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("__"):
                lines = text.splitlines()[node.lineno - 1 : node.end_lineno]
                found.setdefault("\n".join(lines), node.name)
    return tuple((name, source) for source, name in found.items() if name.strip("_"))


def compressed(path: Path, content: str | bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(content.encode() if isinstance(content, str) else content, mtime=0))


def rows(values: Iterable[Iterable[object]]) -> str:
    return "".join(",".join(map(str, row)) + "\n" for row in values)


def mapping(name: str, texts: Iterable[str]) -> str:
    file = io.StringIO(newline="")
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow([f"{name} idx", name])
    writer.writerows(enumerate(texts))
    return file.getvalue()


def pandas_json(sources: Iterable[str]) -> str:
    """As `DataFrame.to_json(orient="split")` writes it: without spaces, in ASCII, with slashes escaped."""
    data = [[source] for source in sources]
    table = {"columns": ["code"], "index": list(range(len(data))), "data": data}
    return json.dumps(table, separators=(",", ":")).replace("/", "\\/")


def write_code2(folder: Path, count: int, python_2: bool = True, repeats: int = 1) -> list[str]:
    """Write `count` functions and return their sources.

    Args:
        folder: Where to write.
        count: Number of functions.
        python_2: Whether the last function is one that Python 3 cannot parse.
        repeats: How often all of them are written.
    """
    chosen = list(own_functions()[:count])
    assert len(chosen) == count
    graphs = [build(source, "ast", keep_docstrings=True) for _, source in chosen]
    if python_2:
        chosen[-1] = ("show_all", PYTHON_2)
    chosen, graphs = chosen * repeats, graphs * repeats
    types = [*sorted(NODE_TYPES), UNKNOWN]
    counted = Counter(text for graph in graphs for text in graph.attributes if text is not None)
    frequent = [text for text, _ in counted.most_common(100)]
    texts = [*frequent, UNKNOWN, NO_ATTRIBUTE]  # OGB has both at the end
    number_of = {text: number for number, text in enumerate(texts)}
    raw = folder / "raw"
    trees = [[(e.source, e.target) for e in graph.edges if e.type == "FIELD"] for graph in graphs]
    compressed(raw / "edge.csv.gz", rows(edge for tree in trees for edge in tree))
    compressed(raw / "num-node-list.csv.gz", rows([len(graph)] for graph in graphs))
    compressed(raw / "num-edge-list.csv.gz", rows([len(tree)] for tree in trees))
    features = (
        (types.index(kind), number_of[NO_ATTRIBUTE] if text is None else number_of.get(text, number_of[UNKNOWN]))
        for graph in graphs
        for kind, text in zip(graph.types, graph.attributes, strict=True)
    )
    compressed(raw / "node-feat.csv.gz", rows(features))
    compressed(raw / "node_is_attributed.csv.gz", rows([int(a is not None)] for g in graphs for a in g.attributes))
    compressed(raw / "node_dfs_order.csv.gz", rows([node] for graph in graphs for node in range(len(graph))))
    compressed(raw / "node_depth.csv.gz", rows([depth] for graph in graphs for depth in graph.depths))
    compressed(raw / "graph-label.csv.gz", rows([" ".join(name.strip("_").lower().split("_"))] for name, _ in chosen))
    total = len(chosen)
    bounds = [0, total * 8 // 10, total * 9 // 10, total]
    for number, split in enumerate(("train", "valid", "test")):
        ids = range(bounds[number], bounds[number + 1])
        compressed(folder / f"split/project/{split}.csv.gz", rows([each] for each in ids))
    compressed(folder / "mapping/typeidx2type.csv.gz", mapping("type", types))
    compressed(folder / "mapping/attridx2attr.csv.gz", mapping("attr", texts))
    compressed(folder / "mapping/graphidx2code.json.gz", pandas_json(source for _, source in chosen))
    return [source for _, source in chosen]
