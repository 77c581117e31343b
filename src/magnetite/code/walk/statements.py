"""The table of all statements."""

import ast
import sys

from magnetite.code.walk import assignments, control, definitions, exceptions
from magnetite.code.walk.visiting import STATEMENTS

STATEMENTS |= {
    ast.Expr: assignments.expression,
    ast.Assign: assignments.assign,
    ast.AnnAssign: assignments.annotated,
    ast.AugAssign: assignments.augmented,
    ast.Delete: assignments.delete,
    ast.Return: control.leave_function,
    ast.Break: control.leave_loop,
    ast.Continue: control.leave_loop,
    ast.Raise: control.throw,
    ast.Assert: control.check,
    ast.If: control.branch,
    ast.While: control.loop_while,
    ast.For: control.loop_for,
    ast.AsyncFor: control.loop_for,
    ast.With: control.manage,
    ast.AsyncWith: control.manage,
    ast.Try: exceptions.attempt,
    ast.TryStar: exceptions.attempt,
    ast.Match: control.choose,
    ast.FunctionDef: definitions.define,
    ast.AsyncFunctionDef: definitions.define,
    ast.ClassDef: definitions.define_class,
    ast.Import: assignments.bring,
    ast.ImportFrom: assignments.bring,
    ast.Global: assignments.declare,
    ast.Nonlocal: assignments.declare,
}
if sys.version_info >= (3, 12):
    STATEMENTS[ast.TypeAlias] = assignments.alias_type
