import pytest

from magnetite import code
from magnetite.code.graph import MASK
from tests.code.reading import edges

CLASS = """
class A:
    @f.setter
    def f(self, x):
        self.f(x)
        super().f(x)
        f(x)
        x.f()
        return self.f
"""


def masked(source: str, mask, kind: str = "dataflow") -> list[tuple[str, int]]:
    graph = code.build(source, kind, mask)
    return [
        (kind, line)
        for kind, attribute, line in zip(graph.types, graph.attributes, graph.lines, strict=True)
        if attribute == MASK
    ]


@pytest.mark.parametrize("kind", ["dataflow", "ast"])
def test_methods(kind):
    assert sorted(masked(CLASS, "strict", kind)) == [
        *(("Attribute", 5), ("Attribute", 6), ("Attribute", 9), ("FunctionDef", 4), ("Name", 3)),
    ]
    assert masked(CLASS, "paper", kind) == [("FunctionDef", 4)]
    assert masked(CLASS, None, kind) == []


@pytest.mark.parametrize("kind", ["dataflow", "ast"])
def test_functions(kind):
    source = "def f(x):\n  f(x)\n  return f"
    assert sorted(masked(source, "strict", kind)) == [("FunctionDef", 1), ("Name", 2), ("Name", 3)]
    assert sorted(masked(source, "paper", kind)) == [("FunctionDef", 1), ("Name", 2)]


def test_a_variable_of_the_same_name_is_another():
    assert masked("def f(x):\n  f = x\n  return f", "strict") == [("FunctionDef", 1)]
    assert masked("def f(x):\n  return [f for f in x]", "strict") == [("FunctionDef", 1)]


def test_a_method_cut_out_of_its_class():
    assert sorted(masked("def f(self):\n  return self.f()", "strict")) == [("Attribute", 2), ("FunctionDef", 1)]


def test_inside_nested_functions():
    assert ("Name", 3) in masked("def f(x):\n  def g():\n    return f(x)\n  return g", "strict")


def test_recursive_calls_are_calls():
    assert edges(code.build(CLASS), "CALLS") == ["Call@5 > _mask_@4", "Call@6 > _mask_@4"]


def test_the_name_of_the_graph_stays():
    assert code.build(CLASS).name == "A.f"
