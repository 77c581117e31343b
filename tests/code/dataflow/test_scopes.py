import ast

import pytest

from magnetite import code
from magnetite.code.dataflow.scopes import Scope, resolve
from tests.code.reading import edges


def writes(source: str) -> list[str]:
    return edges(code.build(source, mask=None), "LAST_WRITE")


def test_a_comprehension_has_its_own_scope():
    found = writes("def f(x, xs):\n  y = [\n    x\n    for x in xs]\n  return x")
    assert "x@4 > x@3" in found and "x@1 > x@5" in found and "x@4 > x@5" not in found


def test_the_first_iterable_is_evaluated_outside():
    found = writes("def f(x):\n  return [x\n   for x\n   in x]")
    assert "x@1 > x@4" in found and "x@3 > x@2" in found and "x@3 > x@4" not in found


def test_a_later_iterable_is_evaluated_inside():
    found = writes("def f(xs):\n  return [y\n    for x in xs\n    for y\n    in x]")
    assert "x@3 > x@5" in found


def test_walrus_binds_around_the_comprehension():
    found = writes("def f(xs):\n  [(y := x)\n    for x in xs]\n  return y")
    assert "y@2 > y@4" in found


def test_class_scope_is_not_seen_by_its_methods():
    source = "def f(p):\n  class A:\n    p = 1\n    def g(self):\n      return p\n  return A"
    assert "p@1 > p@5" in writes(source) and "p@3 > p@5" not in writes(source)


def test_nonlocal_names_the_outer_variable():
    found = writes("def f():\n  n = 0\n  def g():\n    nonlocal n\n    n += 1\n  g()\n  return n")
    assert {"n@2 > n@5", "n@5 > n@5", "n@2 > n@7", "Call@6 > n@7"} <= set(found)


def test_global_skips_functions_around():
    found = writes("def f():\n  n = 0\n  def g():\n    global n\n    return n\n  return g")
    assert "n@2 > n@5" not in found


def test_except_binds_and_then_deletes():
    found = writes("def f(e):\n  try:\n    g()\n  except E as e:\n    e = 1\n  return e")
    assert "e@4 > e@5" in found and "e@4 > e@6" in found and "e@5 > e@6" not in found and "e@1 > e@6" in found


def test_lambda_parameters_hide_outer_names():
    found = writes("def f(x):\n  g = lambda x: (\n    x)\n  return g(\n    x)")
    assert "x@1 > x@3" not in found and "x@2 > x@3" in found and "x@1 > x@5" in found


def test_defaults_belong_outside():
    found = writes("def f(x):\n  def g(\n    x=\n      x):\n    return x\n  return g")
    assert "x@1 > x@4" in found and "x@3 > x@5" in found


@pytest.mark.parametrize("kind", ["comprehension", "function"])
def test_resolve_climbs(kind):
    module = Scope("module", None, -1)
    outer = Scope("function", module, 0)
    bound = outer.binding("x")
    inner = Scope(kind, Scope("class", outer, 0), 0)
    inner.parent.binding("x")
    assert resolve(inner.variable("x")) is bound
    assert resolve(inner.variable("len")) is module.variable("len")


def test_imports_are_not_local():
    scope = Scope("function", Scope("module", None, -1), 0)
    assert not scope.binding("os", imported=True).is_local
    assert scope.binding("os").is_local


def test_names_of_the_tree_are_left_alone():
    tree = ast.parse("def f(a):\n  b = a\n  return f(b)").body[0]
    before = ast.dump(tree)
    code.build(ast.unparse(tree))
    assert ast.dump(tree) == before
