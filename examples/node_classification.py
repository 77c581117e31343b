"""Classify the nodes of one directed graph from the labels of some of them.

The graph is a block model: 5 groups in a cycle, and most edges lead from a group to the next one. Within a group and
without direction, all nodes look alike, so a model must see which way the edges point.

    python examples/node_classification.py
"""

import argparse

import torch

import magnetite as mt

GROUPS = 5


def block_model(nodes: int, seed: int) -> mt.Digraphs:
    """One graph; the group of each node is its feature `y`."""
    generator = torch.Generator().manual_seed(seed)
    group = torch.randint(GROUPS, (nodes,), generator=generator)
    follows = (group[None, :] - group[:, None]) % GROUPS == 1  # v is in the group after that of u
    likely = torch.where(follows, 20.0, 1.0) / nodes
    edges = (torch.rand(nodes, nodes, generator=generator) < likely).nonzero().T
    graph = mt.Digraphs.from_edges(edges, num_nodes=nodes)
    return graph.replace(node_features={"y": group})


def main() -> None:
    """Train on 60 % of the nodes, choose the best model by 20 %, and test on 20 %."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=600, help="nodes of the graph")
    parser.add_argument("--epochs", type=int, default=200, help="steps, since there is one graph")
    parser.add_argument("--out", help="folder of the run; by default a new folder in runs/")
    options = parser.parse_args()

    # `level="node"`: a feature of the nodes is predicted. Instead of fractions, `splits` may be three masks.
    graph = block_model(options.nodes, seed=0)
    task = mt.tasks.Supervised(graph, target="y", level="node", kind="classification", splits=(0.6, 0.2, 0.2))

    # There is one graph, so an epoch is one step. `settings={"optim.lr": 3e-4}` replaces any setting of the preset.
    run = mt.train(task, encoding="magnetic", model="transformer", epochs=options.epochs, out=options.out)
    print(f"accuracy: {run.metrics['test']['accuracy']:.3f} (guessing: {1 / GROUPS:.2f})")

    # The run folder is all that predictions need, now or later: mt.Run(FOLDER).predict(graph).
    print("classes of the first nodes:", run.predict(graph)[:10], "true:", graph.node_features["y"][:10].tolist())


if __name__ == "__main__":
    main()
