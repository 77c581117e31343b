import ast
import random
from itertools import islice
from math import factorial

import numpy as np
import pytest

from magnetite.code import COMMUTATIVE, build, reorderings
from magnetite.code.reorderings import F1_SCORE
from tests.code.random_programs import Programs, compiled, outcome


def texts(body: str, parameters: str = "a, b, c, d, xs, it, p", **options) -> set[str]:
    """All texts of a function with this body, without its head, one line each."""
    lines = body.replace("; ", "\n").splitlines()
    source = f"def f({parameters}):\n" + "\n".join(f"    {line}" for line in lines)
    ways = reorderings(source, **options)
    found = ["; ".join(line.strip() for line in text.splitlines()[1:] if line) for text in ways]
    assert len(set(found)) == len(found) == ways.count
    return set(found)


def test_the_papers_f1_score_has_8192_texts():
    ways = reorderings(F1_SCORE)
    assert ways.count == 8192
    assert reorderings(F1_SCORE, operators=COMMUTATIVE - {"=="}).count == 4096
    assert reorderings(F1_SCORE, operators=()).count == 16
    found = list(ways)
    assert len(set(found)) == 8192
    assert found[0] == ast.unparse(ast.parse(F1_SCORE))


def test_a_sample_has_one_dataflow_graph_and_distinct_ast_graphs():
    some = set(reorderings(F1_SCORE).sample(300, seed=1))
    assert {build(text).hash for text in some} == {build(F1_SCORE).hash}
    assert len({build(text, kind="ast").hash for text in some}) == len(some)


@pytest.mark.slow
def test_all_of_them_have_one_dataflow_graph_and_8192_ast_graphs():
    found = list(reorderings(F1_SCORE))
    assert len({build(text).hash for text in found}) == 1
    assert len({build(text, kind="ast").hash for text in found}) == 8192


def test_every_text_of_f1_score_gives_the_same_result():
    rng = np.random.default_rng(0)
    pred, label = rng.random((2, 100)) < 0.5
    results = set()
    for text in reorderings(F1_SCORE).sample(300, seed=2):
        space: dict = {}
        exec(text, space)
        results.add(float(space["f1_score"](pred, label)))
    assert len(results) == 1


