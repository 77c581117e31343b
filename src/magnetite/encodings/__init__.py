"""Positional encodings: one frozen callable dataclass each, its constructor, config and cache key at once."""

from magnetite.encodings.cache import cached
from magnetite.encodings.fourier import fourier, graph_filter, inverse_fourier
from magnetite.encodings.order import Depth, Sinusoidal
from magnetite.encodings.results import Eigenpairs, NodeEncoding, PairEncoding, TopPairs
from magnetite.encodings.spectral import Laplacian, MagneticLaplacian
from magnetite.encodings.svd import SVD
from magnetite.encodings.walks import RandomWalk, SparseRandomWalk

__all__ = [
    "SVD",
    "Depth",
    "Eigenpairs",
    "Laplacian",
    "MagneticLaplacian",
    "NodeEncoding",
    "PairEncoding",
    "RandomWalk",
    "Sinusoidal",
    "SparseRandomWalk",
    "TopPairs",
    "cached",
    "fourier",
    "graph_filter",
    "inverse_fourier",
]
