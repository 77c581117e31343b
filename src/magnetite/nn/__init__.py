"""Networks for directed graphs: encoders of positions, the transformer, GNNs and heads.

>>> import magnetite as mt
>>> position = mt.nn.MagLapNet(k=4, width=32)
>>> model = mt.nn.DigraphTransformer(width=32, layers=2, position=position, head=mt.nn.GraphHead(2))
>>> model(mt.Digraphs.from_edges([[0, 1], [1, 2]])).shape
torch.Size([1, 2])
"""

from magnetite.nn.edges import CategoryEdges, LinearEdges
from magnetite.nn.embeddings import CategoryNodes, LinearNodes, SameNodes, WireNodes
from magnetite.nn.gnn import GCN, GNN, DigraphGNN, SignGNN
from magnetite.nn.heads import GraphHead, NodeHead, SequenceHead
from magnetite.nn.maglapnet import LaplacianEncoder, MagLapNet, SignMLP
from magnetite.nn.magnet import MagNet
from magnetite.nn.model import GraphModel, load
from magnetite.nn.module import Module, describe, rebuild
from magnetite.nn.node_encoders import DepthEncoder, SinusoidalEncoder, SVDEncoder
from magnetite.nn.pair_head import PairHead
from magnetite.nn.positions import Combined, PositionEncoder, Positions
from magnetite.nn.presets import CodeSizes, sat, sat_plus_plus
from magnetite.nn.relations import WireRelations
from magnetite.nn.spe import SPE
from magnetite.nn.transformer import DigraphTransformer
from magnetite.nn.walks import PairWalkEncoder, RelativeWalkEncoder, WalkEncoder

__all__ = [
    "GCN",
    "GNN",
    "SPE",
    "CategoryEdges",
    "CategoryNodes",
    "CodeSizes",
    "Combined",
    "DepthEncoder",
    "DigraphGNN",
    "DigraphTransformer",
    "GraphHead",
    "GraphModel",
    "LaplacianEncoder",
    "LinearEdges",
    "LinearNodes",
    "MagLapNet",
    "MagNet",
    "Module",
    "NodeHead",
    "PairHead",
    "PairWalkEncoder",
    "PositionEncoder",
    "Positions",
    "RelativeWalkEncoder",
    "SVDEncoder",
    "SameNodes",
    "SequenceHead",
    "SignGNN",
    "SignMLP",
    "SinusoidalEncoder",
    "WalkEncoder",
    "WireNodes",
    "WireRelations",
    "describe",
    "load",
    "rebuild",
    "sat",
    "sat_plus_plus",
]
