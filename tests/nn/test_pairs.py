"""Pairs that are asked about: for every model the answers and gradients are those of the head over all pairs."""

from dataclasses import replace

import pytest
import torch

import magnetite as mt
from magnetite import nn
from magnetite.asked import AskedPairs
from magnetite.batching import Batch, Shape
from magnetite.nn.model import GraphModel
from magnetite.nn.pair_head import _chosen
from magnetite.nn.positions import Positions
from magnetite.testing import permute
from tests.nn.zoo import WIDTH, ZOO, encoded, generic_digraphs, some_pairs

every_model = pytest.mark.parametrize("name", ZOO)
every_equivariant_model = pytest.mark.parametrize("name", [name for name, row in ZOO.items() if not row.sees_numbers])
WIDE = Shape(graphs=5, nodes=16, edges=40, pairs=128)


def prepared(model: GraphModel, graphs: mt.Digraphs, asked: AskedPairs, **options: object) -> Batch:
    return mt.pad(graphs, asked=asked, **encoded(model, graphs), **options)


def answers(model: GraphModel, batch: Batch) -> torch.Tensor:
    """The answers for the asked pairs, in their order."""
    return model(batch)[batch.asked.mask]


def dense_answers(model: GraphModel, batch: Batch) -> torch.Tensor:
    """The same, chosen from those for all pairs of slots."""
    every, slots = model(replace(batch, asked=None)), batch.mask.shape[1]
    source, target = (rows[batch.asked.mask] for rows in (batch.asked.source, batch.asked.target))
    return torch.stack([every[u // slots, u % slots, v % slots] for u, v in zip(source, target, strict=True)])


@every_model
@torch.no_grad()
def test_asked_pairs_get_the_answers_of_the_head_over_all(name):
    graphs, model = generic_digraphs(1), ZOO[name].pair_model()
    batch = prepared(model, graphs, some_pairs(graphs, 1), shape=WIDE)
    assert model(batch).shape == (128, 2)
    torch.testing.assert_close(answers(model, batch), dense_answers(model, batch), rtol=1e-5, atol=1e-5)


@every_equivariant_model
@torch.no_grad()
def test_renumbered_pairs_get_the_same_answers(name):
    graphs, model = generic_digraphs(2), ZOO[name].pair_model()
    permuted, number = permute(graphs, seed=3)
    asked = some_pairs(graphs, 2)
    first = asked.node_ptr[:-1].repeat_interleave(asked.counts)
    renumbered = replace(asked, node_ptr=permuted.node_ptr, ends=number[first + asked.ends].short())
    before, after = prepared(model, graphs, asked), prepared(model, permuted, renumbered)
    torch.testing.assert_close(answers(model, after), answers(model, before), rtol=2e-5, atol=2e-5)


@every_model
@torch.no_grad()
def test_padding_and_company_change_nothing(name):
    graphs, model = generic_digraphs(4), ZOO[name].pair_model()
    asked = some_pairs(graphs, 4)
    together = answers(model, prepared(model, graphs, asked))
    alone = [prepared(model, graphs, asked, ids=torch.tensor([number])) for number in range(len(graphs))]
    wide = answers(model, prepared(model, graphs, asked, shape=WIDE))
    torch.testing.assert_close(wide, together, rtol=2e-5, atol=2e-5)
    torch.testing.assert_close(torch.cat([answers(model, one) for one in alone]), together, rtol=2e-5, atol=2e-5)


@every_model
@torch.no_grad()
def test_batches_of_several_shapes_are_answered_as_each_alone(name):
    graphs, model = generic_digraphs(7), ZOO[name].pair_model()
    asked = some_pairs(graphs, 7)
    alone = [prepared(model, graphs, asked, ids=torch.tensor([number])) for number in range(len(graphs))]
    batches = [prepared(model, graphs, asked, shape=WIDE), *alone]
    for answer, batch in zip(model.answers(batches), batches, strict=True):
        torch.testing.assert_close(answer[batch.asked.mask], answers(model, batch), rtol=2e-5, atol=2e-5)


@every_model
def test_gradients_are_those_of_the_head_over_all(name):
    graphs, model = generic_digraphs(5), ZOO[name].pair_model()
    batch = prepared(model, graphs, some_pairs(graphs, 5), shape=WIDE)
    found = []
    for form in (answers, dense_answers):
        model.zero_grad()
        form(model, batch).square().mean().backward()
        found.append({key: p.grad.clone() for key, p in model.named_parameters() if p.grad is not None})
    listed, dense = found
    assert listed.keys() == dense.keys()
    for key, gradient in dense.items():
        torch.testing.assert_close(
            listed[key], gradient, rtol=1e-4, atol=1e-5, msg=lambda text, key=key: f"{key} {text}"
        )


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_gradients_of_many_pairs_add_up_in_half_precision(device):
    """A node is asked about thousands of times: a GPU's sum in bfloat16 would stop growing after some hundreds."""
    graphs, count = mt.Digraphs.from_edges([[0], [1]]), 4096
    batch, head = mt.pad(graphs, asked=one_pair(graphs, count), device=device), nn.PairHead(hidden=8)
    torch.manual_seed(0)
    head.setup(WIDTH)
    head.to(device)
    states = torch.randn(*batch.mask.shape, WIDTH).to(device)
    assert _chosen(states.bfloat16().flatten(0, 1), batch.asked.source).dtype == torch.float32
    gradients = []
    for enabled in (False, True):
        head.zero_grad()
        with torch.autocast(device, dtype=torch.bfloat16, enabled=enabled):
            answer = head(states, batch, Positions())
        assert answer.dtype == torch.float32
        answer[batch.asked.mask].sum().backward()
        gradients.append(head.ends.weight.grad.clone())
    exact, rough = gradients
    assert float((rough - exact).norm() / exact.norm()) < 0.05


def one_pair(graphs: mt.Digraphs, count: int) -> AskedPairs:
    ends, wanted = torch.tensor([[0], [1]]).expand(2, count), torch.zeros(count, dtype=torch.int16)
    return AskedPairs(node_ptr=graphs.node_ptr, asked_ptr=torch.tensor([0, count]), ends=ends, wanted=wanted)
