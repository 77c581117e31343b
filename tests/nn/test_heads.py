"""Heads: the factorised pair layer is the plain one, answers follow the nodes, words are lowered by probability."""

import pytest
import torch

import magnetite as mt
from magnetite import nn
from magnetite.nn.encoders.base import Positions
from magnetite.nn.heads import READOUTS, _chosen
from magnetite.testing import permute
from tests.batching.cases import forms, query_of
from tests.nn.zoo import WIDTH, K, generic_digraphs


def model(head):
    torch.manual_seed(0)
    return nn.DigraphTransformer(WIDTH, 1, head, nn.MagLapNet(K, WIDTH)).eval()


@torch.no_grad()
def test_the_first_pair_layer_is_linear_in_both_nodes_and_the_readout():
    torch.manual_seed(0)
    graphs, head = generic_digraphs(0), nn.PairHead(2, hidden=8)
    batch = mt.batch(graphs)
    head.setup(WIDTH)
    states = torch.randn(batch.num_nodes, WIDTH)
    answers = iter(head(states, batch, Positions()))
    matrix = torch.cat([*head.ends.weight.chunk(2), head.whole.weight], dim=1)
    bias = head.ends.bias.chunk(2)[0] + head.ends.bias.chunk(2)[1]
    for own in states.split(graphs.sizes.tolist()):
        readout = torch.cat([own.sum(0), torch.tensor([float(len(own))])])
        for source in own:
            for target in own:
                hidden = matrix @ torch.cat([source, target, readout]) + bias
                hidden = torch.nn.functional.gelu(head.first_norm(hidden))
                hidden = torch.nn.functional.gelu(head.second_norm(head.second(hidden)))
                torch.testing.assert_close(next(answers), head.last(hidden), rtol=1e-4, atol=1e-5)
    assert next(answers, None) is None


@pytest.mark.parametrize("pair_layer", [True, False])
@torch.no_grad()
def test_pair_features_join_after_the_first_layer_or_within_it(pair_layer):
    torch.manual_seed(0)
    gelu, head = torch.nn.functional.gelu, nn.PairHead(2, hidden=8, pair_channels=4, pair_layer=pair_layer)
    head.setup(WIDTH)
    for name, batch in forms(generic_digraphs(0)).items():
        every = batch.all_pairs()
        states = torch.randn(batch.num_nodes, WIDTH)
        features = [torch.randn(bucket.graphs, bucket.nodes, bucket.nodes, 4) for bucket in batch.buckets]
        source, target = head.ends(states).chunk(2, dim=-1)
        readout = head.whole(torch.cat([batch.sum_nodes(states), batch.sizes[:, None]], dim=-1))
        ends = source[every.source] + target[every.target]
        ends = ends + readout[batch.node_graph[every.source]]
        between = head.between(batch.at_query(features, every))
        if pair_layer:
            first = gelu(head.first_norm(ends)) + gelu(head.between_norm(between))
        else:
            first = gelu(head.first_norm(ends + between))
        expected = head.last(gelu(head.second_norm(head.second(first))))
        found = head(states, batch, Positions(pairs=features))
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5, msg=lambda text, name=name: f"{name} {text}")


def test_query_pairs_follow_their_nodes():
    graphs = generic_digraphs(5, count=1)
    permuted, number = permute(graphs, seed=1)
    network, size = model(nn.PairHead(positive=True)), graphs.num_nodes
    before, after = (network(item).view(size, size) for item in (graphs, permuted))
    torch.testing.assert_close(after[number][:, number], before, rtol=2e-5, atol=2e-5)
    assert (before > 0).all()


@pytest.mark.parametrize("readout", READOUTS)
def test_answers_for_graphs_do_not_depend_on_the_numbering(readout):
    graphs = generic_digraphs(5)
    permuted, _ = permute(graphs, seed=1)
    network = model(nn.GraphHead(3, readout))
    torch.testing.assert_close(network(permuted), network(graphs), rtol=2e-5, atol=2e-5)


@torch.no_grad()
def test_readouts_are_those_of_each_graph():
    graphs = generic_digraphs(0)
    batch = mt.batch(graphs)
    states = torch.randn(batch.num_nodes + len(batch), WIDTH)
    own = states[: batch.num_nodes].split(graphs.sizes.tolist())
    expected = {
        "cls": states[batch.num_nodes :],
        "mean": torch.stack([each.mean(0) for each in own]),
        "sum": torch.stack([each.sum(0) for each in own]),
        "max": torch.stack([each.amax(0) for each in own]),
    }
    assert expected.keys() == READOUTS.keys()
    for name, readout in expected.items():
        torch.testing.assert_close(READOUTS[name](states, batch), readout)


