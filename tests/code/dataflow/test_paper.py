"""The paper's two example functions, edge by edge, and its F1 score."""

from magnetite import code
from tests.code.reading import edges

FUNC = """def func(a, b, c):
  d = min(a, b)
  if a > 0:
    e = a ** 2
    f = b ** 2
    a = sqrt(e + f)
  else:
    a = -a
  if b < 0:
    b = b + d
  return a + b
"""
TRANSFORM_ADD = """def transform_add(
    a, b: float = 3.14):
  a = a**2
  c = math.sqrt(b)
  return c + a
"""


def test_order_of_func():
    """Three blocks: d, the branches that refine a, the branch that changes b, which needs d."""
    assert edges(code.build(FUNC), "CFG_NEXT") == sorted(
        [
            "_mask_@1 > Assign@2",  # d depends on nothing
            "_mask_@1 > If@3",  # neither does the refinement of a
            "Assign@2 > If@9",  # d is used where b is changed
            "If@3 > Assign@4",
            "If@3 > Assign@5",  # e and f are independent of each other
            "Assign@4 > Assign@6",
            "Assign@5 > Assign@6",
            "If@3 > Assign@8",
            "If@9 > Assign@10",
            "Assign@6 > Return@11",
            "Assign@8 > Return@11",
            "Assign@10 > Return@11",
            "If@9 > Return@11",  # b >= 0
        ]
    )


def test_data_of_func():
    assert edges(code.build(FUNC), "LAST_WRITE") == sorted(
        [
            *("a@1 > a@2", "b@1 > b@2", "a@1 > a@3", "a@1 > a@4", "b@1 > b@5"),
            *("e@4 > e@6", "f@5 > f@6"),
            *("a@1 > a@6", "a@1 > a@8", "a@1 > a@8"),  # overwritten in both branches, read in one
            *("b@1 > b@9", "b@1 > b@10", "b@1 > b@10", "d@2 > d@10"),
            *("a@6 > a@11", "a@8 > a@11", "b@10 > b@11", "b@1 > b@11"),
        ]
    )
    assert edges(code.build(FUNC), "CALCULATED_FROM") == sorted(
        [
            *("min@2 > d@2", "a@2 > d@2", "b@2 > d@2"),
            *("a@4 > e@4", "b@5 > f@5", "sqrt@6 > a@6", "e@6 > a@6", "f@6 > a@6", "a@8 > a@8"),
            *("b@10 > b@10", "d@10 > b@10"),
        ]
    )
    assert edges(code.build(FUNC), "CALLS") == []


def test_transform_add():
    found = code.build(TRANSFORM_ADD)
    assert edges(found, "CFG_NEXT") == sorted(
        ["_mask_@1 > Assign@3", "_mask_@1 > Assign@4", "Assign@3 > Return@5", "Assign@4 > Return@5"]
    )
    assert edges(found, "LAST_WRITE") == sorted(["a@2 > a@3", "a@2 > a@3", "b@2 > b@4", "c@4 > c@5", "a@3 > a@5"])
    assert edges(found, "CALCULATED_FROM") == sorted(["a@3 > a@3", "math@4 > c@4", "b@4 > c@4"])
    assert len(found) == len(code.build(TRANSFORM_ADD, kind="ast")) - 1  # OGB's has a Module


def test_fields_of_transform_add():
    found = code.build(TRANSFORM_ADD)
    fields = [
        f"{found.types[edge.source]} {edge.name} {found.types[edge.target]}"
        for edge in found.edges
        if edge.type == "FIELD" and found.types[edge.target] not in ("Load", "Store")
    ]
    assert sorted(fields) == sorted(
        [
            *("FunctionDef args arguments", "arguments args arg", "arguments args:2 arg", "arg annotation Name"),
            *("arguments defaults Constant", "FunctionDef body Assign", "FunctionDef body Assign"),
            *(
                "Assign targets Name",
                "Assign value BinOp",
                "BinOp input Name",
                "BinOp op Pow",
                "BinOp input:2 Constant",
            ),
            *(
                "Assign targets Name",
                "Assign value Call",
                "Call func Attribute",
                "Attribute value Name",
                "Call args Name",
            ),
            *("FunctionDef body Return", "Return value BinOp", "BinOp input Name", "BinOp op Add", "BinOp input Name"),
        ]
    )
