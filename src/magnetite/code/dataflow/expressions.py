"""Rules for expressions: names, literals, operators, calls, comprehensions."""

import ast
from collections.abc import Sequence
from typing import Any

from magnetite.code.dataflow.assignments import iterate, name_iterator, note_counter, note_plain, store
from magnetite.code.dataflow.effects import (
    APPLY,
    BARRIER,
    BOUND_METHODS,
    HEAP_READ,
    INSERT,
    INSERTERS,
    INVOKE,
    MUTATE,
    MUTATORS,
    READ,
    REARRANGE,
    REARRANGERS,
    SEQUENCE_MAKERS,
    SEQUENCE_METHODS,
    SUBSCRIPT,
    USE,
    WRITE,
    WRITERS,
)
from magnetite.code.dataflow.scopes import Scope
from magnetite.code.dataflow.values import (
    aliases,
    attribute_named,
    bound_method,
    defer,
    hold,
    inside,
    is_container_type,
    new,
    put,
    receivers,
)
from magnetite.code.dataflow.walk import (
    LAST,
    POSITION,
    RULES,
    TYPE,
    Draft,
    Group,
    Path,
    Source,
    evaluate,
    generic,
    load,
    numbered,
    rule,
    visit,
    visit_base,
    visit_list,
    visit_unordered,
)

COMMUTATIVE = frozenset({ast.Add, ast.Mult, ast.BitOr, ast.BitXor, ast.BitAnd})
SYMMETRIC = frozenset({ast.Eq, ast.NotEq, ast.Is, ast.IsNot})

LONGEST_DECIMAL = 10**1000
"""Larger integers are written in hexadecimal: Python refuses to print very long ones in decimal."""


@rule("Name")
def name(draft: Draft, node: ast.Name, parent: int, field: str) -> Path:
    """A variable that is passed on: it is read, and everything reachable through it."""
    return load(draft, node, parent, field, USE)


@rule("Attribute")
def attribute(draft: Draft, node: ast.Attribute, parent: int, field: str) -> Path:
    """`x.attr`, read."""
    index = len(draft.nodes)
    path = _attribute_base(draft, node, parent, field)
    if node.attr in BOUND_METHODS:
        draft.values[id(node)] = inside(aliases(draft, node.value), node.attr) + bound_method(draft, node.value)
        if field.partition(":")[0] == "args" or draft.nodes[parent][TYPE] == "keyword":  # assumed to be called at once
            draft.side_effects += 1
            draft.log += [(MUTATE, one, part, index) for one, part, _ in receivers(draft, node.value, path)]
    return _select(draft, path, node.attr, index)


def _attribute_base(draft: Draft, node: ast.Attribute, parent: int, field: str) -> Path:
    """Add the node of `x.attr`; return the path of `x`."""
    index = draft.add("Attribute", node.attr, parent, field, node.lineno)
    path = visit_base(draft, node.value, index, "value")
    draft.add("Load", None, index, "ctx")
    if node.attr == draft.name and path and path[1] is None:
        draft.mentions.append((index, path[0], node))
    return path


@rule("Subscript")
def subscript(draft: Draft, node: ast.Subscript, parent: int, field: str) -> Path:
    """`x[…]`, read."""
    index = draft.add("Subscript", None, parent, field, node.lineno)
    path = visit_base(draft, node.value, index, "value")
    visit(draft, node.slice, index, "slice")
    draft.add("Load", None, index, "ctx")
    if path == ():
        return () if type(node.slice) is ast.Slice else None
    return _select(draft, path, SUBSCRIPT, index)


def _select(draft: Draft, path: Path, selector: str, index: int) -> Path:
    """Read a part of a variable's heap; parts of parts have been read already."""
    if path and path[1] is None:
        draft.log.append((HEAP_READ, path[0], selector, index))
        return (path[0], selector)
    return path or None


@rule("Constant")
def constant(draft: Draft, node: ast.Constant, parent: int, field: str) -> Path:
    """A literal; strings and bytes are sequences, which `+` concatenates."""
    value: Any = node.value
    long = type(value) is int and not -LONGEST_DECIMAL < value < LONGEST_DECIMAL
    draft.add("Constant", hex(value) if long else repr(value), parent, field, node.lineno)
    return () if type(value) in (str, bytes) else None


