"""What is written: targets of assignments, walruses, loops and comprehensions."""

import ast
from collections.abc import Sequence
from typing import Any

from magnetite.code.draft import Draft, Path, Source
from magnetite.code.effects import (
    DEEP_WRITE,
    HEAP_READ,
    HEAP_WRITE,
    SUBSCRIPT,
    WRITE,
    copied,
    elements,
)
from magnetite.code.scopes import Scope
from magnetite.code.walk.visiting import (
    LAST,
    POSITION,
    base,
    visit,
)


def store(draft: Draft, node: Any, parent: int, field: str, used: Sequence[int], sources: Sequence[Source]) -> None:
    """A target: of an assignment, a loop, a `with`, a deletion. `used` are the names that its value comes from."""
    kind, context = type(node), type(node.ctx).__name__
    if kind is ast.Name:
        index = draft.add("Name", node.id, parent, field, node.lineno)
        variable = draft.scope.binding(node.id)
        draft.log.append((WRITE, variable, None, index))
        draft.copies += [((variable, None), source) for source in sources]
    elif kind is ast.Attribute or kind is ast.Subscript:
        index = _store_part(draft, node, parent, field, sources)
    else:
        index = draft.add(kind.__name__, None, parent, field, node.lineno)
        parts = [node.value] if isinstance(node, ast.Starred) else node.elts
        name = "value" if isinstance(node, ast.Starred) else "elts"
        inner = [(variable, selector or SUBSCRIPT) for variable, selector in sources]
        for k, part in enumerate(parts):
            store(draft, part, index, POSITION[name][min(k, LAST)], used, inner)
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
    path = base(draft, node.value, index, "value")
    if not is_attribute:
        visit(draft, node.slice, index, "slice")
    if path:
        selector = path[1] or (node.attr if is_attribute else SUBSCRIPT)
        draft.log.append((HEAP_WRITE if path[1] is None else DEEP_WRITE, path[0], selector, index))
        draft.copies += [((path[0], selector), source) for source in sources]
    return index


def walrus(draft: Draft, node: ast.NamedExpr, parent: int, field: str) -> Path:
    """`(x := value)`, bound outside of comprehensions."""
    index = draft.add("NamedExpr", None, parent, field, node.lineno)
    begin = len(draft.loads)
    visit(draft, node.value, index, "value")
    used = draft.loads[begin:]
    sources = draft.sources(copied(node.value))
    scope, draft.scope = draft.scope, draft.scope.for_walrus()
    draft.effects += 1
    store(draft, node.target, index, "target", used, sources)
    draft.scope = scope
    return None


def comprehension(draft: Draft, node: Any, parent: int, field: str) -> Path:
    """`[element for target in iterable if condition]`: a loop with a scope of its own."""
    index = draft.add(type(node).__name__, None, parent, field, node.lineno)
    outer = draft.scope
    inner = Scope("comprehension", outer, draft.unit)
    heads: list[int] = []
    for k, generator in enumerate(node.generators):
        heads.append(_generator(draft, generator, index, POSITION["generators"][min(k, LAST)], inner))
    for name in ("elt", "key", "value"):
        if hasattr(node, name):
            visit(draft, getattr(node, name), index, name)
    end = draft.block
    for head in reversed(heads):
        draft.link(head, [end])
        end = head
    draft.start([heads[0]])
    draft.scope = outer
    return () if type(node) is ast.ListComp else None


def _generator(draft: Draft, node: ast.comprehension, parent: int, field: str, inner: Scope) -> int:
    """`for target in iterable if condition`; the block that decides whether there is another element."""
    index = draft.add("comprehension", "async" if node.is_async else None, parent, field)
    head, used, sources = iterate(draft, node.iter, index)
    draft.scope = inner
    store(draft, node.target, index, "target", used, sources)
    for k, condition in enumerate(node.ifs):
        visit(draft, condition, index, POSITION["ifs"][min(k, LAST)])
        draft.link(head, [draft.block])
        draft.start([draft.block])
    return head


def iterate(draft: Draft, node: ast.expr, parent: int) -> tuple[int, list[int], list[Source]]:
    """Evaluate an iterable and begin its loop: the head's block, the names used, and the variables iterated over."""
    begin, index = len(draft.loads), len(draft.rows)
    path = visit(draft, node, parent, "iter")
    used = draft.loads[begin:]
    head = draft.start([draft.block])
    if path:
        draft.log.append((HEAP_READ, path[0], path[1], index))
    draft.start([head])
    return head, used, draft.sources(elements(node))