REORDERED = {
    "independent statements": ("x = a; y = b", {"x = a; y = b", "y = b; x = a"}),
    "flow": ("x = a; y = x", {"x = a; y = x"}),
    "overwritten after use": ("x = a; a = b", {"x = a; a = b"}),
    "overwritten twice": ("x = a; x = b", {"x = a; x = b"}),
    "operands": ("return a * b", {"return a * b", "return b * a"}),
    "no operands": ("return a - b", {"return a - b"}),
    "equal operands": ("return a * a", {"return a * a"}),
    "operands that can be written alike": (
        "return a * b + b * a",
        {f"return {x} + {y}" for x in ("a * b", "b * a") for y in ("a * b", "b * a")},
    ),
    "three operands": (
        "return a + b + c",
        {f"return {x}" for x in ("a + b + c", "b + a + c", "c + (a + b)", "c + (b + a)")},
    ),
    "a chain of comparisons": ("return a == b == c", {"return a == b == c"}),
    "is": ("return a is b", {"return a is b", "return b is a"}),
    "and": ("return a and a.b", {"return a and a.b"}),
    "strings": ("return a + 'x'", {"return a + 'x'"}),
    "strings in a row": ("return a + 'x' + b", {"return a + 'x' + b"}),
    "strings made by calls": ("return str(a) + str(b)", {"return str(a) + str(b)"}),
    "lists": ("return [a] + b", {"return [a] + b"}),
    "formats": ("return a + '%s' % b", {"return a + '%s' % b"}),
    "strings by another name": ("x = ''; return x + a", {"x = ''; return x + a"}),
    "names of objects": ("return a.__name__ + b", {"return a.__name__ + b"}),
    "strings or nothing": ("return a + (b and 'x')", {"return a + (b and 'x')"}),
    "a repeated list": ("return [0] * a", {"return [0] * a", "return a * [0]"}),
    "walrus": ("return (x := a) + x", {"return (x := a) + x"}),
    "popping": ("return xs.pop() * (xs.pop() - 1)", {"return xs.pop() * (xs.pop() - 1)"}),
    "popping and looking": ("return len(xs) * xs.pop()", {"return len(xs) * xs.pop()"}),
    "popping beside a number": ("return 2 * xs.pop()", {"return 2 * xs.pop()", "return xs.pop() * 2"}),
    "next": ("return next(it) * (next(it) - 1)", {"return next(it) * (next(it) - 1)"}),
    "yield": ("return (yield a) * (yield b)", {"return (yield a) * (yield b)"}),
    "keywords": ("p(x=a, y=b)", {"p(x=a, y=b)", "p(y=b, x=a)"}),
    "keywords that pop": ("p(x=next(it), y=next(it))", {"p(x=next(it), y=next(it))"}),
    "keywords beside a function that writes": (
        "def g():\n    xs.pop()\nreturn p(x=xs, y=q(g))",
        {"def g():; xs.pop(); return p(x=xs, y=q(g))"},
    ),
    "set elements": ("return {a, b}", {"return {a, b}", "return {b, a}"}),
    "equal set elements": ("return {a, a}", {"return {a, a}"}),
    "imports": ("import m, n", {"import m, n", "import n, m"}),
    "imports of one name": ("import m as x, n as x", {"import m as x, n as x"}),
    "equal statements": ("print(a); print(a)", {"print(a); print(a)"}),
    "statements that can be written alike": (
        "print(a * b); print(b * a)",
        {f"print({x}); print({y})" for x in ("a * b", "b * a") for y in ("a * b", "b * a")},
    ),
    "two of three equal": (
        "print(a); print(b); print(a)",
        {"print(a); print(b); print(a)", "print(a); print(a); print(b)", "print(b); print(a); print(a)"},
    ),
    "inside an if": (
        "if a:\n    x = b\n    y = c",
        {"if a:; x = b; y = c", "if a:; y = c; x = b"},
    ),
    "guarded statements": (
        "try:\n    x = b\n    y = c\nexcept E:\n    u = a\n    v = b",
        {"try:; x = b; y = c; except E:; u = a; v = b", "try:; x = b; y = c; except E:; v = b; u = a"},
    ),
    "the members of a class": (
        "class C:\n    x = 1\n    y = 2\n    def m(self):\n        u = 1\n        v = 2",
        {
            "class C:; x = 1; y = 2; def m(self):; u = 1; v = 2",
            "class C:; x = 1; y = 2; def m(self):; v = 2; u = 1",
        },
    ),
    "declarations": ("global g; g = a; x = b", {"global g; g = a; x = b", "global g; x = b; g = a"}),
    "a docstring": ("'text'; x = a; y = b", {"'text'; x = a; y = b", "'text'; y = b; x = a"}),
    "a string that must not become one": ("x = a; 'text'; y = b", {"x = a; 'text'; y = b"}),
    "return": ("x = a; return x", {"x = a; return x"}),
    "after a return": ("if a:\n    return b\nx = c", {"if a:; return b; x = c"}),
    "appending and looking": ("xs.append(a); n = len(xs)", {"xs.append(a); n = len(xs)"}),
    "methods by another name": ("w = p.write; w(a); w(b)", {"w = p.write; w(a); w(b)"}),
    "two attributes": ("p.a = a; p.b = b", {"p.a = a; p.b = b", "p.b = b; p.a = a"}),
    "two subscripts": ("p[a] = 1; p[b] = 2", {"p[a] = 1; p[b] = 2"}),
}


@pytest.mark.parametrize("case", REORDERED)
def test_reordered_by_hand(case):
    body, expected = REORDERED[case]
    expected = {text.replace("'text'", '"""text"""', text.startswith("'text'")) for text in expected}
    assert texts(body) == expected


def test_and_and_or_commute_on_demand():
    assert texts("return a and b", operators=["and"]) == {"return a and b", "return b and a"}
    assert len(texts("return a or b or c", operators=["or"])) == 6