@rule("List", "Tuple")
def sequence_display(draft: Draft, node: ast.List | ast.Tuple, parent: int, field: str) -> Path:
    """`[a, b]` and `(a, b)`."""
    index = draft.add(type(node).__name__, None, parent, field, node.lineno)
    visit_list(draft, node.elts, index, "elts")
    draft.add("Load", None, index, "ctx")
    return ()


@rule("Set")
def set_display(draft: Draft, node: ast.Set, parent: int, field: str) -> Path:
    """`{a, b}`: without an order."""
    visit_unordered(draft, node.elts, draft.add("Set", None, parent, field, node.lineno), "elts")
    return None


@rule("Dict")
def dict_display(draft: Draft, node: ast.Dict, parent: int, field: str) -> Path:
    """`{k: v}`: each key before its value; `**mapping` has no key."""
    index = draft.add("Dict", None, parent, field, node.lineno)
    for k, (key, value) in enumerate(zip(node.keys, node.values, strict=True)):
        if key is not None:
            visit(draft, key, index, numbered("keys", k))
        visit(draft, value, index, numbered("values", k))
    return None


@rule("Starred")
def starred(draft: Draft, node: ast.Starred, parent: int, field: str) -> Path:
    """`*xs`, read."""
    index = draft.add("Starred", None, parent, field, node.lineno)
    path = visit(draft, node.value, index, "value")
    draft.add("Load", None, index, "ctx")
    return path


@rule("FormattedValue", "Interpolation")
def formatted_value(draft: Draft, node: Any, parent: int, field: str) -> Path:
    """`{value!r:spec}` in an f-string or t-string."""
    conversion = f"!{chr(node.conversion)}" if node.conversion > 0 else ""
    attribute = f"{getattr(node, 'str', None) or ''}{conversion}" or None
    index = draft.add(type(node).__name__, attribute, parent, field, node.lineno)
    visit(draft, node.value, index, "value")
    if node.format_spec is not None:
        visit(draft, node.format_spec, index, "format_spec")
    return None


@rule("JoinedStr", "TemplateStr")
def joined_string(draft: Draft, node: Any, parent: int, field: str) -> Path:
    """An f-string or t-string."""
    visit_list(draft, node.values, draft.add(type(node).__name__, None, parent, field, node.lineno), "values")
    return ()


@rule("BinOp")
def binary_operator(draft: Draft, node: ast.BinOp, parent: int, field: str) -> Path:
    """`a + b`: both operands of a commutative operator have the edge name `input`, unless `+` concatenates."""
    index, kind, side_effects = draft.add("BinOp", None, parent, field, node.lineno), type(node.op), draft.side_effects
    group = Group(node.left, [len(draft.nodes)], [len(draft.log)], draft.unit)
    left = RULES.get(type(node.left), generic)(draft, node.left, index, "input")
    draft.add(kind.__name__, None, index, "op")
    group.ends.append(len(draft.log))
    second = len(draft.nodes)
    right = RULES.get(type(node.right), generic)(draft, node.right, index, "input:2")
    sequence = left == () or right == ()
    if kind in COMMUTATIVE and not (kind is ast.Add and sequence):
        draft.nodes[second] = (*draft.nodes[second][:3], "input", *draft.nodes[second][4:])
        if draft.side_effects != side_effects:
            group.nodes.append(second)
            group.ends.append(len(draft.log))
            draft.groups.append(group)
    repeated = kind in (ast.Add, ast.Mult) and sequence
    return () if repeated or (kind is ast.Mod and left == ()) else None


@rule("Compare")
def comparison(draft: Draft, node: ast.Compare, parent: int, field: str) -> Path:
    """`a == b`: both operands of a single symmetric comparison have the edge name `input`."""
    index = draft.add("Compare", None, parent, field, node.lineno)
    for k, operator in enumerate(node.ops):
        draft.add(type(operator).__name__, None, index, numbered("ops", k))
    operands = [node.left, *node.comparators]
    if len(node.ops) == 1 and type(node.ops[0]) in SYMMETRIC:
        visit_unordered(draft, operands, index, "input")
    else:
        visit_list(draft, operands[:2], index, "input")
        _short_circuit(draft, operands[2:], index, POSITION["input"][2:])
    return None


