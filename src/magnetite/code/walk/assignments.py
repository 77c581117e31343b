"""Assignments, deletions, imports and declarations."""

import ast
from collections import Counter
from typing import Any

from magnetite.code.draft import Draft, Group
from magnetite.code.effects import (
    AUGMENT,
    HEAP_READ,
    READ,
    WRITE,
    copied,
)
from magnetite.code.scopes import Variable
from magnetite.code.walk.definitions import type_parameters
from magnetite.code.walk.targets import store
from magnetite.code.walk.visiting import (
    LAST,
    POSITION,
    visit,
)


def expression(draft: Draft, node: ast.Expr, parent: int, field: str) -> None:
    """An expression whose value nobody uses."""
    index = draft.add("Expr", None, parent, field, node.lineno)
    draft.discarded = node.value
    visit(draft, node.value, index, "value")


def assign(draft: Draft, node: ast.Assign, parent: int, field: str) -> None:
    """`targets = value`; tuples are taken apart element by element."""
    index = draft.add("Assign", None, parent, field, node.lineno)
    if _is_split(node):
        parts = _evaluate_parts(draft, node.value, index)
        for k, target in enumerate(node.targets):
            _store_parts(draft, target, index, POSITION["targets"][min(k, LAST)], parts)
        return
    begin = len(draft.loads)
    visit(draft, node.value, index, "value")
    used, sources = draft.loads[begin:], draft.sources(copied(node.value))
    for k, target in enumerate(node.targets):
        store(draft, target, index, POSITION["targets"][min(k, LAST)], used, sources)
    if isinstance(node.value, ast.Lambda) and isinstance(node.targets[0], ast.Name):
        _name_lambda(draft, node.targets[0].id)


def _is_split(node: ast.Assign) -> bool:
    """Whether value and targets are tuples of one length, without stars."""
    if not isinstance(node.value, ast.Tuple | ast.List):
        return False
    rows = [item.elts for item in (node.value, *node.targets) if isinstance(item, ast.Tuple | ast.List)]
    alike = len(rows) == 1 + len(node.targets) and len({len(row) for row in rows}) == 1
    return alike and not any(isinstance(element, ast.Starred) for row in rows for element in row)


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


def _store_parts(draft: Draft, node: Any, parent: int, field: str, parts: list[tuple[list[int], ast.expr]]) -> None:
    """A tuple as target, each element of its own value."""
    index = draft.add(type(node).__name__, None, parent, field, node.lineno)
    for k, (element, (used, value)) in enumerate(zip(node.elts, parts, strict=True)):
        store(draft, element, index, POSITION["elts"][min(k, LAST)], used, draft.sources(copied(value)))
    draft.add("Store", None, index, "ctx")


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
        draft.log += [write, (AUGMENT, write[1], write[2], written)]


def delete(draft: Draft, node: ast.Delete, parent: int, field: str) -> None:
    """`del targets`."""
    index = draft.add("Delete", None, parent, field, node.lineno)
    for k, target in enumerate(node.targets):
        store(draft, target, index, POSITION["targets"][min(k, LAST)], (), ())


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
    group = Group([], [len(draft.log)], draft.unit)
    bound = Counter(map(_bound, node.names))
    for entry in node.names:
        shown = f"{entry.name} as {entry.asname}" if entry.asname else entry.name
        number = draft.add("alias", shown, index, "names", entry.lineno)
        name, _ = _bound(entry)
        # `import a.b, a.c` binds `a` once, by both entries together
        effect = (WRITE, draft.scope.binding(name, imported=True), None, number if bound[_bound(entry)] == 1 else index)
        if effect not in draft.log[group.ends[0] :]:
            draft.log.append(effect)
        group.nodes.append(number)
        group.ends.append(len(draft.log))
    if len({name for name, _ in bound}) < len(bound):
        draft.groups.append(group)


def _bound(entry: ast.alias) -> tuple[str, str]:
    """The name that an import binds, and what it binds it to."""
    first = entry.name.partition(".")[0]
    return (entry.asname, entry.name) if entry.asname else (first, first)


def declare(draft: Draft, node: ast.Global | ast.Nonlocal, parent: int, field: str) -> None:
    """`global` and `nonlocal`."""
    draft.add(type(node).__name__, ", ".join(sorted(node.names)), parent, field, node.lineno)
    declared = draft.scope.declared_global if isinstance(node, ast.Global) else draft.scope.declared_nonlocal
    declared.update(node.names)
