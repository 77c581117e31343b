"""Rows without empty slots: the answers and slopes of a model are those of all slots."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import magnetite as mt
from magnetite import nn
from magnetite.batching import Batch, Shape
from magnetite.nn.tokens import Packing, Tokens
from magnetite.testing import digraphs
from tests.nn.zoo import some_pairs

WIDTH = 16
MODELS = {
    "token of the graph": (nn.GraphHead(2), {}),
    "mean of nodes": (nn.GraphHead(2, "mean"), {"norm": "pre"}),
    "pairs": (nn.PairHead(2, hidden=WIDTH), {"length_scaled": True}),
    "local": (nn.GraphHead(2), {"local": nn.GNN(WIDTH, steps=1), "degree_scaled": True}),
}


def batches_of(graphs: mt.Digraphs) -> list[Batch]:
    """The first graph alone, then all, in shapes that say how many nodes there are at most."""
    numbers = torch.tensor([0]), torch.arange(len(graphs))
    made = []
    for ids in numbers:
        asked = some_pairs(graphs, seed=0)
        shape = replace(Shape.of(graphs, ids, asked), total=int(graphs.sizes[ids].sum()) + 2)
        made.append(mt.pad(graphs, ids=ids, shape=shape, asked=asked))
    return made


def answers_and_slopes(model: nn.GraphModel, batches: list[Batch]) -> list[torch.Tensor]:
    answers = model.answers(batches)
    if isinstance(model.head, nn.PairHead):
        answers = [answer[batch.asked.mask] for answer, batch in zip(answers, batches, strict=True)]
    loss = torch.stack([answer.square().sum() for answer in answers]).sum()
    return [*answers, *torch.autograd.grad(loss, list(model.parameters()))]


@pytest.mark.parametrize("name", MODELS)
@given(digraphs(min_graphs=2, max_nodes=9))
def test_answers_and_slopes_are_those_of_all_slots(name, graphs):
    torch.manual_seed(0)
    head, options = MODELS[name]
    model = nn.DigraphTransformer(WIDTH, 2, type(head)(**head.arguments), dropout=0.0, **options)
    batches = batches_of(graphs)
    packed = answers_and_slopes(model, batches)
    plain = answers_and_slopes(model, [replace(batch, total=0) for batch in batches])
    for ours, expected in zip(packed, plain, strict=True):
        torch.testing.assert_close(ours, expected, rtol=1e-4, atol=1e-5 * (1 + float(expected.detach().norm())))


@given(st.lists(st.booleans(), min_size=1, max_size=40), st.integers(1, 5))
def test_what_is_packed_comes_back(filled, more):
    filled = torch.tensor(filled)
    tokens = Tokens([], Packing.of(filled, int(filled.sum()) + more))
    slots = torch.randn(len(filled), 3, dtype=torch.float64, requires_grad=True)
    rows = tokens.pack(slots)
    torch.testing.assert_close(rows[: int(filled.sum())], slots[filled])
    assert not rows[int(filled.sum()) :].any()
    torch.testing.assert_close(tokens.spread(rows), torch.where(filled[:, None], slots, 0))
    assert torch.autograd.gradcheck(lambda given: tokens.spread(tokens.pack(given).sin()), slots)


def test_nothing_is_packed_that_is_not_known_or_would_not_be_less():
    batch = mt.pad(mt.Digraphs.from_edges([[0], [1]]), shape=Shape(1, 8, 8, total=2))
    assert Tokens.of([batch], [batch.mask]).packing is not None
    assert Tokens.of([replace(batch, total=0)], [batch.mask]).packing is None
    assert Tokens.of([replace(batch, total=8)], [batch.mask]).packing is None
