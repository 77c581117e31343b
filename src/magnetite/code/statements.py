"""The walk over statements: their control flow, the lists that they hold, and the barriers among them."""

import ast
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

from magnetite.code.draft import Draft, Frame, Group, StatementList
from magnetite.code.effects import AUGMENT, HEAP_READ, MUTATE, READ, WRITE, copied
from magnetite.code.expressions import (
    LAST,
    POSITION,
    function_unit,
    generic,
    iterate,
    parameters_of,
    store,
    visit,
    visit_list,
    visit_unordered,
)
from magnetite.code.patterns import visit_pattern
from magnetite.code.scopes import Scope, Variable

CATCH_ALL = frozenset({"BaseException", "Exception"})


def walk_list(draft: Draft, trees: Sequence[ast.stmt], holder: ast.AST, owner: int, field: str) -> int:
    """A statement list; its number."""
    parent = draft.statement
    number = len(draft.lists)
    depth = draft.lists[draft.place[parent][0]].depth + 1 if parent in draft.place else 0
    entry = StatementList(owner, field, parent, depth, draft.unit, holder)
    draft.lists.append(entry)
    if not draft.keep_docstrings and field == "body" and _has_docstring(holder, trees):
        trees = trees[1:]
    for position, tree in enumerate(trees):
        draft.statement = index = len(draft.rows)
        draft.place[index] = (number, position)
        entry.statements.append(index)
        entry.trees.append(tree)
        draft.open.append(index)
        STATEMENTS.get(type(tree), generic)(draft, tree, owner, field)
        draft.open.pop()
    draft.statement = parent
    return number


def _has_docstring(holder: ast.AST, trees: Sequence[ast.stmt]) -> bool:
    if not trees or not isinstance(holder, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return False
    first = trees[0]
    return isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str)


def expression(draft: Draft, node: ast.Expr, parent: int, field: str) -> None:
    """An expression whose value nobody uses."""
    index = draft.add("Expr", None, parent, field, node.lineno)
    draft.discarded = node.value
    visit(draft, node.value, index, "value")


def assign(draft: Draft, node: ast.Assign, parent: int, field: str) -> None:
    """`targets = value`; tuples are taken apart element by element."""
    index = draft.add("Assign", None, parent, field, node.lineno)
    split = _is_split(node)
    if split:
        parts = _evaluate_parts(draft, node.value, index)
    else:
        begin = len(draft.loads)
        visit(draft, node.value, index, "value")
        parts = [(draft.loads[begin:], node.value)]
    for k, target in enumerate(node.targets):
        field = POSITION["targets"][min(k, LAST)]
        if split:
            tuple_index = draft.add(type(target).__name__, None, index, field, target.lineno)
            for position, (element, (used, value)) in enumerate(zip(target.elts, parts, strict=True)):  # pyright: ignore
                store(
                    draft,
                    element,
                    tuple_index,
                    POSITION["elts"][min(position, LAST)],
                    used,
                    draft.sources(copied(value)),
                )
            draft.add("Store", None, tuple_index, "ctx")
        else:
            store(draft, target, index, field, parts[0][0], draft.sources(copied(parts[0][1])))
    if isinstance(node.value, ast.Lambda) and isinstance(node.targets[0], ast.Name):
        _name_lambda(draft, node.targets[0].id)


def _is_split(node: ast.Assign) -> bool:
    """Whether value and targets are tuples of one length, without stars."""
    tuples = [node.value, *node.targets]
    if not all(isinstance(item, ast.Tuple | ast.List) for item in tuples):
        return False
    elements = [item.elts for item in tuples]  # pyright: ignore
    return len({len(row) for row in elements}) == 1 and not any(
        isinstance(e, ast.Starred) for row in elements for e in row
    )


def _evaluate_parts(draft: Draft, node: Any, parent: int) -> list[tuple[list[int], ast.expr]]:
    """The elements of a tuple, each with the names that it uses."""
    index = draft.add(type(node).__name__, None, parent, "value", node.lineno)
    parts = []
    for k, element in enumerate(node.elts):
        begin = len(draft.loads)
        visit(draft, element, index, POSITION["elts"][min(k, LAST)])
        parts.append((draft.loads[begin:], element))
    draft.add("Load", None, index, "ctx")
    return parts


