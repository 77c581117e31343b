"""What a user may put together by mistake is refused with a line that says what to do; what is theirs is accepted."""

import subprocess
import sys

import pytest
import torch

import magnetite as mt
from magnetite import nn
from magnetite.batching import Batch
from magnetite.nn.positions import Positions

GRAPHS = mt.Digraphs.from_edges([[0, 1, 2], [1, 2, 3]])


def transformer(head: nn.heads.Head, **options) -> nn.DigraphTransformer:
    return nn.DigraphTransformer(16, 2, head, **options)


class Doubling(nn.Module):
    """A local network of a user."""

    def __init__(self, width: int):
        super().__init__()
        self.linear = torch.nn.Linear(width, width)

    def forward(self, states: torch.Tensor, batch: Batch) -> torch.Tensor:
        return 2 * self.linear(states)


class OwnHead(nn.GraphHead):
    """A head of a user that changes nothing."""


class Biased(nn.PositionEncoder):
    """An encoder of a user, of biases for some heads and layers."""

    def __init__(self, heads: int, layers: int):
        super().__init__()
        self.heads, self.layers = heads, layers

    def encodings(self) -> dict:
        return {}

    def forward(self, batch: Batch) -> Positions:
        size = batch.mask.shape[1]
        return Positions(biases=(torch.zeros(len(batch), self.heads, size, size),) * self.layers)


def test_parts_belong_to_one_model():
    head = nn.GraphHead(2)
    transformer(head)
    with pytest.raises(ValueError, match="this GraphHead is part of another model already"):
        transformer(head)
    sign = nn.SignMLP()
    nn.MagLapNet(k=2, width=32, sign=sign)
    with pytest.raises(ValueError, match="this SignMLP is part of another model already"):
        nn.MagLapNet(k=2, width=32, sign=sign)


def test_own_modules_are_used_and_not_saved(tmp_path):
    model = transformer(OwnHead(2), local=Doubling(16))
    assert model(GRAPHS).shape == (1, 2)
    first, second = (block.local.linear.weight for block in model.blocks)
    assert not torch.equal(first, second)
    with pytest.raises(TypeError, match="OwnHead is not one of magnetite's own modules"):
        model.save(tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_pairs_that_no_head_takes_are_refused():
    model = transformer(nn.PairHead(), position=nn.SPE(k=2, pairs=True))
    with pytest.raises(ValueError, match="positions give 32 channels a pair, this PairHead takes 0"):
        model(GRAPHS)


@pytest.mark.parametrize(("heads", "layers"), [(3, 2), (4, 3)])
def test_biases_fit_the_attention(heads, layers):
    assert transformer(nn.GraphHead(2), position=Biased(4, 1))(GRAPHS).shape == (1, 2)
    with pytest.raises(ValueError, match="the model has 2 of 4"):
        transformer(nn.GraphHead(2), position=Biased(heads, layers))(GRAPHS)


@pytest.mark.parametrize("make", [nn.DigraphGNN, lambda width, **parts: nn.MagNet(width, 2, **parts)])
def test_biases_need_attention(make):
    model = make(16, head=nn.GraphHead(2, readout="mean"), position=Biased(4, 1))
    with pytest.raises(ValueError, match="this model has none"):
        model(GRAPHS)


def test_features_of_another_width_are_named():
    wide = GRAPHS.replace(node_features={"x": torch.ones(4, 3)})
    with pytest.raises(ValueError, match="has 3 columns, this LinearNodes takes 2: make it with channels=3"):
        transformer(nn.GraphHead(2), embedding=nn.LinearNodes("x", 2))(wide)


WRONG_TYPES = """
import magnetite as mt
graphs = mt.Digraphs.from_edges([[0], [1]])
head = mt.nn.GraphHead(2)
for attempt in (
    lambda: mt.nn.DigraphTransformer(16, 1, head, position=mt.MagneticLaplacian(k=2)),
    lambda: mt.nn.DigraphTransformer(16, 1, mt.nn.GraphHead(2))(graphs.to_networkx()[0]),
    lambda: mt.pad(graphs, mt.MagneticLaplacian(k=2)),
):
    try:
        attempt()
    except TypeError as error:
        print(error)
"""


def test_what_is_of_another_type_is_named():
    """In a process of its own: here the types in signatures are checked already."""
    lines = subprocess.run([sys.executable, "-c", WRONG_TYPES], capture_output=True, text=True, check=True).stdout
    encoder, batch, result = lines.splitlines()
    assert "is no encoder: give a module such as MagLapNet(k=8, width=16)" in encoder
    assert "DiGraph is no batch: give magnetite.pad(graphs, …)" in batch
    assert "is no result of an encoding: give encoding(graphs)" in result
