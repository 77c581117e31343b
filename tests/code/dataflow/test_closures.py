"""Nested functions that objects are passed to, kept by, and returned from."""

import pytest

from tests.code.dataflow.test_subtle_pairs import hash_of, swapped

CHANGED_BY = {
    "a captured list": ("def g():\n    xs.append(5)", "g()"),
    "a default": ("def g(p=xs):\n    p.append(5)", "g()"),
    "a keyword default": ("def g(*, p=xs):\n    p.append(5)", "g()"),
    "the default of a lambda": ("g = lambda p=xs: p.append(5)", "g()"),
    "an argument": ("def g(p):\n    p.append(5)", "g(xs)"),
    "a keyword argument": ("def g(p):\n    p.append(5)", "g(p=xs)"),
    "arguments": ("def g(*p):\n    p[0].append(5)", "g(xs)"),
    "keyword arguments": ("def g(**p):\n    p['q'].append(5)", "g(q=xs)"),
    "a starred argument": ("def g(p):\n    p.append(5)", "g(*[xs])"),
    "an element of an argument": ("def g(p):\n    p[0].append(5)", "g([xs])"),
    "a result": ("def g():\n    return xs", "g().append(5)"),
    "the result of a lambda": ("g = lambda: xs", "g().append(5)"),
    "a bound result": ("def g():\n    return xs\nr = g()", "r.append(5)"),
    "an argument that is returned": ("def g(p):\n    return p\nr = g(xs)", "r.append(5)"),
    "an element of a result": ("def g(p):\n    return [p]", "g(xs)[0].append(5)"),
    "a returned closure": ("def g(p):\n    def h():\n        p.append(5)\n    return h\nr = g(xs)", "r()"),
    "a generator": ("def g(p):\n    yield p", "for r in g(xs):\n    r.append(5)"),
    "a function in a list": ("def g():\n    xs.append(5)\nt = [g]", "t[0]()"),
    "a lambda in a dictionary": ("t = {k: lambda: xs.append(5)}", "t[k]()"),
    "a function in an attribute": ("def g():\n    xs.append(5)\na.g = g", "y = a.g()"),
    "a loop over functions": ("def g():\n    xs.append(5)\nt = [g]", "for h in t:\n    h()"),
    "a function that is passed on": ("def g():\n    xs.append(5)\ndef h(p):\n    p()\nr = [g]", "h(r[0])"),
}


@pytest.mark.parametrize("case", CHANGED_BY)
def test_nested_functions_change_what_they_get(case):
    before, change = CHANGED_BY[case]
    one, other = map(hash_of, swapped(change, "n = len(xs)", before=before, after="return n"))
    assert one != other


def test_a_default_lives_on_between_the_calls():
    before = "def g(p=[]):\n    p.append(1)\n    return len(p)"
    one, other = map(hash_of, swapped("y = g()", "z = g() + a", before=before, after="return y, z"))
    assert one != other


@pytest.mark.parametrize(
    ("before", "change"),
    [
        ("def g(p):\n    p.append(5)", "g(ys)"),
        ("def g(p):\n    p = []\n    p.append(5)", "g(a)"),
        ("def g():\n    return [1]\nr = g()", "r.append(5)"),
        ("def g(p):\n    return len(p)\nr = g(xs)", "r += 1"),
    ],
)
def test_they_do_not_change_other_objects(before, change):
    one, other = map(hash_of, swapped(change, "n = len(xs)", before=before, after="return n"))
    assert one == other


def test_where_a_function_is_defined_does_not_matter():
    one, other = map(
        hash_of, swapped("r = f(xs)", "def g():\n    return a", after="r.append(1)\nn = len(xs)\nreturn n, g")
    )
    assert one == other
