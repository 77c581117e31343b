"""Control flow: how `if`, `for`, `while`, `with`, `match`, `try`, `break`, `return` and `raise` become edges.

The rules of the first half cut the effect log into basic blocks, over which `reaching_definitions` runs. The second
half, `ControlEdges`, makes the edges CFG_NEXT between statements: `_finish_statement` has the shape of each statement.

| statement | basic blocks and CFG_NEXT |
|---|---|
| `if` | test → both branches → what follows |
| `for` | iterable → target → body → target; target → `else` → what follows |
| `while` | test → body → test; test → `else` → what follows |
| `with` | items → body → what follows |
| `match` | subject → first case → second case → …; each case → its body → what follows |
| `try` | any point of the body → first handler → …; `finally` on every way out |
"""

import ast
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

from magnetite.code.dataflow.assignments import iterate, note_counter, store
from magnetite.code.dataflow.effects import ANY, MUTATE, SUBSCRIPT, WRITE, Effect
from magnetite.code.dataflow.reaching_definitions import MAX_EDGES
from magnetite.code.dataflow.values import aliases, inside, new, receivers
from magnetite.code.dataflow.walk import (
    STATEMENT,
    TYPE,
    Draft,
    Frame,
    Source,
    evaluate,
    numbered,
    rule,
    visit,
    visit_body,
    visit_list,
)

CATCH_ALL = frozenset({"BaseException", "Exception"})
CAPTURES = {ast.MatchAs: "name", ast.MatchStar: "name", ast.MatchMapping: "rest"}
"""The patterns that bind a name, and the field that holds it."""


@rule("If")
def if_statement(draft: Draft, node: ast.If, parent: int, field: str) -> None:
    """`if`: test → both branches."""
    index = draft.add("If", None, parent, field, node.lineno)
    visit(draft, node.test, index, "test")
    tested = draft.block
    draft.start([tested])
    lists = {"body": [visit_body(draft, node.body, node, index)], "orelse": []}
    taken, other = draft.block, tested
    if node.orelse:
        draft.start([tested])
        lists["orelse"].append(visit_body(draft, node.orelse, node, index, "orelse"))
        other = draft.block
    draft.start([taken, other])
    draft.sublists[index] = lists


@rule("For", "AsyncFor")
def for_loop(draft: Draft, node: ast.For | ast.AsyncFor, parent: int, field: str) -> None:
    """`for`: iterable → target → body → target; after the last element → else."""
    index = draft.add(type(node).__name__, None, parent, field, node.lineno)
    head, used, sources = iterate(draft, node.iter, index)
    store(draft, node.target, index, "target", used, sources)
    note_counter(draft, node.target, node.iter)
    _loop_body(draft, node, index, head, [head])


@rule("While")
def while_loop(draft: Draft, node: ast.While, parent: int, field: str) -> None:
    """`while`: test → body → test; test → else; an endless loop ends by `break` only."""
    index = draft.add("While", None, parent, field, node.lineno)
    head = draft.start([draft.block])
    visit(draft, node.test, index, "test")
    tested = draft.block
    endless = isinstance(node.test, ast.Constant) and bool(node.test.value)
    draft.start([tested])
    _loop_body(draft, node, index, head, [] if endless else [tested])
    if endless:
        draft.exhaustive.add(index)


def _loop_body(draft: Draft, node: Any, index: int, head: int, done: list[int]) -> None:
    """The body and the `else` of a loop; `done` are the blocks from which the loop ends without `break`."""
    frame = Frame("loop", index, len(draft.open))
    draft.frames.append(frame)
    lists = {"body": [visit_body(draft, node.body, node, index)], "orelse": []}
    draft.frames.pop()
    draft.link_back(head, [draft.block, *frame.continues])
    if node.orelse:
        draft.start(done)
        lists["orelse"].append(visit_body(draft, node.orelse, node, index, "orelse"))
        done = [draft.block]
    draft.start([*done, *frame.breaks])
    draft.sublists[index] = lists


