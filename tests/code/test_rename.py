import ast
import textwrap

import pytest

from magnetite.code import build, random_names, rename


def function(source: str) -> str:
    return ast.unparse(ast.parse(textwrap.dedent(source)))


RENAMED = {
    "parameter and local": (
        "def f(a):\n    b = a\n    return b", {"a": "x", "b": "y"}, "def f(x):\n    y = x\n    return y"),
    "two names swapped": ("def f(a, b):\n    return a - b", {"a": "b", "b": "a"}, "def f(b, a):\n    return b - a"),
    "an attribute stays": ("def f(a):\n    a.a = a.b", {"a": "x"}, "def f(x):\n    x.a = x.b"),
    "a keyword of others stays": ("def f(a):\n    return g(a=a)", {"a": "x"}, "def f(x):\n    return g(a=x)"),
    "a keyword of our own goes with its parameter": (
        "def f(a):\n    return f(a=a)", {"a": "x"}, "def f(x):\n    return f(x=x)"),
    "a keyword of our own method": (
        "def f(self, a):\n    return self.f(a=a)", {"a": "x"}, "def f(self, x):\n    return self.f(x=x)"),
    "a nested function sees it": (
        "def f(a):\n    def g():\n        return a\n    return g",
        {"a": "x"},
        "def f(x):\n    def g():\n        return x\n    return g"),
    "a nested function's own variable as well": (
        "def f(a):\n    def g(a):\n        return a\n    return g(a=a)",
        {"a": "x"},
        "def f(x):\n    def g(x):\n        return x\n    return g(x=x)"),
    "the nested function itself": (
        "def f():\n    def g():\n        return g\n    return g()", {"g": "h"},
        "def f():\n    def h():\n        return h\n    return h()"),
    "nonlocal": (
        "def f():\n    n = 0\n    def g():\n        nonlocal n\n        n += 1\n    g()\n    return n",
        {"n": "m"},
        "def f():\n    m = 0\n    def g():\n        nonlocal m\n        m += 1\n    g()\n    return m"),
    "a global elsewhere stays": (
        "def f(n):\n    def g():\n        global n\n        n = 1\n    return n",
        {"n": "m"},
        "def f(m):\n    def g():\n        global n\n        n = 1\n    return m"),
    "comprehensions": (
        "def f(xs):\n    return [x for x in xs if x], {x: 1 for x in xs}",
        {"x": "y"},
        "def f(xs):\n    return [y for y in xs if y], {y: 1 for y in xs}"),
    "the first iterable is outside": (
        "def f(x):\n    return [x for x in x]", {"x": "y"}, "def f(y):\n    return [y for y in y]"),
    "walrus": (
        "def f(xs):\n    return [y := x for x in xs], y", {"y": "z"}, "def f(xs):\n    return [z := x for x in xs], z"),
    "lambda": ("def f():\n    return lambda a, b=c: a + b", {"a": "x"}, "def f():\n    return lambda x, b=c: x + b"),
    "default is outside": ("def f(a=a):\n    return a", {"a": "x"}, "def f(x=a):\n    return x"),
    "handler": (
        "def f():\n    try:\n        g()\n    except E as e:\n        print(e)",
        {"e": "x"},
        "def f():\n    try:\n        g()\n    except E as x:\n        print(x)"),
    "imports": (
        "def f():\n    import a, b as c\n    from m import d\n    return a, c, d",
        {"a": "x", "c": "y", "d": "z"},
        "def f():\n    import a as x, b as y\n    from m import d as z\n    return x, y, z"),
    "with, for, del": (
        "def f(p):\n    with p as a:\n        for b in a:\n            del b",
        {"a": "x", "b": "y"},
        "def f(p):\n    with p as x:\n        for y in x:\n            del y"),
    "match": (
        "def f(p):\n    match p:\n        case [a, *b, {'k': c, **d}] | C(k=a) as e:\n            return a, b, c, d, e",
        {"a": "t", "b": "u", "c": "v", "d": "w", "e": "x"},
        "def f(p):\n    match p:\n"
        "        case [t, *u, {'k': v, **w}] | C(k=t) as x:\n            return t, u, v, w, x"),
    "a class's members stay": (
        "def f(a):\n    class C:\n        a = a\n    return a, C.a",
        {},
        "def f(a):\n    class C:\n        a = a\n    return a, C.a"),
    "f-strings keep what they print": (
        "def f(a):\n    return f'{a=} {a:{a}}'", {"a": "x"}, "def f(x):\n    return f'a={x!r} {x:{x}}'"),
    "star arguments": (
        "def f(*a, **b):\n    return g(*a, **b)", {"a": "x", "b": "y"}, "def f(*x, **y):\n    return g(*x, **y)"),
    "async": (
        "async def f(a):\n    async for b in a:\n        await b",
        {"a": "x", "b": "y"},
        "async def f(x):\n    async for y in x:\n        await y"),
}  # fmt: skip


