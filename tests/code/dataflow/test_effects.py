import pytest

from magnetite.code.dataflow.effects import MUTATORS
from tests.code.reading import heap


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
