"""Models and encodings of `benchmarks/real_data.py`: PyG's layers and ours, between the same embedding and head.

All models are `GraphModel`s over the same batches, so that the rows of the table differ in what they name only.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.nn import DirGNNConv, GINEConv, GPSConv, SAGEConv
from torch_geometric.nn.conv import gps_conv
from torch_geometric.transforms import AddLaplacianEigenvectorPE, AddRandomWalkPE
from torch_geometric.utils import to_dense_batch, to_undirected

import magnetite as mt
from magnetite import nn
from magnetite.batching import Batch
from magnetite.nn.embeddings import Embedding, embedding_of
from magnetite.nn.encoders import PositionEncoder, Positions

K, WALK, HEADS = 16, 16, 4
"""Number of eigenvectors or singular values, length of PyG's walks, number of attention heads."""

MANY = (0.0, 0.1, 0.2, 0.3, 0.4)
"""The potentials of multi-q, each with `K // 2` eigenvectors."""


# The input and the output, the same for all models


class Dropped(Embedding):
    """Another embedding with dropout.

    Args:
        embedding: The embedding.
        rate: Dropout rate.
    """

    def __init__(self, embedding: Embedding, rate: float):
        super().__init__()
        self.inner, self.dropout = embedding, torch.nn.Dropout(rate)

    def setup(self, width: int) -> None:
        """Make the parameters."""
        self.inner = embedding_of(self.inner, width)

    def forward(self, batch: Batch) -> Tensor:
        """One vector per node."""
        return self.dropout(self.inner(batch))


class Readout(nn.Head):
    """A network of two layers over sum, mean and maximum of the nodes: some targets are counts, others are maxima.

    Args:
        outputs: Number of outputs per graph.
        size: Typical number of nodes, by which the sum is divided.
        dropout: Dropout rate.
    """

    def __init__(self, outputs: int, size: float, dropout: float):
        super().__init__()
        self.outputs, self.size, self.rate = outputs, size, dropout

    def setup(self, width: int) -> None:
        """Make the layers."""
        layers = torch.nn.Linear(3 * width, width), torch.nn.GELU(), torch.nn.Dropout(self.rate)
        self.network = torch.nn.Sequential(*layers, torch.nn.Linear(width, self.outputs))

    def forward(self, states: Tensor, batch: Batch, positions: Positions) -> Tensor:  # noqa: ARG002
        """One row per graph."""
        total = batch.sum_nodes(states)
        mean = total / batch.sizes[:, None]
        return self.network(torch.cat([total / self.size, mean, batch.max_nodes(states)], dim=-1))


# PyG's layers


class GPS(nn.GraphModel):
    """PyG's `GPSConv` as in its example: `GINEConv` with edge embeddings beside multi-head attention.

    Messages pass along and against the edges, and the edge embedding says which: `GINEConv` along the edges alone
    would not see what a node's result is used for.

    Args:
        width: Size of a node's state.
        layers: Number of layers.
        head: Head.
        position: Position encoder.
        embedding: Embedding of the nodes.
        edges: Embedding of the edges.
        dropout: Dropout rate.
    """

    def __init__(
        self,
        width: int,
        layers: int,
        head: nn.Head,
        position: PositionEncoder | None,
        embedding: Embedding,
        edges: Embedding | None,
        dropout: float,
    ):
        super().__init__(width, head, position, embedding)
        self.direction = torch.nn.Embedding(2, width)
        self.edges = None if edges is None else embedding_of(edges, width)
        self.blocks = torch.nn.ModuleList(
            GPSConv(width, GINEConv(_mlp(width)), heads=HEADS, dropout=dropout) for _ in range(layers)
        )

    def body(self, states: Tensor, batch: Batch, positions: Positions) -> Tensor:  # noqa: ARG002
        """All layers."""
        both = torch.cat([batch.edge_index, batch.edge_index.flip(0)], dim=1)
        attributes = self.direction.weight.repeat_interleave(batch.num_edges, dim=0)
        if self.edges is not None:
            attributes = attributes + self.edges(batch).repeat(2, 1)
        # Given the sizes, PyG need not ask the device for them in every layer, which would wait for other processes.
        dense = partial(
            to_dense_batch, batch_size=len(batch), max_num_nodes=max(bucket.nodes for bucket in batch.buckets)
        )
        with patch.object(gps_conv, "to_dense_batch", dense):
            for block in self.blocks:
                states = block(states, both, batch.node_graph, edge_attr=attributes)
        return states