@pytest.mark.parametrize("case", RENAMED)
def test_renamed_by_hand(case):
    source, names, expected = RENAMED[case]
    assert rename(source, names) == function(expected)


REFUSED = {
    "no variable": ("def f(a):\n    return b", {"b": "x"}, "'b' is not a variable of the function: choose from a"),
    "a global": ("def f():\n    global g\n    g = 1", {"g": "x"}, "not a variable .* choose from none"),
    "the function": ("def f():\n    return f", {"f": "x"}, "not a variable"),
    "a dotted module": ("def f():\n    import os.path\n    return os", {"os": "x"}, "not a variable"),
    "a member of a class": ("def f():\n    class C:\n        a = 1", {"a": "x"}, "not a variable"),
    "in use": ("def f(a, b):\n    return a + b", {"a": "b"}, "'b' is already in use"),
    "a global in use": ("def f(a):\n    return len(a)", {"a": "len"}, "'len' is already in use"),
    "one name for two": ("def f(a, b):\n    return a + b", {"a": "x", "b": "x"}, "must be distinct"),
    "keyword": ("def f(a):\n    return a", {"a": "class"}, "'class' cannot be"),
    "nonsense": ("def f(a):\n    return a", {"a": "1x"}, "'1x' cannot be"),
    "wildcard": ("def f(a):\n    return a", {"a": "_"}, "'_' cannot be"),
    "locals": ("def f(a):\n    return locals()", {"a": "x"}, "calls locals"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_would_change_the_program_is_rejected(case):
    source, names, message = REFUSED[case]
    with pytest.raises(ValueError, match=message):
        rename(source, names)


def test_one_of_several_functions():
    source = "def f(a):\n    return a\n\nclass C:\n\n    def f(self, a):\n        return a"
    assert rename(source, {"a": "x"}, name="C.f") == function(
        source.replace("self, a):\n        return a", "self, x):\n        return x")
    )


def test_a_method_cut_out_of_its_class():
    assert rename("    def f(self, a):\n        return a\n", {"a": "x"}) == "def f(self, x):\n    return x"


@pytest.mark.parametrize("depth", [800, 3000])
def test_very_deep_expressions_are_rejected(depth):
    with pytest.raises(ValueError, match="deep"):
        rename("def f(a):\n    return " + " + ".join(["a"] * depth), {"a": "x"})


PROGRAM = """
def f(self, xs, n=2):
    total, seen = 0, {}
    for i, x in enumerate(xs):
        def add(y, scale=n):
            nonlocal total
            total += y * scale
            return total
        seen[i] = add(y=x)
    match seen:
        case {0: first, **rest}:
            return [v + first for v in rest.values()], total
    return (lambda k: k + n)(total)
"""


@pytest.mark.parametrize("seed", range(10))
def test_random_names_keep_the_meaning_and_the_shape(seed):
    names = random_names(PROGRAM, seed)
    assert names == random_names(PROGRAM, seed)
    assert "self" not in names
    text = rename(PROGRAM, names)
    assert rename(text, {new: old for old, new in names.items()}) == function(PROGRAM)
    for xs in ([], [1], [3, 4, 5]):
        assert run(text, xs) == run(PROGRAM, xs)
    one, other = build(PROGRAM), build(text)
    assert sorted(one.types) == sorted(other.types)
    assert sorted(edge.type for edge in one.edges) == sorted(edge.type for edge in other.edges)
    assert one.hash != other.hash


def run(source: str, xs: list[int]) -> object:
    space: dict = {}
    exec(source, space)
    return space["f"](None, xs)
