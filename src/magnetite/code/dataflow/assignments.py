"""Rules for everything that binds a name by assignment: `=`, `+=`, `:`, `del`, `import`, `global`; targets of loops."""

import ast
from collections import Counter
from collections.abc import Sequence
from typing import Any

from magnetite.code.dataflow.effects import (
    APPLY,
    AUGMENT,
    BOUND_METHODS,
    DEEP_WRITE,
    HEAP_READ,
    HEAP_WRITE,
    INVOKE,
    READ,
    SUBSCRIPT,
    USE,
    WRITE,
)
from magnetite.code.dataflow.scopes import Variable
from magnetite.code.dataflow.values import (
    CONTAINER_OPERATORS,
    aliases,
    elements,
    hold,
    inside,
    is_lazy,
    is_slice,
    literal,
    new,
    plain,
)
from magnetite.code.dataflow.walk import Draft, FollowCalls, Group, Source, evaluate, numbered, rule, visit, visit_base


def store(draft: Draft, node: Any, parent: int, field: str, used: Sequence[int], sources: Sequence[Source]) -> None:
    """Walk over a target: of an assignment, a loop, a `with`, a deletion.

    Args:
        used: Nodes of the names from which the value is calculated.
        sources: Variables, or parts of them, that the value may be an alias of.
    """
    kind, context = type(node), type(node.ctx).__name__
    if kind is ast.Name:
        index = draft.add("Name", node.id, parent, field, node.lineno)
        variable = draft.scope.binding(node.id)
        draft.log.append((WRITE, variable, None, index))
        draft.copies += [((variable, ()), source) for source in sources]
    elif kind is ast.Attribute or kind is ast.Subscript:
        index = _store_part(draft, node, parent, field, sources)
    else:
        index = draft.add(kind.__name__, None, parent, field, node.lineno)
        parts, name = ([node.value], "value") if kind is ast.Starred else (node.elts, "elts")
        inner = inside(sources)
        if kind is ast.Starred and sources:  # a new list of such elements
            inner = [*sources, *new(draft, sources)]
        for k, part in enumerate(parts):
            store(draft, part, index, numbered(name, k), used, inner)
        draft.add(context, None, index, "ctx")
        return
    draft.add(context, None, index, "ctx")
    draft.calculated += [(load, index) for load in used]


def _store_part(
    draft: Draft, node: ast.Attribute | ast.Subscript, parent: int, field: str, sources: Sequence[Source]
) -> int:
    """`x.attr = …` and `x[i] = …`: the variable is read, its heap is written."""
    is_attribute = isinstance(node, ast.Attribute)
    index = draft.add(type(node).__name__, node.attr if is_attribute else None, parent, field, node.lineno)
    path = visit_base(draft, node.value, index, "value")
    if not is_attribute:
        visit(draft, node.slice, index, "slice")
    own = node.attr if is_attribute else SUBSCRIPT
    if path:
        draft.log.append((HEAP_WRITE if path[1] is None else DEEP_WRITE, path[0], path[1] or own, index))
    else:
        for variable, inner in aliases(draft, node.value):
            draft.log.append((DEEP_WRITE if inner else HEAP_WRITE, variable, inner[0] if inner else own, index))
    if sources:
        parts = inside(aliases(draft, node.value), own)
        draft.copies += [(part, source) for part in parts for source in sources]
        if not is_attribute and is_slice(node.slice):  # `xs[:] = ys` takes the elements
            hold(draft, parts, inside(sources))
    return index


def note_plain(draft: Draft, target: ast.expr, value: ast.expr | None) -> None:
    """Record where a variable is bound to a number or a string, which cannot be changed."""
    if type(target) is ast.Name:
        variable = draft.scope.variable(target.id)
        if plain(draft, value, variable.plain_from):
            variable.plain += 1


def note_counter(draft: Draft, target: ast.expr, iterable: ast.expr) -> None:
    """Record that a loop over `range`, or the first target of one over `enumerate`, counts."""
    if type(iterable) is ast.Call and type(iterable.func) is ast.Name:
        name = iterable.func.id
        if name == "enumerate" and isinstance(target, ast.Tuple | ast.List):
            target = target.elts[0]
        elif name != "range":
            return
        if type(target) is ast.Name:
            draft.scope.variable(target.id).plain += 1


def iterate(draft: Draft, node: ast.expr, parent: int) -> tuple[int, list[int], list[Source]]:
    """Evaluate an iterable and start its loop.

    Returns:
        The block of the loop's head, the names used, and the variables whose elements the target may be.
    """
    index = len(draft.nodes)
    used, path = evaluate(draft, node, parent, "iter")
    head = draft.start([draft.block])
    if path:
        draft.log.append((HEAP_READ, path[0], path[1], index))
    draft.start([head])
    return head, used, elements(draft, node)


