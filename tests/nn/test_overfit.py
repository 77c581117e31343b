"""Each model learns 32 graphs of its task by heart."""

import pytest
import torch

import magnetite as mt
from magnetite import nn
from magnetite.nn.presets import CodeSizes, sat, sat_plus_plus
from magnetite.sorting import generate
from magnetite.tasks import Playground
from magnetite.tasks.sorting import examples

WIDTH, K, STEPS = 32, 8, 1000


def learnt(model, batch, loss, errors, rate=3e-3):
    """Train until there are no errors left; the number of steps it took."""
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    optimiser = torch.optim.AdamW(model.parameters(), lr=rate)
    for step in range(STEPS):
        optimiser.zero_grad()
        answer = model.train()(batch)
        loss(answer).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        with torch.no_grad():
            if step % 10 == 9 and int(errors(model.eval()(batch))) == 0:
                return step
    return STEPS


def transformer(*position, **options):
    embedding = nn.WireNodes(16)
    return lambda: nn.DigraphTransformer(WIDTH, 1, total(), list(position) or None, embedding, norm="pre", **options)


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
    "GNN": lambda: nn.DigraphGNN(WIDTH, total(), embedding=nn.WireNodes(16)),
    "GNN, undirected": lambda: nn.DigraphGNN(WIDTH, total(), nn.GNN(WIDTH, directed=False), embedding=nn.WireNodes(16)),
    "GCN": lambda: nn.DigraphGNN(WIDTH, total(), nn.GCN(WIDTH), embedding=nn.WireNodes(16)),
    "MagNet": lambda: nn.MagNet(WIDTH, 2, total(), embedding=nn.WireNodes(16)),
}


@pytest.mark.parametrize("name", SORTERS)
def test_sorting_networks_are_learnt_by_heart(name):
    torch.manual_seed(0)
    sorts, fails = (examples(generate(16, lengths=[4], seed=seed), reverse=False).graphs for seed in (0, 1))
    graphs = mt.Digraphs.concat([sorts[:16], fails[16:]])
    model = nn.rebuild(nn.describe(SORTERS[name]()))
    batch = model.prepare(graphs)
    label = graphs.graph_features["label"].long()
    steps = learnt(
        model,
        batch,
        lambda answer: torch.nn.functional.cross_entropy(answer, label),
        lambda answer: (answer.argmax(-1) != label).sum(),
    )
    assert steps < STEPS


@pytest.mark.slow
def test_adjacent_pairs_are_learnt_by_heart():
    torch.manual_seed(0)
    examples = next(iter(Playground("adjacency").stream(seed=0, batch=32)))
    position = nn.SPE(17, WIDTH, pairs=True, hidden=16, channels=8)
    model = nn.DigraphTransformer(WIDTH, 1, nn.PairHead(hidden=16, pair_channels=16), position, norm="pre")
    parts = {name: encoding(examples.graphs) for name, encoding in model.position.encodings().items()}
    batch = mt.pad(examples.graphs, asked=examples.targets.asked(), **parts)
    real, chosen = batch.asked.mask, batch.asked.wanted[batch.asked.mask].float()
    steps = learnt(
        model,
        batch,
        lambda answer: torch.nn.functional.binary_cross_entropy_with_logits(answer[real, 0], chosen),
        lambda answer: ((answer[real, 0] > 0) != chosen.bool()).sum(),
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
    steps = learnt(
        model,
        model.prepare(graphs),
        lambda answer: torch.nn.functional.cross_entropy(answer.flatten(0, 1), words.flatten()),
        lambda answer: (answer.argmax(-1) != words).sum(),
    )
    assert steps < STEPS
