"""Which statements of a list must keep their order.

For `reorderings`: `blocks(function)` gives one `Block` for every statement list below the function (its own body, the
bodies and else-branches of compound statements, handlers, cases, nested functions and classes), outermost first.
`block.before[j]` is a bit set: bit `i` is set where statement `i` must stay before statement `j`. It holds direct
constraints only (flow, anti- and output dependencies, barriers), all with `i < j`; the legal orders of the list are the
linear extensions of its transitive closure. A docstring is not part of its block.
"""

import ast
from dataclasses import dataclass


@dataclass(frozen=True)
class Block:
    """A statement list and the order that it must keep."""

    owner: ast.AST
    """The node that holds the list: a function, `If`, `ExceptHandler`, `match_case`, …"""
    field: str
    """Where it holds it: `body`, `orelse`, `finalbody`."""
    statements: tuple[ast.stmt, ...]
    """The very objects of the list, docstring left out."""
    before: tuple[int, ...]


def blocks(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[Block]:
    """Every statement list below the function."""
    raise NotImplementedError
