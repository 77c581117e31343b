"""Tell which way the links of a graph point.

Some edges are held out: the model is asked which of two nodes is the source. Messages and encodings see training edges
only, and never the reverse of an edge that is asked about.

    python examples/link_direction.py
"""

import argparse

import torch

import magnetite as mt


def food_web(nodes: int, seed: int) -> mt.Digraphs:
    """A graph whose edges lead from low to high levels, and whose node numbers say nothing about levels."""
    generator = torch.Generator().manual_seed(seed)
    level = torch.rand(nodes, generator=generator)
    upwards = level[:, None] < level[None, :]
    edges = (upwards & (torch.rand(nodes, nodes, generator=generator) < 12 / nodes)).nonzero().T
    return mt.Digraphs.from_edges(edges, num_nodes=nodes)


def main() -> None:
    """Train on 80 % of the edges, choose the best model by 10 %, and test on 10 %."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=300, help="nodes of the graph")
    parser.add_argument("--epochs", type=int, default=100, help="passes over the training links")
    parser.add_argument("--out", help="folder of the run; by default a new folder in runs/")
    options = parser.parse_args()

    # `target="existence"` asks whether there is a link, against random or reversed node pairs.
    graph = food_web(options.nodes, seed=0)
    task = mt.tasks.Supervised(graph, level="link", target="direction")

    run = mt.train(task, encoding="magnetic", epochs=options.epochs, out=options.out)
    print("test:", {name: round(value, 3) for name, value in run.metrics["test"].items()})


if __name__ == "__main__":
    main()
