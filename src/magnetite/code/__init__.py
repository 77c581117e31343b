"""Python source → directed graphs of functions.

>>> from magnetite import code
>>> code.build("def f(a, b):\\n    return a + b")
CodeGraph(f, dataflow, 12 nodes, 14 edges)
"""

from magnetite.code.functions import build, build_all, build_files
from magnetite.code.graph import CodeGraph, Edge

__all__ = ["CodeGraph", "Edge", "build", "build_all", "build_files"]
