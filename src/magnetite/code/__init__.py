"""Directed graphs of Python functions.

`source` parses text and builds graphs of two kinds: `dataflow/` and `ast_graph`. Both are a `graph.CodeGraph`, with a
canonical hash (`hashing`) and a picture (`drawing`, `layout`). `reorderings` and `rename` rewrite a function.

>>> from magnetite import code
>>> code.build("def f(a, b):\\n    return a + b")
CodeGraph(f, dataflow, 11 nodes, 13 edges)
"""

from magnetite.code.dependencies import COMMUTATIVE
from magnetite.code.features import to_digraphs
from magnetite.code.graph import CodeGraph, Edge
from magnetite.code.rename import random_names, rename
from magnetite.code.reorderings import Reorderings, reorderings
from magnetite.code.source import build, build_all, build_files
from magnetite.code.vocabulary import Vocabulary

__all__ = [
    "COMMUTATIVE",
    "CodeGraph",
    "Edge",
    "Reorderings",
    "Vocabulary",
    "build",
    "build_all",
    "build_files",
    "random_names",
    "rename",
    "reorderings",
    "to_digraphs",
]
