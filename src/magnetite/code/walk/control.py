"""Branches, loops, `with` and `match`, and the ways out of them."""

import ast
from typing import Any

from magnetite.code.draft import Draft, Frame
from magnetite.code.effects import (
    MUTATE,
    copied,
)
from magnetite.code.scopes import Variable
from magnetite.code.walk.patterns import visit_pattern
from magnetite.code.walk.targets import iterate, store
from magnetite.code.walk.visiting import (
    LAST,
    POSITION,
    visit,
    walk_list,
)


def branch(draft: Draft, node: ast.If, parent: int, field: str) -> None:
    """`if`: test → both branches."""
    index = draft.add("If", None, parent, field, node.lineno)
    visit(draft, node.test, index, "test")
    tested = draft.block
    draft.start([tested])
    lists = [walk_list(draft, node.body, node, index, "body")]
    taken, other = draft.block, tested
    if node.orelse:
        draft.start([tested])
        lists.append(walk_list(draft, node.orelse, node, index, "orelse"))
        other = draft.block
    draft.start([taken, other])
    draft.shapes[index] = {"body": lists[:1], "orelse": lists[1:]}


def loop_while(draft: Draft, node: ast.While, parent: int, field: str) -> None:
    """`while`: test → body → test; test → else; an endless loop is left by `break` alone."""
    index = draft.add("While", None, parent, field, node.lineno)
    head = draft.start([draft.block])
    visit(draft, node.test, index, "test")
    tested = draft.block
    endless = isinstance(node.test, ast.Constant) and bool(node.test.value)
    draft.start([tested])
    _loop_body(draft, node, index, head, [] if endless else [tested])
    if endless:
        draft.complete.add(index)


def loop_for(draft: Draft, node: ast.For | ast.AsyncFor, parent: int, field: str) -> None:
    """`for`: iterable → target → body → target; without a further element → else."""
    index = draft.add(type(node).__name__, None, parent, field, node.lineno)
    head, used, sources = iterate(draft, node.iter, index)
    store(draft, node.target, index, "target", used, sources)
    _loop_body(draft, node, index, head, [head])


def _loop_body(draft: Draft, node: Any, index: int, head: int, done: list[int]) -> None:
    """The body and the else-branch of a loop; `done` are the blocks from which the loop ends by itself."""
    frame = Frame("loop", index, len(draft.open))
    draft.frames.append(frame)
    lists = [walk_list(draft, node.body, node, index, "body")]
    draft.frames.pop()
    draft.link(head, [draft.block, *frame.continues])
    if node.orelse:
        draft.start(done)
        lists.append(walk_list(draft, node.orelse, node, index, "orelse"))
        done = [draft.block]
    draft.start([*done, *frame.breaks])
    draft.shapes[index] = {"body": lists[:1], "orelse": lists[1:]}


def manage(draft: Draft, node: ast.With | ast.AsyncWith, parent: int, field: str) -> None:
    """`with`: items, then the body, then the items' exits; enter and exit are member calls."""
    index = draft.add(type(node).__name__, None, parent, field, node.lineno)
    exits: list[tuple[int, Variable, str | None, int]] = []
    for k, item in enumerate(node.items):
        number = draft.add("withitem", None, index, POSITION["items"][min(k, LAST)])
        begin = len(draft.loads)
        path = visit(draft, item.context_expr, number, "context_expr")
        used = draft.loads[begin:]
        if path:
            draft.log.append((MUTATE, *path, number))
            exits.append((MUTATE, *path, number))
        if item.optional_vars is not None:
            store(draft, item.optional_vars, number, "optional_vars", used, draft.sources(copied(item.context_expr)))
            exits += [(MUTATE, *source, number) for source in draft.sources(copied(item.optional_vars))]
    draft.shapes[index] = {"body": [walk_list(draft, node.body, node, index, "body")]}
    draft.log.extend(reversed(exits))


def choose(draft: Draft, node: ast.Match, parent: int, field: str) -> None:
    """`match`: subject → patterns and guards in order; a pattern that fails may have bound some names."""
    index = draft.add("Match", None, parent, field, node.lineno)
    begin = len(draft.loads)
    visit(draft, node.subject, index, "subject")
    used, sources = draft.loads[begin:], draft.sources(copied(node.subject))
    falls, ends, lists, cases = [draft.block], [], [], []
    for k, case in enumerate(node.cases):
        entry = draft.start(falls)
        draft.start([entry])
        number = draft.add("match_case", None, index, POSITION["cases"][min(k, LAST)])
        cases.append(number)
        visit_pattern(draft, case.pattern, number, "pattern", used, sources)
        if case.guard is not None:
            visit(draft, case.guard, number, "guard")
        falls = [] if _always_matches(case) else [entry, draft.block]
        draft.start([draft.block])
        lists.append(walk_list(draft, case.body, case, number, "body"))
        ends.append(draft.block)
    if not falls:
        draft.complete.add(index)
    draft.start([*ends, *falls])
    draft.shapes[index] = {"cases": lists}


def _always_matches(case: ast.match_case) -> bool:
    return case.guard is None and isinstance(case.pattern, ast.MatchAs) and case.pattern.pattern is None


def leave_function(draft: Draft, node: ast.Return, parent: int, field: str) -> None:
    """`return value`."""
    index = draft.add("Return", None, parent, field, node.lineno)
    if node.value is not None:
        visit(draft, node.value, index, "value")
    draft.barrier()
    draft.leave("return", draft.block, index)
    draft.start([])


def leave_loop(draft: Draft, node: ast.Break | ast.Continue, parent: int, field: str) -> None:
    """`break` and `continue`."""
    index = draft.add(type(node).__name__, None, parent, field, node.lineno)
    draft.barrier(draft.height_of("loop"))
    draft.leave(type(node).__name__.lower(), draft.block, index)
    draft.start([])


def throw(draft: Draft, node: ast.Raise, parent: int, field: str) -> None:
    """`raise error from cause`."""
    index = draft.add("Raise", None, parent, field, node.lineno)
    for name in ("exc", "cause"):
        if getattr(node, name) is not None:
            visit(draft, getattr(node, name), index, name)
    draft.barrier(draft.height_of("catch"))
    draft.start([])


def check(draft: Draft, node: ast.Assert, parent: int, field: str) -> None:
    """`assert test, message`."""
    index = draft.add("Assert", None, parent, field, node.lineno)
    visit(draft, node.test, index, "test")
    draft.barrier(draft.height_of("catch"))
    if node.msg is not None:
        tested = draft.block
        draft.start([tested])
        visit(draft, node.msg, index, "msg")
        draft.start([tested])
