"""Tokens: the name is hidden wherever it occurs, and what a graph cannot see is not read either."""

import ast

import pytest

import magnetite as mt
from magnetite.code.graph import MASK
from magnetite.code.tokens import DEDENT, INDENT, LINE_END, LONGEST


def texts(source: str, **options) -> list[str]:
    return list(mt.code.build(source, kind="tokens", **options).attributes)


def test_a_function_is_a_path_of_its_tokens():
    graph = mt.code.build("def f(x):\n    while x >= 10:\n        x //= 2\n    return 'two words'", kind="tokens")
    lines = " ".join(graph.attributes).split(LINE_END)
    assert [line.split() for line in lines] == [
        ["def", MASK, "(", "x", ")", ":"],
        [INDENT, "while", "x", ">=", "10", ":"],
        [INDENT, "x", "//=", "2"],
        [DEDENT, "return", "'", "two", "words", "'"],
        [DEDENT],
    ]
    edges = [(edge.source, edge.target) for edge in graph.edges]
    assert edges == [(node, node + 1) for node in range(len(graph) - 1)]
    assert {edge.type for edge in graph.edges} == {"NEXT_TOKEN"}
    assert dict(zip(graph.attributes, graph.types, strict=True)) | {"x": "Name", "10": "Num", ">=": "unknown"} == dict(
        zip(graph.attributes, graph.types, strict=True)
    )


def test_identifiers_are_split_and_words_numbered_within_them():
    graph = mt.code.build("def f(parseHTTP_header, _):\n    return __x", kind="tokens")
    found = list(zip(graph.attributes, graph.depths, strict=True))
    assert found[3:6] == [("parse", 0), ("http", 1), ("header", 2)]
    assert ("_", 0) in found and ("x", 0) in found


@pytest.mark.parametrize(
    "source",
    [
        "def total(n):\n    return total(n - 1)",
        "class A:\n    @property\n    def total(self):\n        return self.total",
        "class A:\n    @total.setter\n    def total(self, v):\n        return super().total(v)",
        "async def total(n):\n    return await total(n)",
    ],
)
def test_the_name_is_hidden_everywhere(source):
    found = texts(source)
    assert "total" not in found
    assert found.count(MASK) >= 2
    assert "total" in texts(source, mask=None)
    assert mt.code.build(source, kind="tokens").hash == mt.code.build(source, kind="tokens").hash


def test_a_word_mask_is_not_the_mask():
    assert "mask" in texts("def f(_mask):\n    return _mask")
    assert texts("def f(_mask):\n    return _mask").count(MASK) == 1


def test_comments_formatting_and_docstrings_are_not_read():
    plain = "def f(a):\n    def g():\n        pass\n    return a"
    other = "def f( a ):  # what\n  'Doc.'\n  def g():\n    'Only this.'\n\n  return (a)"
    assert texts(plain) == texts(other)
    assert "doc" in texts(other, keep_docstrings=True)


def test_long_functions_end_at_the_limit():
    body = "\n".join(f"    x{number} = {number}" for number in range(LONGEST))
    assert len(texts(f"def f():\n{body}")) == LONGEST


def test_the_tree_that_is_given_stays_as_it_is():
    function = next(mt.code.source.functions(mt.code.source.parse("def f():\n    'Doc.'\n    return f()")))
    before = mt.code.source.text_of(mt.code.source.parse("def f():\n    'Doc.'\n    return f()"))
    mt.code.source.graph_of(function, "tokens", "strict", False)
    assert ast.unparse(function.node) == before


def test_a_source_that_cannot_be_written_is_a_value_error():
    deep = "def f(a):\n    return " + "+".join(["a"] * 5000)
    with pytest.raises(ValueError, match="nested too deeply"):
        texts(deep)
