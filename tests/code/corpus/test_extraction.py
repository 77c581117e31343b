import pytest

from magnetite.code.corpus import extraction
from magnetite.code.corpus.extraction import extract
from magnetite.code.corpus.settings import Settings

BODY = "    a = 1\n    b = a + x\n    return b\n"


def reasons(text: str, **settings) -> dict[str, int]:
    result = extract(("code.py", text.encode(), Settings(**settings)))
    assert result.found == len(result.rows) + result.left_out.total()
    return dict(result.left_out)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (f"def __call__(x):\n{BODY}", "dunder method"),
        (f"def test_it(x):\n{BODY}", "test function"),
        (f"def testIt(x):\n{BODY}", "test function"),
        (f"@typing.overload\ndef f(x):\n{BODY}", "overload"),
        ("def f(x):\n    '''Text.'''\n    ...\n", "stub"),
        ("def f(x):\n    raise NotImplementedError('later')\n", "stub"),
        (
            "def f(x):\n    '''A\n    long\n    text.'''\n    a = 1\n\n    # no line\n    return a\n",
            "body of fewer than 3 lines",
        ),
        (f"def __(x):\n{BODY}", "name without words"),
    ],
)
def test_what_is_left_out(text, reason):
    assert reasons(text) == {reason: 1}


def test_what_is_kept():
    method = "class A:\n    def g(self):\n        a = (1,\n    2,\n 3)\n"
    assert reasons(f"def tester(x):\n{BODY}\nasync def f(x):\n{BODY}\n{method}") == {}


def test_nested_functions_are_functions():
    inner = "    def g(y):\n        a = y\n        a += 1\n        return a\n"
    result = extract(("code.py", f"def f(x):\n{inner}    return g\n".encode(), Settings()))
    assert [row.name for row in result.rows] == ["f", "g"]
    assert result.rows[1].source == inner


def test_large_graphs():
    assert reasons(f"def f(x):\n{BODY}", nodes=5) == {"graph of more than 5 nodes": 1}
    assert reasons("def f(x):\n" + "    x += 1\n" * 100, nodes=5) == {"graph of more than 5 nodes": 1}


def test_time_limit(monkeypatch):
    def forever(*_):
        while True:
            pass

    monkeypatch.setattr(extraction, "graph_of", forever)
    assert reasons(f"def f(x):\n{BODY}", time_limit=0.01) == {"time limit exceeded": 1}


def test_graphs_that_cannot_be_built(monkeypatch):
    def refuse(*_):
        raise ValueError("nested too deeply")

    monkeypatch.setattr(extraction, "graph_of", refuse)
    assert reasons(f"def f(x):\n{BODY}") == {"graph cannot be built": 1}


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"print 'hello'", "file cannot be parsed"),
        (b"x = 1\0", "file cannot be parsed"),
        (b"x = " + b"(" * 10_000, "file cannot be parsed"),
        (b"x = '\xff'", "file cannot be read"),
        (b"# coding: klingon\n", "file cannot be read"),
    ],
)
def test_files_that_are_not_read(content, problem):
    result = extract(("code.py", content, Settings()))
    assert result.problem.startswith(problem)
    assert result.details
    assert not result.rows


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_encodings_and_newlines(newline):
    text = f"# coding: latin-1\n\f\ndef f(x):\n    a = 'é\u2028'\n{BODY}".replace("\u2028", "\x85").replace(
        "\n", newline
    )
    (row,) = extract(("code.py", text.encode("latin-1"), Settings())).rows
    assert row.line == 3
    assert row.source.startswith("def f(x):\n    a = 'é")
    assert row.source.endswith("return b\n")
