"""Readable graphs: a node is written `text@line`, an edge `source > target`."""

from magnetite import code
from magnetite.code.graph import CodeGraph

PARAMETERS = "self, a, b, c, d, k, m, n, p, q, r, s, t, u, v, w, x, y, z, xs, ys, fp"


def function(body: str, parameters: str = PARAMETERS, head: str = "def fn") -> str:
    """A function around a body."""
    lines = [f"{head}({parameters}):", *("    " + line for line in body.splitlines())]
    return "\n".join(lines)


def graph(body: str, **options) -> CodeGraph:
    """The data-flow graph of a function with this body; names that it declares nonlocal are not parameters."""
    own = [name for name in PARAMETERS.split(", ") if f"{name} = 0\ndef" not in body]
    return code.build(function(body, ", ".join(own)), **options)


def node(found: CodeGraph, number: int) -> str:
    """A node by its attribute (or type) and line."""
    line, up = found.lines[number], number
    while not line:  # nodes without a line have that of their parent
        up = next(edge.source for edge in found.edges if edge.type == "FIELD" and edge.target == up)
        line = found.lines[up]
    return f"{found.attributes[number] or found.types[number]}@{line}"


def edges(found: CodeGraph, kind: str) -> list[str]:
    """The edges of one type, sorted."""
    return sorted(
        f"{node(found, edge.source)} > {node(found, edge.target)}" for edge in found.edges if edge.type == kind
    )


def heap(body: str) -> list[str]:
    """The LAST_WRITE edges of a body, without those from its parameters."""
    writes = edges(graph(body), "LAST_WRITE")
    return [edge for edge in writes if not edge.startswith(("fp@1", "self@1")) and edge[1:3] != "@1"]