@rule("With", "AsyncWith")
def with_statement(draft: Draft, node: ast.With | ast.AsyncWith, parent: int, field: str) -> None:
    """`with`: items, then the body, then the exits of the items; enter and exit are method calls."""
    index = draft.add(type(node).__name__, None, parent, field, node.lineno)
    exits: list[Effect] = []
    for k, item in enumerate(node.items):
        number = draft.add("withitem", None, index, numbered("items", k))
        used, path = evaluate(draft, item.context_expr, number, "context_expr")
        managers = receivers(draft, item.context_expr, path)
        draft.log += [(MUTATE, variable, selector, number) for variable, selector, _ in managers]
        exits += draft.log[len(draft.log) - len(managers) :]
        if item.optional_vars is not None:
            store(draft, item.optional_vars, number, "optional_vars", used, aliases(draft, item.context_expr))
            if not isinstance(item.optional_vars, ast.Tuple | ast.List):
                exits += [(MUTATE, *entered[:2], number) for entered in receivers(draft, item.optional_vars, None)]
    draft.sublists[index] = {"body": [visit_body(draft, node.body, node, index)]}
    draft.log.extend(reversed(exits))


@rule("Match")
def match_statement(draft: Draft, node: ast.Match, parent: int, field: str) -> None:
    """`match`: subject → patterns and guards in order; a pattern that fails may have bound some names."""
    index = draft.add("Match", None, parent, field, node.lineno)
    used, _ = evaluate(draft, node.subject, index, "subject")
    sources = aliases(draft, node.subject)
    unmatched, ends, lists = [draft.block], [], []
    for k, case in enumerate(node.cases):
        entry = draft.start(unmatched)
        draft.start([entry])
        number = draft.add("match_case", None, index, numbered("cases", k))
        _pattern(draft, case.pattern, number, "pattern", used, sources)
        if case.guard is not None:
            visit(draft, case.guard, number, "guard")
        wildcard = case.guard is None and isinstance(case.pattern, ast.MatchAs) and case.pattern.pattern is None
        unmatched = [] if wildcard else [entry, draft.block]
        draft.start([draft.block])
        lists.append(visit_body(draft, case.body, case, number))
        ends.append(draft.block)
    if not unmatched:
        draft.exhaustive.add(index)
    draft.start([*ends, *unmatched])
    draft.sublists[index] = {"cases": lists}


def _pattern(draft: Draft, node: Any, parent: int, field: str, used: list[int], sources: list[Source]) -> None:
    """A pattern: values and classes are read; captures are written, calculated from the names in the subject."""
    kind = type(node)
    attribute = captured = getattr(node, CAPTURES[kind]) if kind in CAPTURES else None
    if kind is ast.MatchSingleton:
        attribute = repr(node.value)
    elif kind is ast.MatchClass and node.kwd_attrs:
        attribute = ", ".join(node.kwd_attrs)
    index = draft.add(kind.__name__, attribute, parent, field, node.lineno)
    if kind is ast.MatchValue:
        visit(draft, node.value, index, "value")
    elif kind is ast.MatchClass:
        visit(draft, node.cls, index, "cls")
    elif kind is ast.MatchMapping:
        visit_list(draft, node.keys, index, "keys")
    if getattr(node, "pattern", None) is not None:
        _pattern(draft, node.pattern, index, "pattern", used, sources)
    for name in ("patterns", "kwd_patterns"):
        for k, part in enumerate(getattr(node, name, ())):
            _pattern(draft, part, index, numbered(name, k), used, _matched(node, name, k, sources))
    if captured is not None:
        variable = draft.scope.binding(captured)
        draft.log.append((WRITE, variable, None, index))
        if kind is not ast.MatchAs and sources:  # a new list or dictionary of such elements
            sources = [*sources, *new(draft, sources if kind is ast.MatchStar else inside(sources))]
        draft.copies += [((variable, ()), source) for source in sources]
        draft.calculated += [(load, index) for load in used]


def _matched(node: Any, field: str, k: int, sources: list[Source]) -> list[Source]:
    """What a part of a pattern matches: an attribute, an element; an alternative matches the whole."""
    if type(node) is ast.MatchOr:
        return sources
    if type(node) is ast.MatchClass:
        return inside(sources, node.kwd_attrs[k] if field == "kwd_patterns" else ANY)
    return inside(sources, SUBSCRIPT)


@rule("Return")
def return_statement(draft: Draft, node: ast.Return, parent: int, field: str) -> None:
    """`return value`."""
    index = draft.add("Return", None, parent, field, node.lineno)
    if node.value is not None:
        visit(draft, node.value, index, "value")
        if draft.unit:
            draft.returned.setdefault(draft.unit, []).extend(aliases(draft, node.value))
    draft.barrier()
    draft.jump("return", draft.block, index)
    draft.start([])


