import pytest

from magnetite.code.effects import MUTATORS
from magnetite.code.heaps import Cell, find, unify
from tests.code.reading import edges, graph


def writes(body: str) -> list[str]:
    return edges(graph(body), "LAST_WRITE")


def heap(body: str) -> list[str]:
    """Writes to the heap that reach something, lines counted from the body's first."""
    return [edge for edge in writes(body) if not edge.startswith(("fp@1", "self@1")) and edge[1:3] != "@1"]


def test_attributes_are_separate():
    assert heap("self.a = x\ny = self.a\nz = self.b") == ["a@2 > a@3"]


def test_handing_on_reads_everything():
    assert heap("self.a = x\nself.b = y\nf(self)") == ["a@2 > self@4", "b@3 > self@4"]


def test_deeper_paths_are_parts_of_the_first():
    assert heap("self.a.b = x\ny = self.a.c\nz = self.a[0]") == ["b@2 > a@3", "b@2 > a@4"]


def test_a_store_replaces_the_one_before():
    assert heap("self.a = x\nself.a = y\nz = self.a") == ["a@2 > a@3", "a@3 > a@4"]


def test_a_store_through_an_alias_class_does_not():
    found = heap("r = xs\nr.append(1)\nxs.append(2)\nf(r)")
    assert {"Call@3 > r@5", "Call@4 > r@5"} <= set(found)


def test_binding_anew_leaves_the_old_object():
    assert heap("x.a = 1\nx = f()\ny = x.a") == ["x@3 > x@4"]


@pytest.mark.parametrize("method", ["append", "pop", "update", "setdefault", "read", "send", "close"])
def test_mutators_write_even_if_used(method):
    assert method in MUTATORS
    assert "Call@2 > r@3" in heap(f"y = r.{method}()\nf(r)")


def test_other_methods_write_if_their_result_is_dropped():
    assert "Call@2 > r@3" in heap("r.change()\nf(r)")
    assert heap("y = r.change()\nf(r)") == []


def test_modules_are_pure():
    assert heap("os.remove(a)\nos.remove(b)") == []
    assert heap("import os\nos.remove(a)\nos.remove(b)") == ["os@2 > os@3", "os@2 > os@4"]


def test_super_stands_for_the_first_parameter():
    assert "Call@2 > n@3" in heap("super().reset()\ny = self.n")


@pytest.mark.parametrize("call", ["next(r)", "setattr(r, 'a', 1)", "delattr(r, 'a')"])
def test_functions_that_write(call):
    assert "Call@2 > r@3" in heap(f"x = {call}\nf(r)")


def test_other_functions_do_not():
    assert heap("x = g(r)\nf(r)") == []


def test_iterating_reads_what_the_body_writes():
    assert "Call@3 > xs@2" in heap("for x in xs:\n    xs.append(x)")


def test_with_enters_and_exits():
    assert "withitem@2 > closed@4" in heap("with fp:\n    pass\ny = fp.closed")


def test_augmented_assignment_may_work_in_place():
    assert "r@3 > xs@4" in heap("r = xs\nr += [1]\nf(xs)")


def test_a_store_does_not_change_what_it_stores():
    assert heap("self.a = x\ny = f(x)") == []
    assert "Call@3 > a@4" in heap("self.a = x\nx.append(1)\ny = self.a")


def test_unify_joins_parts_too():
    one, other = Cell(), Cell()
    inner = one.part("a")
    unify([(one, other)])
    assert other.part("a") is find(inner)
    assert find(one).shared and not other.part("a").shared


def test_unify_ends_on_circles():
    cell = Cell()
    unify([(cell, cell.part("next"))])
    assert cell.part("next") is find(cell)
    assert cell.reach() == ((find(cell), True),)
