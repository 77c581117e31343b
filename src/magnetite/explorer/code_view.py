"""The view Code: the sequential and the data-flow graph of a function, equivalent rewrites, proposed names.

Source is parsed, never executed.
"""

import random
from collections.abc import Mapping
from typing import Any

from magnetite.code import CodeGraph, random_names, rename, reorderings
from magnetite.code.drawing import COLOURS, shown
from magnetite.code.layout import layered
from magnetite.code.source import Function, find, functions, graph_of, parse
from magnetite.explorer.limits import Limits, Refused, field, number

KINDS = {"sequential": "ast", "dataflow": "dataflow"}
"""The graphs of the page, and their kinds."""

MOST_NODES = 600
"""Number of nodes of a graph that is drawn."""

MOST_FUNCTIONS = 200
"""Number of functions of a source that the page lists."""

WORDS = {"reorder": "reordered", "rename": "renamed"}

Payload = Mapping[str, Any]


def graphs(payload: Payload, limits: Limits) -> dict[str, Any]:
    """Both graphs of a function with their hashes."""
    source, function, listed = _function(payload, limits)
    return {"source": source, "functions": listed[:MOST_FUNCTIONS], **_graphs(source, function.name)}


def rewrite(payload: Payload, limits: Limits) -> dict[str, Any]:
    """An equivalent text of a function, both of its graphs, and which hashes changed."""
    source, function, listed = _function(payload, limits)
    name = function.name
    seed = number(payload, "seed", 0, 2**31, 0)
    kind = field(payload, "kind", str, "reorder")
    if kind not in WORDS:
        raise Refused(f"kind must be one of {', '.join(WORDS)}, got {kind!r:.20}")
    before = _hashes(source, name)
    text, count = _reordered(source, name, seed) if kind == "reorder" else _renamed(source, name, seed)
    after = _graphs(text, name)
    changed = {each: before[each] != after[each]["hash"] for each in KINDS}
    about = {"source": text, "functions": listed[:MOST_FUNCTIONS], "count": str(count), "did": WORDS[kind]}
    return {**about, "before": before, "changed": changed, **after}


def names(payload: Payload, limits: Limits) -> dict[str, Any]:
    """Names that the shipped model proposes, or one line that says why there are none."""
    source, function, _ = _function(payload, limits)
    from magnetite.code.names import suggest_names

    try:
        found = suggest_names(source, number(payload, "top", 1, 10, 5), function.name)
    except FileNotFoundError:
        return {
            "names": [],
            "reason": "This copy of magnetite has no model of names; `magnetite train naming` trains one.",
        }
    return {"names": [[name, probability] for name, probability in found], "reason": None}


def _function(payload: Payload, limits: Limits) -> tuple[str, Function, list[str]]:
    """The source of a request, the function that it names, by default the first one, and the names of all."""
    source = field(payload, "source", str)
    if len(source) > limits.source:
        raise Refused(f"the source has {len(source):,} characters, more than {limits.source:,}: give one function", 413)
    name = field(payload, "name", (str, type(None)), None)
    found = list(functions(parse(source)))
    listed = list(dict.fromkeys(function.name for function in found))
    first = next((function.name for function in found if not function.is_nested), None)
    return source, find(found, first if name is None else name), listed


def _reordered(source: str, name: str | None, seed: int) -> tuple[str, int]:
    """Another order of independent statements and operands, and the number of all orders."""
    texts = reorderings(source, name=name)
    present = next(iter(texts))
    for text in texts.sample(8, seed):
        if text != present:
            return text, texts.count
    if texts.count == 1:
        raise Refused("this function has no independent statements or operands to reorder: try to rename its variables")
    return next(text for text in texts if text != present), texts.count


def _renamed(source: str, name: str | None, seed: int) -> tuple[str, int]:
    fresh = random_names(source, seed, name)
    if not fresh:
        raise Refused("this function has no variables to rename")
    words = random.Random(seed).sample(READABLE, min(len(READABLE), len(fresh)))
    taken = set(fresh)
    kept = [word for word in words if word not in taken]
    readable = {old: kept[i] if i < len(kept) else new for i, (old, new) in enumerate(fresh.items())}
    try:
        return rename(source, readable, name), 1
    except ValueError:  # a word is in use as a global
        return rename(source, fresh, name), 1


READABLE = (
    "alder", "birch", "cedar", "dune", "ember", "fjord", "grove", "heath", "islet", "juniper", "kelp", "larch", "moss",
    "north", "oak", "pine",
)  # fmt: skip
"""New names of variables."""


def _hashes(source: str, name: str | None) -> dict[str, str]:
    function = find(functions(parse(source)), name)
    return {each: graph_of(function, kind, "strict", False).hash for each, kind in KINDS.items()}  # pyright: ignore[reportArgumentType]


def _graphs(source: str, name: str | None) -> dict[str, Any]:
    function = find(functions(parse(source)), name)
    made = {each: graph_of(function, kind, "strict", False) for each, kind in KINDS.items()}  # pyright: ignore[reportArgumentType]
    return {"function": function.name, **{each: _plain(graph) for each, graph in made.items()}}


def _plain(graph: CodeGraph) -> dict[str, Any]:
    """A graph as plain data, with a layout in layers if it is small enough to be drawn."""
    edges = [edge for edge in graph.edges if edge.type in COLOURS]
    about = {"hash": graph.hash, "size": len(graph), "count": len(edges)}
    if len(graph) > MOST_NODES:
        return {**about, "nodes": [], "edges": [], "note": f"Graphs of more than {MOST_NODES} nodes are not drawn."}
    labels = [
        kind if attribute is None else f"{kind}\n{shown(attribute, 22)}"
        for kind, attribute in zip(graph.types, graph.attributes, strict=True)
    ]
    sizes = [(7.0 * max(map(len, label.split("\n"))) + 20, 17.0 * (label.count("\n") + 1) + 14) for label in labels]
    placed = layered([(edge.source, edge.target) for edge in edges], sizes)
    return {
        **about,
        "note": None,
        "nodes": [
            {"label": label, "x": round(x, 1), "y": round(y, 1), "line": line, "named": "\n" in label}
            for label, (x, y), line in zip(labels, placed.nodes, graph.lines, strict=True)
        ],
        "edges": [[edge.source, edge.target, edge.type, edge.name] for edge in edges],
    }


JOBS = {"code/graphs": graphs, "code/rewrite": rewrite, "code/names": names}
"""The jobs of this view by name."""