@rule("Break", "Continue")
def leave_loop(draft: Draft, node: ast.Break | ast.Continue, parent: int, field: str) -> None:
    """`break` and `continue`."""
    kind = type(node).__name__
    index = draft.add(kind, None, parent, field, node.lineno)
    draft.barrier(draft.height_of("loop"))
    draft.jump(kind.lower(), draft.block, index)
    draft.start([])


@rule("Raise")
def raise_statement(draft: Draft, node: ast.Raise, parent: int, field: str) -> None:
    """`raise error from cause`."""
    index = draft.add("Raise", None, parent, field, node.lineno)
    for name in ("exc", "cause"):
        if getattr(node, name) is not None:
            visit(draft, getattr(node, name), index, name)
    draft.barrier(draft.height_of("catch"))
    draft.start([])


@rule("Assert")
def assert_statement(draft: Draft, node: ast.Assert, parent: int, field: str) -> None:
    """`assert test, message`."""
    index = draft.add("Assert", None, parent, field, node.lineno)
    visit(draft, node.test, index, "test")
    draft.barrier(draft.height_of("catch"))
    if node.msg is not None:
        tested = draft.block
        draft.start([tested])
        visit(draft, node.msg, index, "msg")
        draft.start([tested])


@rule("Try", "TryStar")
def try_statement(draft: Draft, node: Any, parent: int, field: str) -> None:
    """`try`: any point of the body → first handler → second …; `finally` on every way out."""
    index = draft.add(type(node).__name__, None, parent, field, node.lineno)
    frame = Frame("final", index, len(draft.open))
    if node.finalbody:
        draft.frames.append(frame)
    first = draft.start([draft.block])
    catch_all = any(map(_catches_all, node.handlers))
    if catch_all:
        draft.exhaustive.add(index)
        draft.frames.append(Frame("catch", index, len(draft.open)))
    lists = {"body": [visit_body(draft, node.body, node, index)], "handlers": [], "orelse": [], "finalbody": []}
    if catch_all:
        draft.frames.pop()
    last = draft.block
    if node.orelse:
        draft.start([draft.block])
        lists["orelse"].append(visit_body(draft, node.orelse, node, index, "orelse"))
    ends = [draft.block, *_handlers(draft, node, index, first, last, lists["handlers"])]
    if node.finalbody:
        draft.frames.pop()
        lists["finalbody"].append(_finally(draft, node, index, first, ends, frame))
    else:
        draft.start(ends)
    draft.sublists[index] = lists


def _catches_all(handler: ast.ExceptHandler) -> bool:
    types = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(kind is None or (isinstance(kind, ast.Name) and kind.id in CATCH_ALL) for kind in types)


def _handlers(draft: Draft, node: Any, index: int, first: int, last: int, lists: list[int]) -> list[int]:
    """All handlers; return the blocks in which they end."""
    ends: list[int] = []
    for k, handler in enumerate(node.handlers):
        draft.start([draft.block]) if k else draft.start_handler(first, last)
        number = draft.add("ExceptHandler", handler.name, index, numbered("handlers", k), handler.lineno)
        if handler.type is not None:
            visit(draft, handler.type, number, "type")
        matched = draft.block
        draft.start([matched])
        bound = draft.scope.binding(handler.name) if handler.name else None
        if bound:
            draft.log.append((WRITE, bound, None, number))
        lists.append(visit_body(draft, handler.body, handler, number))
        if bound:  # the name is deleted at the end
            draft.log.append((WRITE, bound, None, number))
        ends.append(draft.block)
        draft.block = matched
    return ends


def _finally(draft: Draft, node: Any, index: int, first: int, ends: list[int], frame: Frame) -> int:
    """`finally`, with two copies of its blocks: one after a normal end, one for all other ways out."""
    last = len(draft.starts) - 1
    normal = draft.start(ends)
    nested = draft.open_finally > 0
    if nested:  # one copy for all ways out: copies of copies would grow exponentially
        draft.live[normal] = draft.live[normal] or draft.live[first]
        draft.exception_edges.append((normal, first, last))
    draft.open_finally += 1
    number = visit_body(draft, node.finalbody, node, index, "finalbody")
    draft.open_finally -= 1
    end = leaving = draft.block
    if not nested:
        leaving = _copy_blocks(draft, normal, len(draft.starts), first, last)
    for kind in dict.fromkeys(frame.leaving):
        draft.resumed.setdefault(index, []).append((kind, draft.jump(kind, leaving, None)))
    draft.start([end])
    return number


