"""Position encoders: networks that turn an encoding of the batch into positions for a model."""

from magnetite.nn.encoders.base import Combined, Normalised, PositionEncoder, Positions
from magnetite.nn.encoders.maglapnet import LaplacianEncoder, MagLapNet, SignGNN, SignMLP, SignNet
from magnetite.nn.encoders.nodes import DepthEncoder, SinusoidalEncoder, SVDEncoder, WalkSumsEncoder
from magnetite.nn.encoders.sparse import SparseBiasEncoder
from magnetite.nn.encoders.spe import SPE
from magnetite.nn.encoders.walks import PairWalkEncoder, RelativeWalkEncoder, WalkEncoder

ENCODERS: dict[str, type[PositionEncoder]] = {
    "maglapnet": MagLapNet,
    "spe": SPE,
    "walks": WalkEncoder,
    "relative-walks": RelativeWalkEncoder,
    "pair-walks": PairWalkEncoder,
    "walk-sums": WalkSumsEncoder,
    "sparse-bias": SparseBiasEncoder,
    "svd": SVDEncoder,
    "sinusoidal": SinusoidalEncoder,
    "depth": DepthEncoder,
}
"""Encoders by their names in configurations; the default for an encoding is the first one that reads it."""

__all__ = [
    "ENCODERS",
    "SPE",
    "Combined",
    "DepthEncoder",
    "LaplacianEncoder",
    "MagLapNet",
    "Normalised",
    "PairWalkEncoder",
    "PositionEncoder",
    "Positions",
    "RelativeWalkEncoder",
    "SVDEncoder",
    "SignGNN",
    "SignMLP",
    "SignNet",
    "SinusoidalEncoder",
    "SparseBiasEncoder",
    "WalkEncoder",
    "WalkSumsEncoder",
]
