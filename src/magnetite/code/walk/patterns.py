"""The walk over the patterns of `match`: captures write, values and classes are read."""

import ast
from collections.abc import Sequence
from typing import Any

from magnetite.code.draft import Draft, Source
from magnetite.code.effects import WRITE
from magnetite.code.walk.visiting import LAST, POSITION, visit, visit_list

CAPTURES = {ast.MatchAs: "name", ast.MatchStar: "name", ast.MatchMapping: "rest"}


def visit_pattern(
    draft: Draft, node: Any, parent: int, field: str, used: Sequence[int], sources: Sequence[Source]
) -> None:
    """A pattern; what it captures is calculated from the names that the subject uses."""
    kind = type(node)
    captured = getattr(node, CAPTURES[kind]) if kind in CAPTURES else None
    index = draft.add(kind.__name__, _attribute(node, captured), parent, field, node.lineno)
    for name, expressions in (("value", ast.MatchValue), ("cls", ast.MatchClass)):
        if kind is expressions:
            visit(draft, getattr(node, name), index, name)
    if kind is ast.MatchMapping:
        visit_list(draft, node.keys, index, "keys")
    inner = getattr(node, "pattern", None)
    if inner is not None:
        visit_pattern(draft, inner, index, "pattern", used, sources)
    for name in ("patterns", "kwd_patterns"):
        for k, part in enumerate(getattr(node, name, ())):
            visit_pattern(draft, part, index, POSITION[name][min(k, LAST)], used, sources)
    if captured is not None:
        variable = draft.scope.binding(captured)
        draft.log.append((WRITE, variable, None, index))
        draft.copies += [((variable, None), source) for source in sources]
        draft.calculated += [(load, index) for load in used]


def _attribute(node: Any, captured: str | None) -> str | None:
    if isinstance(node, ast.MatchSingleton):
        return repr(node.value)
    if isinstance(node, ast.MatchClass) and node.kwd_attrs:
        return ", ".join(node.kwd_attrs)
    return captured