def _name_lambda(draft: Draft, name: str) -> None:
    """A lambda with a name is called where its name is used, not where it stands."""
    for position in range(len(draft.log) - 1, -1, -1):
        variable = draft.log[position][1]
        if isinstance(variable, Variable) and variable.name == "<lambda>":
            draft.scope.binding(name).functions += variable.functions
            variable.functions.clear()
            return


def annotated(draft: Draft, node: ast.AnnAssign, parent: int, field: str) -> None:
    """`target: annotation = value`."""
    index = draft.add("AnnAssign", None, parent, field, node.lineno)
    begin = len(draft.loads)
    if node.value is not None:
        visit(draft, node.value, index, "value")
    used = draft.loads[begin:]
    if node.value is None and isinstance(node.target, ast.Name):  # declares, writes nothing
        target = draft.add("Name", node.target.id, index, "target", node.target.lineno)
        draft.add("Store", None, target, "ctx")
        draft.scope.binding(node.target.id)
    else:
        store(draft, node.target, index, "target", used, draft.sources(copied(node.value)))
    visit(draft, node.annotation, index, "annotation")


def augmented(draft: Draft, node: ast.AugAssign, parent: int, field: str) -> None:
    """`target += value`: the target is read, then the value, then the target is written, perhaps in place."""
    index = draft.add("AugAssign", None, parent, field, node.lineno)
    target, written = node.target, len(draft.rows)
    begin = len(draft.log)
    store(draft, target, index, "target", (), ())
    write = draft.log.pop() if len(draft.log) > begin and draft.log[-1][3] == written else None
    if write is not None:
        read = READ if isinstance(target, ast.Name) else HEAP_READ
        draft.log.append((read, write[1], write[2], written))
    draft.add(type(node.op).__name__, None, index, "op")
    first = len(draft.loads)
    visit(draft, node.value, index, "value")
    draft.calculated += [(load, written) for load in draft.loads[first:]]
    if write is not None:
        draft.log.append(write)
        if isinstance(target, ast.Name):
            draft.log.append((AUGMENT, write[1], None, written))


def delete(draft: Draft, node: ast.Delete, parent: int, field: str) -> None:
    """`del targets`."""
    index = draft.add("Delete", None, parent, field, node.lineno)
    for k, target in enumerate(node.targets):
        store(draft, target, index, POSITION["targets"][min(k, LAST)], (), ())


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
    draft.thrown += [tuple(number + shift for number in row) for row in draft.thrown if row[1] >= begin]  # pyright: ignore
    draft.thrown.append((begin + shift, first, last))
    return end - 1 + shift


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


def define(draft: Draft, node: Any, parent: int, field: str) -> None:
    """A nested function: decorators and defaults are evaluated here, its body where it is called."""
    index = draft.add(type(node).__name__, node.name, parent, field, node.lineno)
    outer = draft.scope
    parameters = walk_header(draft, node, index)
    inner, draft.scope = draft.scope, outer
    variable = outer.binding(node.name)
    draft.log.append((WRITE, variable, None, index))
    unit = function_unit(draft, parameters, inner, lambda: walk_body(draft, node, index))
    variable.functions.append(unit)


def walk_header(draft: Draft, node: Any, index: int) -> list[tuple[str, int]]:
    """Decorators, type parameters, arguments and the result's annotation; leaves the scope that the body lies in."""
    visit_list(draft, node.decorator_list, index, "decorator_list")
    type_parameters(draft, node, index)
    parameters = parameters_of(draft, node.args, index)
    if node.returns is not None:
        visit(draft, node.returns, index, "returns")
    return parameters


def walk_body(draft: Draft, node: Any, index: int) -> None:
    """The body of a function."""
    draft.shapes[index] = {"body": [walk_list(draft, node.body, node, index, "body")]}


