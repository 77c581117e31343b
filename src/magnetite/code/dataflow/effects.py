"""What code reads and writes: the kinds of effects, and the tables of what calls may do.

An effect is a tuple `(kind, variable, selector, node)`. A location is a variable, or a part of the heap behind it:
`x.attr` (selector `attr`), `x[...]` (selector `[]`), or all of it (selector None). Deeper paths are truncated: `x.a.b`
and `x.a[0]` are parts of `x.a`.

Assumptions: calls of functions have no side effects, except those in `WRITERS`; parameters are distinct objects;
results of calls are fresh; methods of modules are pure; iterating does not exhaust an iterable; operators do not mutate
their operands; an object put into a container is not an alias of its elements.
"""

import ast
from collections.abc import Iterator
from typing import Any

READ, USE, HEAP_READ, WRITE, HEAP_WRITE, DEEP_WRITE, MUTATE, AUGMENT, APPLY, BARRIER = range(10)
"""Kinds of effects.

READ and WRITE a variable; USE: read it and its whole heap; HEAP_READ: read a part and everything behind it;
HEAP_WRITE: make a part refer to another object; DEEP_WRITE: change the object that a part refers to; MUTATE: the same
by a method call, which changes locals but only reads modules; AUGMENT: `x += …`, which may change the object in place;
APPLY: the effects of a nested function at a call of it; BARRIER: `yield` and `await`.
"""

SUBSCRIPT = "[]"

Effect = tuple[int, Any, str | None, int]
"""Kind, `scopes.Variable` (None for a barrier), selector, node."""

_MUTATORS = """
    acquire add append appendleft clear close commit connect difference_update discard drain execute executemany extend
    extendleft fetchall fetchmany fetchone flush getrandbits insert integers intersection_update next notify
    notify_all open pop popitem popleft push put put_nowait randint random randrange read readinto readline readlines
    recv recv_into release remove reverse rollback rotate seek send send_bytes sendall setdefault shuffle sort start
    stop symmetric_difference_update throw truncate update write writelines __delattr__ __delitem__ __enter__ __exit__
    __init__ __next__ __setattr__ __setitem__
"""
MUTATORS = frozenset(_MUTATORS.split())
"""Methods that write their receiver even if their result is used."""

WRITERS = frozenset({"next", "anext", "setattr", "delattr"})
"""Functions that write the heap of their first argument."""

SEQUENCE_MAKERS = frozenset(
    {"ascii", "bin", "bytes", "chr", "format", "hex", "input", "list", "oct", "repr", "sorted", "str", "tuple"}
)
"""Functions whose result is a sequence, so that `+` concatenates it."""

_SEQUENCE_METHODS = """
    capitalize casefold center decode encode expandtabs format format_map join ljust lower lstrip removeprefix
    removesuffix replace rjust rstrip strip swapcase title translate upper zfill copy
"""
SEQUENCE_METHODS = frozenset(_SEQUENCE_METHODS.split())
"""Methods of a sequence literal whose result is a sequence."""


Copy = tuple[str, str | None]
"""A variable's name and a selector: an object that a value may be an alias of."""


def copied(node: ast.expr | None) -> Iterator[Copy]:
    """What the value of an expression may be an alias of.

    >>> list(copied(ast.parse("a.b[0] if c else (d or e(f))", mode="eval").body))
    [('a', 'b'), ('d', None)]
    """
    pending: list[tuple[ast.expr | None, str | None]] = [(node, None)]
    while pending:
        node, selector = pending.pop()
        if isinstance(node, ast.Name):
            yield node.id, selector
        elif isinstance(node, ast.Attribute):
            pending.append((node.value, node.attr))
        elif isinstance(node, ast.Subscript):
            pending.append((node.value, SUBSCRIPT))
        elif isinstance(node, ast.Starred | ast.NamedExpr):
            pending.append((node.value, selector))
        elif isinstance(node, ast.BoolOp):
            pending += [(value, selector) for value in reversed(node.values)]
        elif isinstance(node, ast.IfExp):
            pending += [(node.orelse, selector), (node.body, selector)]


def elements(node: ast.expr) -> Iterator[Copy]:
    """What an element of an expression's value, by iteration or unpacking, may be an alias of.

    >>> list(elements(ast.parse("(a, b.c)", mode="eval").body)), list(elements(ast.parse("xs", mode="eval").body))
    ([('a', None), ('b', 'c')], [('xs', '[]')])
    """
    if isinstance(node, ast.Tuple | ast.List | ast.Set):
        for element in node.elts:
            yield from copied(element)
    else:
        yield from ((name, selector or SUBSCRIPT) for name, selector in copied(node))