@rule("Expr")
def expression_statement(draft: Draft, node: ast.Expr, parent: int, field: str) -> None:
    """An expression whose value is discarded."""
    index = draft.add("Expr", None, parent, field, node.lineno)
    draft.discarded = node.value
    visit(draft, node.value, index, "value")


@rule("Assign")
def assign(draft: Draft, node: ast.Assign, parent: int, field: str) -> None:
    """`targets = value`; tuples are assigned element by element."""
    index = draft.add("Assign", None, parent, field, node.lineno)
    if _is_elementwise(node):
        _assign_elements(draft, node, index)
        return
    begin = len(draft.log)
    used, _ = evaluate(draft, node.value, index, "value")
    sources = aliases(draft, node.value)
    name_iterator(draft, node.targets, node.value, begin)
    if len(node.targets) > 1 and not sources and not literal(draft, node.value):  # one new object for all targets
        sources = [(Variable("<value>", draft.scope).bind(), ())]
    for k, target in enumerate(node.targets):
        store(draft, target, index, numbered("targets", k), used, sources)
        note_plain(draft, target, node.value)
    if isinstance(node.value, ast.Attribute) and node.value.attr in BOUND_METHODS:
        _name_method(draft, node)
    if isinstance(node.value, ast.Lambda) and isinstance(node.targets[0], ast.Name):
        _name_lambda(draft, node.targets[0].id)


def _name_method(draft: Draft, node: ast.Assign) -> None:
    """`add = xs.append`: calling `add` changes `xs`."""
    if not draft.follows_calls:
        raise FollowCalls
    for target in node.targets:
        if isinstance(target, ast.Name) and isinstance(node.value, ast.Attribute):
            variable = draft.scope.variable(target.id)
            variable.method = True
            draft.copies += [((variable, ()), source) for source in aliases(draft, node.value.value)]


def name_iterator(draft: Draft, targets: Sequence[ast.expr], value: ast.expr | None, begin: int) -> None:
    """`z = (f(v) for v in xs)`, `z = map(f, xs)`: where `z` is used, the generator runs and the function is called.

    Args:
        draft: What the walk has recorded.
        targets: What the value is assigned to.
        value: The value, evaluated.
        begin: Where its effects begin in the log.
    """
    names = [target.id for target in targets if isinstance(target, ast.Name)]
    if value is None or not names or not is_lazy(value):
        return
    effects = draft.log[begin:]
    if any(isinstance(inner, ast.GeneratorExp) for inner in ast.walk(value)):
        if not draft.follows_calls:
            raise FollowCalls
    elif draft.follows_calls:  # the arguments are evaluated here
        effects = [(APPLY, *effect[1:]) for effect in effects if effect[0] in (USE, APPLY, INVOKE)]
    else:
        return
    unit = draft.units
    draft.units += 1
    draft.unit_parents.append(draft.unit)
    draft.deferred[unit] = effects
    draft.parameters[unit], draft.signatures[unit] = [], ast.arguments([], [], None, [], [], None, [])
    for name in names:
        draft.scope.variable(name).functions.append(unit)


def _is_elementwise(node: ast.Assign) -> bool:
    """Whether the value and all targets are tuples or lists of one length, without stars."""
    if not isinstance(node.value, ast.Tuple | ast.List):
        return False
    parts = [item.elts for item in (node.value, *node.targets) if isinstance(item, ast.Tuple | ast.List)]
    alike = len(parts) == 1 + len(node.targets) and len(set(map(len, parts))) == 1
    return alike and not any(isinstance(element, ast.Starred) for elements in parts for element in elements)


def _assign_elements(draft: Draft, node: Any, index: int) -> None:
    value = draft.add(type(node.value).__name__, None, index, "value", node.value.lineno)
    parts = []
    for k, element in enumerate(node.value.elts):
        begin = len(draft.log)
        used, _ = evaluate(draft, element, value, numbered("elts", k))
        targets = [target.elts[k] for target in node.targets]
        name_iterator(draft, targets, element, begin)
        parts.append((used, element))
    draft.add("Load", None, value, "ctx")
    for k, target in enumerate(node.targets):
        number = draft.add(type(target).__name__, None, index, numbered("targets", k), target.lineno)
        for j, (element, (used, part)) in enumerate(zip(target.elts, parts, strict=True)):
            store(draft, element, number, numbered("elts", j), used, aliases(draft, part))
            note_plain(draft, element, part)
        draft.add("Store", None, number, "ctx")


