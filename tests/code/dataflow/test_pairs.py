"""Pairs of functions whose graphs must be equal, and pairs whose graphs must differ."""

import sys

import pytest

from magnetite import code
from tests.code.reading import PARAMETERS, function, graph

SPECIFIED_EQUAL = [  # CODE_GRAPHS.md
    ("x = a + 1\ny = b + 1\nreturn x * y", "y = b + 1\nx = a + 1\nreturn x * y"),
    ("x = a + 1\ny = b + 1\nreturn x * y", "x = a + 1\ny = b + 1\nreturn y * x"),
    ("return a == b", "return b == a"),
    ("return a and b", "return b and a"),
    ("return f(a=x, b=y)", "return f(b=y, a=x)"),
    ("for x in xs:\n    s += x\n    n += 1", "for x in xs:\n    n += 1\n    s += x"),
    (
        "for x in xs:\n    s += x\nfor y in xs:\n    t *= y\nreturn s, t",
        "for y in xs:\n    t *= y\nfor x in xs:\n    s += x\nreturn s, t",
    ),
    ("print(a)\nprint(b)", "print(b)\nprint(a)"),
    ("self.a = x\nself.b = y", "self.b = y\nself.a = x"),
    ("p = k + 1\ndef g(z):\n    return z + p\nreturn g", "def g(z):\n    return z + p\np = k + 1\nreturn g"),
    (
        "p = k + 1\nfor x in xs:\n    if x:\n        break\nreturn p",
        "for x in xs:\n    if x:\n        break\np = k + 1\nreturn p",
    ),
    ("y = [x + 1 for x in xs]\nz = x * 2", "z = x * 2\ny = [x + 1 for x in xs]"),
    ("g = lambda x: x + 1\nz = x * 2", "z = x * 2\ng = lambda x: x + 1"),
    ("m = x.mean()\ns = x.std()", "s = x.std()\nm = x.mean()"),
]
SPECIFIED_DIFFERENT = [
    ("return a - b", "return b - a"),
    ("x = a\na = b\nreturn x, a", "a = b\nx = a\nreturn x, a"),
    ("self.x = v\ny = self.x", "y = self.x\nself.x = v"),
    ("r.append(a)\nn = len(r)", "n = len(r)\nr.append(a)"),
    ("d[k] = v\nw = d[k]", "w = d[k]\nd[k] = v"),
    ("r = xs\nr.append(1)\nn = len(xs)", "r = xs\nn = len(xs)\nr.append(1)"),
    ("self.reset()\ny = self.n", "y = self.n\nself.reset()"),
    (
        "n = 0\ndef inc():\n    nonlocal n\n    n += 1\ninc()\ny = n\nreturn y",
        "n = 0\ndef inc():\n    nonlocal n\n    n += 1\ny = n\ninc()\nreturn y",
    ),
    ("return 'a' + s", "return s + 'a'"),
    ("with c:\n    x = f(a)\n    y = g(x)", "with c:\n    y = g(x)\n    x = f(a)"),
    (
        "match c:\n    case 1:\n        x = f(a)\n        y = g(x)",
        "match c:\n    case 1:\n        y = g(x)\n        x = f(a)",
    ),
    ("a = fp.read(1)\nb = fp.read(2)", "b = fp.read(2)\na = fp.read(1)"),
    (
        "try:\n    f()\nexcept A:\n    x = 1\nexcept B:\n    x = 2",
        "try:\n    f()\nexcept B:\n    x = 2\nexcept A:\n    x = 1",
    ),
    ("f(a, b)", "f(b, a)"),
]
EQUAL = [
    # operands, keywords, sets, imports
    ("return a + b * c", "return c * b + a"),
    ("return a | b", "return b | a"),
    ("return a ^ b", "return b ^ a"),
    ("return a & b", "return b & a"),
    ("return a != b", "return b != a"),
    ("return a is b", "return b is a"),
    ("return a is not None", "return None is not a"),
    ("return a or b or c", "return c or a or b"),
    ("return {a, b, c}", "return {c, a, b}"),
    ("from m import a, b", "from m import b, a"),
    ("import os, sys", "import sys, os"),
    ("import a.b, a.c\nreturn a", "import a.c, a.b\nreturn a"),
    ("class A(B, x=a, y=b):\n    pass", "class A(B, y=b, x=a):\n    pass"),
    ("return f(*xs, a=x, **d)", "return f(*xs, **d, a=x)"),
    ("return (a + b) * (c + d)", "return (d + c) * (b + a)"),
    # statements
    ("x: int = a\ny: int = b", "y: int = b\nx: int = a"),
    ("del a\ndel b", "del b\ndel a"),
    ("import os\nimport sys", "import sys\nimport os"),
    ("global g, h\ng = a\nh = b", "global h, g\nh = b\ng = a"),
    ("pass\nx = a", "x = a\npass"),
    ("a, b = 1, 2\nc = 3", "c = 3\na, b = 1, 2"),
    ("x = y = a\nz = b", "z = b\nx = y = a"),
    ("d['a'] = x\nr['b'] = y", "r['b'] = y\nd['a'] = x"),
    ("a.append(1)\nb.append(1)", "b.append(1)\na.append(1)"),
    ("self.xs.append(a)\nself.n += 1", "self.n += 1\nself.xs.append(a)"),
    ("if a:\n    x = 1\n    y = 2", "if a:\n    y = 2\n    x = 1"),
    ("if a:\n    x = 1\nif b:\n    y = 2", "if b:\n    y = 2\nif a:\n    x = 1"),
    ("while a:\n    a -= 1\n    x = b", "while a:\n    x = b\n    a -= 1"),
    (
        "while a:\n    if b:\n        break\n    x = 1\n    y = 2",
        "while a:\n    if b:\n        break\n    y = 2\n    x = 1",
    ),
    ("with a as x:\n    p = 1\n    q = 2", "with a as x:\n    q = 2\n    p = 1"),
    ("try:\n    x = 1\n    y = 2\nexcept E:\n    pass", "try:\n    y = 2\n    x = 1\nexcept E:\n    pass"),
    ("try:\n    f()\nfinally:\n    x = 1\n    y = 2", "try:\n    f()\nfinally:\n    y = 2\n    x = 1"),
    ("try:\n    raise E\nexcept:\n    pass\nx = a", "x = a\ntry:\n    raise E\nexcept:\n    pass"),
    (
        "match a:\n    case [x, y]:\n        p = 1\n        q = 2",
        "match a:\n    case [x, y]:\n        q = 2\n        p = 1",
    ),
    ("for x in xs:\n    y = x\nelse:\n    p = 1\n    q = 2", "for x in xs:\n    y = x\nelse:\n    q = 2\n    p = 1"),
    (
        "def g():\n    p = 1\n    q = 2\n    return p, q\nreturn g",
        "def g():\n    q = 2\n    p = 1\n    return p, q\nreturn g",
    ),
    ("def g():\n    pass\ndef h():\n    pass", "def h():\n    pass\ndef g():\n    pass"),
    ("class A:\n    p = 1\n    q = 2", "class A:\n    q = 2\n    p = 1"),
    ("x = {k: v for k, v in d.items()}\ny = k", "y = k\nx = {k: v for k, v in d.items()}"),
    ("x = (t := a)\ny = b", "y = b\nx = (t := a)"),
    ("'a string'\nx = a", "'a string'\nx = a"),
    ("m = math.floor(a)\nn = math.ceil(b)", "n = math.ceil(b)\nm = math.floor(a)"),
    ("logging.info(a)\nlogging.info(b)", "logging.info(b)\nlogging.info(a)"),
    ("x = f'{a}'\ny = f'{b}'", "y = f'{b}'\nx = f'{a}'"),
    ("x = a if c else b\ny = d", "y = d\nx = a if c else b"),
    ("x = self.a\ny = self.b", "y = self.b\nx = self.a"),
    ("self.a = 1\ny = self.b", "y = self.b\nself.a = 1"),
    ("self.a = x\nself.b = f(x)", "self.b = f(x)\nself.a = x"),
    ("n = 0\ndef get():\n    return n\nx = get()\ny = a", "n = 0\ndef get():\n    return n\ny = a\nx = get()"),
]
DIFFERENT = [
    # operators and displays
    ("return a / b", "return b / a"),
    ("return a < b", "return b < a"),
    ("return a == b == c", "return c == b == a"),
    ("return a @ b", "return b @ a"),
    ("return [a, b]", "return [b, a]"),
    ("return {a: 1, b: 2}", "return {b: 2, a: 1}"),
    ("return a[b]", "return b[a]"),
    ("return a[b:c]", "return a[c:b]"),
    ("return a if b else c", "return c if b else a"),
    ("return f'{a}{b}'", "return f'{b}{a}'"),
    ("return f'{a!r}'", "return f'{a!s}'"),
    ("return [1] + xs", "return xs + [1]"),
    ("return b'' + s", "return s + b''"),
    ("return (1,) + t", "return t + (1,)"),
    ("return f'{a}' + s", "return s + f'{a}'"),
    ("return 'a' + s + t", "return t + ('a' + s)"),
    ("return '%s' % a + s", "return s + '%s' % a"),
    ("return str(a) + s", "return s + str(a)"),
    ("return 1", "return 1.0"),
    ("return 1", "return True"),
    ("return None", "return"),
    ("return None", "return 'None'"),
    ("return xs.pop() + len(xs)", "return len(xs) + xs.pop()"),
    ("while a:\n    b += xs.pop() + len(xs)", "while a:\n    b += len(xs) + xs.pop()"),
    ("return (x := a) + x", "return x + (x := a)"),
    ("while a:\n    a = f(p=xs.pop(), q=xs.pop())", "while a:\n    a = f(q=xs.pop(), p=xs.pop())"),
    ("return f(a, b, c, d, k, m, n, p, q, r)", "return f(a, b, c, d, k, m, n, p, r, q)"),
    # statements
    ("x = a\nx = b", "x = b\nx = a"),
    ("x = a\nx += b", "x += b\nx = a"),
    ("x = a\ndel x", "del x\nx = a"),
    ("import os\nx = os", "x = os\nimport os"),
    ("from m import a as x, b as x", "from m import b as x, a as x"),
    ("return a\nx = b", "x = b\nreturn a"),
    ("x = 1\nassert a\ny = 2", "assert a\nx = 1\ny = 2"),
    ("x = 1\nyield a\ny = 2", "yield a\nx = 1\ny = 2"),
    ("yield a\nyield b", "yield b\nyield a"),
    ("x = yield from a\ny = yield from b", "y = yield from b\nx = yield from a"),
    ("if a:\n    raise E\nx = b", "x = b\nif a:\n    raise E"),
    ("while a:\n    if b:\n        continue\n    x = 1", "while a:\n    x = 1\n    if b:\n        continue"),
    ("while a:\n    x = y\n    y = b", "while a:\n    y = b\n    x = y"),
    ("while a:\n    n = len(r)\n    r.append(n)", "while a:\n    r.append(n)\n    n = len(r)"),
    ("while a:\n    r.append(1)\n    r.append(2)", "while a:\n    r.append(2)\n    r.append(1)"),
    ("for x in xs:\n    y = x\n    x = b", "for x in xs:\n    x = b\n    y = x"),
    ("for x in xs:\n    y = 1\nelse:\n    z = y", "for x in xs:\n    z = y\nelse:\n    y = 1"),
    ("x = a\nfor x in xs:\n    pass\nreturn x", "for x in xs:\n    pass\nx = a\nreturn x"),
    ("try:\n    x = 1\nfinally:\n    y = x", "try:\n    y = x\nfinally:\n    x = 1"),
    ("try:\n    raise E\nexcept A:\n    pass\nx = a", "x = a\ntry:\n    raise E\nexcept A:\n    pass"),
    ("try:\n    f()\nexcept E as x:\n    pass\ny = x", "y = x\ntry:\n    f()\nexcept E as x:\n    pass"),
    (
        "try:\n    f()\nexcept* A:\n    x = 1\nexcept* B:\n    x = 2",
        "try:\n    f()\nexcept* B:\n    x = 2\nexcept* A:\n    x = 1",
    ),
    ("try:\n    f()\nexcept A:\n    x = 1", "try:\n    f()\nexcept* A:\n    x = 1"),
    ("with a as x, b as y:\n    pass", "with b as y, a as x:\n    pass"),
    ("with a as x:\n    pass\ny = x", "y = x\nwith a as x:\n    pass"),
    ("match a:\n    case [x, y]:\n        pass", "match a:\n    case [y, x]:\n        pass"),
    ("match a:\n    case {'k': x, **r}:\n        y = x", "match a:\n    case {'k': x, **r}:\n        y = r"),
    ("match a:\n    case x if x > b:\n        b = x", "match a:\n    case x if b > x:\n        b = x"),
    ("def g():\n    return a\na = 1\nx = g()", "def g():\n    return a\nx = g()\na = 1"),
    ("g = lambda: a\na = 1\nx = g()", "g = lambda: a\nx = g()\na = 1"),
    ("x = sorted(xs, key=lambda t: a)\na = 1", "a = 1\nx = sorted(xs, key=lambda t: a)"),
    ("def g():\n    xs.append(1)\ng()\ny = len(xs)", "def g():\n    xs.append(1)\ny = len(xs)\ng()"),
    ("class A:\n    p = a\nx = A", "x = A\nclass A:\n    p = a"),
    ("class A:\n    p = 1\n    q = p", "class A:\n    q = p\n    p = 1"),
    ("global g\ng = a\nx = g", "global g\nx = g\ng = a"),
    ("x = self.a\nself.a += 1", "self.a += 1\nx = self.a"),
    ("r = self.xs\nr.append(1)\nn = len(self.xs)", "r = self.xs\nn = len(self.xs)\nr.append(1)"),
    ("self.xs = r\nr.append(1)\nn = len(self.xs)", "self.xs = r\nn = len(self.xs)\nr.append(1)"),
    ("r = a if c else b\nr.append(1)\nn = len(a)", "r = a if c else b\nn = len(a)\nr.append(1)"),
    ("for r in xs:\n    r.append(1)\nn = len(xs[0])", "n = len(xs[0])\nfor r in xs:\n    r.append(1)"),
    ("x = next(a)\ny = next(a)", "y = next(a)\nx = next(a)"),
    ("setattr(self, 'n', a)\ny = self.n", "y = self.n\nsetattr(self, 'n', a)"),
    ("super().reset()\ny = self.n", "y = self.n\nsuper().reset()"),
    ("del d[k]\nx = d[k]", "x = d[k]\ndel d[k]"),
    ("x = [(t := y) for y in xs]\nz = t", "z = t\nx = [(t := y) for y in xs]"),
    ("x = a, b", "x = b, a"),
    ("x, y = a, b", "y, x = a, b"),
]
ASYNC_DIFFERENT = [
    ("async with c:\n    x = f(a)\n    y = g(x)", "async with c:\n    y = g(x)\n    x = f(a)"),
    ("async for x in xs:\n    y = x\n    x = b", "async for x in xs:\n    x = b\n    y = x"),
    ("x = await a\ny = self.n", "y = self.n\nx = await a"),
    ("return (await a) + self.n", "return self.n + (await a)"),
    ("return [x async for x in xs]", "return [x for x in xs]"),
]
ASYNC_EQUAL = [
    ("async with c:\n    x = f(a)\n    y = g(b)", "async with c:\n    y = g(b)\n    x = f(a)"),
    ("async for x in xs:\n    y = x\n    z = b", "async for x in xs:\n    z = b\n    y = x"),
]
if sys.version_info >= (3, 12):
    EQUAL += [("type X = a\ntype Y = b", "type Y = b\ntype X = a")]
    DIFFERENT += [
        ("type X = a\nx = X", "x = X\ntype X = a"),
        ("def g[T](p: T):\n    pass", "def g[T](p: a):\n    pass"),
        ("class A[T, U]:\n    pass", "class A[U, T]:\n    pass"),
    ]
if sys.version_info >= (3, 13):
    DIFFERENT += [("def g[T = a](p: T):\n    pass", "def g[T = b](p: T):\n    pass")]
if sys.version_info >= (3, 14):
    DIFFERENT += [("return t'{a}{b}'", "return t'{b}{a}'"), ("return t'{a}'", "return f'{a}'")]


@pytest.mark.parametrize(("one", "other"), SPECIFIED_EQUAL + EQUAL)
def test_equal(one, other):
    assert graph(one).hash == graph(other).hash


@pytest.mark.parametrize(("one", "other"), SPECIFIED_DIFFERENT + DIFFERENT)
def test_different(one, other):
    assert graph(one).hash != graph(other).hash


@pytest.mark.parametrize(("one", "other"), ASYNC_EQUAL + ASYNC_DIFFERENT)
def test_async(one, other):
    first, second = (code.build(function(body, PARAMETERS, "async def fn")).hash for body in (one, other))
    assert (first == second) == ((one, other) in ASYNC_EQUAL)


def test_there_are_enough_pairs_of_our_own():
    assert len(EQUAL + DIFFERENT + ASYNC_EQUAL + ASYNC_DIFFERENT) >= 60
