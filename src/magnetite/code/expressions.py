"""The walk over expressions, in the order of their evaluation.

Every function takes the draft, a syntax node, the number of its parent in the graph and the name of the edge to it; it
adds the node with everything below it, logs its effects, and returns what the value is part of (`draft.Path`).
"""

import ast
from collections.abc import Callable, Sequence
from typing import Any

from magnetite.code.draft import Draft, Group, Path, Source
from magnetite.code.effects import (
    APPLY,
    HEAP_READ,
    HEAP_WRITE,
    MUTATE,
    MUTATORS,
    READ,
    SEQUENCE_MAKERS,
    SEQUENCE_METHODS,
    SUBSCRIPT,
    USE,
    WRITE,
    WRITERS,
    copied,
    elements,
)
from magnetite.code.scopes import Scope, Variable
from magnetite.code.vocabulary import PLAIN_FIELDS, POSITIONS

POSITION = {name: tuple(name if k == 1 else f"{name}:{k}" for k in range(1, POSITIONS + 1)) for name in PLAIN_FIELDS}
"""The names of edges to the elements of a list: `POSITION["args"][1]` is `args:2`."""

LAST = POSITIONS - 1
LONGEST_DECIMAL = 10**1000
"""Above this, numbers are shown in hexadecimal: Python refuses to print very long ones in decimal."""

COMMUTATIVE = frozenset({ast.Add, ast.Mult, ast.BitOr, ast.BitXor, ast.BitAnd})
SYMMETRIC = frozenset({ast.Eq, ast.NotEq, ast.Is, ast.IsNot})


def visit(draft: Draft, node: ast.AST, parent: int, field: str) -> Path:
    """Any expression, read."""
    return EXPRESSIONS.get(type(node), generic)(draft, node, parent, field)


def visit_list(draft: Draft, nodes: Sequence[ast.AST | None], parent: int, field: str) -> None:
    """Elements whose position matters; gaps (`None`) keep their place."""
    names = POSITION[field]
    for k, node in enumerate(nodes):
        if node is not None:
            EXPRESSIONS.get(type(node), generic)(draft, node, parent, names[k if k < LAST else LAST])


def visit_unordered(draft: Draft, nodes: Sequence[ast.AST], parent: int, field: str) -> None:
    """Elements whose position does not matter, unless one has effects on another: told when all effects are known."""
    group, effects = Group([], [len(draft.log)]), draft.effects
    for node in nodes:
        group.nodes.append(len(draft.rows))
        EXPRESSIONS.get(type(node), generic)(draft, node, parent, field)
        group.ends.append(len(draft.log))
    if draft.effects != effects and len(nodes) > 1:
        draft.groups.append(group)


def generic(draft: Draft, node: Any, parent: int, field: str) -> Path:
    """A node without rules of its own: fields in their order, text as attribute."""
    texts = [getattr(node, name, None) for name in TEXTS.get(type(node), ())]
    attribute = " ".join(str(text) for text in texts if text is not None) or None
    index = draft.add(type(node).__name__, attribute, parent, field, getattr(node, "lineno", 0))
    for name in node._fields:
        child = getattr(node, name, None)
        if isinstance(child, ast.AST):
            visit(draft, child, index, name)
        elif isinstance(child, list) and name in POSITION:
            visit_list(draft, [item if isinstance(item, ast.AST) else None for item in child], index, name)
    return None


TEXTS: dict[type, tuple[str, ...]] = {ast.keyword: ("arg",)}
"""Fields that are text, for the nodes that `generic` walks over."""


def name(draft: Draft, node: ast.Name, parent: int, field: str) -> Path:
    """A variable handed on: it is read, and with it everything that can be reached through it."""
    index = draft.add("Name", node.id, parent, field, node.lineno)
    draft.add("Load", None, index, "ctx")
    variable = draft.scope.variable(node.id)
    if node.id == draft.name:
        draft.mentions.append((index, variable, node))
    draft.loads.append(index)
    draft.log.append((USE, variable, None, index))
    return (variable, None)


