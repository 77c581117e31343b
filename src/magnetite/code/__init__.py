"""Python source → directed graphs of functions.

>>> from magnetite import code
>>> code.build("def f(a, b):\\n    return a + b")
CodeGraph(f, dataflow, 11 nodes, 13 edges)
"""

from magnetite.code.commuting import COMMUTATIVE
from magnetite.code.functions import build, build_all, build_files
from magnetite.code.graph import CodeGraph, Edge
from magnetite.code.rename import random_names, rename
from magnetite.code.reorderings import Reorderings, reorderings

__all__ = [
    "COMMUTATIVE",
    "CodeGraph",
    "Edge",
    "Reorderings",
    "build",
    "build_all",
    "build_files",
    "random_names",
    "rename",
    "reorderings",
]
