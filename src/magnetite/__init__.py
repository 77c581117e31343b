"""Positional encodings and transformers for directed graphs.

>>> import magnetite as mt
>>> graphs = mt.Digraphs.from_edges([[0, 1, 2], [1, 2, 3]])
>>> mt.MagneticLaplacian(k=2, q=mt.Relative(0.25))(graphs)
Eigenpairs(1 graphs, k=2, torch.complex64)
"""

import importlib
from typing import TYPE_CHECKING, Any

from magnetite import code, nn, sorting
from magnetite.batching import Batch, batch
from magnetite.encodings import (
    SVD,
    Depth,
    Eigenpairs,
    Laplacian,
    MagneticLaplacian,
    RandomWalk,
    Relatives,
    Sinusoidal,
    SparseRandomWalk,
    WalkSums,
    advise,
    cached,
    fourier,
    graph_filter,
    inverse_fourier,
)
from magnetite.encodings.stored import read
from magnetite.graphs import Digraphs
from magnetite.linalg.potential import Adaptive, PotentialWarning, Relative
from magnetite.version import __version__

if TYPE_CHECKING:
    from magnetite import plots, tasks
    from magnetite.corpus import encode_corpus
    from magnetite.training.trained import Run, train

LAZY = {
    "Run": "magnetite.training.trained",
    "encode_corpus": "magnetite.corpus",
    "plots": "magnetite.plots",
    "tasks": "magnetite.tasks",
    "train": "magnetite.training.trained",
}
"""Names that are imported when they are first used: training takes long to import, and figures need matplotlib."""


def __getattr__(name: str) -> Any:
    if name not in LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = importlib.import_module(LAZY[name])
    return getattr(module, name) if hasattr(module, name) else module


def __dir__() -> list[str]:
    return sorted({*globals(), *LAZY})


__all__ = [
    "SVD",
    "Adaptive",
    "Batch",
    "Depth",
    "Digraphs",
    "Eigenpairs",
    "Laplacian",
    "MagneticLaplacian",
    "PotentialWarning",
    "RandomWalk",
    "Relative",
    "Relatives",
    "Run",
    "Sinusoidal",
    "SparseRandomWalk",
    "WalkSums",
    "__version__",
    "advise",
    "batch",
    "cached",
    "code",
    "encode_corpus",
    "fourier",
    "graph_filter",
    "inverse_fourier",
    "nn",
    "plots",
    "read",
    "sorting",
    "tasks",
    "train",
]
