"""What the value of an expression may be: the sources that it may be an alias of, and what it may hold.

A source is a variable and a path of selectors: `x` is `(x, ())`, `x.a[0]` is `(x, ("a", "[]"))`. A new container, as of
`[a, b]`, `list(t)` or `Box(a)`, is a variable without a name whose elements (selector `[]`) or parts (selector `*`)
hold the sources that go into it. What goes into a container may come out of it: by subscripts, loops, unpacking, `pop`.
Sources are found only for values that are bound, stored, passed to nested functions, or changed where they stand.
"""

import ast
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from magnetite.code.dataflow.effects import ANY, BOUND_METHODS, CONTAINER_TYPES, SUBSCRIPT
from magnetite.code.dataflow.scopes import Variable, resolve
from magnetite.code.dataflow.walk import Draft, FollowCalls, Path, Source

_COPIES = """
    list tuple set frozenset sorted reversed iter aiter filter map deque chain islice cycle takewhile dropwhile
    filterfalse starmap accumulate sample nlargest nsmallest keys values elements union intersection difference
    symmetric_difference tee compress from_iterable
"""
COPIES = frozenset(_COPIES.split())
"""Functions and methods whose result has elements of their arguments, or of their receiver."""

_TUPLES = """
    zip enumerate zip_longest pairwise product combinations permutations combinations_with_replacement batched groupby
    items most_common
"""
TUPLES = frozenset(_TUPLES.split())
"""Functions and methods whose result has tuples of such elements."""

_LAZY = """
    reversed iter aiter filter map chain islice cycle takewhile dropwhile filterfalse starmap accumulate keys values
    elements tee compress from_iterable zip enumerate zip_longest pairwise batched groupby items
"""
LAZY = frozenset(_LAZY.split())
"""Those among them that read their arguments, or their receiver, only where the result is used."""

MAPPINGS = frozenset({"dict", "OrderedDict", "defaultdict", "Counter", "ChainMap", "fromkeys"})
CHOICES = frozenset({"next", "anext", "min", "max", "choice", "reduce", "heappop", "heappushpop", "heapreplace"})
"""Functions whose result is an argument, or an element of one."""

GETTERS = frozenset({"get", "pop", "popleft", "setdefault", "get_nowait", "__getitem__", "__next__"})
"""Methods whose result is an element of their receiver, or the default among their arguments."""

SAME = frozenset({"nullcontext", "closing", "aclosing", "enter_context", "cast", "asarray", "asanyarray", "as_tensor"})
"""Functions that may return their argument."""

_PUTTERS = "append appendleft add insert push put put_nowait setdefault __setitem__ heappush heappushpop heapreplace"
PUTTERS = frozenset(_PUTTERS.split())
"""Methods that put their arguments into their receiver; functions that put the second argument into the first."""

EXTENDERS = frozenset({"extend", "extendleft", "update", "intersection_update", "symmetric_difference_update"})
"""Methods that put the elements of their arguments into their receiver."""

_PLAIN_CALLS = """
    len int float complex str bool bytes ord chr hash id isinstance issubclass callable hasattr repr format ascii bin
    hex oct
"""
PLAIN_CALLS = frozenset(_PLAIN_CALLS.split())
"""Functions whose result cannot be changed."""

PLAIN_TYPES = frozenset({"int", "float", "complex", "str", "bool", "bytes"})
CONTAINER_OPERATORS = (ast.Add, ast.Mult, ast.BitOr, ast.BitAnd, ast.BitXor, ast.Sub)
SINGLE_OBJECTS = (ast.Is, ast.IsNot, ast.In, ast.NotIn)


def aliases(draft: Draft, node: ast.expr | None) -> list[Source]:
    """What the value of an expression, evaluated in the current scope, may be an alias of.

    Args:
        draft: What the walk has recorded, the expression included.
        node: The expression.
    """
    kind = type(node)
    if kind is ast.Name:
        return [(draft.scope.variable(node.id), ())]  # pyright: ignore
    found = draft.values.get(id(node))  # comprehensions and lambdas are recorded by the walk, in their own scopes
    if found is None:
        rule = _RULES.get(kind)
        if rule is None:
            return []
        found = draft.values[id(node)] = rule(draft, node)
    return found


