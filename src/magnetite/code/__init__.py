"""Directed graphs of Python functions.

`source` parses text and builds graphs of two kinds: `dataflow/` and `ast_graph`. Both are a `graph.CodeGraph`, with a
canonical hash (`hashing`) and a picture (`drawing`, `layout`). `reorderings` and `rename` rewrite a function, `names`
proposes names for it.

>>> from magnetite import code
>>> code.build("def f(a, b):\\n    return a + b")
CodeGraph(f, dataflow, 11 nodes, 13 edges)
"""

from typing import TYPE_CHECKING, Any

from magnetite.code.dependencies import COMMUTATIVE
from magnetite.code.features import to_digraphs
from magnetite.code.graph import CodeGraph, Edge
from magnetite.code.rename import random_names, rename
from magnetite.code.reorderings import Reorderings, reorderings
from magnetite.code.source import build, build_all, build_files
from magnetite.code.vocabulary import Vocabulary

if TYPE_CHECKING:
    from magnetite.code.names import suggest_names


def __getattr__(name: str) -> Any:
    if name != "suggest_names":  # imported when it is first used, with what reads files
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from magnetite.code.names import suggest_names

    return suggest_names


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
    "suggest_names",
    "to_digraphs",
]
