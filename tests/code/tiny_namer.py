"""A small model of function names with random parameters, for tests of what is around it."""

import torch

from magnetite import code, nn
from magnetite.tasks.namer import Namer, Vocabularies

WORDS = ("get", "set", "name", "value", "read", "write", "file", "import", "2d", "total")
TEXTS = ("self", "x", "y", "name", "value", "path", "total", "1", "'r'", "open", "get", "read")


def tiny_namer(seed: int = 0, graphs: str = "dataflow", max_nodes: int = 60, sharp: float = 30.0) -> Namer:
    """A model whose proposals depend on types, attributes and edges; `sharp` spreads its probabilities."""
    vocabularies = Vocabularies(graphs, WORDS, TEXTS, max_nodes=max_nodes)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = nn.DigraphTransformer(
            16,
            1,
            head=nn.SequenceHead(vocabularies.outputs, vocabularies.length),
            position=nn.MagLapNet(4, 16),
            embedding=nn.CategoryNodes(vocabularies.node_sizes),
            local=nn.GNN(16, edge_features=nn.CategoryEdges(vocabularies.edge_sizes)),
            heads=2,
        )
        model.head.linear.weight.data.mul_(sharp)
    return Namer(model, vocabularies)


def graphs_of(*sources: str) -> list[code.CodeGraph]:
    return [code.build(source) for source in sources]