def elements(draft: Draft, node: ast.expr) -> list[Source]:
    """What an element of an expression's value, by iteration or unpacking, may be an alias of."""
    if isinstance(node, ast.Tuple | ast.List | ast.Set):
        return members(draft, node.elts)
    return inside(aliases(draft, node))


def receivers(draft: Draft, node: ast.expr, path: Path) -> list[tuple[Variable, str | None, bool]]:
    """What a method call or `with` may change: variables with selectors, and whether these are the whole path.

    Args:
        draft: What the walk has recorded.
        node: The expression in front of the method.
        path: Its path.
    """
    if path:
        base = getattr(node, "value", node)
        return [(*path, path[1] is None or type(base) is ast.Name)]
    return [(variable, inner[0] if inner else None, len(inner) <= 1) for variable, inner in aliases(draft, node)]


def inside(sources: Iterable[Source], *selectors: str) -> list[Source]:
    """Parts of sources, their elements by default."""
    return [(variable, path + (selectors or (SUBSCRIPT,))) for variable, path in sources]


def new(draft: Draft, held: Iterable[Source], *selectors: str) -> list[Source]:
    """A new container that holds these sources, as elements by default; nothing to follow if there are none."""
    held = list(held)
    if not held:
        return []
    container = (Variable("<value>", draft.scope).bind(), ())
    hold(draft, inside([container], *selectors), held)
    return [container]


def defer(draft: Draft, iterator: list[Source], read: list[Source]) -> list[Source]:
    """Record what a new iterator, or a view, reads where it is used; return the iterator."""
    if read:
        iterator = iterator or [(Variable("<value>", draft.scope).bind(), ())]
        draft.lazy[iterator[0][0]] = read
    return iterator


def is_lazy(node: ast.expr) -> bool:
    """Whether an expression makes an iterator or a view."""
    match node:
        case ast.GeneratorExp():
            return True
        case ast.Call(ast.Name(name)) | ast.Call(ast.Attribute(_, name)):
            return name in LAZY
        case ast.IfExp(_, one, other):
            return is_lazy(one) or is_lazy(other)
        case ast.BoolOp(_, values):
            return any(map(is_lazy, values))
    return False


def hold(draft: Draft, wholes: Iterable[Source], members: Iterable[Source]) -> None:
    """Record that each of `wholes` may be any of `members`."""
    members = list(members)
    draft.held += [(whole, member) for whole in wholes for member in members]


def put(draft: Draft, node: ast.Call, function: ast.Attribute) -> None:
    """Record what a method such as `append` puts into its receiver, or a function of a module into its first argument.

    Args:
        draft: What the walk has recorded.
        node: The call.
        function: Its function.
    """
    name = function.attr
    if is_container_type(function.value) and node.args:  # `list.append(xs, x)`
        given = members(draft, node.args[1:])
        hold(draft, inside(aliases(draft, node.args[0])), given + inside(given))
        return
    if name in PUTTERS and node.args:
        if len(node.args) > 1 and name.startswith("heap"):
            hold(draft, inside(aliases(draft, node.args[0])), aliases(draft, node.args[1]))
            return
        stored = node.args[-1:] if name == "insert" else node.args
        held = members(draft, stored)
        if name == "__setitem__" and is_slice(node.args[0]):
            held += inside(held)
        hold(draft, inside(aliases(draft, function.value)), held)
    elif name in EXTENDERS:
        hold(draft, inside(aliases(draft, function.value)), _entries(draft, node, name == "update"))


def is_container_type(node: ast.expr) -> bool:
    """Whether an expression names a class of containers."""
    return isinstance(node, ast.Name) and node.id in CONTAINER_TYPES


def put_by_name(draft: Draft, node: ast.Call, method: Source) -> None:
    """The same for a method with a name of its own, `add = xs.append`, which is an alias of its receiver."""
    given = members(draft, node.args) + _keywords(draft, node)
    hold(draft, inside([method]), given + inside(given))
    result = draft.results.get(id(node))
    if result is not None:
        hold(draft, [result], inside([method]))


def members(draft: Draft, nodes: Iterable[ast.expr | None]) -> list[Source]:
    """What the elements of a display or the arguments of a call may be."""
    found: list[Source] = []
    for node in nodes:
        if isinstance(node, ast.Starred):
            found += inside(aliases(draft, node.value))
        else:
            found += aliases(draft, node)
    return found


