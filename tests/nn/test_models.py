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