def base(draft: Draft, node: ast.expr, parent: int, field: str) -> Path:
    """What `.attr`, `[…]` or a call is applied to: a variable alone is read without what lies behind it."""
    if type(node) is not ast.Name:
        return visit(draft, node, parent, field)
    index = draft.add("Name", node.id, parent, field, node.lineno)
    draft.add("Load", None, index, "ctx")
    variable = draft.scope.variable(node.id)
    if node.id == draft.name:
        draft.mentions.append((index, variable, node))
    draft.loads.append(index)
    draft.log.append((READ, variable, None, index))
    return (variable, None)


def attribute(draft: Draft, node: ast.Attribute, parent: int, field: str) -> Path:
    """`x.attr`, read."""
    index = draft.add("Attribute", node.attr, parent, field, node.lineno)
    path = base(draft, node.value, index, "value")
    draft.add("Load", None, index, "ctx")
    if node.attr == draft.name and path and path[1] is None:
        draft.mentions.append((index, path[0], node))
    return select(draft, path, node.attr, index)


def subscript(draft: Draft, node: ast.Subscript, parent: int, field: str) -> Path:
    """`x[…]`, read."""
    index = draft.add("Subscript", None, parent, field, node.lineno)
    path = base(draft, node.value, index, "value")
    visit(draft, node.slice, index, "slice")
    draft.add("Load", None, index, "ctx")
    if path == ():
        return () if type(node.slice) is ast.Slice else None
    return select(draft, path, SUBSCRIPT, index)


def select(draft: Draft, path: Path, selector: str, index: int) -> Path:
    """Read the part of a variable's heap; parts of parts were read already."""
    if path and path[1] is None:
        draft.log.append((HEAP_READ, path[0], selector, index))
        return (path[0], selector)
    return path or None


def constant(draft: Draft, node: ast.Constant, parent: int, field: str) -> Path:
    """A literal; `+` with text concatenates."""
    value = node.value
    long = type(value) is int and not -LONGEST_DECIMAL < value < LONGEST_DECIMAL
    draft.add("Constant", hex(value) if long else repr(value), parent, field, node.lineno)  # pyright: ignore
    return () if type(value) in (str, bytes) else None


def call(draft: Draft, node: ast.Call, parent: int, field: str) -> Path:
    """A call: of a method, which may write its receiver, or of a function, which is assumed not to write."""
    index = draft.add("Call", None, parent, field, node.lineno)
    discarded = draft.discarded is node
    function = node.func
    if type(function) is ast.Attribute:
        path = method(draft, function, index)
        _arguments(draft, node, index)
        if path == ():
            return () if function.attr in SEQUENCE_METHODS else None
        if path:
            mutates = discarded or function.attr in MUTATORS
            draft.effects += mutates
            draft.log.append((MUTATE if mutates else HEAP_READ, path[0], path[1], index))
        return None
    if type(function) is not ast.Name:
        visit(draft, function, index, "func")
        _arguments(draft, node, index)
        return None
    base(draft, function, index, "func")
    draft.callees[index + 1] = index
    first = _arguments(draft, node, index)
    variable = draft.scope.variable(function.id)
    draft.log.append((APPLY, variable, None, index))
    draft.effects += draft.units > 1
    if function.id in WRITERS and first:
        draft.effects += 1
        draft.log.append((MUTATE, first[0], first[1], index))
    if function.id == "super":
        return _receiver(draft)
    return () if function.id in SEQUENCE_MAKERS else None


def method(draft: Draft, node: ast.Attribute, parent: int) -> Path:
    """The `x.method` of a call: which receiver it has."""
    index = draft.add("Attribute", node.attr, parent, "func", node.lineno)
    path = base(draft, node.value, index, "value")
    draft.add("Load", None, index, "ctx")
    if node.attr == draft.name and path and path[1] is None:
        draft.mentions.append((index, path[0], node))
    return path


