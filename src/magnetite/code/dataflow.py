"""The data-flow graph of a function: all edges put together."""

from collections.abc import Callable, Iterable
from functools import partial
from itertools import repeat

from magnetite.code.control_edges import ControlEdges
from magnetite.code.draft import Draft
from magnetite.code.flow import reaching_writes
from magnetite.code.graph import CodeGraph, Edge
from magnetite.code.groups import fixed_order
from magnetite.code.locations import Locations
from magnetite.code.masking import References, masked, references
from magnetite.code.vocabulary import MASK
from magnetite.code.walk import Definition, draft_of

_edge: Callable[[tuple[int, int, str, str]], Edge] = partial(tuple.__new__, Edge)  # the fastest way to many
FUNCTIONS = frozenset({"FunctionDef", "AsyncFunctionDef"})


def dataflow_graph(
    node: Definition, name: str, mask: str | None, is_method: bool = False, keep_docstrings: bool = False
) -> CodeGraph:
    """The graph of a function given as a syntax tree."""
    draft = draft_of(node, node.name, is_method, keep_docstrings)
    locations = Locations(draft)
    writes = reaching_writes(draft, locations)
    types, attributes, parents, fields, lines, depths, _ = map(list, zip(*draft.rows, strict=True))
    for node_number, field in fixed_order(draft, locations):
        fields[node_number] = field
    itself = references(draft)
    for number in masked(draft, itself, mask):
        attributes[number] = MASK
    unnamed = {
        "CFG_NEXT": ControlEdges(draft, writes).edges,
        "LAST_WRITE": writes,
        "CALCULATED_FROM": dict.fromkeys(draft.calculated),
        "CALLS": dict.fromkeys(_calls(draft, writes, itself)),
    }
    rows = [*zip(parents, range(len(types)), repeat("FIELD"), fields, strict=False)][1:]
    for kind, pairs in unnamed.items():
        rows += [(source, target, kind, "") for source, target in pairs]
    return CodeGraph(
        kind="dataflow",
        name=name,
        types=tuple(types),
        attributes=tuple(attributes),
        depths=tuple(depths),
        lines=tuple(lines),
        edges=tuple(map(_edge, rows)),
    )


def _calls(draft: Draft, writes: dict[tuple[int, int], bool], itself: References) -> Iterable[tuple[int, int]]:
    """Calls of nested functions by the definitions that reach them, and of the function itself."""
    rows, callees = draft.rows, draft.callees
    for definition, access in writes:
        if access in callees and rows[definition][0] in FUNCTIONS:
            yield callees[access], definition
    for number in itself.names:
        if number in callees:
            yield callees[number], 0
    for number in itself.methods:
        if rows[number][3] == "func":
            yield rows[number][2], 0
