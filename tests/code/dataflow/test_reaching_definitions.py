from magnetite import code
from tests.code.reading import edges


def reaching(source: str) -> set[str]:
    return set(edges(code.build(source), "LAST_WRITE"))


def test_branches_join():
    found = reaching("def f(x, c):\n  if c:\n    x = 1\n  return x")
    assert {"x@1 > x@4", "x@3 > x@4"} <= found
    assert "x@1 > x@5" not in reaching("def f(x, c):\n  if c:\n    x = 1\n  else: x = 2\n  return x")


def test_loops_have_back_edges():
    found = reaching("def f(x, c):\n  while c:\n    y = x\n    x = 1\n  return x")
    assert {"x@1 > x@3", "x@4 > x@3", "x@1 > x@5", "x@4 > x@5"} <= found


def test_a_for_loop_may_not_run():
    assert {"x@1 > x@4", "x@2 > x@4", "x@2 > x@2"} <= reaching("def f(x, xs):\n  for x in xs:\n    pass\n  return x")


def test_endless_loops_end_by_break_only():
    found = reaching("def f(x):\n  while True:\n    x = 1\n    if x:\n      break\n    x = 2\n  return x")
    assert "x@3 > x@7" in found and "x@6 > x@7" not in found and "x@1 > x@7" not in found


def test_continue_and_else():
    found = reaching(
        "def f(x, xs):\n  for y in xs:\n    if y:\n      x = 1\n      continue\n    x = 2\n    break\n"
        "  else:\n    return x\n  return x"
    )
    assert {"x@4 > x@9", "x@1 > x@9", "x@6 > x@10"} <= found
    assert "x@6 > x@9" not in found and "x@4 > x@10" not in found


def test_any_point_of_a_try_leads_to_the_handler():
    found = reaching("def f(x):\n  try:\n    x = 1\n    x = 2\n  except E:\n    return x\n  return x")
    assert {"x@1 > x@6", "x@3 > x@6", "x@4 > x@6", "x@4 > x@7"} <= found and "x@3 > x@7" not in found


def test_finally_on_every_way_out():
    found = reaching("def f(x):\n  try:\n    x = 1\n    g()\n    x = 2\n    return x\n  finally:\n    h(x)\n  return x")
    assert {"x@1 > x@8", "x@3 > x@8", "x@5 > x@8"} <= found
    assert not any(edge.endswith("x@9") and not edge.startswith("x@") for edge in found)


def test_what_follows_finally_is_reached_by_normal_ends_only():
    found = reaching("def f(x):\n  try:\n    x = 1\n    x = 2\n  finally:\n    h(x)\n  return x")
    assert "x@3 > x@6" in found and "x@4 > x@7" in found and "x@3 > x@7" not in found


def test_break_passes_through_finally():
    found = reaching(
        "def f(x, c):\n  while c:\n    try:\n      x = 1\n      break\n    finally:\n      x = 2\n  return x"
    )
    assert {"x@4 > x@7", "x@7 > x@8", "x@1 > x@8"} <= found and "x@4 > x@8" not in found


def test_match_binds_in_order():
    found = reaching("def f(a, x):\n  match a:\n    case [x, 1]:\n      g(x)\n    case _ if x:\n      pass\n  return x")
    assert {"x@3 > x@4", "x@3 > x@5", "x@1 > x@5", "x@3 > x@7", "x@1 > x@7"} <= found


def test_short_circuits_may_skip():
    found = reaching("def f(a, x):\n  y = a and (x := 1)\n  return x")
    assert {"x@1 > x@3", "x@2 > x@3"} <= found
    assert "x@1 > x@3" not in reaching("def f(a, x):\n  y = (x := 1) and a\n  return x")


def test_dead_code_starts_from_nothing():
    found = reaching("def f(x):\n  return x\n  y = x\n  z = y")
    assert "x@1 > x@3" not in found and "y@3 > y@4" in found
    assert "y@3 > y@6" not in reaching("def f(x, y):\n  if x:\n    return x; y = 1\n  else:\n    pass\n  return y")


def test_flow_in_with_async_and_match():
    for head, line in (("with x as x", 2), ("async with x as x", 2), ("async for x in x", 2)):
        assert f"x@{line} > x@3" in reaching(f"async def f(x):\n  {head}:\n    y = x")


def test_calls_find_the_definitions_that_reach_them():
    source = "def f(c):\n  if c:\n    def g(): pass\n  else:\n    def g(): pass\n  g()\n  return f(c)"
    assert edges(code.build(source), "CALLS") == ["Call@6 > g@3", "Call@6 > g@5", "Call@7 > _mask_@1"]


def test_tuples_element_by_element():
    found = edges(code.build("def f(a, b):\n  x, y = a, b\n  p, q = a\n  r = s = b"), "CALCULATED_FROM")
    assert found == ["a@2 > x@2", "a@3 > p@3", "a@3 > q@3", "b@2 > y@2", "b@4 > r@4", "b@4 > s@4"]


def test_every_binding_is_calculated_from_what_it_uses():
    source = (
        "def f(a):\n  for b in a: pass\n  with a as c: pass\n  match a:\n    case d: pass\n  [e for e in a]\n"
        "  g = (h := a)\n  i: int = a\n  i += a"
    )
    found = set(edges(code.build(source), "CALCULATED_FROM"))
    assert {
        "a@2 > b@2",
        "a@3 > c@3",
        "a@4 > d@5",
        "a@6 > e@6",
        "a@7 > h@7",
        "a@7 > g@7",
        "a@8 > i@8",
        "a@9 > i@9",
    } <= found