def _arguments(draft: Draft, node: ast.Call, index: int) -> Path:
    """All arguments; what the first is part of."""
    first = None
    names = POSITION["args"]
    for k, argument in enumerate(node.args):
        path = EXPRESSIONS.get(type(argument), generic)(draft, argument, index, names[k if k < LAST else LAST])
        if k == 0:
            first = path
    if node.keywords:
        visit_unordered(draft, node.keywords, index, "keywords")
    return first


def _receiver(draft: Draft) -> Path:
    """What `super()` stands for: the first parameter."""
    scope = draft.scope.function()
    if scope is None or scope.first_parameter is None:
        return None
    return (scope.variable(scope.first_parameter), None)


def keyword(draft: Draft, node: ast.keyword, parent: int, field: str) -> Path:
    """`name=value` of a call."""
    index = draft.add("keyword", node.arg, parent, field, node.lineno)
    return visit(draft, node.value, index, "value")


def binary(draft: Draft, node: ast.BinOp, parent: int, field: str) -> Path:
    """`a + b`: operands of a commutative operator have the same name, unless sequences are concatenated."""
    index, kind, effects = draft.add("BinOp", None, parent, field, node.lineno), type(node.op), draft.effects
    group = Group([len(draft.rows)], [len(draft.log)])
    left = EXPRESSIONS.get(type(node.left), generic)(draft, node.left, index, "input")
    draft.add(kind.__name__, None, index, "op")
    group.ends.append(len(draft.log))
    second = len(draft.rows)
    right = EXPRESSIONS.get(type(node.right), generic)(draft, node.right, index, "input:2")
    sequence = left == () or right == ()
    if kind in COMMUTATIVE and not (kind is ast.Add and sequence):
        draft.rows[second] = (*draft.rows[second][:3], "input", *draft.rows[second][4:])
        if draft.effects != effects:
            group.nodes.append(second)
            group.ends.append(len(draft.log))
            draft.groups.append(group)
    repeated = kind in (ast.Add, ast.Mult) and sequence
    return () if repeated or (kind is ast.Mod and left == ()) else None


def comparison(draft: Draft, node: ast.Compare, parent: int, field: str) -> Path:
    """`a == b`: a single symmetric comparison has operands of the same name."""
    index = draft.add("Compare", None, parent, field, node.lineno)
    for k, operator in enumerate(node.ops):
        draft.add(type(operator).__name__, None, index, POSITION["ops"][min(k, LAST)])
    operands = [node.left, *node.comparators]
    if len(node.ops) == 1 and type(node.ops[0]) in SYMMETRIC:
        visit_unordered(draft, operands, index, "input")
    else:
        visit_list(draft, operands[:2], index, "input")
        _each_may_end(draft, operands[2:], index, POSITION["input"][2:])
    return None


def boolean(draft: Draft, node: ast.BoolOp, parent: int, field: str) -> Path:
    """`a and b`: every operand after the first may not be reached."""
    index = draft.add("BoolOp", None, parent, field, node.lineno)
    draft.add(type(node.op).__name__, None, index, "op")
    group, effects = Group([len(draft.rows)], [len(draft.log)]), draft.effects
    visit(draft, node.values[0], index, "input")
    group.ends.append(len(draft.log))
    _each_may_end(draft, node.values[1:], index, ("input",), group)
    if draft.effects != effects:
        draft.groups.append(group)
    return None


def _each_may_end(
    draft: Draft, nodes: Sequence[ast.expr], parent: int, names: tuple[str, ...], group: Group | None = None
) -> None:
    """Operands before each of which the evaluation may already end."""
    ends = []
    for k, node in enumerate(nodes):
        ends.append(draft.block)
        draft.start([draft.block])
        if group:
            group.nodes.append(len(draft.rows))
        visit(draft, node, parent, names[min(k, len(names) - 1)])
        if group:
            group.ends.append(len(draft.log))
    if ends:
        draft.start([*ends, draft.block])