def _name_lambda(draft: Draft, name: str) -> None:
    """Let a named lambda be called where its name is used, not where it is defined."""
    for position in range(len(draft.log) - 1, -1, -1):
        variable = draft.log[position][1]
        if isinstance(variable, Variable) and variable.name == "<lambda>":
            draft.scope.binding(name).functions += variable.functions
            variable.functions.clear()
            return


@rule("AnnAssign")
def annotated_assign(draft: Draft, node: ast.AnnAssign, parent: int, field: str) -> None:
    """`target: annotation = value`."""
    index = draft.add("AnnAssign", None, parent, field, node.lineno)
    begin = len(draft.log)
    used = evaluate(draft, node.value, index, "value")[0] if node.value is not None else []
    name_iterator(draft, [node.target], node.value, begin)
    if node.value is None and isinstance(node.target, ast.Name):  # declares, but does not write
        target = draft.add("Name", node.target.id, index, "target", node.target.lineno)
        draft.add("Store", None, target, "ctx")
        draft.scope.binding(node.target.id)
    else:
        store(draft, node.target, index, "target", used, aliases(draft, node.value))
        note_plain(draft, node.target, node.value)
    visit(draft, node.annotation, index, "annotation")


@rule("AugAssign")
def augmented_assign(draft: Draft, node: ast.AugAssign, parent: int, field: str) -> None:
    """`target += value`: reads the target, then the value, then writes the target, possibly in place."""
    index = draft.add("AugAssign", None, parent, field, node.lineno)
    target, written = node.target, len(draft.nodes)
    begin = len(draft.log)
    store(draft, target, index, "target", (), ())
    writes = []
    while len(draft.log) > begin and draft.log[-1][3] == written:
        writes.append(draft.log.pop())
    read = READ if isinstance(target, ast.Name) else HEAP_READ
    draft.log += [(read, write[1], write[2], written) for write in writes]
    draft.add(type(node.op).__name__, None, index, "op")
    used, _ = evaluate(draft, node.value, index, "value")
    draft.calculated += [(load, written) for load in used]
    for write in writes:
        draft.log += [write, (AUGMENT, write[1], write[2], written)]
    if isinstance(node.op, CONTAINER_OPERATORS):  # `ys += [xs]`
        taken = elements(draft, node.value)
        grown = aliases(draft, target)
        if isinstance(target, ast.Subscript) and is_slice(target.slice):  # `ys[:] += [xs]`
            grown = grown + aliases(draft, target.value)
        draft.extended += [(part, source) for part in inside(grown) for source in taken]
    if isinstance(target, ast.Name):  # what is added to a number or a string is one
        draft.scope.variable(target.id).plain += 1


@rule("Delete")
def delete(draft: Draft, node: ast.Delete, parent: int, field: str) -> None:
    """`del targets`."""
    index = draft.add("Delete", None, parent, field, node.lineno)
    for k, target in enumerate(node.targets):
        store(draft, target, index, numbered("targets", k), (), ())


@rule("Import", "ImportFrom")
def import_names(draft: Draft, node: ast.Import | ast.ImportFrom, parent: int, field: str) -> None:
    """`import` binds names to modules; the order of the names in one import is irrelevant."""
    origin = "." * (node.level or 0) + (node.module or "") if isinstance(node, ast.ImportFrom) else None
    index = draft.add(type(node).__name__, origin, parent, field, node.lineno)
    group = Group(node.names[0], [], [len(draft.log)], draft.unit)
    bound = Counter(map(_bound, node.names))
    for entry in node.names:
        shown = f"{entry.name} as {entry.asname}" if entry.asname else entry.name
        number = draft.add("alias", shown, index, "names", entry.lineno)
        name, _ = _bound(entry)
        # `import a.b, a.c` binds `a` once, by both entries together.
        effect = (WRITE, draft.scope.binding(name, imported=True), None, number if bound[_bound(entry)] == 1 else index)
        if effect not in draft.log[group.ends[0] :]:
            draft.log.append(effect)
        group.nodes.append(number)
        group.ends.append(len(draft.log))
    if len({name for name, _ in bound}) < len(bound):
        draft.groups.append(group)


def _bound(entry: ast.alias) -> tuple[str, str]:
    """The name that an import binds, and the module or member that it binds to it."""
    first = entry.name.partition(".")[0]
    return (entry.asname, entry.name) if entry.asname else (first, first)


@rule("Global", "Nonlocal")
def declare(draft: Draft, node: ast.Global | ast.Nonlocal, parent: int, field: str) -> None:
    """`global` and `nonlocal`."""
    draft.add(type(node).__name__, ", ".join(sorted(node.names)), parent, field, node.lineno)
    declared = draft.scope.declared_global if isinstance(node, ast.Global) else draft.scope.declared_nonlocal
    declared.update(node.names)
