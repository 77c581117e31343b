"""Models are built from parts; wrong parts are rejected with a message that says what to do."""

import subprocess
import sys

import pytest
import torch
from torch_geometric.data import Batch as PyGBatch

import magnetite as mt
from magnetite import nn
from magnetite.batching import Batch
from magnetite.nn import presets
from magnetite.nn.encoders.base import Positions
from magnetite.training.capture import Objective
from tests.batching.cases import forms, query_of
from tests.nn.zoo import generic_digraphs

GRAPHS = mt.Digraphs.from_edges([[0, 1, 2], [1, 2, 3]])


def transformer(head: nn.Head, **options) -> nn.DigraphTransformer:
    return nn.DigraphTransformer(16, 2, head, **options)


class Biased(nn.PositionEncoder):
    """An encoder with biases for some heads and layers."""

    def __init__(self, heads: int, layers: int):
        super().__init__()
        self.heads, self.layers = heads, layers

    def encodings(self) -> dict:
        return {}

    def forward(self, batch: Batch) -> Positions:
        biases = [torch.zeros(each.graphs, self.heads, each.nodes, each.nodes) for each in batch.buckets]
        return Positions(biases=(biases,) * self.layers)


def test_answers_are_packed():
    graphs = generic_digraphs(0)
    nodes, pairs = graphs.num_nodes, int(graphs.sizes.square().sum())
    heads = {nn.GraphHead(2): (3, 2), nn.NodeHead(2): (nodes, 2), nn.PairHead(2): (pairs, 2)}
    for head, shape in {**heads, nn.SequenceHead(7, length=4): (3, 4, 7)}.items():
        assert transformer(head)(graphs).shape == shape


def test_encodings_and_features_of_a_pyg_batch_are_used():
    graphs = generic_digraphs(0).replace(node_features={"x": torch.randn(generic_digraphs(0).num_nodes, 3)})
    model = transformer(nn.NodeHead(1), embedding=nn.LinearNodes("x", 3)).eval()
    data = graphs.to_pyg()
    torch.testing.assert_close(model(PyGBatch.from_data_list(data)), model(graphs))
    torch.testing.assert_close(model(data[0]), model(graphs[:1]))
    torch.testing.assert_close(model(data), model(graphs))


def test_parts_belong_to_one_model():
    head = nn.GraphHead(2)
    transformer(head)
    with pytest.raises(ValueError, match="this GraphHead has parameters already: make a new one"):
        transformer(head)
    sign = nn.SignMLP()
    nn.MagLapNet(k=2, width=32, sign=sign)
    with pytest.raises(ValueError, match="this SignMLP has parameters already"):
        nn.MagLapNet(k=2, width=32, sign=sign)


def test_every_layer_has_its_own_local_network():
    local = nn.GNN(16)
    first, second = (block.local for block in transformer(nn.GraphHead(2), local=local).blocks)
    assert len({id(local), id(first), id(second)}) == 3
    one, other = (network.network.out.weight for network in (first, second))
    assert not torch.equal(one, other)


def test_pair_features_that_no_head_reads_are_rejected():
    model = transformer(nn.PairHead(), position=nn.SPE(k=2, pairs=True))
    with pytest.raises(ValueError, match="gives 32 features per pair, this PairHead takes 0"):
        model(GRAPHS)


@pytest.mark.parametrize(("heads", "layers"), [(3, 2), (4, 3)])
def test_biases_must_fit_the_attention(heads, layers):
    assert transformer(nn.GraphHead(2), position=Biased(4, 1))(GRAPHS).shape == (1, 2)
    with pytest.raises(ValueError, match=f"biases for {layers} layers of {heads} heads, the model has 2 of 4"):
        transformer(nn.GraphHead(2), position=Biased(heads, layers))(GRAPHS)


@pytest.mark.parametrize("make", [nn.DigraphGNN, lambda width, **parts: nn.MagNet(width, 2, **parts)])
def test_biases_need_attention(make):
    model = make(16, head=nn.GraphHead(2, readout="mean"), position=Biased(4, 1))
    with pytest.raises(ValueError, match="has attention biases, but this model has no attention"):
        model(GRAPHS)


WRONG_TYPES = """
import magnetite as mt
graphs = mt.Digraphs.from_edges([[0], [1]])
head = mt.nn.GraphHead(2)
for attempt in (
    lambda: mt.nn.DigraphTransformer(16, 1, head, position=mt.MagneticLaplacian(k=2)),
    lambda: mt.nn.DigraphTransformer(16, 1, mt.nn.GraphHead(2))(graphs.to_networkx()[0]),
    lambda: mt.batch(graphs, mt.MagneticLaplacian(k=2)),
    lambda: mt.batch(graphs, ids=[0.5]),
):
    try:
        attempt()
    except TypeError as error:
        print(error)
"""


def test_arguments_of_other_types_are_named():
    """In a separate process, because pytest checks annotations first."""
    lines = subprocess.run([sys.executable, "-c", WRONG_TYPES], capture_output=True, text=True, check=True).stdout
    encoder, batch, result, ids = lines.splitlines()
    assert "position must be an encoder such as MagLapNet(k=8, width=16), got MagneticLaplacian(" in encoder
    assert "expected magnetite.batch(graphs, …), Digraphs, or PyG's Data or Batch, got <class 'networkx" in batch
    assert "is not the result of an encoding: give encoding(graphs), not the encoding itself" in result
    assert "ids must be a list or 1-d tensor of integers, got torch.float32 of shape (1,)" in ids