def conditional(draft: Draft, node: ast.IfExp, parent: int, field: str) -> Path:
    """`a if c else b`."""
    index = draft.add("IfExp", None, parent, field, node.lineno)
    visit(draft, node.test, index, "test")
    tested = draft.block
    draft.start([tested])
    visit(draft, node.body, index, "body")
    taken = draft.block
    draft.start([tested])
    visit(draft, node.orelse, index, "orelse")
    draft.start([taken, draft.block])
    return None


def display(draft: Draft, node: ast.List | ast.Tuple, parent: int, field: str) -> Path:
    """`[a, b]`."""
    index = draft.add(type(node).__name__, None, parent, field, node.lineno)
    visit_list(draft, node.elts, index, "elts")
    draft.add("Load", None, index, "ctx")
    return ()


def set_display(draft: Draft, node: ast.Set, parent: int, field: str) -> Path:
    """`{a, b}`: no order."""
    index = draft.add("Set", None, parent, field, node.lineno)
    visit_unordered(draft, node.elts, index, "elts")
    return None


def dictionary(draft: Draft, node: ast.Dict, parent: int, field: str) -> Path:
    """`{k: v}`: keys and values in turns; a `**mapping` has no key."""
    index = draft.add("Dict", None, parent, field, node.lineno)
    for k, (key, value) in enumerate(zip(node.keys, node.values, strict=True)):
        if key is not None:
            visit(draft, key, index, POSITION["keys"][min(k, LAST)])
        visit(draft, value, index, POSITION["values"][min(k, LAST)])
    return None


def starred(draft: Draft, node: ast.Starred, parent: int, field: str) -> Path:
    """`*xs`."""
    index = draft.add("Starred", None, parent, field, node.lineno)
    path = visit(draft, node.value, index, "value")
    draft.add("Load", None, index, "ctx")
    return path


def formatted(draft: Draft, node: Any, parent: int, field: str) -> Path:
    """A `{value!r:spec}` of an f-string or t-string."""
    source = getattr(node, "str", None)
    conversion = f"!{chr(node.conversion)}" if node.conversion > 0 else ""
    attribute = (conversion if source is None else f"{source}{conversion}") or None
    index = draft.add(type(node).__name__, attribute, parent, field, node.lineno)
    visit(draft, node.value, index, "value")
    if node.format_spec is not None:
        visit(draft, node.format_spec, index, "format_spec")
    return None


def joined(draft: Draft, node: Any, parent: int, field: str) -> Path:
    """An f-string or t-string."""
    index = draft.add(type(node).__name__, None, parent, field, node.lineno)
    visit_list(draft, node.values, index, "values")
    return ()


def suspension(draft: Draft, node: Any, parent: int, field: str) -> Path:
    """`yield`, `yield from`, `await`: others run before it comes back."""
    index = draft.add(type(node).__name__, None, parent, field, node.lineno)
    if draft.discarded is node:
        draft.discarded = node.value
    if node.value is not None:
        visit(draft, node.value, index, "value")
    draft.suspend(index)
    return None


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


def store(
    draft: Draft, node: ast.expr, parent: int, field: str, used: Sequence[int], sources: Sequence[Source]
) -> None:
    """A target: of an assignment, a loop, a `with`, a deletion. `used` are the names that its value comes from."""
    kind, context = type(node), type(getattr(node, "ctx", None)).__name__
    if kind is ast.Name:
        index = draft.add("Name", node.id, parent, field, node.lineno)  # pyright: ignore
        variable = draft.scope.binding(node.id)  # pyright: ignore
        draft.log.append((WRITE, variable, None, index))
        draft.copies += [((variable, None), source) for source in sources]
    elif kind is ast.Attribute or kind is ast.Subscript:
        index = _store_part(draft, node, parent, field, sources)  # pyright: ignore
    else:
        index = draft.add(kind.__name__, None, parent, field, node.lineno)
        parts = [node.value] if isinstance(node, ast.Starred) else node.elts  # pyright: ignore
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
        draft.log.append((HEAP_WRITE, path[0], selector, index))
        draft.copies += [((path[0], selector), source) for source in sources]
    return index


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


