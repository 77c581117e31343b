"""Positional encodings: each is a frozen dataclass, whose fields are its configuration and part of its cache key."""

from typing import Any

from magnetite.encodings.advice import Advice, advise
from magnetite.encodings.cache import cached
from magnetite.encodings.fourier import fourier, graph_filter, inverse_fourier
from magnetite.encodings.order import Depth, Sinusoidal
from magnetite.encodings.relatives import Relatives
from magnetite.encodings.results import Eigenpairs, NodeEncoding, PairEncoding, TopPairs
from magnetite.encodings.spectral import Laplacian, MagneticLaplacian
from magnetite.encodings.svd import SVD
from magnetite.encodings.walks import RandomWalk, SparseRandomWalk, WalkSums

ENCODINGS: dict[str, type[Any]] = {
    "magnetic": MagneticLaplacian,
    "laplacian": Laplacian,
    "walks": RandomWalk,
    "walk-sums": WalkSums,
    "sparse-walks": SparseRandomWalk,
    "relatives": Relatives,
    "svd": SVD,
    "sinusoidal": Sinusoidal,
    "depth": Depth,
}
"""The encodings by their names on the command line, in configurations and in the documentation."""

DEFAULT_SIZE = 16
"""Size (`k`, `rank`, `width`) of encodings whose size has no default, on the command line and in configurations."""

__all__ = [
    "ENCODINGS",
    "SVD",
    "Advice",
    "Depth",
    "Eigenpairs",
    "Laplacian",
    "MagneticLaplacian",
    "NodeEncoding",
    "PairEncoding",
    "RandomWalk",
    "Relatives",
    "Sinusoidal",
    "SparseRandomWalk",
    "TopPairs",
    "WalkSums",
    "advise",
    "cached",
    "fourier",
    "graph_filter",
    "inverse_fourier",
]
