"""Networks for directed graphs: position encoders, transformers, GNNs and heads.

>>> import magnetite as mt
>>> position = mt.nn.MagLapNet(k=4, width=32)
>>> model = mt.nn.DigraphTransformer(width=32, layers=2, position=position, head=mt.nn.GraphHead(2))
>>> model(mt.Digraphs.from_edges([[0, 1], [1, 2]])).shape
torch.Size([1, 2])
"""

from magnetite.nn.attention import GraphAttention
from magnetite.nn.embeddings import CategoryEdges, CategoryNodes, Embedding, LinearEdges, LinearNodes, SameNodes
from magnetite.nn.encoders import (
    SPE,
    Combined,
    DepthEncoder,
    LaplacianEncoder,
    MagLapNet,
    Normalised,
    PairWalkEncoder,
    PositionEncoder,
    Positions,
    RelativeWalkEncoder,
    SignGNN,
    SignMLP,
    SinusoidalEncoder,
    SparseBiasEncoder,
    SVDEncoder,
    WalkEncoder,
    WalkSumsEncoder,
)
from magnetite.nn.gnn import GCN, GNN, DirGNN
from magnetite.nn.heads import GraphHead, Head, NodeHead, PairHead, Rescaled, SequenceHead
from magnetite.nn.linear_attention import LinearAttention
from magnetite.nn.magnet import MagNet
from magnetite.nn.models import DigraphGNN, DigraphTransformer, GraphModel, load
from magnetite.nn.module import Module, describe, rebuild
from magnetite.nn.presets import CodeSizes, sat, sat_plus_plus
from magnetite.nn.recurrent import TopologicalGRU
from magnetite.nn.sparse_attention import SparseAttention

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
    "DirGNN",
    "Embedding",
    "GraphAttention",
    "GraphHead",
    "GraphModel",
    "Head",
    "LaplacianEncoder",
    "LinearAttention",
    "LinearEdges",
    "LinearNodes",
    "MagLapNet",
    "MagNet",
    "Module",
    "NodeHead",
    "Normalised",
    "PairHead",
    "PairWalkEncoder",
    "PositionEncoder",
    "Positions",
    "RelativeWalkEncoder",
    "Rescaled",
    "SVDEncoder",
    "SameNodes",
    "SequenceHead",
    "SignGNN",
    "SignMLP",
    "SinusoidalEncoder",
    "SparseAttention",
    "SparseBiasEncoder",
    "TopologicalGRU",
    "WalkEncoder",
    "WalkSumsEncoder",
    "describe",
    "load",
    "rebuild",
    "sat",
    "sat_plus_plus",
]
