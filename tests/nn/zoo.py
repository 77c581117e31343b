"""One table of all encoders and models, small and untrained: each law is tested for every row."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

import magnetite as mt
from magnetite import nn
from magnetite.batching import Batch
from magnetite.nn.heads import Head
from magnetite.packed import Packed

K, WIDTH, HEADS, LAYERS = 6, 16, 4, 2
MULTI = mt.MagneticLaplacian(k=K, q=(0.1, mt.Relative(0.25)))
REAL = mt.Laplacian(k=K)

Make = Callable[[Head], nn.GraphModel]


@dataclass(frozen=True)
class Row:
    """A model without its head, and which symmetries it must have or break."""

    make: Make
    sees_directions: bool = True
    sees_numbers: bool = False
    pair_channels: int = 0
    compiles: bool = True

    def pair_model(self) -> nn.GraphModel:
        """The model with a head for node pairs."""
        return self.model(nn.PairHead(2, hidden=WIDTH, pair_channels=self.pair_channels))

    def model(self, head: Head) -> nn.GraphModel:
        """The model with the parameters of seed 0, in evaluation mode."""
        torch.manual_seed(0)
        return self.make(head).eval()


def transformer(*encoders: Callable[[], nn.PositionEncoder], **options: object) -> Make:
    return lambda head: nn.DigraphTransformer(
        WIDTH, LAYERS, head, [make() for make in encoders] or None, heads=HEADS, **options
    )


def magnetic(**options: object) -> Callable[[], nn.PositionEncoder]:
    return lambda: nn.MagLapNet(K, WIDTH, **options)


def spe(**options: object) -> Callable[[], nn.PositionEncoder]:
    return lambda: nn.SPE(K, hidden=WIDTH, channels=4, **options)


def local(make: Callable[[], nn.Module], *encoders: Callable[[], nn.PositionEncoder]) -> Make:
    return lambda head: nn.DigraphGNN(WIDTH, head, make(), [make() for make in encoders] or None)


def edges() -> nn.LinearEdges:
    return nn.LinearEdges("weight")


def both() -> list[Callable[[], nn.PositionEncoder]]:
    return [magnetic(), lambda: nn.RelativeWalkEncoder(HEADS, LAYERS)]


ZOO: dict[str, Row] = {
    "magnetic": Row(transformer(magnetic())),
    "magnetic, no attention": Row(transformer(magnetic(attention=False, scaling="parts"))),
    "magnetic, multi-q": Row(transformer(magnetic(encoding=MULTI, scaling="nodes"))),
    "magnetic, SignNet with MLP": Row(transformer(lambda: nn.MagLapNet(K, WIDTH, sign=nn.SignMLP()))),
    "magnetic, SignNet with GNN": Row(transformer(lambda: nn.MagLapNet(K, WIDTH, sign=nn.SignGNN()))),
    "magnetic, multi-q, SignNet with GNN": Row(
        transformer(lambda: nn.MagLapNet(K, WIDTH, MULTI, sign=nn.SignGNN(steps=2)))
    ),
    "Laplacian": Row(transformer(lambda: nn.LaplacianEncoder(K, WIDTH)), sees_directions=False),
    "Laplacian, SignNet": Row(
        transformer(lambda: nn.LaplacianEncoder(K, WIDTH, sign=nn.SignMLP())), sees_directions=False
    ),
    "SPE, nodes": Row(transformer(spe(width=WIDTH))),
    "SPE, biases": Row(transformer(spe(heads=HEADS, layers=LAYERS, width=WIDTH))),
    "SPE, pairs": Row(transformer(spe(width=WIDTH, pairs=True)), pair_channels=8),
    "SPE, multi-q": Row(transformer(spe(width=WIDTH, encoding=MULTI))),
    "SPE, Laplacian": Row(transformer(spe(width=WIDTH, encoding=REAL)), sees_directions=False),
    "walks": Row(transformer(lambda: nn.WalkEncoder(WIDTH))),
    "walks, relative": Row(transformer(lambda: nn.WalkEncoder(WIDTH), lambda: nn.RelativeWalkEncoder(HEADS, LAYERS))),
    "walks, pairs": Row(
        transformer(lambda: nn.WalkEncoder(WIDTH), lambda: nn.PairWalkEncoder(steps=3)), pair_channels=6
    ),
    "walk sums": Row(transformer(lambda: nn.WalkSumsEncoder(WIDTH))),
    "SVD": Row(transformer(lambda: nn.SVDEncoder(K, WIDTH))),
    "sinusoidal": Row(transformer(lambda: nn.SinusoidalEncoder(WIDTH)), sees_directions=False, sees_numbers=True),
    "depth": Row(transformer(lambda: nn.DepthEncoder(WIDTH))),
    "two encoders, pre-norm": Row(transformer(*both(), norm="pre")),
    "SAT": Row(
        transformer(local=nn.GCN(WIDTH, edge_features=edges()), activation="relu", degree_scaled=True),
        sees_directions=False,
    ),
    "SAT++": Row(transformer(magnetic(), local=nn.GNN(WIDTH, edge_features=edges()), degree_scaled=True)),
    "linear attention": Row(transformer(magnetic(), attention=nn.LinearAttention(WIDTH, HEADS))),
    "linear attention, GNN": Row(
        transformer(magnetic(), attention=nn.LinearAttention(WIDTH, HEADS), local=nn.GNN(WIDTH), local_added=True)
    ),
    "sparse attention, relatives": Row(
        transformer(
            lambda: nn.WalkSumsEncoder(WIDTH),
            lambda: nn.SparseBiasEncoder(HEADS, LAYERS),
            attention=nn.SparseAttention(WIDTH, HEADS),
        )
    ),
    "sparse attention, walks": Row(
        transformer(
            lambda: nn.WalkSumsEncoder(WIDTH),
            lambda: nn.SparseBiasEncoder(HEADS, LAYERS, mt.SparseRandomWalk(steps=2, top=16)),
            attention=nn.SparseAttention(WIDTH, HEADS),
        )
    ),
    "GNN": Row(local(lambda: nn.GNN(WIDTH))),
    "GNN, edge features": Row(local(lambda: nn.GNN(WIDTH, edge_features=edges()))),
    "GNN, undirected": Row(local(lambda: nn.GNN(WIDTH, directed=False)), sees_directions=False),
    "GNN, magnetic": Row(local(lambda: nn.GNN(WIDTH), magnetic())),
    "GCN": Row(local(lambda: nn.GCN(WIDTH, edge_features=edges())), sees_directions=False),
    "DirGNN": Row(local(lambda: nn.DirGNN(WIDTH, steps=2, alpha=0.3))),
    "linear attention, DirGNN": Row(
        transformer(attention=nn.LinearAttention(WIDTH, HEADS), local=nn.DirGNN(WIDTH), local_added=True, norm="pre")
    ),
    "TopologicalGRU": Row(local(lambda: nn.TopologicalGRU(WIDTH)), compiles=False),
    "TopologicalGRU, edge features": Row(
        local(lambda: nn.TopologicalGRU(WIDTH, steps=2, edge_features=edges())), compiles=False
    ),
    "MagNet": Row(lambda head: nn.MagNet(WIDTH, LAYERS, head)),
    "MagNet, q=0": Row(lambda head: nn.MagNet(WIDTH, LAYERS, head, q=0.0), sees_directions=False),
}


def encoded(model: nn.GraphModel, graphs: mt.Digraphs) -> dict[str, Packed]:
    """All encodings that the model reads."""
    return {name: encoding(graphs) for name, encoding in model.position.encodings().items()} if model.position else {}


@torch.no_grad()
def node_answers(model: nn.GraphModel, batch: Batch) -> Tensor:
    """The answers for the real nodes."""
    return model(batch)[batch.node_mask]


def generic_digraphs(seed: int, count: int = 3) -> mt.Digraphs:
    """Weighted acyclic graphs with distinct eigenvalues, singular values and angles, numbered at random."""
    rng = np.random.default_rng(seed)
    edges, sizes, weights = [], [], []
    for size in rng.integers(3, K + 1, size=count).tolist():
        upper = np.triu(rng.random((size, size)) < 0.4, 1)
        upper[np.arange(size - 1), np.arange(1, size)] = True
        number = rng.permutation(size)
        edges.append(number[np.stack(upper.nonzero())])
        sizes.append(size)
        weights.append(rng.uniform(0.5, 2.0, size=edges[-1].shape[1]))
    return mt.Digraphs.from_edges(edges, sizes, weights)


def hard_digraphs() -> mt.Digraphs:
    """One node, two nodes apart, isolated nodes, repeated eigenvalues, self-loops; most have fewer than `K` nodes."""
    listed = [([], 1), ([(0, 0)], 1), ([], 2), ([(1, 2)], 5), ([(0, 1), (2, 3)], 4), ([(0, 1), (1, 2), (2, 0)], 3)]
    complete = [(u, v) for u in range(8) for v in range(8) if u != v]
    star = [(0, v) for v in range(1, 8)]
    arrays = [(np.array(pairs, dtype=np.int64).reshape(-1, 2).T, n) for pairs, n in [*listed, (complete, 8), (star, 8)]]
    return mt.Digraphs.from_edges([array for array, _ in arrays], [size for _, size in arrays])
