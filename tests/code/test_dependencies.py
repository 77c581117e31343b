import ast

from magnetite.code.dependencies import blocks
from magnetite.sorting.topological_sorts import members
from tests.code.reading import PARAMETERS, function


def order(body: str, number: int = 0) -> set[str]:
    """`ij` for every pair of statements of a list where the first must stay before the second."""
    block = blocks(ast.parse(function(body)).body[0])[number]
    return {f"{first}{second}" for second, before in enumerate(block.before) for first in members(before)}


def test_flow_anti_and_output_dependencies():
    assert order("x = a\ny = x") == {"01"}
    assert order("y = x\nx = a") == {"01"}
    assert order("x = a\nx = b") == {"01"}
    assert order("x = a\ny = b") == set()


def test_only_direct_constraints_are_recorded():
    assert order("x = 1\nx = 2\nx = 3") == {"01", "12"}


def test_barriers():
    assert order("x = 1\ny = 2\nassert a\np = 3\nq = 4") == {"02", "12", "23", "24"}


def test_break_binds_its_loop_only():
    body = "p = 1\nfor x in xs:\n    q = 2\n    if x:\n        break\n    r = 3\ns = 4"
    assert order(body) == set()
    assert order(body, 1) == {"01", "12"}


def test_return_binds_everything_around():
    assert order("p = 1\nfor x in xs:\n    if x:\n        return\ns = 4") == {"01", "12"}


def test_a_caught_raise_binds_its_try_only():
    assert order("p = 1\ntry:\n    raise E\nexcept Exception:\n    pass\ns = 4") == set()
    assert order("p = 1\ntry:\n    raise E\nexcept E:\n    pass\ns = 4") == {"01", "12"}
    assert order("p = 1\ntry:\n    pass\nexcept Exception:\n    raise E\ns = 4") == {"01", "12"}


def test_declarations_come_first():
    assert order("x = 1\nglobal g\ng = 2") == {"01", "12"}


def test_all_lists_outermost_first():
    body = "if a:\n    pass\nelse:\n    pass\ntry:\n    pass\nexcept E:\n    pass\nelse:\n    pass\nfinally:\n    pass"
    found = [(type(block.owner).__name__, block.field) for block in blocks(ast.parse(function(body)).body[0])]
    assert found == [
        ("FunctionDef", "body"),
        *(("If", "body"), ("If", "orelse")),
        *(("Try", "body"), ("Try", "orelse"), ("ExceptHandler", "body"), ("Try", "finalbody")),
    ]


def test_docstrings_are_excluded():
    [block] = blocks(ast.parse(f"def f({PARAMETERS}):\n    'text'\n    x = 1").body[0])
    assert len(block.statements) == 1
