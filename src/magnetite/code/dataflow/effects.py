"""What code reads and writes: the kinds of effects, and the tables of what calls may do.

An effect is a tuple `(kind, variable, selector, node)`. A location is a variable, or a part of the heap behind it:
`x.attr` (selector `attr`), `x[...]` (selector `[]`), or all of it (selector None). Deeper paths are truncated: `x.a.b`
and `x.a[0]` are parts of `x.a`.

Assumptions: calls of functions have no side effects, except those in `WRITERS`; parameters are distinct objects;
results of calls are fresh; methods of modules are pure; iterating does not exhaust an iterable; operators do not mutate
their operands; methods change neither the elements of a container (those in `INSERTERS` and `REARRANGERS`) nor their
arguments.
"""

from typing import Any

READ, USE, HEAP_READ, WRITE, HEAP_WRITE, DEEP_WRITE, MUTATE, INSERT, REARRANGE, AUGMENT, APPLY, INVOKE, BARRIER = range(
    13
)
"""Kinds of effects.

READ and WRITE a variable; USE: read it and its whole heap; HEAP_READ: read a part and everything behind it;
HEAP_WRITE: make a part refer to another object; DEEP_WRITE: change the object that a part refers to; MUTATE: the same
by a method call, which changes locals but only reads modules; INSERT: the same by a method that changes a container
but neither changes nor reads its elements; REARRANGE: by one that reads them; AUGMENT: `x += …`, which may change the
object in place; APPLY: the effects of a nested function at a call of it; INVOKE: those of the functions that an object
holds; BARRIER: `yield` and `await`.
"""

SUBSCRIPT, ANY, ORIGIN = "[]", "*", "<origin>"
"""Selectors: the elements of an object; all its parts, where it is unknown which; what an iterator reads later."""

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

INSERTERS = frozenset(
    {
        "append",
        "appendleft",
        "clear",
        "extend",
        "extendleft",
        "insert",
        "pop",
        "popitem",
        "popleft",
        "reverse",
        "rotate",
    }
)
"""Methods of containers that neither change nor look at the elements."""

REARRANGERS = frozenset(
    {"add", "difference_update", "discard", "intersection_update", "remove", "setdefault", "sort", "update"}
    | {"symmetric_difference_update", "__delitem__", "__setitem__"}
)
"""Methods of containers that do not change the elements, but compare them."""

BOUND_METHODS = (
    INSERTERS | REARRANGERS | {"put", "read", "readline", "readlines", "recv", "send", "write", "writelines"}
)
"""Methods that still change their receiver when they are called by another name: `add = xs.append`."""

CONTAINER_TYPES = frozenset({"list", "dict", "set", "bytearray", "deque", "OrderedDict", "defaultdict", "Counter"})
"""Classes whose methods change their first argument: `list.append(xs, x)`."""

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
