"""A head of your own, in a training loop of your own.

The models of magnetite are plain `nn.Module`s: any part may be replaced, and any loop may train them. The task is to
tell how many nodes the first node of a random digraph can reach.

    python examples/own_head_and_loop.py
"""

import argparse

import networkx as nx
import torch
from torch import Tensor

import magnetite as mt
from magnetite.batching import Batch


class FirstNodeHead(mt.nn.Head):
    """One number per graph, from its first node and the mean of all nodes; `setup` makes the parameters."""

    def setup(self, width: int) -> None:
        """The model calls this when it knows its width."""
        self.linear = torch.nn.Linear(2 * width, 1)

    def forward(self, states: Tensor, batch: Batch, positions: mt.nn.Positions) -> Tensor:  # noqa: ARG002
        """States are packed, `[nodes, width]`: the nodes of all graphs one after the other."""
        first = states[batch.node_numbers() == 0]
        return self.linear(torch.cat([first, batch.mean_nodes(states)], dim=-1)).squeeze(-1)


def main() -> None:
    """Train, and compare with the best constant."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graphs", type=int, default=1000, help="number of random graphs")
    parser.add_argument("--epochs", type=int, default=20, help="passes over the training graphs")
    parser.add_argument("--out", default="runs/own-head", help="folder of the saved model")
    options = parser.parse_args()

    drawn = [nx.gnp_random_graph(12, 0.12, seed=seed, directed=True) for seed in range(options.graphs)]
    wanted = torch.tensor([float(len(nx.descendants(graph, 0))) for graph in drawn])
    first = (torch.arange(12 * len(drawn)) % 12 == 0).long()
    graphs = mt.Digraphs.from_networkx(drawn).replace(node_features={"first": first})

    # Encode once, then take batches of graphs and encodings by number.
    encoding = mt.MagneticLaplacian(k=8)
    pairs = encoding(graphs)
    position, embedding = mt.nn.MagLapNet(8, 32, encoding), mt.nn.CategoryNodes({"first": 2})
    model = mt.nn.DigraphGNN(32, FirstNodeHead(), mt.nn.GNN(32, steps=4), position, embedding)
    optimiser = torch.optim.AdamW(model.parameters(), lr=3e-3)
    train, test = torch.arange(len(drawn)).tensor_split([len(drawn) * 4 // 5])
    for _ in range(options.epochs):
        for ids in train[torch.randperm(len(train))].split(50):
            optimiser.zero_grad()
            (model(mt.batch(graphs, pairs, ids=ids)) - wanted[ids]).square().mean().backward()
            optimiser.step()
    with torch.no_grad():
        off = model.eval()(mt.batch(graphs, pairs, ids=test)) - wanted[test]
    print(f"RMSE: {off.square().mean().sqrt():.3f} (of the mean: {wanted[test].std():.3f})")

    # A model that is called with graphs encodes them itself. To load it by `mt.nn.load`, import the class of its head.
    print("reachable from the first node:", model(graphs[:3]).tolist(), "true:", wanted[:3].tolist())
    model.save(options.out)


if __name__ == "__main__":
    main()
