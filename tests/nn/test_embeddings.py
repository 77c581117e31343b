"""Embeddings: categories are summed, lists of embeddings too, attributes are dropped at their rate."""

import pytest
import torch

import magnetite as mt
from magnetite import nn
from magnetite.nn.embeddings import Summed, embedding_of

GRAPHS = mt.Digraphs.from_edges([[0, 1], [1, 2]])


def batch_of(**features: torch.Tensor) -> mt.batching.Batch:
    return mt.batch(GRAPHS.replace(node_features=features))


def made(embedding, width=8):
    torch.manual_seed(0)
    embedding.setup(width)
    return embedding


def test_categories_are_summed_and_numbers_beyond_them_share_the_last_row():
    embedding = made(nn.CategoryNodes({"kind": 4, "colour": 3}))
    batch = batch_of(kind=torch.tensor([1, 2, 99]), colour=torch.tensor([0, 0, 2]))
    tables = embedding.tables
    expected = tables[0].weight[[1, 2, 3]] + tables[1].weight[[0, 0, 2]]
    torch.testing.assert_close(embedding(batch), expected)


def test_graphs_without_edges_have_no_edge_categories():
    features = {"kind": torch.zeros(0, dtype=torch.int16), "pair": torch.zeros(0, 2, dtype=torch.int64)}
    graphs = mt.Digraphs.from_edges(torch.zeros(2, 0, dtype=torch.int64), num_nodes=3).replace(edge_features=features)
    assert made(nn.CategoryEdges({"kind": 3, "pair": (2, 4)}))(mt.batch(graphs)).shape[0] == 0


def test_attributes_are_dropped_in_training_only():
    embedding = made(nn.CategoryNodes({"kind": 4}, dropout={"kind": 0.3}))
    batch = mt.batch(mt.Digraphs.concat([GRAPHS.replace(node_features={"kind": torch.full((3,), 2)})] * 400))
    kept = (embedding.train()(batch) == embedding.tables[0].weight[2]).all(-1).float().mean()
    assert abs(float(kept) - 0.7) < 0.06  # four standard deviations of 1,200 draws
    torch.testing.assert_close(embedding.eval()(batch)[0], embedding.tables[0].weight[2])


def test_equal_nodes_share_one_vector():
    embedding = made(nn.SameNodes())
    assert torch.equal(embedding(mt.batch(GRAPHS)), embedding.vector.expand(3, -1))


def test_a_list_of_embeddings_is_their_sum():
    features = {"x": torch.randn(3, 2), "kind": torch.tensor([0, 1, 4])}
    batch = batch_of(**features)
    embedding = embedding_of([nn.LinearNodes("x", 2), nn.CategoryNodes({"kind": 5})], width=8)
    linear, categories = embedding.parts
    torch.testing.assert_close(embedding(batch), linear(batch) + categories(batch))
    torch.testing.assert_close(linear(batch), linear.linear(features["x"]))


def test_models_and_networks_take_lists_of_embeddings(tmp_path):
    graphs = GRAPHS.replace(
        node_features={"x": torch.randn(3, 2), "kind": torch.tensor([0, 1, 4])},
        edge_features={"edge_kind": torch.tensor([1, 0])},
    )
    edges = [nn.LinearEdges(), nn.CategoryEdges({"edge_kind": 2})]
    nodes = [nn.LinearNodes("x", 2), nn.CategoryNodes({"kind": 5})]
    model = nn.DigraphTransformer(16, 2, nn.NodeHead(1), embedding=nodes, local=nn.GNN(16, edge_features=edges)).eval()
    assert isinstance(model.embedding, Summed)
    first, second = (block.local.embedding.parts[1].tables[0].weight for block in model.blocks)
    assert not torch.equal(first, second)  # each layer has its own
    model.save(tmp_path)
    again = nn.load(tmp_path)
    torch.testing.assert_close(again(graphs), model(graphs), rtol=0, atol=0)
    for changed in (
        graphs.replace(node_features={**graphs.node_features, "x": torch.zeros(3, 2)}),
        graphs.replace(node_features={**graphs.node_features, "kind": torch.tensor([0, 1, 2])}),
        graphs.replace(edge_features={"edge_kind": torch.tensor([0, 0])}),
    ):
        assert (model(changed) - model(graphs)).abs().max() > 1e-4


