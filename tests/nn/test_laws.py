"""What holds for every model: numbering, padding and company change nothing, directions matter where they should."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import Batch

import magnetite as mt
from magnetite import nn
from magnetite.batching import Shape
from magnetite.testing import assert_permutation_equivariant, digraphs
from tests.nn.zoo import ZOO, encoded, generic_digraphs, hard_digraphs, node_rows

SEEDS = st.integers(0, 2**16)
few = settings(max_examples=4)
every_model = pytest.mark.parametrize("name", ZOO)
every_equivariant_model = pytest.mark.parametrize("name", [name for name, row in ZOO.items() if not row.sees_numbers])


@every_equivariant_model
@few
@given(SEEDS)
def test_renumbered_nodes_give_renumbered_answers(name, seed):
    model = ZOO[name].model(nn.NodeHead(3))
    assert_permutation_equivariant(
        lambda graphs: node_rows(model, model.prepare(graphs)), generic_digraphs(seed), seed, tolerance=2e-5
    )


@every_model
@few
@given(digraphs(min_graphs=2, max_nodes=8))
def test_padding_and_company_change_nothing(name, graphs):
    model = ZOO[name].model(nn.NodeHead(3))
    parts = encoded(model, graphs)
    together = node_rows(model, mt.pad(graphs, **parts))
    alone = [mt.pad(graphs, ids=torch.tensor([i]), **parts) for i in range(len(graphs))]
    for total in (0, int(graphs.sizes.sum()) + 3):
        wide = Shape(graphs=len(graphs) + 2, nodes=16, edges=40, total=total)
        padded = mt.pad(graphs, shape=wide, **parts)
        torch.testing.assert_close(node_rows(model, padded), together, rtol=2e-5, atol=2e-5)
    torch.testing.assert_close(torch.cat([node_rows(model, one) for one in alone]), together, rtol=2e-5, atol=2e-5)


@every_model
@few
@given(digraphs(min_graphs=2, max_nodes=8))
def test_batches_of_several_shapes_are_answered_as_each_alone(name, graphs):
    model = ZOO[name].model(nn.NodeHead(3))
    parts = encoded(model, graphs)
    shapes = Shape(1, 16, 64, total=9), Shape(len(graphs), 24, 72, total=int(graphs.sizes.sum()))
    each = [torch.arange(shape.graphs) for shape in shapes]
    batches = [mt.pad(graphs, ids=ids, shape=shape, **parts) for ids, shape in zip(each, shapes, strict=True)]
    for answer, batch in zip(model.answers(batches), batches, strict=True):
        alone = model(replace(batch, total=0))
        torch.testing.assert_close(answer[batch.mask], alone[batch.mask], rtol=2e-5, atol=2e-5)


@every_model
@few
@given(SEEDS)
def test_directions_matter_where_they_should(name, seed):
    graphs = generic_digraphs(seed, count=1)
    model = ZOO[name].model(nn.NodeHead(3))
    forward, backward = (node_rows(model, model.prepare(item)) for item in (graphs, graphs.reverse()))
    difference = float((forward - backward).abs().max())
    assert difference > 1e-3 if ZOO[name].sees_directions else difference < 2e-5


@every_model
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_gradients_are_finite_on_hard_graphs(name, dtype):
    model = ZOO[name].model(nn.NodeHead(3)).train()
    batch = model.prepare(hard_digraphs())
    with torch.autocast("cpu", dtype=dtype, enabled=dtype != torch.float32):
        answer = model(batch)
    assert answer.dtype == torch.float32
    node_rows_only = answer[batch.mask]
    assert node_rows_only.isfinite().all()
    node_rows_only.square().mean().backward()
    gradients = {name: parameter.grad for name, parameter in model.named_parameters()}
    assert [key for key, gradient in gradients.items() if gradient is not None and not gradient.isfinite().all()] == []
    used = [key for key, gradient in gradients.items() if gradient is not None and bool(gradient.any())]
    assert len(used) > len(gradients) // 2


@every_model
def test_saved_and_loaded_models_answer_the_same(name, tmp_path):
    head = nn.NodeHead(3)
    model = ZOO[name].model(head)
    model.save(tmp_path)
    again = nn.load(tmp_path)
    graphs = generic_digraphs(1)
    assert nn.describe(again) == nn.describe(model)
    torch.testing.assert_close(again(graphs), model(graphs), rtol=0, atol=0)


@every_model
def test_plain_pyg_batches_are_padded(name):
    graphs = generic_digraphs(2)
    model = ZOO[name].model(nn.NodeHead(3))
    expected = model(mt.pad(graphs, **encoded(model, graphs)))
    torch.testing.assert_close(model(Batch.from_data_list(graphs.to_pyg())), expected, rtol=0, atol=0)
    torch.testing.assert_close(model(graphs), expected, rtol=0, atol=0)
