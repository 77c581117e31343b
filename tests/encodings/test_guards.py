"""What does not fit into memory is refused before any work is done, with what to use instead."""

import pytest
import torch

import magnetite as mt
from magnetite.linalg import memory


@pytest.fixture
def gigabyte(monkeypatch):
    for name in ("linalg.memory", "encodings.svd", "encodings.walks", "nn.attention"):
        monkeypatch.setattr(f"magnetite.{name}.check_memory", memory.check_memory)
    monkeypatch.setattr(memory, "total_memory", lambda _: 2.0**30)


def path(size):
    return mt.Digraphs.from_edges(torch.stack([torch.arange(size - 1), torch.arange(1, size)]))


def test_a_dense_svd_that_does_not_fit_is_refused(gigabyte):
    with pytest.raises(ValueError, match=r"dense SVD of 20000 nodes needs 33 GiB .* choose a rank of at most 2500"):
        mt.SVD(rank=2501)(path(20_000))


def test_walks_of_large_graphs_lead_to_one_vector_per_node(gigabyte):
    with pytest.raises(ValueError, match=r"WalkSums\(steps=3, restart=0.05\)\(graphs\)"):
        mt.RandomWalk()(path(20_000))
    with pytest.raises(ValueError, match="choose a smaller top"):
        mt.SparseRandomWalk(top=5000)(path(20_000))
    sums = mt.WalkSums(top=8)(path(20_000))
    assert sums.values.shape == (20_000, 16)


@pytest.mark.parametrize("local", [None, "sat"])
def test_attention_between_too_many_nodes_leads_to_another_model(gigabyte, local):
    extra = {} if local is None else {"local": mt.nn.GNN(8)}
    block = mt.nn.DigraphTransformer(width=8, layers=1, heads=1, head=mt.nn.NodeHead(2), **extra)
    with pytest.raises(ValueError, match=r"between all pairs of up to \d+ nodes needs .*LinearAttention\(width\)"):
        block(path(30_000))


def test_magnet_takes_graphs_whose_dense_matrix_would_not_fit(gigabyte):
    answer = mt.nn.MagNet(width=8, layers=1, head=mt.nn.NodeHead(2))(path(30_000))
    assert answer.shape == (30_000, 2)
    assert answer.isfinite().all()
