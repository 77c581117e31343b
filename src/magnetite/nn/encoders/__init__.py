"""Encoders: networks that read an encoding of the batch and give positions to a model."""

from magnetite.nn.encoders.base import Combined, PositionEncoder, Positions
from magnetite.nn.encoders.maglapnet import LaplacianEncoder, MagLapNet, SignGNN, SignMLP, SignNet
from magnetite.nn.encoders.nodes import DepthEncoder, SinusoidalEncoder, SVDEncoder
from magnetite.nn.encoders.spe import SPE
from magnetite.nn.encoders.walks import PairWalkEncoder, RelativeWalkEncoder, WalkEncoder

ENCODERS: dict[str, type[PositionEncoder]] = {
    "maglapnet": MagLapNet,
    "spe": SPE,
    "walks": WalkEncoder,
    "relative-walks": RelativeWalkEncoder,
    "pair-walks": PairWalkEncoder,
    "svd": SVDEncoder,
    "sinusoidal": SinusoidalEncoder,
    "depth": DepthEncoder,
}
"""The encoders by the names that configurations use; the first that reads an encoding is its default."""

__all__ = [
    "ENCODERS",
    "SPE",
    "Combined",
    "DepthEncoder",
    "LaplacianEncoder",
    "MagLapNet",
    "PairWalkEncoder",
    "PositionEncoder",
    "Positions",
    "RelativeWalkEncoder",
    "SVDEncoder",
    "SignGNN",
    "SignMLP",
    "SignNet",
    "SinusoidalEncoder",
    "WalkEncoder",
]
