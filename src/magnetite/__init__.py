"""Positional encodings and transformers for directed graphs.

>>> import magnetite as mt
>>> graphs = mt.Digraphs.from_edges([[0, 1, 2], [1, 2, 3]])
>>> mt.MagneticLaplacian(k=2, q=mt.Relative(0.25))(graphs)
Eigenpairs(1 graphs, k=2, torch.complex64)
"""

from magnetite import code, nn, sorting
from magnetite.batching import Batch, batch
from magnetite.encodings import (
    SVD,
    Depth,
    Eigenpairs,
    Laplacian,
    MagneticLaplacian,
    RandomWalk,
    Sinusoidal,
    SparseRandomWalk,
    cached,
    fourier,
    graph_filter,
    inverse_fourier,
)
from magnetite.graphs import Digraphs, read
from magnetite.linalg.potential import Relative
from magnetite.version import __version__

__all__ = [
    "SVD",
    "Batch",
    "Depth",
    "Digraphs",
    "Eigenpairs",
    "Laplacian",
    "MagneticLaplacian",
    "RandomWalk",
    "Relative",
    "Sinusoidal",
    "SparseRandomWalk",
    "__version__",
    "batch",
    "cached",
    "code",
    "fourier",
    "graph_filter",
    "inverse_fourier",
    "nn",
    "read",
    "sorting",
]