def test_calls_keep_their_position_if_not_assumed_pure():
    assert len(texts("print(a); print(b)")) == 2
    assert texts("print(a); print(b)", pure_calls=False) == {"print(a); print(b)"}
    assert len(texts("x = a; y = b; print(c)", pure_calls=False)) == 2
    assert texts("return p(a) * p(b)", pure_calls=False) == {"return p(a) * p(b)"}


def test_one_of_several_functions_is_rewritten_and_the_rest_kept():
    method = "\n\n    def {}(self, a, b):\n        return {}"
    source = "x = 1\n\nclass C:" + method.format("f", "a * b") + method.format("g", "{}")
    found = list(reorderings(source.format("a * b"), name="C.g"))
    assert found == [source.format("a * b"), source.format("b * a")]


def check_random_program(seed: int) -> None:
    """The texts are distinct, as many as counted, have the same outcome and the same graph."""
    rng = random.Random(seed)
    source = valid_program(rng)
    ways = reorderings(source, limit=40)
    found = list(ways)
    assert len(set(found)) == len(found)
    assert len(found) == min(ways.count, 40)
    results = [outcome(compiled(source), run) for run in range(3)]
    for text in {*rng.sample(found, min(3, len(found))), *ways.sample(3, seed=seed)}:
        assert build(text).hash == build(source).hash, text
        runs = [outcome(compiled(text), run) for run in range(3)]
        said = [(one, other) for one, other in zip(results, runs, strict=True) if one is not None]
        assert all(one == other for one, other in said), text


def valid_program(rng: random.Random) -> str:
    """A program that compiles; some random ones bind the variable of a comprehension with `:=`."""
    while True:
        source = Programs(rng).generate()
        try:
            compiled(source)
        except SyntaxError:
            continue
        return source


@pytest.mark.parametrize("seed", range(60))
def test_random_programs_keep_results_and_graph(seed):
    check_random_program(seed)


@pytest.mark.slow
def test_thousands_of_random_programs_keep_results_and_graph():
    for seed in range(60, 2060):
        check_random_program(seed)


def test_huge_counts_are_exact_and_the_first_texts_come_at_once():
    source = "def f(a):\n" + "".join(f"    x{i} = a * {i}\n" for i in range(400)) + "    return x0"
    ways = reorderings(source)
    assert ways.count == factorial(400) * 2**400
    assert len(set(islice(ways, 20))) == 20
    assert len(set(ways.sample(20, seed=0))) == 20


def test_samples_are_a_function_of_the_seed():
    ways = reorderings(F1_SCORE)
    assert list(ways.sample(5, seed=3)) == list(ways.sample(5, seed=3)) != list(ways.sample(5, seed=4))


def test_two_iterations_do_not_disturb_each_other():
    ways = reorderings(F1_SCORE, limit=20)
    assert list(zip(ways, ways, strict=True)) == [(text, text) for text in ways]


BAD = {
    "limit": ({"source": "def f(): pass", "limit": -1}, "got -1"),
    "operator": ({"source": "def f(): pass", "operators": ["-"]}, "got -"),
    "long list": ({"source": "def f():\n" + "    print(1, 2)\n    print(2)\n" * 1001}, "2,002 elements"),
    "syntax": ({"source": "def f(:"}, "line 1"),
    "no function": ({"source": "x = 1"}, "function"),
    "unknown name": ({"source": "def f(): pass", "name": "g"}, "g"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_rejected(case):
    options, message = BAD[case]
    with pytest.raises(ValueError, match=message):
        reorderings(**options)


@pytest.mark.parametrize("depth", [800, 3000])
def test_very_deep_expressions_are_rejected(depth):
    source = "def f(a):\n    return " + " + ".join(["a"] * depth)
    with pytest.raises(ValueError, match="deep"):
        list(reorderings(source, limit=1))


def test_a_method_cut_out_of_its_class():
    source = "    def f(self, a):\n        return a * 2\n"
    assert list(reorderings(source)) == ["def f(self, a):\n    return a * 2", "def f(self, a):\n    return 2 * a"]