class DirGNN(nn.GraphModel):
    """PyG's `DirGNNConv` around `SAGEConv`, with jumping knowledge, as its authors recommend.

    Args:
        width: Size of a node's state.
        layers: Number of layers.
        head: Head.
        position: Position encoder.
        embedding: Embedding of the nodes.
        dropout: Dropout rate.
    """

    def __init__(
        self,
        width: int,
        layers: int,
        head: nn.Head,
        position: PositionEncoder | None,
        embedding: Embedding,
        dropout: float,
    ):
        super().__init__(width, head, position, embedding)
        self.convolutions = torch.nn.ModuleList(DirGNNConv(SAGEConv(width, width)) for _ in range(layers))
        self.norms = torch.nn.ModuleList(torch.nn.LayerNorm(width) for _ in range(layers))
        self.dropout, self.jump = torch.nn.Dropout(dropout), torch.nn.Linear((layers + 1) * width, width)

    def body(self, states: Tensor, batch: Batch, positions: Positions) -> Tensor:  # noqa: ARG002
        """All layers; the last one reads the states of each."""
        every = [states]
        for convolution, norm in zip(self.convolutions, self.norms, strict=True):
            every.append(self.dropout(norm(convolution(every[-1], batch.edge_index)).relu()))
        return self.jump(torch.cat(every, dim=-1))


def _mlp(width: int) -> torch.nn.Sequential:
    return torch.nn.Sequential(torch.nn.Linear(width, width), torch.nn.ReLU(), torch.nn.Linear(width, width))


class Normalised(PositionEncoder):
    """`W BatchNorm(p_v) + b` of a node encoding, as in PyG's GPS example; eigenvectors get random signs in training.

    Args:
        channels: Number of columns of the encoding.
        width: Size of a node's vector.
        signs: Whether to draw signs.
        of: Name of the encoding in the batch.
    """

    def __init__(self, channels: int, width: int, signs: bool, of: str):
        super().__init__()
        self.signs, self.of = signs, of
        self.norm, self.linear = torch.nn.BatchNorm1d(channels), torch.nn.Linear(channels, width)

    def forward(self, batch: Batch) -> Positions:
        """The encoding, normalised and transformed."""
        values = batch.encoding(self.of)
        if self.signs and self.training:
            drawn = torch.randint(2, (len(batch), values.shape[1]), device=values.device) * 2 - 1
            values = values * batch.per_node(drawn)
        return Positions(nodes=self.linear(self.norm(values)))


# Encodings by name


class Dense(AddLaplacianEigenvectorPE):
    """PyG's transform with a dense solver for all graphs, which is faster than ARPACK here, and more accurate."""

    SPARSE_THRESHOLD = 3000


def pyg_laplacian(edges: Tensor, nodes: int) -> Tensor:
    """PyG's eigenvectors of the symmetrised graph, zero where a small graph has fewer."""
    data = Data(edge_index=to_undirected(edges, num_nodes=nodes), num_nodes=nodes)
    k = min(K, nodes - 1)
    found = Dense(k, "pe", is_undirected=True)(data).pe if k else torch.zeros(nodes, 0)
    return torch.nn.functional.pad(found.float(), (0, K - k))


def pyg_walk(edges: Tensor, nodes: int) -> Tensor:
    """PyG's walks on the directed graph, which never return in a DAG, and on the symmetrised graph."""
    each = (edges, to_undirected(edges, num_nodes=nodes))
    walks = [AddRandomWalkPE(WALK, "pe")(Data(edge_index=edge, num_nodes=nodes)).pe for edge in each]
    return torch.cat(walks, dim=1).float()


