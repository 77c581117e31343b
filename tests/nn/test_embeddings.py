"""Embeddings: categories add up, attributes are forgotten at their rate, wires are moved together."""

import pytest
import torch

import magnetite as mt
from magnetite import nn

GRAPHS = mt.Digraphs.from_edges([[0, 1], [1, 2]])


def batch_of(**features: torch.Tensor) -> mt.batching.Batch:
    return mt.pad(GRAPHS.replace(node_features=features))


def made(embedding, width=8):
    torch.manual_seed(0)
    embedding.setup(width)
    return embedding


def test_categories_add_up_and_what_is_beyond_them_is_the_last():
    embedding = made(nn.CategoryNodes({"kind": 4, "colour": 3}))
    batch = batch_of(kind=torch.tensor([1, 2, 99]), colour=torch.tensor([0, 0, 2]))
    tables = embedding.tables
    expected = tables["kind"].weight[[1, 2, 3]] + tables["colour"].weight[[0, 0, 2]]
    torch.testing.assert_close(embedding(batch)[0, :3], expected)


def test_attributes_are_forgotten_in_training_only():
    embedding = made(nn.CategoryNodes({"kind": 4}, dropout={"kind": 0.3}))
    kinds = torch.full((3,), 2)
    batch = mt.pad(mt.Digraphs.concat([GRAPHS.replace(node_features={"kind": kinds})] * 400))
    kept = (embedding.train()(batch) == embedding.tables["kind"].weight[2]).all(-1)[batch.mask].float().mean()
    assert abs(float(kept) - 0.7) < 0.06  # four standard deviations of 1,200 draws
    torch.testing.assert_close(embedding.eval()(batch)[0, 0], embedding.tables["kind"].weight[2])


def test_features_that_are_missing_are_named():
    with pytest.raises(ValueError, match="no node feature 'x' \\(they have kind\\)"):
        made(nn.LinearNodes("x", 3))(batch_of(kind=torch.ones(3)))


