"""Laws of every model: neither numbering, padding, buckets nor other graphs of the batch change a result."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch_geometric.data import Batch as PyGBatch

import magnetite as mt
from magnetite import nn
from magnetite.batching import Batch, QueryPairs, buckets
from magnetite.nn.heads import Head
from magnetite.testing import assert_permutation_equivariant, digraphs, permute
from tests.batching.cases import forms, some_query
from tests.nn.zoo import WIDTH, ZOO, encoded, generic_digraphs, hard_digraphs, node_answers

SEEDS = st.integers(0, 2**16)
few = settings(max_examples=3)
every_model = pytest.mark.parametrize("name", ZOO)
every_equivariant_model = pytest.mark.parametrize("name", [name for name, row in ZOO.items() if not row.sees_numbers])


def close(found: Tensor, expected: Tensor, name: str, tolerance: float = 2e-5) -> None:
    torch.testing.assert_close(
        found, expected, rtol=tolerance, atol=tolerance, msg=lambda message: f"{name}: {message}"
    )


@every_equivariant_model
@few
@given(SEEDS)
def test_renumbered_nodes_give_renumbered_answers(name, seed):
    model = ZOO[name].model(nn.NodeHead(3))
    assert_permutation_equivariant(
        lambda graphs: node_answers(model, model.prepare(graphs)), generic_digraphs(seed), seed, tolerance=2e-5
    )


@every_model
@few
@given(digraphs(min_graphs=2, max_nodes=9))
def test_padding_buckets_and_other_graphs_change_nothing(name, graphs):
    model = ZOO[name].model(nn.NodeHead(3))
    parts = encoded(model, graphs)
    alone = [node_answers(model, mt.batch(graphs, ids=[number], **parts)) for number in range(len(graphs))]
    for form, batch in forms(graphs, parts).items():
        close(node_answers(model, batch), torch.cat(alone), form)


@every_model
def test_graphs_that_are_split_into_buckets_get_the_same_answers(name, monkeypatch):
    graphs, model = hard_digraphs(), ZOO[name].model(nn.NodeHead(3))
    parts = encoded(model, graphs)
    one = mt.batch(graphs, **parts)
    monkeypatch.setattr(buckets, "BUCKET_COST", 8)
    several = mt.batch(graphs, **parts)
    assert (len(one.buckets), len(several.buckets)) == (1, 2)
    close(node_answers(model, several), node_answers(model, one), name)


@every_model
@few
@given(SEEDS)
def test_directions_matter_where_they_should(name, seed):
    graphs = generic_digraphs(seed, count=1)
    model = ZOO[name].model(nn.NodeHead(3))
    forward, backward = (node_answers(model, model.prepare(item)) for item in (graphs, graphs.reverse()))
    difference = float((forward - backward).abs().max())
    assert difference > 1e-3 if ZOO[name].sees_directions else difference < 2e-5


@every_model
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_gradients_are_finite_on_hard_graphs(name, dtype):
    model = ZOO[name].model(nn.NodeHead(3)).train()
    with torch.autocast("cpu", dtype=dtype, enabled=dtype != torch.float32):
        answer = model(model.prepare(hard_digraphs()))
    assert answer.dtype == torch.float32
    assert answer.isfinite().all()
    answer.square().mean().backward()
    gradients = {name: parameter.grad for name, parameter in model.named_parameters()}
    assert [key for key, gradient in gradients.items() if gradient is not None and not gradient.isfinite().all()] == []
    used = [key for key, gradient in gradients.items() if gradient is not None and bool(gradient.any())]
    assert len(used) > len(gradients) // 2


@every_model
def test_saved_and_loaded_models_answer_the_same(name, tmp_path):
    model, graphs = ZOO[name].model(nn.NodeHead(3)), generic_digraphs(1)
    model.save(tmp_path)
    again = nn.load(tmp_path)
    assert nn.describe(again) == nn.describe(model)
    torch.testing.assert_close(again(graphs), model(graphs), rtol=0, atol=0)


@every_model
def test_graphs_and_pyg_batches_are_encoded(name):
    model, graphs = ZOO[name].model(nn.NodeHead(3)), generic_digraphs(2)
    expected = model(mt.batch(graphs, **encoded(model, graphs)))
    torch.testing.assert_close(model(PyGBatch.from_data_list(graphs.to_pyg())), expected, rtol=0, atol=0)
    torch.testing.assert_close(model(graphs), expected, rtol=0, atol=0)


def query_answers(model: nn.GraphModel, batch: Batch) -> Tensor:
    """The predictions for the real query pairs."""
    return model(batch)[batch.query.mask]


def chosen_answers(model: nn.GraphModel, batch: Batch, query: QueryPairs) -> Tensor:
    """The same, selected from the predictions for all node pairs of the graphs."""
    graph = torch.repeat_interleave(query.counts)
    first = batch.sizes.square().cumsum(0) - batch.sizes.square()
    source, target = query.nodes.long()
    every = model(Batch(**{**vars(batch), "query": None}))
    assert every.shape == (int(batch.sizes.square().sum()), 2)
    return every[first[graph] + source * batch.sizes[graph] + target]


@every_model
def test_query_pairs_get_the_predictions_and_gradients_of_all_node_pairs(name):
    graphs, model = generic_digraphs(1), ZOO[name].pair_model()
    query, found = some_query(graphs, 1), {}
    for form, batch in forms(graphs, encoded(model, graphs), query).items():
        if form in ("exact", "padded buckets"):
            found[form, "query pairs"] = query_answers(model, batch)
            found[form, "all pairs"] = chosen_answers(model, batch, query)
    parameters, reference = list(model.parameters()), ("exact", "query pairs")
    gradients = {
        form: torch.autograd.grad(answer.square().mean(), parameters, allow_unused=True)
        for form, answer in found.items()
    }
    for form, answer in found.items():
        close(answer, found[reference], str(form))
        for one, other in zip(gradients[form], gradients[reference], strict=True):
            assert (one is None) == (other is None)
            if one is not None:
                torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


@every_model
@torch.no_grad()
def test_padding_buckets_and_other_graphs_do_not_change_predictions_for_query_pairs(name):
    graphs, model = generic_digraphs(4), ZOO[name].pair_model()
    query, parts = some_query(graphs, 4), encoded(model, graphs)
    alone = [mt.batch(graphs, ids=[number], query=query, **parts) for number in range(len(graphs))]
    expected = torch.cat([model(one) for one in alone])
    for form, batch in forms(graphs, parts, query).items():
        close(query_answers(model, batch), expected, form)


@every_equivariant_model
@torch.no_grad()
def test_renumbered_query_pairs_get_the_same_predictions(name):
    graphs, model = generic_digraphs(2), ZOO[name].pair_model()
    permuted, number = permute(graphs, seed=3)
    query = some_query(graphs, 2)
    first = query.node_ptr[:-1].repeat_interleave(query.counts)
    renumbered = QueryPairs.from_tensors({**query.tensors(), "nodes": number[first + query.nodes].short()})
    before, after = (
        model(mt.batch(given, query=pairs, **encoded(model, given)))
        for given, pairs in ((graphs, query), (permuted, renumbered))
    )
    close(after, before, name)


HEADS: dict[str, tuple[Head, dict[str, object]]] = {
    "graph token": (nn.GraphHead(2), {}),
    "graph token, scaled": (nn.GraphHead(2), {"length_scaled": True}),
    "mean": (nn.GraphHead(2, "mean"), {"norm": "pre"}),
    "max": (nn.GraphHead(2, "max"), {}),
    "words": (nn.SequenceHead(5, length=2), {"norm": "pre"}),
    "pairs": (nn.PairHead(2, hidden=WIDTH), {"length_scaled": True}),
    "local": (nn.GraphHead(2), {"local": nn.GNN(WIDTH, steps=1), "degree_scaled": True}),
    "local, added": (nn.GraphHead(2), {"local": nn.GNN(WIDTH, steps=1), "local_added": True, "norm": "pre"}),
    "repeated": (nn.GraphHead(2), {"repeats": 3}),
    "relatives": (nn.GraphHead(2), {"reach": "relatives"}),
    "directions": (nn.GraphHead(2, "sum"), {"reach": "directions", "length_scaled": True}),
    "linear": (nn.GraphHead(2), {"attention": nn.LinearAttention(WIDTH), "norm": "pre"}),
    "GCN": (nn.GraphHead(2, "sum"), {"local": nn.GCN(WIDTH, steps=1), "degree_scaled": True}),
}


@pytest.mark.parametrize("name", HEADS)
@settings(max_examples=6)
@given(digraphs(min_graphs=2, max_nodes=9))
def test_answers_and_gradients_do_not_depend_on_the_shape_of_the_batch(name, graphs):
    torch.manual_seed(0)
    head, options = HEADS[name]
    model = nn.DigraphTransformer(
        WIDTH, 2, nn.rebuild(nn.describe(head)), nn.SinusoidalEncoder(WIDTH), **options
    ).eval()
    query = some_query(graphs, 0) if name == "pairs" else None
    found = {}
    for form, batch in forms(graphs, query=query).items():
        answer = model(batch) if query is None else query_answers(model, batch)
        found[form] = [answer, *torch.autograd.grad(answer.square().sum(), list(model.parameters()))]
    for form, tensors in found.items():
        for one, other in zip(tensors, found["exact"], strict=True):
            scale = 1 + float(other.detach().norm())
            torch.testing.assert_close(
                one, other, rtol=1e-4, atol=1e-5 * scale, msg=lambda text, form=form: f"{form}: {text}"
            )


@pytest.mark.gpu
@every_model
def test_a_gpu_gives_the_answers_of_the_cpu(name):
    graphs = generic_digraphs(6)
    query = some_query(graphs, 6)
    for model, pairs in ((ZOO[name].model(nn.NodeHead(3)), None), (ZOO[name].pair_model(), query)):
        batches = forms(graphs, encoded(model, graphs), pairs)
        expected = {form: model(batch).detach() for form, batch in batches.items()}
        model.to("cuda")
        for form, batch in batches.items():
            mask = batch.node_mask if pairs is None else batch.query.mask
            close(model(batch.to("cuda")).detach().cpu()[mask], expected[form][mask], form, tolerance=1e-4)
