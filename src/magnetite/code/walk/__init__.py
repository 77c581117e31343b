"""The walk over one function: from its syntax tree to a draft."""

import ast
import sys

from magnetite.code.draft import Draft
from magnetite.code.scopes import Scope
from magnetite.code.walk import expressions, statements  # noqa: F401 - they fill in the tables
from magnetite.code.walk.definitions import bind_parameters, walk_body, walk_header

Definition = ast.FunctionDef | ast.AsyncFunctionDef

DEEPEST = 100_000
"""Frames allowed for deep trees; they are frames of Python, which do not use up the stack of C."""


def draft_of(node: Definition, name: str, is_method: bool = False, keep_docstrings: bool = False) -> Draft:
    """Walk over a function; once more with a higher recursion limit where it is nested very deeply."""
    try:
        return _walk(node, name, is_method, keep_docstrings)
    except RecursionError:
        limit = sys.getrecursionlimit()
        sys.setrecursionlimit(max(limit, DEEPEST))
        try:
            return _walk(node, name, is_method, keep_docstrings)
        except RecursionError as error:
            raise ValueError(
                f"the function {name!r} is nested too deeply: expressions and branches together may be nested some "
                f"{DEEPEST // 4:,} deep; split it"
            ) from error
        finally:
            sys.setrecursionlimit(limit)


def _walk(node: Definition, name: str, is_method: bool, keep_docstrings: bool) -> Draft:
    draft = Draft(name, keep_docstrings)
    module = draft.scope
    draft.rows.append((type(node).__name__, node.name, 0, "", node.lineno, 0, 0))
    if not is_method:
        draft.itself = module.variable(node.name)
        draft.itself.functions.append(0)
    parameters = walk_header(draft, node, 0)
    draft.scope = Scope("function", draft.scope, 0)
    bind_parameters(draft, parameters)
    if parameters and (is_method or parameters[0][0] in ("self", "cls")):
        draft.receiver = draft.scope.variable(parameters[0][0])
    walk_body(draft, node, 0)
    return draft