def _entries(draft: Draft, node: ast.Call, pairs: bool) -> list[Source]:
    """The elements of all arguments, and those of the pairs among them; the keywords."""
    found = inside(members(draft, node.args))
    if pairs:
        found += inside(found)
    return found + _keywords(draft, node)


def _keywords(draft: Draft, node: ast.Call) -> list[Source]:
    found: list[Source] = []
    for keyword in node.keywords:
        values = aliases(draft, keyword.value)
        found += values if keyword.arg else inside(values)
    return found


def _attribute(draft: Draft, node: ast.Attribute) -> list[Source]:
    return inside(aliases(draft, node.value), node.attr)


def bound_method(draft: Draft, receiver: ast.expr) -> list[Source]:
    """`xs.append` as a value: an alias of its receiver that changes it when it is called."""
    if not draft.follows_calls:
        raise FollowCalls
    method = Variable("<value>", draft.scope).bind()
    method.method = True
    draft.copies += [((method, ()), source) for source in aliases(draft, receiver)]
    return [(method, ())]


def _subscript(draft: Draft, node: ast.Subscript) -> list[Source]:
    found = inside(aliases(draft, node.value))
    # a slice of an array is a view, like an element; a slice of a list has the same elements
    return found + new(draft, found) if type(node.slice) is ast.Slice else found


def is_slice(node: ast.expr) -> bool:
    """Whether an index selects several elements: `i:j`, `slice(i, j)`, a tuple with one of them."""
    match node:
        case ast.Slice() | ast.Call(ast.Name("slice")):
            return True
        case ast.Tuple(indices):
            return any(map(is_slice, indices))
    return False


def _walrus(draft: Draft, node: ast.NamedExpr) -> list[Source]:
    return [(draft.scope.for_walrus().variable(node.target.id), ())]


def _either(draft: Draft, node: ast.BoolOp | ast.IfExp) -> list[Source]:
    values = node.values if isinstance(node, ast.BoolOp) else [node.body, node.orelse]
    return [source for value in values for source in aliases(draft, value)]


def _display(draft: Draft, node: ast.List | ast.Tuple | ast.Set) -> list[Source]:
    return new(draft, members(draft, node.elts))


def _dict(draft: Draft, node: ast.Dict) -> list[Source]:
    found = members(draft, node.keys)
    for key, value in zip(node.keys, node.values, strict=True):
        values = aliases(draft, value)
        found += inside(values) if key is None else values
    return new(draft, found)


def _operator(draft: Draft, node: ast.BinOp) -> list[Source]:
    """`xs + ys` and the like have elements of both operands."""
    operands = [node.left, node.right]
    constants = [operand for operand in operands if isinstance(operand, ast.Constant)]
    if not isinstance(node.op, CONTAINER_OPERATORS) or (constants and not isinstance(node.op, ast.Mult)):
        return []
    return new(draft, [source for operand in operands for source in inside(aliases(draft, operand))])


def _call(draft: Draft, node: ast.Call) -> list[Source]:
    """The result of a call: of a nested function, see `closures`; of a known function; a new object otherwise."""
    function = node.func
    name = getattr(function, "id", None) or getattr(function, "attr", "")
    receiver = function.value if isinstance(function, ast.Attribute) else None
    known = _known_call(draft, node, name, receiver)
    if known is not None:
        return known
    parts = members(draft, node.args) + _keywords(draft, node) if _constructs(function, name) else []
    parts += inside(parts)
    called = resolve(draft.scope.variable(name)) if draft.classes and receiver is None else None
    shared = draft.classes.get(called, []) if called else []
    if not parts and not shared and not draft.follows_calls:
        return []
    result = draft.results[id(node)] = (Variable("<value>", draft.scope).bind(), ())
    hold(draft, [(result[0], (ANY,))], parts)
    draft.copies += [((result[0], (attribute,)), (called, (attribute,))) for attribute in shared if called]
    return [result]


def _constructs(function: ast.expr, name: str) -> bool:
    """Whether a call looks like that of a class: `Box(a)`, `cls(a)`, `type(x)(a)`."""
    return name.lstrip("_")[:1].isupper() or name in ("cls", "__class__", "partial") or isinstance(function, ast.Call)


