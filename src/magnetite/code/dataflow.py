"""The data-flow graph of a function: all edges put together."""

from collections.abc import Iterable

from magnetite.code.dependencies import Order
from magnetite.code.draft import Draft
from magnetite.code.effects import BARRIER
from magnetite.code.expressions import LAST, POSITION
from magnetite.code.flow import reaching_writes
from magnetite.code.graph import CodeGraph, Edge
from magnetite.code.locations import Locations
from magnetite.code.masking import References, masked, references
from magnetite.code.vocabulary import MASK
from magnetite.code.walk import Definition, draft_of

FUNCTIONS = frozenset({"FunctionDef", "AsyncFunctionDef"})


def dataflow_graph(
    node: Definition, name: str, mask: str | None, is_method: bool = False, keep_docstrings: bool = False
) -> CodeGraph:
    """The graph of a function given as a syntax tree."""
    draft = draft_of(node, node.name, is_method, keep_docstrings)
    locations = Locations(draft)
    writes = reaching_writes(draft, locations)
    types, attributes, parents, fields, lines, depths, _ = map(list, zip(*draft.rows, strict=True))
    for node_number, field in _ordered(draft, locations):
        fields[node_number] = field
    itself = references(draft)
    for number in masked(draft, itself, mask):
        attributes[number] = MASK
    edges = [Edge(parents[child], child, "FIELD", fields[child]) for child in range(1, len(types))]
    edges += (Edge(source, target, "CFG_NEXT") for source, target in Order(draft, writes).edges)
    edges += (Edge(source, target, "LAST_WRITE") for source, target in writes)
    edges += (Edge(source, target, "CALCULATED_FROM") for source, target in dict.fromkeys(draft.calculated))
    edges += (Edge(call, definition, "CALLS") for call, definition in _calls(draft, writes, itself))
    return CodeGraph(
        kind="dataflow",
        name=name,
        types=tuple(types),
        attributes=tuple(attributes),
        depths=tuple(depths),
        lines=tuple(lines),
        edges=tuple(edges),
    )


def _ordered(draft: Draft, locations: Locations) -> Iterable[tuple[int, str]]:
    """Names with positions for operands, keywords, set elements and import aliases that have effects on each other."""
    for group in draft.groups:
        reads = writes = 0
        conflict = False
        for begin, end in zip(group.ends, group.ends[1:], strict=False):
            effects = draft.log[begin:end]
            steps = [step for effect in effects for step in locations.steps(effect, 0)]
            accessed = written = 0
            for _, read, _, gen in steps:
                accessed |= read | gen
                written |= gen
            conflict |= bool(written & reads or writes & accessed) or any(effect[0] == BARRIER for effect in effects)
            reads |= accessed
            writes |= written
        if conflict:
            for position, number in enumerate(group.nodes):
                yield number, POSITION[draft.rows[number][3]][min(position, LAST)]


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
