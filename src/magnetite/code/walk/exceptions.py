"""`try`: handlers that any point of the body may lead to, and `finally` on every way out."""

import ast
from itertools import pairwise
from typing import Any

from magnetite.code.draft import Draft, Frame
from magnetite.code.effects import (
    WRITE,
)
from magnetite.code.walk.visiting import (
    LAST,
    POSITION,
    visit,
    walk_list,
)

CATCH_ALL = frozenset({"BaseException", "Exception"})


def attempt(draft: Draft, node: Any, parent: int, field: str) -> None:
    """`try`: any point of the body → first handler → second …; `finally` on every way out."""
    index = draft.add(type(node).__name__, None, parent, field, node.lineno)
    frame = Frame("final", index, len(draft.open))
    if node.finalbody:
        draft.frames.append(frame)
    first = draft.start([draft.block])
    lists = {"body": [_guarded_body(draft, node, index)], "handlers": [], "orelse": [], "finalbody": []}
    last = draft.block
    if node.orelse:
        draft.start([draft.block])
        lists["orelse"].append(walk_list(draft, node.orelse, node, index, "orelse"))
    ends = [draft.block]
    ends += _handlers(draft, node, index, first, last, lists["handlers"])
    if node.finalbody:
        draft.frames.pop()
        _finally(draft, node, index, (first, ends), frame, lists["finalbody"])
    else:
        draft.start(ends)
    draft.shapes[index] = lists


def _guarded_body(draft: Draft, node: Any, index: int) -> int:
    catch_all = any(_catches_all(handler) for handler in node.handlers)
    if catch_all:
        draft.complete.add(index)
        draft.frames.append(Frame("catch", index, len(draft.open)))
    number = walk_list(draft, node.body, node, index, "body")
    if catch_all:
        draft.frames.pop()
    return number


def _catches_all(handler: ast.ExceptHandler) -> bool:
    types = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(kind is None or (isinstance(kind, ast.Name) and kind.id in CATCH_ALL) for kind in types)


def _handlers(draft: Draft, node: Any, index: int, first: int, last: int, lists: list[int]) -> list[int]:
    """All handlers; the blocks in which they end."""
    ends: list[int] = []
    for k, handler in enumerate(node.handlers):
        draft.start([draft.block]) if k else draft.start_thrown(first, last)
        number = draft.add("ExceptHandler", handler.name, index, POSITION["handlers"][min(k, LAST)], handler.lineno)
        if handler.type is not None:
            visit(draft, handler.type, number, "type")
        matched = draft.block
        draft.start([matched])
        bound = draft.scope.binding(handler.name) if handler.name else None
        if bound:
            draft.log.append((WRITE, bound, None, number))
        lists.append(walk_list(draft, handler.body, handler, number, "body"))
        if bound:  # the name is deleted at the end
            draft.log.append((WRITE, bound, None, number))
        ends.append(draft.block)
        draft.block = matched
    return ends


def _finally(draft: Draft, node: Any, index: int, ways: tuple[int, list[int]], frame: Frame, lists: list[int]) -> None:
    """`finally` twice: as it follows a normal end, and as any other way out passes through it."""
    first, ends = ways
    last = len(draft.starts) - 1
    normal = draft.start(ends)
    nested = draft.finals > 0
    if nested:  # one copy for all ways, lest copies of copies grow exponentially
        draft.live[normal] = draft.live[normal] or draft.live[first]
        draft.thrown.append((normal, first, last))
    draft.finals += 1
    lists.append(walk_list(draft, node.finalbody, node, index, "finalbody"))
    draft.finals -= 1
    end = leaving = draft.block
    if not nested:
        leaving = _copy(draft, normal, len(draft.starts), first, last)
    for kind in dict.fromkeys(frame.leaving):
        draft.onward.setdefault(index, []).append((kind, draft.leave(kind, leaving, None)))
    draft.start([end])


def _copy(draft: Draft, begin: int, end: int, first: int, last: int) -> int:
    """Blocks `begin…end` again, entered from any point of blocks `first…last`; where the copy ends."""
    shift = len(draft.starts) - begin
    bounds = [*draft.starts[begin:end], len(draft.log)]
    for block, (low, high) in enumerate(pairwise(bounds), begin):
        draft.starts.append(len(draft.log))
        draft.before.append([before + shift for before in draft.before[block] if before >= begin])
        draft.live.append(draft.live[first] and (block == begin or draft.live[block]))
        draft.unit_of.append(draft.unit_of[block])
        if block in draft.entries:
            draft.entries.add(block + shift)
        draft.log += draft.log[low:high]
    inner = [row for row in draft.thrown if row[1] >= begin]
    draft.thrown += [(target + shift, low + shift, high + shift) for target, low, high in inner]
    draft.thrown.append((begin + shift, first, last))
    return end - 1 + shift