def _copy_blocks(draft: Draft, begin: int, end: int, first: int, last: int) -> int:
    """Copy the blocks `begin…end - 1`, entered from any point of the blocks `first…last`; return the copy's end."""
    shift = len(draft.starts) - begin
    bounds = [*draft.starts[begin:end], len(draft.log)]
    for block, (low, high) in enumerate(pairwise(bounds), begin):
        draft.starts.append(len(draft.log))
        draft.predecessors.append([before + shift for before in draft.predecessors[block] if before >= begin])
        draft.live.append(draft.live[first] and (block == begin or draft.live[block]))
        draft.unit_of.append(draft.unit_of[block])
        if block in draft.entries:
            draft.entries.add(block + shift)
        draft.log += draft.log[low:high]
    inner = [edge for edge in draft.exception_edges if edge[1] >= begin]
    draft.exception_edges += [(target + shift, low + shift, high + shift) for target, low, high in inner]
    draft.exception_edges.append((begin + shift, first, last))
    return end - 1 + shift


class ControlEdges:
    """The edges CFG_NEXT: a dependency DAG inside each statement list, connected to what comes before and after it.

    `Si → Sj` in a list iff a write inside `Si` reaches an access inside `Sj` without passing a back edge of a loop
    around the list. The sources of a list follow its entry, and its sinks lead to what follows. Barriers cut a list
    into segments: a segment leads to the barrier after it, and a barrier to the segment after it. There is no
    transitive reduction.

    Args:
        draft: The walked function.
        writes: The result of `reaching_definitions`.
        sequential: Whether each statement of a list leads to the next one in the text instead, as in the graphs of
            Bieber et al. (2022): every statement is then a barrier.
    """

    def __init__(self, draft: Draft, writes: dict[tuple[int, int], bool], sequential: bool = False):
        self.draft, self.sequential = draft, sequential
        self.edges: dict[tuple[int, int], None] = {}
        self.dependents: dict[int, dict[int, set[int]]] = {}
        """For every list, the statements that depend on each of its statements."""
        self.exits: dict[int, list[int]] = {}
        self.list_exits: dict[int, list[int]] = {}
        self.list_sources: dict[int, list[int]] = {}
        self.breaks: dict[int, list[int]] = {}
        self.into_finally: dict[int, list[int]] = {}
        owner = [node[STATEMENT] for node in draft.nodes]
        deciding = {} if sequential else writes
        for one, other in {(owner[write], owner[access]) for (write, access), same in deciding.items() if same}:
            if one != other:
                self._depend(one, other)
        for number in range(len(draft.lists) - 1, -1, -1):
            self._finish_list(number)
        self._connect([0], self._sources(draft.sublists[0]["body"]))

    def _depend(self, one: int, other: int) -> None:
        """Record that `other` reads what `one` writes, in the innermost list that holds both or statements around
        them; not if the write comes later in that list."""
        lists, position = self.draft.lists, self.draft.position
        while one != other:
            first, second = position.get(one), position.get(other)
            if first is None and second is None:
                return
            if first is not None and second is not None and first[0] == second[0]:
                if first[1] < second[1]:
                    self.dependents.setdefault(first[0], {}).setdefault(one, set()).add(other)
                return
            if second is None or (first is not None and lists[first[0]].depth >= lists[second[0]].depth):
                one = lists[first[0]].parent  # pyright: ignore
            else:
                other = lists[second[0]].parent

    def _finish_list(self, number: int) -> None:
        """Add the edges inside a list whose inner lists are finished."""
        draft, statements = self.draft, self.draft.lists[number].statements
        for statement in statements:
            self.exits[statement] = self._finish_statement(statement)
        if len(statements) == 1:
            self.list_sources[number], self.list_exits[number] = statements, self.exits[statements[0]]
            return
        dependents = self.dependents.get(number, {})
        for statement, after in dependents.items():
            self._connect(self.exits[statement], after)
        segment: list[int] = []
        barrier: int | None = None
        for statement in [*statements, None]:
            if statement is not None and statement not in draft.barriers and not self.sequential:
                segment.append(statement)
                continue
            inside = set(segment)
            targets = {target for one in segment for target in dependents.get(one, ()) if target in inside}
            sources = [one for one in segment if one not in targets]
            sinks = [one for one in segment if not dependents.get(one, set()) & inside]
            entries = sources or ([] if statement is None else [statement])
            if barrier is None:
                self.list_sources[number] = entries
            else:
                self._connect(self.exits[barrier], entries)
            ends = [end for one in sinks for end in self.exits[one]]
            if statement is None:
                self.list_exits[number] = ends if segment or barrier is None else self.exits[barrier]
            elif segment:
                self._connect(ends, [statement])
            segment, barrier = [], statement

    def _finish_statement(self, index: int) -> list[int]:
        """Add the edges between a statement and its lists; return the nodes from which control leaves it."""
        kind, lists = self.draft.nodes[index][TYPE], self.draft.sublists.get(index)
        if lists is None:
            return [] if kind in ("Return", "Raise", "Break", "Continue") else [index]
        if kind in ("Try", "TryStar"):
            return self._finish_try(index, lists)
        if kind == "Match":
            return self._finish_match(index, lists["cases"])
        self._connect([index], self._sources(lists["body"]))
        if kind in ("FunctionDef", "AsyncFunctionDef", "ClassDef"):
            return [index]
        ends = self._ends(lists["body"])
        if kind in ("With", "AsyncWith"):
            return ends
        otherwise = lists["orelse"]
        self._connect([index], self._sources(otherwise))
        skipped = self._ends(otherwise) if otherwise else [] if index in self.draft.exhaustive else [index]
        if kind == "If":
            return ends + skipped
        # `for` and `while`: the body and every `continue` lead back to the head, every `break` to what follows
        self._connect(ends, [index])
        jumps = self.draft.jumps.get(index, [])
        self._connect([source for name, source in jumps if name == "continue"], [index])
        return skipped + [source for name, source in jumps if name == "break"] + self.breaks.get(index, [])

    def _finish_match(self, index: int, cases: list[int]) -> list[int]:
        ends, before = [], index
        for number in cases:
            case = self.draft.lists[number].owner
            self._connect([before], [case])
            self._connect([case], self.list_sources[number])
            ends += self.list_exits[number]
            before = case
        return ends if index in self.draft.exhaustive else [*ends, before]

    def _finish_try(self, index: int, lists: dict[str, list[int]]) -> list[int]:
        draft = self.draft
        self._connect([index], self._sources(lists["body"]))
        ends = self._ends(lists["body"])
        if lists["orelse"]:
            self._connect(ends, self._sources(lists["orelse"]))
            ends = self._ends(lists["orelse"])
        raising = [index, *draft.lists[lists["body"][0]].statements]
        for number in lists["handlers"]:
            handler = draft.lists[number].owner
            self._connect(raising, [handler])
            self._connect([handler], self.list_sources[number])
            ends = ends + self.list_exits[number]
            raising = [handler]
        if not lists["finalbody"]:
            return ends
        unmatched = [] if index in draft.exhaustive else raising[:1]
        jumps = [source for _, source in draft.jumps.get(index, [])] + self.into_finally.get(index, [])
        self._connect([*ends, *unmatched, *jumps], self._sources(lists["finalbody"]))
        leaving = self._ends(lists["finalbody"])
        for kind, target in draft.resumed.get(index, []):
            self._resume(kind, target, leaving)
        return leaving

    def _resume(self, kind: str, target: int, leaving: list[int]) -> None:
        """Let `break`, `continue` or `return` continue after a `finally`, to the statement that it meets next."""
        if target < 0:
            return
        if self.draft.nodes[target][TYPE] in ("Try", "TryStar"):
            self.into_finally.setdefault(target, []).extend(leaving)
        elif kind == "break":
            self.breaks.setdefault(target, []).extend(leaving)
        else:
            self._connect(leaving, [target])

    def _sources(self, lists: list[int]) -> list[int]:
        return [source for number in lists for source in self.list_sources[number]]

    def _ends(self, lists: list[int]) -> list[int]:
        return [end for number in lists for end in self.list_exits[number]]

    def _connect(self, sources: Iterable[int], targets: Iterable[int]) -> None:
        for source in sources:
            for target in targets:
                self.edges[(source, target)] = None
        if len(self.edges) > MAX_EDGES:
            raise ValueError(
                f"the function {self.draft.name!r} has more than {MAX_EDGES:,} CFG_NEXT edges, too many for a "
                "data-flow graph: split it, or use kind='ast'"
            )