def parameters(module):
    return sum(parameter.numel() for parameter in module.parameters())


def test_sat_plus_plus_is_as_large_as_published():
    model = presets.sat_plus_plus(presets.PUBLISHED_SIZES)
    assert abs(model.parameter_count / presets.PUBLISHED_PARAMETERS - 1) < 0.005
    width, words = 256, 5 * 5_002
    assert parameters(model.head) == (width + 1) * words
    assert parameters(model.embedding) == (98 + 10_030 + 21) * width
    assert model.position.out.weight.shape == (width, 25 * 17)  # 17 columns per eigenvector


def test_sat_and_sat_plus_plus_have_different_local_networks_and_readouts():
    one, other = presets.sat(width=32, layers=1), presets.sat_plus_plus(width=32, layers=1)
    assert type(one.blocks[0].local).__name__ == "GCN"
    assert type(other.blocks[0].local).__name__ == "GNN"
    assert one.cls is None
    assert other.cls is not None
    assert one.blocks[0].degree_scaled
    assert other.blocks[0].degree_scaled


@pytest.mark.parametrize("head", [nn.GraphHead(2), nn.NodeHead(2)], ids=["graph", "node"])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_pyg_batch_is_answered_as_its_graphs_are(odd, odd_weighted, head, weighted):
    graphs = (odd_weighted if weighted else odd)[:10]
    position = [nn.MagLapNet(k=4, width=32), nn.WalkEncoder(width=32)]
    model = nn.DigraphTransformer(32, 1, type(head)(2), position).eval()
    data = graphs.to_pyg()
    for item in data:
        item.name, item.root_index = "other", torch.tensor([0])
    with torch.no_grad():
        expected = model(graphs)
        assert torch.equal(model(PyGBatch.from_data_list(data)), expected)
        assert torch.equal(model(data), expected)
        alone = torch.cat([model(item) for item in data])
    torch.testing.assert_close(alone, expected, rtol=1e-4, atol=1e-5)


LADDER = [[0, 1, 2, 0, 3, 4], [1, 2, 5, 3, 4, 5]]
"""Two paths from node 0 to node 5 that exchanging 1 with 3 and 2 with 4 leaves as they are."""


def marked(**options) -> mt.nn.DigraphGNN:
    torch.manual_seed(0)
    head = mt.nn.PairHead(**options)
    return mt.nn.DigraphGNN(16, head, mt.nn.TopologicalGRU(16), marked=True).eval()


def test_a_marked_source_tells_apart_what_symmetry_does_not():
    graphs = mt.Digraphs.from_edges(LADDER)
    torch.manual_seed(0)
    plain = mt.nn.DigraphGNN(16, mt.nn.PairHead(), mt.nn.TopologicalGRU(16))(graphs).view(6, 6)
    torch.testing.assert_close(plain[1, 2], plain[1, 4])  # adjacent, and not connected
    found = marked()(graphs).view(6, 6)
    assert (found[1, 2] - found[1, 4]).abs() > 1e-4
    torch.testing.assert_close(found[1, 2], found[3, 4])  # symmetry still holds of both ends together


def test_marked_pairs_are_answered_by_themselves_and_in_their_order(tmp_path):
    graphs = mt.Digraphs.from_edges([torch.tensor(LADDER), torch.tensor([[0, 1], [1, 2]])])
    model = marked()
    every = model(graphs)
    pairs = [[(4, 5, 0), (1, 2, 0), (4, 0, 0), (3, 3, 0)], [(2, 0, 0)]]
    places = [6 * u + v for u, v, _ in pairs[0]] + [36 + 3 * u + v for u, v, _ in pairs[1]]
    for batch in forms(graphs, query=query_of(graphs, pairs)).values():
        torch.testing.assert_close(model(batch)[: len(places)], every[places], rtol=1e-4, atol=1e-5)
    model.save(tmp_path)
    torch.testing.assert_close(mt.nn.load(tmp_path)(graphs), every)


def test_what_the_trainer_computes_is_what_a_marked_model_answers():
    task = mt.tasks.Distances(acyclic=True, sources=2)
    examples = next(task.stream(seed=0, batch=4))
    batch, model = mt.batch(examples.graphs, query=examples.query()), marked(positive=True)
    loss, outputs = Objective(model, task)(batch)
    torch.testing.assert_close(outputs, model(batch))
    torch.testing.assert_close(loss, (outputs[:, 0] - batch.query.labels).square().sum())
    loss.backward()
    assert model.mark.grad.abs().max() > 0


def test_a_batch_without_query_pairs_has_no_marked_answers():
    graphs = mt.Digraphs.from_edges([[0], [1]])
    answers = marked()(mt.batch(graphs, query=query_of(graphs, [[]])))
    assert answers.shape == (0, 1)


def test_marks_are_about_node_pairs():
    with pytest.raises(ValueError, match="marked is about node pairs, got NodeHead: leave it out, or use a PairHead"):
        mt.nn.DigraphGNN(8, mt.nn.NodeHead(2), marked=True)
    with pytest.raises(ValueError, match="leave out the encoding of pairs"):
        mt.nn.DigraphGNN(8, mt.nn.PairHead(pair_channels=3), marked=True)
