"""The data-flow graph of a function: all edges put together."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise, repeat

from magnetite.code.dataflow.control_flow import ControlEdges
from magnetite.code.dataflow.definitions import Definition, walk_function
from magnetite.code.dataflow.effects import BARRIER
from magnetite.code.dataflow.locations import Locations
from magnetite.code.dataflow.masking import References, masked, references
from magnetite.code.dataflow.reaching_definitions import reaching_definitions
from magnetite.code.dataflow.walk import FIELD, PARENT, TYPE, Draft, Group, numbered
from magnetite.code.graph import MASK, CodeGraph, Edge

_edge: Callable[[tuple[int, int, str, str]], Edge] = partial(tuple.__new__, Edge)  # the fastest way to make many
FUNCTIONS = frozenset({"FunctionDef", "AsyncFunctionDef"})


def dataflow_graph(
    node: Definition,
    name: str,
    mask: str | None,
    is_method: bool = False,
    keep_docstrings: bool = False,
    sequential: bool = False,
) -> CodeGraph:
    """The data-flow graph of a function given as a syntax tree.

    Args:
        node: The definition.
        name: Qualified name, the name of the graph.
        mask: "strict", "paper" or None, see `masking`.
        is_method: Whether it is defined in a class.
        keep_docstrings: Whether docstrings become nodes.
        sequential: Whether CFG_NEXT follows the order of the text; the kind of the graph is then "dataflow-sequential".
    """
    draft = walk_function(node, is_method, keep_docstrings)
    locations = Locations(draft)
    writes = reaching_definitions(draft, locations)
    types, attributes, parents, fields, lines, depths, _ = map(list, zip(*draft.nodes, strict=True))
    for number, field in ordered_operands(draft, locations):
        fields[number] = field
    itself = references(draft)
    for number in masked(draft, itself, mask):
        attributes[number] = MASK
    unnamed = {
        "CFG_NEXT": ControlEdges(draft, writes, sequential).edges,
        "LAST_WRITE": writes,
        "CALCULATED_FROM": dict.fromkeys(draft.calculated),
        "CALLS": dict.fromkeys(_calls(draft, writes, itself)),
    }
    edges = [*zip(parents, range(len(types)), repeat("FIELD"), fields, strict=False)][1:]
    for kind, pairs in unnamed.items():
        edges += [(source, target, kind, "") for source, target in pairs]
    return CodeGraph(
        kind="dataflow-sequential" if sequential else "dataflow",
        name=name,
        types=tuple(types),
        attributes=tuple(attributes),
        depths=tuple(depths),
        lines=tuple(lines),
        edges=tuple(map(_edge, edges)),
    )


def _calls(draft: Draft, writes: dict[tuple[int, int], bool], itself: References) -> Iterator[tuple[int, int]]:
    """Edges from calls to the nested definitions that reach them, and from recursive calls to the function."""
    nodes, callees = draft.nodes, draft.callees
    for definition, access in writes:
        if access in callees and nodes[definition][TYPE] in FUNCTIONS:
            yield callees[access], definition
    for number in itself.names:
        if number in callees:
            yield callees[number], 0
    for number in itself.methods:
        if nodes[number][FIELD] == "func":
            yield nodes[number][PARENT], 0


def ordered_operands(draft: Draft, locations: Locations) -> Iterator[tuple[int, str]]:
    """Operands, keywords, set elements and import aliases whose order matters after all, with numbered edge names.

    Args:
        draft: The walked function.
        locations: Its locations.
    """
    for group in ordered_groups(draft, locations):
        for position, number in enumerate(group.nodes):
            yield number, numbered(draft.nodes[number][FIELD], position)


def ordered_groups(draft: Draft, locations: Locations) -> Iterator[Group]:
    """The groups whose order matters after all.

    `xs.pop() + len(xs)` is not `len(xs) + xs.pop()`: one operand writes what the other accesses.

    Args:
        draft: The walked function.
        locations: Its locations.
    """
    if not draft.groups:
        return
    writing = _writing(draft, locations)
    for group in draft.groups:
        first = bisect_left(writing, group.ends[0])
        if first < len(writing) and writing[first] < group.ends[-1] and _in_conflict(group, draft, locations):
            yield group


def _writing(draft: Draft, locations: Locations) -> list[int]:
    """Positions in the log that write something or suspend the function."""
    found = []
    for block, (begin, end) in enumerate(draft.spans()):
        unit = draft.unit_of[block]
        for position in range(begin, end):
            effect = draft.log[position]
            if effect[0] == BARRIER or any(gen for _, _, _, _, gen in locations.steps(effect, unit)):
                found.append(position)
    return found


def _in_conflict(group: Group, draft: Draft, locations: Locations) -> bool:
    """Whether a member writes what another accesses, or suspends the function."""
    accessed_before, written_before = Counter[int](), Counter[int]()
    for begin, end in pairwise(group.ends):
        accessed, written = Counter[int](), Counter[int]()
        for effect in draft.log[begin:end]:
            if effect[0] == BARRIER:
                return True
            for _, batch, read, _, gen in locations.steps(effect, group.unit):
                accessed[batch] |= read | gen
                written[batch] |= gen
        for batch, bits in accessed.items():
            if written[batch] & accessed_before[batch] or written_before[batch] & bits:
                return True
            accessed_before[batch] |= bits
            written_before[batch] |= written[batch]
    return False