def test_attention_of_a_readout():
    graphs = generic_digraphs(0)
    batch = mt.batch(graphs)
    states, scores = torch.randn(batch.num_nodes, WIDTH), torch.randn(batch.num_nodes, 2)
    sizes = graphs.sizes.tolist()
    expected = [s.softmax(0).T @ own for s, own in zip(scores.split(sizes), states.split(sizes), strict=True)]
    torch.testing.assert_close(batch.attend_nodes(scores, states), torch.stack(expected))


def test_probabilities_of_words_are_lowered_and_logits_are_not():
    network, batch = model(nn.SequenceHead(7, length=2, lowered={5: 0.75, 6: 0.45})), mt.batch(generic_digraphs(0))
    states = torch.randn(batch.num_nodes + 3, WIDTH)
    evaluated, trained = network.head(states, batch, Positions()), network.train().head(states, batch, Positions())
    torch.testing.assert_close(trained, evaluated)
    expected = torch.tensor([0.0] * 5 + [0.75, 0.45]).expand(3, 2, 7)
    torch.testing.assert_close(trained.softmax(-1) - network.head.lowered(trained), expected)


def offering_digraphs() -> mt.Digraphs:
    """Three graphs whose nodes offer up to two words of seven."""
    graphs = generic_digraphs(0)
    offers = torch.randint(-1, 7, (int(graphs.sizes.sum()), 2), generator=torch.Generator().manual_seed(0))
    return graphs.replace(node_features={"offers": offers.short()})


@pytest.mark.parametrize("shared", [False, True])
def test_words_that_nodes_offer_gain_the_sum_of_their_scores(shared):
    batch = mt.batch(offering_digraphs())
    torch.manual_seed(0)
    head = model(nn.SequenceHead(7, length=2, shared=shared, copied="offers")).head
    states = torch.randn(batch.num_nodes + 3, WIDTH)
    found = head(states, batch, Positions())
    head.copied = None
    sums = torch.zeros(3, 2, 7)
    for node, (graph, words) in enumerate(zip(batch.node_graph, batch.node_features["offers"], strict=True)):
        for word in words[words >= 0].tolist():
            sums[graph, :, word] += head.copy(states[node]).exp()
    torch.testing.assert_close(found, head(states, batch, Positions()) + (1 + sums).log())


def test_copied_words_do_not_depend_on_the_batch_and_are_saved(tmp_path):
    graphs = offering_digraphs()
    torch.manual_seed(0)
    network = nn.DigraphGNN(WIDTH, nn.SequenceHead(7, 2, "mean", shared=True, copied="offers")).eval()
    together = network(mt.batch(graphs))
    for batch in forms(graphs).values():
        torch.testing.assert_close(network(batch), together)
    alone = torch.cat([network(mt.batch(graphs.select(slice(one, one + 1)))) for one in range(3)])
    torch.testing.assert_close(together, alone)
    network.save(tmp_path)
    torch.testing.assert_close(nn.load(tmp_path)(mt.batch(graphs)), together)
    with pytest.raises(ValueError, match="no node feature 'offers'"):
        network(mt.batch(generic_digraphs(0)))


def test_large_scores_of_copied_words_stay_finite():
    batch, head = mt.batch(offering_digraphs()), model(nn.SequenceHead(7, length=2, copied="offers")).head
    answer = head(1e9 * torch.ones(batch.num_nodes + 3, WIDTH), batch, Positions())
    answer.softmax(-1).square().sum().backward()
    assert answer.isfinite().all()
    assert all(parameter.grad.isfinite().all() for parameter in head.parameters())


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_gradients_of_many_query_pairs_are_summed_in_single_precision(device):
    """One node is in thousands of query pairs: a sum in bfloat16 would stop growing after some hundreds."""
    graphs = mt.Digraphs.from_edges([[0], [1]])
    batch, head = mt.batch(graphs, query=query_of(graphs, [[(0, 1, 0)] * 4096]), device=device), nn.PairHead(hidden=8)
    torch.manual_seed(0)
    head.setup(WIDTH)
    head.to(device)
    states = torch.randn(batch.num_nodes, WIDTH).to(device)
    assert _chosen(states.bfloat16(), batch.query.source).dtype == torch.float32
    gradients = []
    for enabled in (False, True):
        head.zero_grad()
        with torch.autocast(device, dtype=torch.bfloat16, enabled=enabled):
            answer = head(states, batch, Positions())
        assert answer.dtype == torch.float32
        answer.sum().backward()
        gradients.append(head.ends.weight.grad.clone())
    exact, rough = gradients
    assert float((rough - exact).norm() / exact.norm()) < 0.05


def test_wrong_heads_are_rejected():
    graphs = generic_digraphs(0)
    with pytest.raises(
        ValueError, match="gives 0 features per pair, this PairHead takes 4: make it with pair_channels=0"
    ):
        model(nn.PairHead(pair_channels=4))(graphs)
    with pytest.raises(ValueError, match="readout must be one of cls, mean, sum, max, got 'first'"):
        nn.GraphHead(2, readout="first")