PYG: dict[str, Callable[[Tensor, int], Tensor]] = {"pyg-laplacian": pyg_laplacian, "pyg-walk": pyg_walk}
"""PyG's encodings, graph by graph: edges and number of nodes to one row per node."""

OURS: dict[str, Callable[[mt.Digraphs], Any]] = {
    "magnetic": lambda graphs: mt.MagneticLaplacian(k=K)(graphs),
    "multi-q": lambda graphs: mt.MagneticLaplacian(k=K // 2, q=MANY)(graphs),
    "walks": lambda graphs: mt.RandomWalk(dtype=torch.float16)(graphs),
    "svd": lambda graphs: mt.SVD(rank=K)(graphs),
}
"""Our encodings, all graphs at once."""


def position(name: str, width: int, layers: int, attention: bool) -> PositionEncoder | list[PositionEncoder] | None:
    """The network that reads an encoding; with attention, encodings of node pairs also bias it."""
    if name == "none":
        return None
    if name in PYG:
        return Normalised(K if name == "pyg-laplacian" else 2 * WALK, width, name == "pyg-laplacian", of=name)
    if name == "magnetic":
        return nn.MagLapNet(K, width, mt.MagneticLaplacian(k=K), of=name, scaling="nodes", dropout=0.0)
    if name == "multi-q":
        encoding, heads = mt.MagneticLaplacian(k=K // 2, q=MANY), HEADS if attention else None
        return nn.SPE(K // 2, width, heads, layers, channels=width // 16, hidden=width // 4, encoding=encoding, of=name)
    if name == "walks":
        nodes = nn.WalkEncoder(width, of=name)
        return [nodes, nn.RelativeWalkEncoder(HEADS, layers, of=name)] if attention else nodes
    return nn.SVDEncoder(K, width, of=name)


# Models by name


@dataclass(frozen=True)
class Parts:
    """What all models share.

    Args:
        width: Size of a node's state.
        layers: Number of layers, or of message passing steps.
        dropout: Dropout rate.
        embedding: Embedding of the nodes.
        edges: Embedding of the edges.
        head: Head.
    """

    width: int
    layers: int
    dropout: float
    embedding: Embedding
    edges: Embedding | None
    head: nn.Head


def build(model: str, encoding: str, parts: Parts) -> nn.GraphModel:
    """The model of a row."""
    width, layers, dropout, head = parts.width, parts.layers, parts.dropout, parts.head
    attention = model in ("transformer", "sat", "hybrid")
    where: Any = position(encoding, width, layers, attention)
    embedding = Dropped(parts.embedding, dropout)
    if model == "gps":
        return GPS(width, layers, head, where, embedding, parts.edges, dropout)
    if model == "dirgnn":
        return DirGNN(width, layers, head, where, embedding, dropout)
    if model == "gnn":
        return nn.DigraphGNN(width, head, nn.GNN(width, layers, edge_features=parts.edges), where, embedding)
    if model == "magnet":
        return nn.MagNet(width, layers, head, where, embedding, q=0.1)
    local = None if model == "transformer" else nn.GNN(width, 2, edge_features=parts.edges)
    return nn.DigraphTransformer(
        width, layers, head, where, embedding, HEADS, expansion=2, dropout=dropout, norm="pre", local=local,
        local_added=model == "hybrid",
    )  # fmt: skip


ROWS: tuple[tuple[str, str], ...] = (
    *(("gps", name) for name in ("none", *PYG, "magnetic")),
    *(("dirgnn", name) for name in ("none", *PYG, "magnetic")),
    *(("gnn", name) for name in ("none", *PYG, *OURS)),
    *(("magnet", name) for name in ("none", "magnetic")),
    *(("transformer", name) for name in ("none", *OURS)),
    *(("sat", name) for name in ("none", "pyg-laplacian", *OURS)),
    *(("hybrid", name) for name in ("none", *PYG, *OURS)),
)
"""The rows of the table: model and encoding."""


def side(model: str, encoding: str) -> str:
    """Whose row it is: `PyG` if both model and encoding are PyG's, `ours` if one of them is ours."""
    return "PyG" if model in ("gps", "dirgnn") and encoding in ("none", *PYG) else "ours"