def type_parameters(draft: Draft, node: Any, index: int) -> None:
    """`[T: bound = default]` of Python 3.12, bound in a scope around the definition."""
    if not getattr(node, "type_params", None):
        return
    draft.scope = Scope("types", draft.scope, draft.unit)
    for k, entry in enumerate(node.type_params):
        number = draft.add(type(entry).__name__, entry.name, index, POSITION["type_params"][min(k, LAST)], entry.lineno)
        draft.log.append((WRITE, draft.scope.binding(entry.name), None, number))
        for name in ("bound", "default_value"):
            if getattr(entry, name, None) is not None:
                visit(draft, getattr(entry, name), number, name)


def define_class(draft: Draft, node: ast.ClassDef, parent: int, field: str) -> None:
    """A nested class: its body runs here, in a scope of its own; using it may call any of its methods."""
    index = draft.add("ClassDef", node.name, parent, field, node.lineno)
    outer, first = draft.scope, draft.units
    visit_list(draft, node.decorator_list, index, "decorator_list")
    type_parameters(draft, node, index)
    visit_list(draft, node.bases, index, "bases")
    visit_unordered(draft, node.keywords, index, "keywords")
    draft.scope = Scope("class", draft.scope, draft.unit)
    draft.shapes[index] = {"body": [walk_list(draft, node.body, node, index, "body")]}
    draft.scope = outer
    variable = outer.binding(node.name)
    variable.functions += range(first, draft.units)
    draft.log.append((WRITE, variable, None, index))


def alias_type(draft: Draft, node: Any, parent: int, field: str) -> None:
    """`type Name[T] = value` of Python 3.12."""
    index = draft.add("TypeAlias", None, parent, field, node.lineno)
    outer = draft.scope
    type_parameters(draft, node, index)
    begin = len(draft.loads)
    visit(draft, node.value, index, "value")
    draft.scope = outer
    store(draft, node.name, index, "name", draft.loads[begin:], ())


def bring(draft: Draft, node: ast.Import | ast.ImportFrom, parent: int, field: str) -> None:
    """`import` binds names to modules; the order of the names in one import does not matter."""
    origin = "." * (node.level or 0) + (node.module or "") if isinstance(node, ast.ImportFrom) else None
    index = draft.add(type(node).__name__, origin, parent, field, node.lineno)
    group = Group([], [len(draft.log)])
    for entry in node.names:
        shown = f"{entry.name} as {entry.asname}" if entry.asname else entry.name
        number = draft.add("alias", shown, index, "names", entry.lineno)
        bound = draft.scope.binding(entry.asname or entry.name.partition(".")[0], imported=True)
        draft.log.append((WRITE, bound, None, number))
        group.nodes.append(number)
        group.ends.append(len(draft.log))
    if len({variable for _, variable, _, _ in draft.log[group.ends[0] :]}) < len(node.names):
        draft.groups.append(group)


def declare(draft: Draft, node: ast.Global | ast.Nonlocal, parent: int, field: str) -> None:
    """`global` and `nonlocal`."""
    draft.add(type(node).__name__, ", ".join(sorted(node.names)), parent, field, node.lineno)
    declared = draft.scope.declared_global if isinstance(node, ast.Global) else draft.scope.declared_nonlocal
    declared.update(node.names)


STATEMENTS: dict[type, Callable[..., Any]] = {
    ast.Expr: expression,
    ast.Assign: assign,
    ast.AnnAssign: annotated,
    ast.AugAssign: augmented,
    ast.Delete: delete,
    ast.Return: leave_function,
    ast.Break: leave_loop,
    ast.Continue: leave_loop,
    ast.Raise: throw,
    ast.Assert: check,
    ast.If: branch,
    ast.While: loop_while,
    ast.For: loop_for,
    ast.AsyncFor: loop_for,
    ast.With: manage,
    ast.AsyncWith: manage,
    ast.Try: attempt,
    ast.TryStar: attempt,
    ast.Match: choose,
    ast.FunctionDef: define,
    ast.AsyncFunctionDef: define,
    ast.ClassDef: define_class,
    ast.Import: bring,
    ast.ImportFrom: bring,
    ast.Global: declare,
    ast.Nonlocal: declare,
}
if hasattr(ast, "TypeAlias"):  # Python 3.12
    STATEMENTS[ast.TypeAlias] = alias_type
