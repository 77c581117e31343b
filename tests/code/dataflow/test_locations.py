from magnetite.code.dataflow.locations import Cell, find, unify
from tests.code.reading import heap


def test_attributes_are_separate():
    assert heap("self.a = x\ny = self.a\nz = self.b") == ["a@2 > a@3"]


def test_passing_on_reads_everything():
    assert heap("self.a = x\nself.b = y\nf(self)") == ["a@2 > self@4", "b@3 > self@4"]


def test_deeper_paths_are_parts_of_the_first():
    assert heap("self.a.b = x\ny = self.a.c\nz = self.a[0]") == ["b@2 > a@3", "b@2 > a@4"]


def test_a_store_replaces_the_one_before():
    assert heap("self.a = x\nself.a = y\nz = self.a") == ["a@2 > a@3", "a@3 > a@4"]


def test_a_store_through_an_alias_class_does_not():
    found = heap("r = xs\nr.append(1)\nxs.append(2)\nf(r)")
    assert {"Call@3 > r@5", "Call@4 > r@5"} <= set(found)


def test_rebinding_leaves_the_old_object():
    assert heap("x.a = 1\nx = f()\ny = x.a") == ["x@3 > x@4"]


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


def test_unify_terminates_on_cycles():
    cell = Cell()
    unify([(cell, cell.part("next"))])
    assert cell.part("next") is find(cell)
    assert cell.reach() == ((find(cell), True),)
