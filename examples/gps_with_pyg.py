"""Train PyG's own GPSConv on directed graphs, with and without magnetic encodings.

The task is to tell a node's layer (its longest path from a source, 0 to 5) in a random DAG. Attention and undirected
message passing cannot see which way the edges point; with the encodings they can.

    python examples/gps_with_pyg.py
"""

import argparse

import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GINConv, GPSConv
from torch_geometric.utils import to_undirected

from magnetite.transforms import AddMagneticLaplacianPE

K, LAYERS, WIDTH = 8, 6, 32


class GPS(nn.Module):
    """Two GPS layers over the symmetrised graph; direction can only come from the encoding."""

    def __init__(self, features: int):
        super().__init__()
        self.start = nn.Linear(features, WIDTH)
        self.layers = nn.ModuleList(
            GPSConv(WIDTH, GINConv(nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH))), heads=4)
            for _ in range(2)
        )
        self.head = nn.Linear(WIDTH, LAYERS)

    def forward(self, batch: Data, features: Tensor) -> Tensor:
        """Scores of the layers of every node."""
        hidden = self.start(features)
        edges = to_undirected(batch.edge_index, num_nodes=batch.num_nodes)
        for layer in self.layers:
            hidden = layer(hidden, edges, batch.batch)
        return self.head(hidden)


def random_dag(generator: torch.Generator, size: int = 16) -> Data:
    """A random DAG with permuted node numbers and each node's layer as target."""
    matrix = torch.triu(torch.rand(size, size, generator=generator) < 2.5 / size, 1)
    layer = torch.zeros(size, dtype=torch.long)
    for v in range(size):
        layer[v] = (layer[matrix[:, v]] + 1).max() if matrix[:, v].any() else 0
    number = torch.randperm(size, generator=generator)
    target = torch.empty_like(layer)
    target[number] = layer.clamp(max=LAYERS - 1)
    return Data(edge_index=number[matrix.nonzero().T], num_nodes=size, y=target)


def accuracy(encoded: bool, train: list[Data], test: list[Data], epochs: int) -> float:
    """Train for some epochs and return the share of test nodes whose layer is right."""
    torch.manual_seed(0)
    model = GPS(2 * K if encoded else 1)
    optimiser = torch.optim.AdamW(model.parameters(), lr=3e-3)

    def features(batch: Data) -> Tensor:
        return batch.magnetic_pe if encoded else torch.ones(batch.num_nodes, 1)

    model.train()
    for _ in range(epochs):
        for batch in DataLoader(train, batch_size=64, shuffle=True):
            optimiser.zero_grad()
            nn.functional.cross_entropy(model(batch, features(batch)), batch.y).backward()
            optimiser.step()
    model.eval()
    batch = next(iter(DataLoader(test, batch_size=len(test))))
    with torch.no_grad():
        return float((model(batch, features(batch)).argmax(1) == batch.y).float().mean())


def main() -> None:
    """Compare the two."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=20)
    epochs = parser.parse_args().epochs
    generator = torch.Generator().manual_seed(0)
    transform = AddMagneticLaplacianPE(k=K)
    data = [transform(random_dag(generator)) for _ in range(1200)]
    for name, encoded in (("no encoding", False), ("magnetic", True)):
        print(f"{name}: {accuracy(encoded, data[:1000], data[1000:], epochs):.3f}")


if __name__ == "__main__":
    main()
