"""The edges CFG_NEXT of every statement."""

import pytest

from magnetite import code
from tests.code.reading import edges, graph


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("x = a\ny = b", ["_mask_@1 > Assign@2", "_mask_@1 > Assign@3"]),
        ("x = a\ny = x", ["Assign@2 > Assign@3", "_mask_@1 > Assign@2"]),
        ("if a:\n    x = 1\ny = x", ["Assign@3 > Assign@4", "If@2 > Assign@3", "If@2 > Assign@4", "_mask_@1 > If@2"]),
        ("for x in xs:\n    y = x", ["Assign@3 > For@2", "For@2 > Assign@3", "_mask_@1 > For@2"]),
        (
            "while a:\n    break\nreturn",
            ["Break@3 > Return@4", "While@2 > Break@3", "While@2 > Return@4", "_mask_@1 > While@2"],
        ),
        ("while a:\n    continue", ["Continue@3 > While@2", "While@2 > Continue@3", "_mask_@1 > While@2"]),
        ("while True:\n    pass\nreturn", ["Pass@3 > While@2", "While@2 > Pass@3", "_mask_@1 > While@2"]),
        ("with a:\n    x = 1\nreturn x", ["Assign@3 > Return@4", "With@2 > Assign@3", "_mask_@1 > With@2"]),
        (
            "try:\n    x = 1\nexcept A:\n    pass\nexcept B:\n    pass\nreturn",
            [
                *("Assign@3 > ExceptHandler@4", "Assign@3 > Return@8", "ExceptHandler@4 > ExceptHandler@6"),
                *("ExceptHandler@4 > Pass@5", "ExceptHandler@6 > Pass@7", "Pass@5 > Return@8", "Pass@7 > Return@8"),
                *("Try@2 > Assign@3", "Try@2 > ExceptHandler@4", "_mask_@1 > Try@2"),
            ],
        ),
        (
            "try:\n    return a\nfinally:\n    x = 1",
            ["Return@3 > Assign@5", "Try@2 > Assign@5", "Try@2 > Return@3", "_mask_@1 > Try@2"],
        ),
        (
            "match a:\n    case 1:\n        x = 1\n    case _:\n        x = 2\nreturn x",
            [
                *("Assign@4 > Return@7", "Assign@6 > Return@7", "Match@2 > match_case@2", "_mask_@1 > Match@2"),
                *("match_case@2 > Assign@4", "match_case@2 > Assign@6", "match_case@2 > match_case@2"),
            ],
        ),
        ("def g():\n    x = 1", ["_mask_@1 > g@2", "g@2 > Assign@3"]),
    ],
)
def test_edges_of_the_control_flow(body, expected):
    assert edges(graph(body), "CFG_NEXT") == sorted(expected)


def test_break_and_return_continue_after_finally():
    source = "def f(a):\n  while a:\n    try:\n      break\n    finally:\n      x = 1\n  return"
    assert {"Break@4 > Assign@6", "Assign@6 > Return@7", "While@2 > Return@7"} <= set(
        edges(code.build(source), "CFG_NEXT")
    )


def test_a_write_after_the_read_in_a_loop_is_not_a_dependence():
    found = edges(graph("while a:\n    x = y\n    y = b"), "CFG_NEXT")
    assert "Assign@3 > Assign@4" not in found and "Assign@4 > Assign@3" not in found


SEQUENTIAL = """
def f(a, b):
    x = a + 1
    y = b + 1
    if x:
        p = a
        q = b
    for i in a:
        y += i
        x += 1
    return x * y
"""


def test_sequential_edges_follow_the_text_and_all_others_stay():
    plain, sequential = (code.build(SEQUENTIAL, kind) for kind in ("dataflow", "dataflow-sequential"))
    assert sequential.kind == "dataflow-sequential"
    rest, others = ({edge for edge in each.edges if edge.type != "CFG_NEXT"} for each in (plain, sequential))
    assert rest == others
    lines = {(sequential.lines[edge.source], sequential.lines[edge.target])
             for edge in sequential.edges if edge.type == "CFG_NEXT"}  # fmt: skip
    # Each statement leads to the next one; branches and loops are those of the data-flow graph.
    assert {(3, 4), (4, 5), (5, 6), (6, 7), (7, 8), (8, 9), (9, 10)} <= lines
    assert not {(3, 5), (3, 9), (4, 9), (3, 11)} & lines


def test_sequential_graphs_know_the_order_of_independent_statements():
    swapped = SEQUENTIAL.replace("x = a + 1\n    y = b + 1", "y = b + 1\n    x = a + 1")
    one, two = (code.build(text, "dataflow").hash for text in (SEQUENTIAL, swapped))
    assert one == two
    one, two = (code.build(text, "dataflow-sequential").hash for text in (SEQUENTIAL, swapped))
    assert one != two
