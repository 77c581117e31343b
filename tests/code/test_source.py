import pickle

import pytest

from magnetite import code
from magnetite.code.source import functions, parse

SOURCE = """
def top(a):
    def inner(b):
        return b
    return inner(a)

class A:
    def method(self):
        class B:
            def deep(self): pass
        return self

    if True:
        async def other(self): pass
"""
NAMES = ["top", "top.inner", "A.method", "A.method.B.deep", "A.other"]


def test_every_function_in_text_order():
    found = list(functions(parse(SOURCE)))
    assert [function.name for function in found] == NAMES
    assert [function.name for function in found if function.is_method] == ["A.method", "A.method.B.deep", "A.other"]


@pytest.mark.parametrize("kind", ["dataflow", "ast"])
def test_build_by_name(kind):
    for name in NAMES:
        graph = code.build(SOURCE, kind, name=name)
        assert (graph.name, graph.kind) == (name, kind)
    assert code.build(SOURCE, kind, name="deep").name == "A.method.B.deep"


def test_the_only_one_needs_no_name():
    assert code.build("class A:\n    def f(self):\n        def g(): pass").name == "A.f"


def test_an_indented_method_keeps_its_lines_and_strings():
    graph = code.build("    def f(self):\n        x = '''a\n    b'''\n        return x")
    assert graph.lines[0] == 1 and "'a\\n    b'" in graph.attributes


def test_the_last_definition_counts():
    assert "2" in code.build("def f(): return 1\ndef f(): return 2").attributes


def test_docstrings():
    source = "def f():\n    'text'\n    class A:\n        'text'\n    return A"
    assert "'text'" not in code.build(source).attributes
    assert code.build(source, keep_docstrings=True).attributes.count("'text'") == 2


@pytest.mark.parametrize(
    ("source", "options", "message"),
    [
        ("x = 1", {}, "defines no function"),
        ("", {}, "defines no function"),
        ("def f(: pass", {}, "<source>, line 1: invalid syntax"),
        ("def f(): pass\0", {}, "null bytes"),
        ("def f():\n  return '\ud800'", {}, "surrogate"),
        ("def f(): pass\ndef g(): pass", {}, r"several functions \(f, g\): give the qualified name"),
        ("class A:\n  def f(self): pass\nclass B:\n  def f(self): pass", {"name": "f"}, "A.f, B.f"),
        ("def f(): pass", {"name": "h"}, "no function 'h': choose one of f"),
        (
            "def f(): pass",
            {"kind": "cfg"},
            "kind must be one of 'dataflow', 'ast', 'ast-directed', 'tokens', 'dataflow-sequential', got 'cfg'",
        ),
        ("def f(): pass", {"mask": "all"}, "mask must be 'strict', 'paper' or None, got 'all'"),
    ],
)
def test_errors_say_what_to_do(source, options, message):
    with pytest.raises(ValueError, match=message) as caught:
        code.build(source, **options)
    assert "\n" not in str(caught.value)


def test_files_in_other_encodings(tmp_path):
    path = tmp_path / "latin.py"
    path.write_bytes("# -*- coding: latin-1 -*-\ndef f():\n    return 'ä'\n".encode("latin-1"))
    assert "'ä'" in next(code.build_all(path)).attributes
    path.write_bytes(b"\xef\xbb\xbfdef f():\n    return 1\n")
    assert [graph.name for graph in code.build_all(path)] == ["f"]


@pytest.mark.parametrize(
    "content", [b"def f():\n    return '\xe4'\n", b"# coding: nonsense\n", b"def f(:\n", b"def f(): 0\0\n"]
)
def test_files_that_cannot_be_read(tmp_path, content):
    path = tmp_path / "bad.py"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"bad\.py"):
        list(code.build_all(path))


def test_many_files_on_several_cores(tmp_path):
    paths = [tmp_path / f"{number}.py" for number in range(4)]
    for number, path in enumerate(paths):
        path.write_text(SOURCE if number != 2 else "def f(:")
    found = dict(code.build_files(paths, workers=2))
    assert list(found) == [str(path) for path in paths]
    assert [graph.name for graph in found[str(paths[0])]] == NAMES
    assert isinstance(found[str(paths[2])], ValueError)
    assert found[str(paths[0])][0].hash == code.build(SOURCE, name="top").hash


def test_graphs_can_be_pickled():
    graph = code.build("def f(a): return a")
    assert pickle.loads(pickle.dumps(graph)).hash == graph.hash


def test_a_single_path_is_rejected():
    with pytest.raises(ValueError, match="is a single path: give a list"):
        next(code.build_files("source.py"))


def test_a_function_object_is_rejected():
    with pytest.raises(TypeError, match=r"give inspect\.getsource"):
        code.build(test_a_function_object_is_rejected)