def _known_call(draft: Draft, node: ast.Call, name: str, receiver: ast.expr | None) -> list[Source] | None:
    arguments: Sequence[ast.expr | None] = node.args
    if name in COPIES or name in TUPLES:
        given = inside(members(draft, [receiver, *arguments]))
        read = members(draft, [receiver, *arguments]) if name in LAZY else []
        if name in ("from_iterable", "starmap"):
            given = inside(given)
        return defer(draft, new(draft, given if name in COPIES else new(draft, given)), read)
    if name in MAPPINGS:
        values = members(draft, arguments[1:]) if name == "fromkeys" else []
        return new(draft, _entries(draft, node, True) + values)
    if receiver is None and name in ("getattr", "vars", "super", "sum"):
        return _special(draft, node, name)
    if name in ("copy", "__copy__"):
        copy = Variable("<value>", draft.scope).bind()
        draft.alike += [((copy, ()), source) for source in members(draft, [receiver, *arguments])]
        return [(copy, ())]
    if name in CHOICES:
        given = members(draft, arguments) + _keywords(draft, node)
        return [source for source in given if source[0] not in draft.lazy] + inside(given)
    if receiver is not None and name in GETTERS:
        return inside(aliases(draft, receiver)) + members(draft, arguments[1:])
    if receiver is not None and name == "popitem":
        return new(draft, inside(aliases(draft, receiver)))
    if name in SAME:
        return members(draft, arguments)
    return [] if name in PLAIN_CALLS else None


def _special(draft: Draft, node: ast.Call, name: str) -> list[Source]:
    """`getattr(x, "a")` is `x.a`, `vars(x)` holds the parts of `x`, `super()` is the first parameter."""
    if name == "super":
        scope = draft.scope.function()
        return [(scope.variable(scope.first_parameter), ())] if scope and scope.first_parameter is not None else []
    given = aliases(draft, node.args[0]) if node.args else []
    if name == "sum":
        return new(draft, inside(given, SUBSCRIPT, SUBSCRIPT) + inside(members(draft, node.args[1:])))
    if name == "vars":
        return new(draft, inside(given, ANY))
    attribute = attribute_named(node)
    method = bound_method(draft, node.args[0]) if attribute in BOUND_METHODS else []
    return inside(given, attribute) + members(draft, node.args[2:]) + method


def attribute_named(node: ast.Call) -> str:
    """The selector of `getattr` and `setattr`: any part, unless the name of the attribute is a literal."""
    match node.args:
        case [_, ast.Constant(str(name)), *_]:
            return name
    return ANY


_RULES: dict[type, Callable[[Draft, Any], list[Source]]] = {
    ast.Attribute: _attribute,
    ast.Subscript: _subscript,
    ast.Starred: lambda draft, node: aliases(draft, node.value),
    ast.NamedExpr: _walrus,
    ast.BoolOp: _either,
    ast.IfExp: _either,
    ast.List: _display,
    ast.Tuple: _display,
    ast.Set: _display,
    ast.Dict: _dict,
    ast.BinOp: _operator,
    ast.Call: _call,
}


def literal(draft: Draft, node: ast.expr | None) -> bool:
    """Whether a value evidently cannot be changed, whatever the variables are."""
    names: list[Variable] = []
    return plain(draft, node, names) and not names


def plain(draft: Draft, node: ast.expr | None, names: list[Variable]) -> bool:
    """Whether a value evidently cannot be changed: a number, a string, what arithmetic makes of them.

    Args:
        draft: What the walk has recorded.
        node: The expression.
        names: Takes up the variables on which this depends.
    """
    match node:
        case ast.Constant() | ast.JoinedStr():
            return True
        case ast.Name(name):
            names.append(draft.scope.variable(name))
            return True
        case ast.BinOp(left, _, right):
            return plain(draft, left, names) and plain(draft, right, names)
        case ast.UnaryOp(op, operand):
            return isinstance(op, ast.Not) or plain(draft, operand, names)
        case ast.Compare(left, ops, others):
            single = all(isinstance(op, SINGLE_OBJECTS) for op in ops)
            return single or all(plain(draft, one, names) for one in (left, *others))
        case ast.IfExp(_, one, other):
            return plain(draft, one, names) and plain(draft, other, names)
        case ast.BoolOp(_, values):
            return all(plain(draft, value, names) for value in values)
        case ast.Call(ast.Name(name)):
            return name in PLAIN_CALLS
    return False