def function_unit(draft: Draft, parameters: list[tuple[str, int]], parent: Scope, walk_body: Callable[[], None]) -> int:
    """Walk a body that runs when it is called, not here: a unit with a control flow and a scope of its own."""
    outer = draft.scope, draft.unit, draft.block, draft.open, draft.frames, draft.finals
    draft.unit = unit = draft.units
    draft.units += 1
    draft.scope = Scope("function", parent, unit)
    draft.open, draft.frames, draft.finals = [], [], 0
    draft.unit_parents.append(outer[1])
    entry = draft.start([])
    draft.live[entry] = True
    draft.entries.add(entry)
    bind_parameters(draft, parameters)
    walk_body()
    draft.scope, draft.unit, before, draft.open, draft.frames, draft.finals = outer
    draft.start([before])
    return unit


def bind_parameters(draft: Draft, parameters: list[tuple[str, int]]) -> None:
    """Write the parameters on entry of a function."""
    for name, index in parameters:
        draft.log.append((WRITE, draft.scope.binding(name), None, index))
    if parameters:
        draft.scope.first_parameter = parameters[0][0]


def parameters_of(draft: Draft, node: ast.arguments, parent: int) -> list[tuple[str, int]]:
    """The `arguments` node with annotations and defaults, which are evaluated outside; names and nodes inside."""
    index = draft.add("arguments", None, parent, "args")
    found: list[tuple[str, int]] = []
    for field in ("posonlyargs", "args", "vararg", "kwonlyargs", "kwarg"):
        entries = getattr(node, field)
        for k, entry in enumerate(entries if isinstance(entries, list) else [entries] if entries else []):
            number = draft.add("arg", entry.arg, index, POSITION[field][min(k, LAST)], entry.lineno)
            if entry.annotation is not None:
                visit(draft, entry.annotation, number, "annotation")
            found.append((entry.arg, number))
    visit_list(draft, node.defaults, index, "defaults")
    visit_list(draft, node.kw_defaults, index, "kw_defaults")
    return found


def anonymous(draft: Draft, node: ast.Lambda, parent: int, field: str) -> Path:
    """A lambda: handed on, it is assumed to be called at once."""
    index = draft.add("Lambda", None, parent, field, node.lineno)
    parameters = parameters_of(draft, node.args, index)
    unit = function_unit(draft, parameters, draft.scope, lambda: visit(draft, node.body, index, "body") and None)
    here = Variable("<lambda>", draft.scope)
    here.functions.append(unit)
    draft.log.append((APPLY, here, None, index))
    return None


EXPRESSIONS: dict[type, Callable[..., Path]] = {
    ast.Name: name,
    ast.Attribute: attribute,
    ast.Subscript: subscript,
    ast.Constant: constant,
    ast.Call: call,
    ast.keyword: keyword,
    ast.BinOp: binary,
    ast.Compare: comparison,
    ast.BoolOp: boolean,
    ast.IfExp: conditional,
    ast.List: display,
    ast.Tuple: display,
    ast.Set: set_display,
    ast.Dict: dictionary,
    ast.Starred: starred,
    ast.FormattedValue: formatted,
    ast.JoinedStr: joined,
    ast.Await: suspension,
    ast.Yield: suspension,
    ast.YieldFrom: suspension,
    ast.NamedExpr: walrus,
    ast.ListComp: comprehension,
    ast.SetComp: comprehension,
    ast.DictComp: comprehension,
    ast.GeneratorExp: comprehension,
    ast.Lambda: anonymous,
}
for _name, _walk in (("TemplateStr", joined), ("Interpolation", formatted)):  # Python 3.14
    if hasattr(ast, _name):
        EXPRESSIONS[getattr(ast, _name)] = _walk
