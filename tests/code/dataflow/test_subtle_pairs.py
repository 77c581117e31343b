"""Pairs of functions that an imprecise or unsound analysis gets wrong, as bodies over the names in `PARAMETERS`."""

import textwrap

import pytest

from magnetite.code import build

PARAMETERS = "self, a, b, c, d, k, v, xs, ys, it, fp, m"


def hash_of(body: str) -> str:
    if not body.lstrip().startswith(("def f", "async def f")):
        lines = textwrap.dedent(body).strip().replace("; ", "\n").splitlines()
        head = "async def" if "await" in body or "async" in body else "def"
        body = f"{head} f({PARAMETERS}):\n" + textwrap.indent("\n".join(lines), "    ")
    return build(body).hash


def swapped(*statements: str, before: str = "", after: str = "") -> tuple[str, str]:
    """Two statements in both orders, with something before and after them."""
    one, two = statements
    texts = ("\n".join(part for part in (before, *order, after) if part) for order in ((one, two), (two, one)))
    first, second = texts
    return first, second


CLOSURE = "p = 1\ndef g():\n    return p"
COUNTER = "n = 0\ndef g():\n    nonlocal n\n    n += 1"
FILLER = "def g():\n    xs.append(1)"

DIFFERENT = {
    "a nested function reads when it is called": swapped("y = g()", "p = 2", before=CLOSURE, after="return y, p"),
    "a lambda reads when it is called": swapped("y = g()", "p = 2", before="p = 1\ng = lambda: p", after="return y, p"),
    "a lambda handed on reads what is there by then": swapped(
        "p = 2", "y = sorted(xs, key=lambda q: q + p)", before="p = 1", after="return y, p"
    ),
    "a nested function writes when it is called": swapped("g()", "y = n", before=COUNTER, after="return y"),
    "a nested function that calls one that writes": swapped(
        "h()", "y = n", before=COUNTER + "\ndef h():\n    g()", after="return y"
    ),
    "a nested function fills a list": swapped("g()", "y = len(xs)", before=FILLER, after="return y"),
    "a nested function by another name": swapped("h()", "y = n", before=COUNTER + "\nh = g", after="return y"),
    "an alias by a loop": swapped("for r in xs:\n    r.append(1)", "n = sum(xs)", after="return n"),
    "an alias by a tuple": swapped("p.append(1)", "n = len(xs)", before="p, q = xs, ys", after="return n"),
    "an alias by an unpacked star": swapped("p.append(1)", "n = str(xs)", before="q, *p = xs", after="return n"),
    "an alias by a condition": swapped("r.append(1)", "n = len(ys)", before="r = xs if c else ys", after="return n"),
    "an alias by or": swapped("r.append(1)", "n = len(xs)", before="r = c or xs", after="return n"),
    "an alias by walrus": swapped("r.append(1)", "n = len(xs)", before="print(r := xs)", after="return n"),
    "an alias of an alias": swapped("s.append(1)", "n = len(xs)", before="r = xs\ns = r", after="return n"),
    "an alias made later": (
        "for i in it:\n    n = len(xs)\n    r.append(n)\n    r = xs",
        "for i in it:\n    r.append(n)\n    n = len(xs)\n    r = xs",
    ),
    "an alias of an attribute": swapped("r.append(1)", "n = len(self.e)", before="r = self.e", after="return n"),
    "an alias of an item": swapped("r.append(1)", "n = len(d[k])", before="r = d[k]", after="return n"),
    "an alias kept in an attribute": swapped("self.e.append(1)", "n = len(xs)", before="self.e = xs", after="return n"),
    "an alias by match": swapped(
        "r.append(1)", "n = len(xs)", before="match xs:\n    case [*_] as r:\n        pass", after="return n"
    ),
    "added in place": swapped("r += [1]", "n = len(xs)", before="r = xs", after="return n"),
    "added in place to an attribute": swapped("self.e += [1]", "n = len(xs)", before="self.e = xs", after="return n"),
    "an item deleted": swapped("del d[k]", "n = len(d)", after="return n"),
    "an attribute deleted": swapped("del self.e", "y = self.e", after="return y"),
    "a variable deleted": swapped("del a", "y = a", after="return y"),
    "setattr": swapped("setattr(self, 'e', a)", "y = self.e", after="return y"),
    "next": swapped("y = next(it)", "z = next(it)", after="return y, z"),
    "next through an alias": swapped("y = next(it)", "z = next(r)", before="r = it", after="return y, z"),
    "a global": swapped("g = a", "y = g", before="global g", after="return y"),
    "an item added to": swapped("d[k] += 1", "y = d[k]", after="return y"),
    "an attribute added to": swapped("self.n += 1", "y = self.n", after="return y"),
    "deep attributes": swapped("self.p.q = a", "y = self.p.q", after="return y"),
    "a deep store and a shallow load": swapped("self.p.q = a", "y = str(self.p)", after="return y"),
    "an item of an item": swapped("d[k][0] = a", "y = str(d)", after="return y"),
    "an attribute of an item": swapped("d[k].p = a", "y = str(d)", after="return y"),
    "a list in an attribute": swapped("self.e.append(a)", "n = len(self.e)", after="return n"),
    "a list in a list": swapped("xs[0].append(a)", "n = str(xs)", after="return n"),
    "a method of an item": swapped("xs[0].append(a)", "n = len(xs[0])", after="return n"),
    "a call of an object that was trained": swapped("m.train()", "y = m(a)", after="return y"),
    "passed on after a store": swapped("self.e = a", "y = str(self)", after="return y"),
    "passed on inside a list": swapped("xs.append(1)", "y = str([xs])", after="return y"),
    "a mutator whose result is used": swapped("y = xs.pop()", "n = len(xs)", after="return y, n"),
    "setdefault": swapped("y = d.setdefault(k, a)", "n = len(d)", after="return y, n"),
    "a mutator inside an expression": swapped("y = 1 + xs.pop()", "n = len(xs)", after="return y, n"),
    "a mutator inside a condition": swapped("if xs.pop():\n    print(a)", "n = len(xs)", after="return n"),
    "a mutator inside a comprehension": swapped("y = [xs.pop() for _ in ys]", "n = len(xs)", after="return y, n"),
    "a mutator in a loop's head": swapped("while xs.pop():\n    pass", "n = len(xs)", after="return n"),
    "a mutator in an argument": swapped("print(xs.pop())", "n = len(xs)", after="return n"),
    "a mutator in a default": swapped("def g(p=xs.pop()):\n    return p", "n = len(xs)", after="return n, g"),
    "carried round a loop": (
        "p = 0\nfor x in xs:\n    y = p\n    p = x\nreturn y",
        "p = 0\nfor x in xs:\n    p = x\n    y = p\nreturn y",
    ),
    "the loop's test": ("while a:\n    a -= 1\n    b += a\nreturn b", "while a:\n    b += a\n    a -= 1\nreturn b"),
    "exchanged at once and one by one": ("a, b = b, a\nreturn a, b", "a = b\nb = a\nreturn a, b"),
    "after and in the else of a loop": (
        "for x in xs:\n    if x:\n        break\nelse:\n    y = a\nreturn b",
        "for x in xs:\n    if x:\n        break\ny = a\nreturn b",
    ),
    "before and after a break": (
        "for x in xs:\n    s = x\n    if x:\n        break\nreturn s",
        "for x in xs:\n    if x:\n        break\n    s = x\nreturn s",
    ),
    "before and after a continue": (
        "for x in xs:\n    if x:\n        continue\n    print(x)",
        "for x in xs:\n    print(x)\n    if x:\n        continue",
    ),
    "yield": swapped("yield a", "yield b"),
    "around a yield": swapped("self.e = a", "yield b"),
    "await": swapped("await a", "await b"),
    "assert": swapped("assert a", "x = b", after="return x"),
    "around a return": ("if a:\n    return b\nself.e = c", "self.e = c\nif a:\n    return b"),
    "around a raise": ("if a:\n    raise b\nself.e = c", "self.e = c\nif a:\n    raise b"),
    "branches": ("if a:\n    x = b\nelse:\n    x = c\nreturn x", "if a:\n    x = c\nelse:\n    x = b\nreturn x"),
    "a conditional expression": ("return b if a else c", "return c if a else b"),
    "finally": (
        "try:\n    x = a\nfinally:\n    x = b\nreturn x",
        "try:\n    x = b\nfinally:\n    x = a\nreturn x",
    ),
    "else of try": (
        "try:\n    x = a()\nexcept E:\n    x = b\nelse:\n    x = c\nreturn x",
        "try:\n    x = a()\nexcept E:\n    x = c\nelse:\n    x = b\nreturn x",
    ),
    "cases": (
        "match a:\n    case 1:\n        y = b\n    case 2:\n        y = c\nreturn y",
        "match a:\n    case 2:\n        y = c\n    case 1:\n        y = b\nreturn y",
    ),
    "items of with": ("with a as x, b as y:\n    print(x)", "with b as y, a as x:\n    print(x)"),
    "generators of a comprehension": ("return [p for p in a for q in b]", "return [p for q in b for p in a]"),
    "keywords crossed": ("return m(p=a, q=b)", "return m(p=b, q=a)"),
    "starred arguments": ("return m(*a, *b)", "return m(*b, *a)"),
    "dictionary items": ("return {a: 1, b: 2}", "return {b: 2, a: 1}"),
    "keys and values": ("return {a: b}", "return {b: a}"),
    "slices": ("return xs[a:b]", "return xs[b:a]"),
    "a chain of equalities": ("return a == b == c", "return b == a == c"),
    "contained": ("return a in b", "return b in a"),
    "shifted": ("return a << b", "return b << a"),
    "matrices": ("return a @ b", "return b @ a"),
    "powers": ("return a ** b", "return b ** a"),
    "an augmented operand": ("a += b\nreturn a", "b += a\nreturn b"),
    "bytes": ("return b'x' + a", "return a + b'x'"),
    "tuples": ("return (a,) + b", "return b + (a,)"),
    "lists": ("return [a] + b", "return b + [a]"),
    "f-strings": ("return f'{a}' + b", "return b + f'{a}'"),
    "operands that pop": ("return xs.pop() * (xs.pop() - 1)", "return (xs.pop() - 1) * xs.pop()"),
    "operands that bind": ("return (p := a) * p", "return p * (p := a)"),
    "keywords that advance": ("return m(p=next(it), q=next(it) + 1)", "return m(q=next(it) + 1, p=next(it))"),
    "a number and its text": ("return 1", "return '1'"),
    "a whole number and a float": ("return 1", "return 1.0"),
    "a number and a truth value": ("return 1", "return True"),
    "None and its name": ("return None", "return 'None'"),
    "nothing and None": ("return", "return None"),
    "bytes and their text": ("return b'x'", "return \"b'x'\""),
    "an ellipsis and its name": ("return ...", "return 'Ellipsis'"),
    "parameters": ("def f(a, b):\n    return a", "def f(b, a):\n    return a"),
    "defaults": ("def f(a=1, b=2):\n    return a", "def f(a=2, b=1):\n    return a"),
    "positional only": ("def f(a, /, b):\n    return a", "def f(a, b, /):\n    return a"),
    "keyword only": ("def f(a, *, b):\n    return a", "def f(a, b):\n    return a"),
    "one default, two places": ("def f(a, *, b=1, c):\n    pass", "def f(a, *, b, c=1):\n    pass"),
    "decorators": ("@p\n@q\ndef g():\n    pass", "@q\n@p\ndef g():\n    pass"),
    "bases": ("class C(P, Q):\n    pass", "class C(Q, P):\n    pass"),
    "annotated": ("x: int = a\nreturn x", "x = a\nreturn x"),
    "async": ("async def f(a):\n    pass", "def f(a):\n    pass"),
    "imports of one name": swapped("import p as x", "import q as x", after="return x"),
    "used before the import": swapped("import p", "p.run(a)"),
    "reading a file": swapped("y = fp.read(1)", "z = fp.read(2)", after="return y, z"),
    "seeking": swapped("fp.seek(0)", "y = fp.read()", after="return y"),
    "a file of with": (
        "with open(a) as p:\n    y = p.readline()\n    z = p.readline()\nreturn y, z",
        "with open(a) as p:\n    z = p.readline()\n    y = p.readline()\nreturn y, z",
    ),
    "inside async for": (
        "async for p in a:\n    x = p\n    y = x",
        "async for p in a:\n    y = x\n    x = p",
    ),
    "the variable of a handler": (
        "e = a\ntry:\n    b()\nexcept E as e:\n    y = e\nreturn y",
        "e = a\ntry:\n    b()\nexcept E as x:\n    y = e\nreturn y",
    ),
    "a class's own variable": ("x = a\nclass C:\n    x = b\nreturn x", "x = a\nclass C:\n    y = b\nreturn x"),
    "a comprehension's variable hides nothing after it": (
        "x = a\ny = [x for x in xs]\nreturn x",
        "x = a\ny = [x := p for p in xs]\nreturn x",
    ),
}