@rule("BoolOp")
def boolean_operator(draft: Draft, node: ast.BoolOp, parent: int, field: str) -> Path:
    """`a and b`: every operand but the first may be skipped."""
    index = draft.add("BoolOp", None, parent, field, node.lineno)
    draft.add(type(node.op).__name__, None, index, "op")
    side_effects = draft.side_effects
    group = Group(node.values[0], [len(draft.nodes)], [len(draft.log)], draft.unit)
    visit(draft, node.values[0], index, "input")
    group.ends.append(len(draft.log))
    _short_circuit(draft, node.values[1:], index, ("input",), group)
    if draft.side_effects != side_effects:
        draft.groups.append(group)
    return None


def _short_circuit(
    draft: Draft, nodes: Sequence[ast.expr], parent: int, names: tuple[str, ...], group: Group | None = None
) -> None:
    """Walk over operands before each of which the evaluation may end."""
    ends = []
    for k, node in enumerate(nodes):
        ends.append(draft.block)
        draft.start([draft.block])
        first = len(draft.nodes)
        visit(draft, node, parent, names[min(k, len(names) - 1)])
        if group:
            group.nodes.append(first)
            group.ends.append(len(draft.log))
    if ends:
        draft.start([*ends, draft.block])


@rule("IfExp")
def conditional_expression(draft: Draft, node: ast.IfExp, parent: int, field: str) -> Path:
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


@rule("Call")
def call(draft: Draft, node: ast.Call, parent: int, field: str) -> Path:
    """A call: of a method, which may write its receiver, or of a function, which is assumed not to write."""
    index = draft.add("Call", None, parent, field, node.lineno)
    function = node.func
    if draft.follows_calls:
        draft.calls.append((node, draft.scope))
    if type(function) is ast.Name:
        return _call_function(draft, node, index, function.id)
    if type(function) is ast.Attribute:
        return _call_method(draft, node, index, function)
    visit(draft, function, index, "func")
    _arguments(draft, node, index)
    _invoke(draft, function, index)
    return None


def _invoke(draft: Draft, function: ast.expr, index: int) -> None:
    """Log the effects of nested functions that an object holds: `handlers[0]()`, `x.callback()`."""
    if draft.follows_calls:
        draft.side_effects += 1
        for variable, path in aliases(draft, function):
            draft.log.append((INVOKE if path else APPLY, variable, None, index))


def _call_function(draft: Draft, node: ast.Call, index: int, name: str) -> Path:
    draft.callees[len(draft.nodes)] = index
    visit_base(draft, node.func, index, "func")
    first = _arguments(draft, node, index)
    draft.side_effects += 1  # unless no nested function of this name has any
    draft.log.append((APPLY, draft.scope.variable(name), None, index))
    if name == "getattr" and attribute_named(node) in BOUND_METHODS:
        aliases(draft, node)
    if name in WRITERS and node.args:
        targets = receivers(draft, node.args[0], first)
        draft.log += [(MUTATE, variable, selector, index) for variable, selector, _ in targets]
        if name == "setattr":
            parts = inside(aliases(draft, node.args[0]), attribute_named(node))
            hold(draft, parts, [source for value in node.args[2:] for source in aliases(draft, value)])
    if name == "super":  # stands for the first parameter
        scope = draft.scope.function()
        return (scope.variable(scope.first_parameter), None) if scope and scope.first_parameter is not None else None
    return () if name in SEQUENCE_MAKERS else None


def _call_method(draft: Draft, node: ast.Call, index: int, function: ast.Attribute) -> Path:
    discarded = draft.discarded is node
    path = _attribute_base(draft, function, index, "func")
    first = _arguments(draft, node, index)
    name = function.attr
    if name in MUTATORS and node.args and is_container_type(function.value):
        draft.side_effects += 1
        draft.log += [(MUTATE, one, part, index) for one, part, _ in receivers(draft, node.args[0], first)]
    if discarded or name in MUTATORS:
        for variable, selector, exact in receivers(draft, function.value, path):
            kind = (
                MUTATE if not exact else INSERT if name in INSERTERS else REARRANGE if name in REARRANGERS else MUTATE
            )
            draft.side_effects += 1
            draft.log.append((kind, variable, selector, index))
        put(draft, node, function)
    elif path:
        draft.log.append((HEAP_READ, path[0], path[1], index))
    _invoke(draft, function, index)
    return () if path == () and name in SEQUENCE_METHODS else None


