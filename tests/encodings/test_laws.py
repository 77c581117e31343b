"""Laws of all encodings: the other graphs of a batch never change a result, not even its last bit."""

from typing import Any

import pytest
import torch

import magnetite as mt
from magnetite.encodings import ENCODINGS, Depth, Relatives, Sinusoidal, SparseRandomWalk, WalkSums
from tests.conftest import odd_digraphs

OPTIONS: list[Any] = [
    mt.MagneticLaplacian(k=5),
    mt.MagneticLaplacian(k=3, q=(0.1, mt.Relative(0.25))),
    mt.MagneticLaplacian(k=40, q=0.2, normalised=False, dtype=torch.float64),
    mt.Laplacian(k=4),
    mt.Laplacian(k=40, normalised=False, dtype=torch.float64),
    mt.RandomWalk(dtype=torch.float64),
    mt.RandomWalk(steps=5, restart=None, reverse=False, dtype=torch.float64),
    mt.RandomWalk(dtype=torch.float16),
    SparseRandomWalk(top=5),
    WalkSums(top=5),
    Relatives(reach=2, top=5),
    mt.SVD(rank=3),
    mt.SVD(rank=40, dtype=torch.float64),
    Sinusoidal(width=8),
    Depth(),
    Depth(cap=2),
]


def test_all_encodings_are_here():
    assert set(ENCODINGS.values()) <= {type(encoding) for encoding in OPTIONS}


@pytest.mark.parametrize("encoding", OPTIONS, ids=repr)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("low", "high", "count"), [(1, 30, 50), (60, 130, 12)])
def test_batching_never_changes_a_result(encoding, weighted, low, high, count):
    graphs = odd_digraphs(seed=7, count=count, low=low, high=high, weighted=weighted)
    together = encoding(graphs)
    backwards = encoding(graphs.select(torch.arange(count).flip(0)))
    for number in range(count):
        alone = encoding(graphs.select(torch.tensor([number]))).tensors()
        for batch, place in ((together, number), (backwards, count - 1 - number)):
            part = batch.select(torch.tensor([place])).tensors()
            assert all(torch.equal(part[name], tensor) for name, tensor in alone.items()), number