def test_embeddings_that_belong_to_another_model_are_rejected():
    used = nn.CategoryNodes({"kind": 5})
    nn.DigraphTransformer(16, 1, nn.NodeHead(1), embedding=used)
    for embedding in (used, [nn.LinearNodes("x", 2), used]):
        with pytest.raises(ValueError, match="this CategoryNodes has parameters already"):
            nn.DigraphTransformer(16, 1, nn.NodeHead(1), embedding=embedding)
    with pytest.raises(ValueError, match="the list of embeddings is empty: give at least one"):
        nn.DigraphTransformer(16, 1, nn.NodeHead(1), embedding=[])


def test_missing_features_are_named():
    with pytest.raises(ValueError, match=r"no node feature 'x' \(they have kind\): add it to node_features"):
        made(nn.LinearNodes("x", 3))(batch_of(kind=torch.ones(3)))
    with pytest.raises(ValueError, match=r"no edge feature 'kind' \(they have none\): add it to edge_features"):
        made(nn.CategoryEdges({"kind": 3}))(mt.batch(GRAPHS))


def test_features_of_another_width_are_named():
    with pytest.raises(ValueError, match=r"feature 'x' has shape \(3, 3\), expected 2 columns: change channels"):
        made(nn.LinearNodes("x", 2))(batch_of(x=torch.ones(3, 3)))


def test_features_may_have_any_name(tmp_path):
    names = ["class", "dtype", "dict", "type", "values", "a.b"]
    graphs = GRAPHS.replace(node_features=dict.fromkeys(names, torch.arange(GRAPHS.num_nodes)))
    embedding = nn.CategoryNodes(dict.fromkeys(names, 5), dropout={"class": 0.1})
    model = nn.DigraphTransformer(16, 1, nn.NodeHead(2), embedding=embedding).eval()
    model.save(tmp_path)
    torch.testing.assert_close(nn.load(tmp_path)(graphs), model(graphs), rtol=0, atol=0)


def test_the_vectors_begin_with_the_standard_deviation_that_is_given():
    torch.manual_seed(0)
    plain, small = (nn.CategoryNodes({"kind": 500}, std=std) for std in (1.0, 0.02))
    for embedding, std in ((plain, 1.0), (small, 0.02)):
        embedding.setup(64)
        assert embedding.tables[0].weight.std().item() == pytest.approx(std, rel=0.05)


@pytest.mark.parametrize("size", [3, 50])  # fewer and more categories than edges
def test_the_product_with_a_matrix_is_that_of_the_vectors(size):
    graphs = mt.Digraphs.from_edges([[0, 1, 2, 3, 4, 0, 1, 2], [1, 2, 3, 4, 5, 2, 3, 5]])
    kinds = torch.arange(16).view(8, 2) % size
    features = {"kind": kinds, "sign": torch.arange(8) % 2, "length": torch.arange(8.0)}
    batch = mt.batch(graphs.replace(edge_features=features))
    parts = [nn.CategoryEdges({"kind": (size, 4), "sign": 2}), nn.LinearEdges("length")]
    torch.manual_seed(0)
    embedding, matrix = embedding_of(parts, 8), torch.nn.Linear(8, 5, bias=False)
    found, expected = embedding.projected(batch, matrix), matrix(embedding(batch))
    torch.testing.assert_close(found, expected)
    weights = torch.randn_like(expected)
    parameters = [*embedding.parameters(), matrix.weight]
    for one, other in zip(
        *(torch.autograd.grad((each * weights).sum(), parameters) for each in (found, expected)), strict=True
    ):
        torch.testing.assert_close(one, other)


def test_the_tables_of_a_product_are_added_up_in_single_precision():
    batch = mt.batch(GRAPHS.replace(edge_features={"kind": torch.tensor([0, 1])}))
    embedding, matrix = made(nn.CategoryEdges({"kind": 2})), torch.nn.Linear(8, 5, bias=False)
    with torch.autocast("cpu", torch.bfloat16):
        assert embedding.projected(batch, matrix).dtype == torch.float32