def _arguments(draft: Draft, node: ast.Call, index: int) -> Path:
    """Walk over all arguments; return the path of the first."""
    first = None
    names = POSITION["args"]
    for k, argument in enumerate(node.args):
        path = RULES.get(type(argument), generic)(draft, argument, index, names[k if k < LAST else LAST])
        if k == 0:
            first = path
    if node.keywords:
        visit_unordered(draft, node.keywords, index, "keywords")
    return first


@rule("keyword")
def keyword(draft: Draft, node: ast.keyword, parent: int, field: str) -> Path:
    """`name=value` in a call."""
    return visit(draft, node.value, draft.add("keyword", node.arg, parent, field, node.lineno), "value")


@rule("Yield", "YieldFrom", "Await")
def suspension(draft: Draft, node: Any, parent: int, field: str) -> Path:
    """`yield`, `yield from`, `await`: other code runs before it resumes."""
    index = draft.add(type(node).__name__, None, parent, field, node.lineno)
    if draft.discarded is node:
        draft.discarded = node.value
    if node.value is not None:
        visit(draft, node.value, index, "value")
        if draft.unit and type(node) is not ast.Await:
            yielded = aliases(draft, node.value)
            returned = draft.returned.setdefault(draft.unit, [])
            returned += new(draft, yielded if type(node) is ast.Yield else inside(yielded))
    draft.suspend(index)
    return None


@rule("NamedExpr")
def walrus(draft: Draft, node: ast.NamedExpr, parent: int, field: str) -> Path:
    """`(x := value)`, bound outside comprehensions."""
    index = draft.add("NamedExpr", None, parent, field, node.lineno)
    begin = len(draft.log)
    used, _ = evaluate(draft, node.value, index, "value")
    sources = aliases(draft, node.value)
    scope, draft.scope = draft.scope, draft.scope.for_walrus()
    draft.side_effects += 1
    name_iterator(draft, [node.target], node.value, begin)
    store(draft, node.target, index, "target", used, sources)
    draft.scope = scope
    if scope.for_walrus() is scope:
        note_plain(draft, node.target, node.value)
    return None


@rule("ListComp", "SetComp", "DictComp", "GeneratorExp")
def comprehension(draft: Draft, node: Any, parent: int, field: str) -> Path:
    """`[element for target in iterable if condition]`: a loop with its own scope."""
    index = draft.add(type(node).__name__, None, parent, field, node.lineno)
    outer = draft.scope
    inner = Scope("comprehension", outer, draft.unit)
    heads: list[int] = []
    begin = 0
    for k, generator in enumerate(node.generators):
        asynchronous = "async" if generator.is_async else None
        number = draft.add("comprehension", asynchronous, index, numbered("generators", k))
        head, used, sources = iterate(draft, generator.iter, number)
        draft.scope = inner  # the first iterable is evaluated outside
        begin = begin or len(draft.log)
        store(draft, generator.target, number, "target", used, sources)
        note_counter(draft, generator.target, generator.iter)
        for j, condition in enumerate(generator.ifs):
            visit(draft, condition, number, numbered("ifs", j))
            draft.link_back(head, [draft.block])
            draft.start([draft.block])
        heads.append(head)
    held: list[Source] = []
    for name in ("elt", "key", "value"):
        if hasattr(node, name):
            visit(draft, getattr(node, name), index, name)
            held += aliases(draft, getattr(node, name))
    draft.values[id(node)] = new(draft, held)
    later = draft.log[begin:]
    end = draft.block
    for head in reversed(heads):
        draft.link_back(head, [end])
        end = head
    draft.start([heads[0]])
    draft.scope = outer
    if type(node) is ast.GeneratorExp:
        read = aliases(draft, node.generators[0].iter)
        read += [(one, (part,) if part else ()) for kind, one, part, _ in later if kind not in (READ, WRITE, BARRIER)]
        draft.values[id(node)] = defer(draft, draft.values[id(node)], [*dict.fromkeys(read)])
    return () if type(node) is ast.ListComp else None