EQUAL = {
    "two deep attributes": swapped("self.p.x = a", "self.q.y = b"),
    "an attribute deleted, another read": swapped("del self.p", "y = self.q", after="return y"),
    "parameters are distinct": swapped("a.append(1)", "n = len(b)", after="return n"),
    "results are fresh": swapped("r.append(1)", "n = len(xs)", before="r = list(xs)", after="return n"),
    "modules are pure": swapped("np.seed(0)", "y = np.zeros(a)", after="return y"),
    "modules imported here are pure": swapped("np.seed(0)", "y = np.zeros(a)", before="import np", after="return y"),
    "loggers": swapped("logger.info(a)", "logger.debug(b)"),
    "inside try": (
        "try:\n    x = m(a)\n    y = k(b)\nexcept E:\n    x = y = 0\nreturn x, y",
        "try:\n    y = k(b)\n    x = m(a)\nexcept E:\n    x = y = 0\nreturn x, y",
    ),
    "inside with": (
        "with m:\n    x = a + 1\n    y = b + 1\nreturn x, y",
        "with m:\n    y = b + 1\n    x = a + 1\nreturn x, y",
    ),
    "inside match": (
        "match a:\n    case [p, q]:\n        x = p\n        y = q\nreturn x, y",
        "match a:\n    case [p, q]:\n        y = q\n        x = p\nreturn x, y",
    ),
    "inside a nested function": (
        "def g(p, q):\n    x = p\n    y = q\n    return x * y\nreturn g",
        "def g(p, q):\n    y = q\n    x = p\n    return y * x\nreturn g",
    ),
    "inside a class": ("class C:\n    x = a\n    y = b\nreturn C", "class C:\n    y = b\n    x = a\nreturn C"),
    "independent ifs": swapped("if a:\n    x = 1", "if b:\n    y = 1"),
    "independent tries": swapped("try:\n    x = a()\nexcept E:\n    x = 0", "try:\n    y = b()\nexcept E:\n    y = 0"),
    "independent withs": swapped("with a:\n    x = 1", "with b:\n    y = 1"),
    "a loop that breaks and one that does not": swapped(
        "for x in xs:\n    if x:\n        break", "for y in ys:\n    s = y", after="return x, s"
    ),
    "a catch-all and a statement": swapped(
        "try:\n    if a:\n        raise E\nexcept Exception:\n    x = 1", "y = b", after="return x, y"
    ),
    "imports": swapped("import p", "import q"),
    "names of an import": ("from p import q, r", "from p import r, q"),
    "set elements": ("return {a, b, c}", "return {c, a, b}"),
    "keywords of a class": ("class C(p=a, q=b):\n    pass", "class C(q=b, p=a):\n    pass"),
    "nested operands": ("return a + b + c", "return c + (b + a)"),
    "three operands of and": ("return a and b and c", "return c and b and a"),
    "a constant on either side": ("return a is None", "return None is a"),
    "operands in a default": ("def f(a=p * q):\n    return a", "def f(a=q * p):\n    return a"),
    "operands in an annotation": ("def f(a: int | str):\n    return a", "def f(a: str | int):\n    return a"),
    "operands in a decorator": ("@p(q + r)\ndef f(a):\n    pass", "@p(r + q)\ndef f(a):\n    pass"),
    "operands inside a comprehension": ("return [p * a for p in xs]", "return [a * p for p in xs]"),
    "a statement that does nothing": ("pass\nx = a\nreturn x", "x = a\npass\nreturn x"),
    "docstrings": ("def f(a):\n    'text'\n    return a", "def f(a):\n    'other'\n    return a"),
    "layout": ("def f(a):\n    return (a)  # note", "def f(a): return a"),
    "how numbers and strings are written": ("return 16, 1000, 'x'", 'return 0x10, 1_000, "x"'),
    "elif and else if": (
        "if a:\n    x = 1\nelif b:\n    x = 2\nreturn x",
        "if a:\n    x = 1\nelse:\n    if b:\n        x = 2\nreturn x",
    ),
    "two generators made": swapped("y = (p for p in xs)", "z = (p for p in ys)", after="return y, z"),
    "two lambdas": swapped("y = lambda p: p + a", "z = lambda p: p + b", after="return y, z"),
    "two nested functions": swapped("def g():\n    return a", "def h():\n    return b", after="return g, h"),
    "the function's name": ("def f(a):\n    return f(a)", "def f2(a):\n    return f2(a)"),
    "the method's name": ("def f(self):\n    return self.f()", "def f2(self):\n    return self.f2()"),
    "a loop's variable and another of that name": swapped(
        "y = {p: 1 for p in xs}", "z = p * 2", before="p = a", after="return y, z"
    ),
    "a new list beside one whose elements a loop shares with it": swapped(
        "p.append((k, v))",
        "q = []",
        before="p = []",
        after="print(v.n(a))\nfor k, v in p:\n    pass\nfor k, v in q:\n    pass",
    ),
    "a new list beside a store of what a loop takes from it": swapped(
        "g[a.n] = a", "p = []", after="for a in p:\n    delattr(self, a.n)"
    ),
    "a new function beside a store to what a loop takes from both": swapped(
        "g.text = a", "def p():\n    pass", after="for v in (g, p.inner):\n    pass"
    ),
    "looking twice": swapped("y = len(xs)", "z = max(xs)", after="return y, z"),
    "reading attributes": swapped("y = self.p", "z = self.p.q", after="return y, z"),
}

ASSUMED = {
    "iterating does not use up": swapped("y = list(it)", "z = list(it)", after="return y, z"),
    "looping does not use up": swapped("for p in it:\n    print(p)", "for q in it:\n    s = q", after="return s"),
    "functions of modules are pure": swapped("heapq.heappush(xs, a)", "y = xs[0]", after="return y"),
    "instances are new": swapped("p.x = a", "y = q.x", before="p = C()\nq = C()", after="return y"),
    "prints may come in any order": swapped("print(a)", "print(b)"),
}
"""Equal under the assumptions of the graph, although they may behave differently; tested so that changes show."""


@pytest.mark.parametrize("case", DIFFERENT)
def test_different(case):
    one, two = map(hash_of, DIFFERENT[case])
    assert one != two


@pytest.mark.parametrize("case", EQUAL | ASSUMED)
def test_equal(case):
    one, two = map(hash_of, (EQUAL | ASSUMED)[case])
    assert one == two
