"""The data-flow graph of a function: all edges put together."""

from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial
from itertools import pairwise, repeat

from magnetite.code.control_edges import ControlEdges
from magnetite.code.draft import Draft
from magnetite.code.effects import BARRIER
from magnetite.code.flow import reaching_writes
from magnetite.code.graph import CodeGraph, Edge
from magnetite.code.locations import Locations
from magnetite.code.masking import References, masked, references
from magnetite.code.vocabulary import MASK
from magnetite.code.walk import Definition, draft_of
from magnetite.code.walk.visiting import LAST, POSITION

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
    for node_number, field in _ordered(draft, locations):
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


def _ordered(draft: Draft, locations: Locations) -> Iterable[tuple[int, str]]:
    """Names with positions for operands, keywords, set elements and import aliases that have effects on each other."""
    for group in draft.groups:
        before = Counter[tuple[int, bool]]()
        conflict = False
        for begin, end in pairwise(group.ends):
            effects = draft.log[begin:end]
            conflict |= any(effect[0] == BARRIER for effect in effects)
            here = Counter[tuple[int, bool]]()
            for _, batch, read, _, gen in (step for effect in effects for step in locations.steps(effect, 0)):
                here[batch, False] |= read | gen
                here[batch, True] |= gen
            for batch, _ in list(here):
                written, accessed = here[batch, True], here[batch, False]
                conflict |= bool(written & before[batch, False] or before[batch, True] & accessed)
            for key, bits in here.items():
                before[key] |= bits
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
