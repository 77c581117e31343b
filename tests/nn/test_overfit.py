"""Every model learns 32 graphs by heart."""

import pytest
import torch

import magnetite as mt
from magnetite import nn
from magnetite.nn.presets import CodeSizes, sat, sat_plus_plus
from magnetite.sorting import SortingNetworks, generate
from tests.batching.cases import query_of

WIDTH, K, STEPS = 32, 8, 1000


def steps_to_learn(model, batch, loss, errors, rate=3e-3):
    """Train until there are no errors; the number of steps."""
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate)
    for step in range(STEPS):
        optimizer.zero_grad()
        loss(model.train()(batch)).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        with torch.no_grad():
            if step % 10 == 9 and int(errors(model.eval()(batch))) == 0:
                return step
    return STEPS


def wires():
    return nn.CategoryNodes({"first": 4, "second": 4})


def transformer(*position, **options):
    return lambda: nn.DigraphTransformer(WIDTH, 1, total(), list(position) or None, wires(), norm="pre", **options)


def total():
    return nn.GraphHead(2, readout="sum")


SORTERS = {
    "magnetic": transformer(nn.MagLapNet(K, WIDTH)),
    "magnetic, SignNet with MLP": transformer(nn.MagLapNet(K, WIDTH, sign=nn.SignMLP())),
    "magnetic, SignNet with GNN": transformer(nn.MagLapNet(K, WIDTH, sign=nn.SignGNN())),
    "Laplacian": transformer(nn.MagLapNet(K, WIDTH, mt.Laplacian(k=K))),
    "SPE": transformer(nn.SPE(K, WIDTH, heads=4, hidden=16, channels=8)),
    "walks": transformer(nn.WalkEncoder(WIDTH)),
    "relative walks": transformer(nn.RelativeWalkEncoder(heads=4, layers=1)),
    "SVD": transformer(nn.SVDEncoder(K, WIDTH)),
    "sinusoidal": transformer(nn.SinusoidalEncoder(WIDTH)),
    "depth": transformer(nn.DepthEncoder(WIDTH)),
    "local": transformer(local=nn.GNN(WIDTH), degree_scaled=True),
    "GNN": lambda: nn.DigraphGNN(WIDTH, total(), embedding=wires()),
    "GNN, undirected": lambda: nn.DigraphGNN(WIDTH, total(), nn.GNN(WIDTH, directed=False), embedding=wires()),
    "GCN": lambda: nn.DigraphGNN(WIDTH, total(), nn.GCN(WIDTH), embedding=wires()),
    "MagNet": lambda: nn.MagNet(WIDTH, 2, total(), embedding=wires()),
}


@pytest.fixture(scope="module")
def networks() -> mt.Digraphs:
    """16 sorting networks, and 16 that lack their last comparator and do not sort."""
    whole, shorter = generate(16, lengths=[4], seed=0), generate(16, lengths=[4], seed=1)
    both = [*whole, *(network.without_last() for network in shorter)]
    graphs = SortingNetworks.from_networks(both).to_digraphs()
    first, second = graphs.node_features["wires"].T
    return graphs.replace(node_features={"first": first, "second": second})


@pytest.mark.parametrize("name", SORTERS)
def test_sorting_networks_are_learnt_by_heart(name, networks):
    torch.manual_seed(0)
    model = nn.rebuild(nn.describe(SORTERS[name]()))
    label = networks.graph_features["label"].long()
    steps = steps_to_learn(
        model,
        model.prepare(networks),
        lambda answer: torch.nn.functional.cross_entropy(answer, label),
        lambda answer: (answer.argmax(-1) != label).sum(),
    )
    assert steps < STEPS


def test_adjacent_node_pairs_are_learnt_by_heart():
    generator = torch.Generator().manual_seed(0)
    sizes = torch.randint(8, 18, (32,), generator=generator).tolist()
    upper = [torch.triu(torch.rand(size, size, generator=generator) < 0.2, 1) for size in sizes]
    graphs = mt.Digraphs.from_edges([matrix.nonzero().T for matrix in upper], sizes)
    pairs = [(~torch.eye(size, dtype=torch.bool)).nonzero().tolist() for size in sizes]
    query = query_of(
        graphs, [[(u, v, int(matrix[u, v])) for u, v in own] for matrix, own in zip(upper, pairs, strict=True)]
    )
    torch.manual_seed(0)
    position = nn.SPE(17, WIDTH, pairs=True, hidden=16, channels=8)
    model = nn.DigraphTransformer(WIDTH, 1, nn.PairHead(hidden=16, pair_channels=16), position, norm="pre")
    parts = {name: encoding(graphs) for name, encoding in position.encodings().items()}
    batch = mt.batch(graphs, query=query, **parts)
    labels = batch.query.labels.float()
    steps = steps_to_learn(
        model,
        batch,
        lambda answer: torch.nn.functional.binary_cross_entropy_with_logits(answer[:, 0], labels),
        lambda answer: ((answer[:, 0] > 0) != labels.bool()).sum(),
        rate=1e-2,
    )
    assert steps < STEPS


@pytest.mark.parametrize("make", [sat, sat_plus_plus])
def test_names_are_learnt_by_heart(make):
    torch.manual_seed(0)
    sizes = CodeSizes({"node_type": 6, "attribute": 9, "depth": 5}, {"edge_type": 2}, words=12, length=2)
    trees = [torch.stack([torch.tensor([int(torch.randint(v, ())) for v in range(1, 9)]), torch.arange(1, 9)])] * 32
    graphs = mt.Digraphs.from_edges(trees)
    nodes = {name: torch.randint(size, (graphs.num_nodes,)) for name, size in sizes.nodes.items()}
    graphs = graphs.replace(node_features=nodes, edge_features={"edge_type": torch.randint(2, (graphs.num_edges,))})
    model, words = make(sizes, WIDTH, layers=1), torch.randint(10, (32, 2))
    steps = steps_to_learn(
        model,
        model.prepare(graphs),
        lambda answer: torch.nn.functional.cross_entropy(answer.flatten(0, 1), words.flatten()),
        lambda answer: (answer.argmax(-1) != words).sum(),
    )
    assert steps < STEPS
