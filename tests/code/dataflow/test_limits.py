"""Pathological functions: clear errors, bounded time and memory."""

import sys

import pytest

from magnetite import code
from magnetite.code.dataflow import reaching_definitions


def body(lines: list[str]) -> str:
    return "def f(a, xs):\n" + "".join(f"    {line}\n" for line in lines)


@pytest.mark.parametrize(
    "lines",
    [
        [f"x{i} = a + {i}" for i in range(3000)],
        [f"a = a + {i}" for i in range(3000)],
        ["xs.append(a)" for _ in range(3000)],
        ["assert a" for _ in range(3000)],
        ["return [" + ", ".join("a" for _ in range(30_000)) + "]"],
    ],
    ids=["many variables", "one variable", "one list", "barriers", "long display"],
)
def test_long_functions_have_few_edges(lines):
    graph = code.build(body(lines))
    assert len(graph.edges) < 2.5 * len(graph)
    assert len(graph.hash) == 32


@pytest.mark.slow
@pytest.mark.parametrize("line", ["x{i} = a + {i}", "a = a + {i}", "xs.append({i})", "if a: x{i} = {i}"])
def test_a_hundred_thousand_lines(line):
    graph = code.build(body([line.format(i=i) for i in range(100_000)]))
    assert graph.hash and len(graph.edges) < 2.5 * len(graph)


def test_too_many_pairs_are_an_error(monkeypatch):
    monkeypatch.setattr(reaching_definitions, "MAX_EDGES", 1000)
    with pytest.raises(ValueError, match="'f' has more than 1,000 pairs of writes and accesses, too many"):
        code.build(body(["if a: a = 1" for _ in range(200)]))


def test_too_many_writes_in_too_many_blocks_are_an_error(monkeypatch):
    monkeypatch.setattr(reaching_definitions, "MAX_BITS", 10_000)
    with pytest.raises(ValueError, match="401 blocks and 202 writes to one variable"):
        code.build(body(["if a: a = 1" for _ in range(200)]))


@pytest.mark.parametrize(
    "expression",
    ["-" * 1000 + "a", "+".join("a" * 1000), "a" + ".b" * 1000, "a" + ".b()" * 900, "not " * 1000 + "a"],
    ids=["minus", "sum", "attributes", "calls", "not"],
)
def test_a_thousand_levels_deep(expression):
    limit = sys.getrecursionlimit()
    graph = code.build(body([f"return {expression}"]))
    assert max(graph.depths) >= 900 and len(graph.hash) == 32
    assert sys.getrecursionlimit() == limit


def test_a_thousand_branches():
    lines = ["if a == 0: x = 0", *(f"elif a == {i}: x = {i}" for i in range(1, 990)), "return x"]
    assert max(code.build(body(lines)).depths) > 900


@pytest.mark.parametrize(
    "source",
    [
        body(["return " + "(" * 1000 + "a" + ")" * 1000]),
        body(["return " + "+".join("a" * 100_000)]),
        "def f(a):\n" + "".join(" " * (i + 1) + "if a:\n" for i in range(1000)) + " " * 1001 + "pass",
    ],
    ids=["parentheses", "sum", "indentation"],
)
def test_too_deep_for_the_parser(source):
    with pytest.raises(ValueError, match=r"too many|too deeply"):
        code.build(source)


def test_nested_finally_does_not_explode():
    lines = [" " * (4 * i) + text for i in range(20) for text in ("try:", "    pass", "finally:")]
    graph = code.build(body([*lines, " " * 80 + "a = 1"]))
    assert len(graph.edges) < 10 * len(graph)


def test_numbers_too_long_to_print():
    assert hex(10**4299) in code.build(body([f"return 0x{10**4299:x}"])).attributes
