"""Attention: padding is not attended to, biases are added to logits, local networks give queries and keys only."""

import math
import re

import pytest
import torch

import magnetite as mt
from magnetite import nn
from magnetite.nn.attention import Attention, Block, attend, attention_biases, seen_nodes
from magnetite.nn.encoders.base import Positions
from tests.batching.cases import fixed
from tests.nn.zoo import WIDTH, generic_digraphs


def path(size: int) -> torch.Tensor:
    return torch.stack([torch.arange(size - 1), torch.arange(1, size)])


def no_biases(batch: mt.batching.Batch, graph_tokens: bool = False) -> list[torch.Tensor]:
    return attention_biases(batch, Positions(), 1, torch.float32, graph_tokens)[0]


@pytest.mark.parametrize("graph_tokens", [False, True])
def test_attention_is_the_softmax_of_logits_and_bias(graph_tokens):
    torch.manual_seed(0)
    graphs, attention = generic_digraphs(0), Attention(WIDTH, heads=2)
    batch = fixed(graphs, order=[2, 0, 1], cuts=[1], extra=3, wider=8)
    states = torch.randn(batch.num_nodes + graph_tokens * len(batch), WIDTH)
    given = [torch.randn(bucket.graphs, 2, bucket.nodes, bucket.nodes) for bucket in batch.buckets]
    (biases,) = attention_biases(batch, Positions(biases=(given,)), 1, torch.float32, graph_tokens)
    found = attention(states, states, batch, biases)
    for bias, graph in zip((matrix for part in given for matrix in part), [2, 0, 1], strict=True):
        first, size = int(graphs.node_ptr[graph]), int(graphs.sizes[graph])
        tokens, places = list(range(first, first + size)), list(range(size))
        if graph_tokens:
            tokens, places = [*tokens, batch.num_nodes + graph], [*places, bias.shape[-1] - 1]
        query, key = attention.query_key(states[tokens]).unflatten(-1, (2, 2, WIDTH // 2)).unbind(1)
        value = attention.value(states[tokens]).unflatten(-1, (2, WIDTH // 2))
        logits = torch.einsum("uhc,vhc->huv", query, key) / (WIDTH // 2) ** 0.5 + bias[:, places][:, :, places]
        mixed = torch.einsum("huv,vhc->uhc", logits.softmax(-1), value).flatten(1)
        torch.testing.assert_close(found[tokens], attention.out(mixed), rtol=1e-5, atol=1e-5)


def test_padding_is_masked_in_every_layer():
    batch = fixed(mt.Digraphs.from_edges([path(2), path(9)]), cuts=[1])
    for graph_tokens in (False, True):
        first, second = no_biases(batch, graph_tokens)
        assert first[0, 0].isneginf().tolist() == [[False] * 2 + [True] * 5 + [not graph_tokens]] * 8
        assert second.shape == (1, 1, 16, 16)
        assert first[first.isfinite()].unique().tolist() == [0.0]
    given = tuple([torch.full((1, 4, size, size), layer) for size in (8, 16)] for layer in (1.0, 2.0))
    biases = attention_biases(batch, Positions(biases=given), 2, torch.bfloat16, graph_tokens=False)
    assert [part[0].dtype for part in biases] == [torch.bfloat16] * 2
    assert all(part[0][..., 2:].isneginf().all() for part in biases)
    assert [part[1][0, 0, 0, 0].item() for part in biases] == [1.0, 2.0]
    shared = attention_biases(batch, Positions(biases=given[:1]), 3, torch.float32, graph_tokens=False)
    assert len(shared) == 3
    assert shared[0] is shared[2]


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_values_do_not_come_from_the_local_network(norm):
    torch.manual_seed(0)
    batch = mt.batch(generic_digraphs(0, count=1))
    block = Block(WIDTH, local=nn.GNN(WIDTH), norm=norm).eval()
    states = torch.randn(batch.num_nodes, WIDTH)
    one_key = torch.zeros(1, 1, 8, 8).masked_fill(torch.arange(8) != 2, -torch.inf)
    expected = block(states, batch, [one_key])  # the softmax over one key is 1: neither query nor key matters
    for parameter in block.local.parameters():
        torch.nn.init.normal_(parameter)
    torch.testing.assert_close(block(states, batch, [one_key]), expected)


def test_the_states_of_the_local_network_are_added_on_demand():
    torch.manual_seed(0)
    batch = mt.batch(generic_digraphs(0, count=1))
    plain = Block(WIDTH, local=nn.GNN(WIDTH), norm="pre").eval()
    added = Block(WIDTH, local=nn.GNN(WIDTH), norm="pre", local_added=True).eval()
    added.load_state_dict(plain.state_dict())
    states, biases = torch.randn(batch.num_nodes, WIDTH), no_biases(batch, False)
    difference = added._attend(states, batch, biases) - plain._attend(states, batch, biases)
    torch.testing.assert_close(difference, plain.local(states, batch))
    with pytest.raises(ValueError, match="local_added needs a network to add"):
        Block(WIDTH, local_added=True)


@pytest.mark.parametrize("graph_tokens", [False, True])
def test_the_output_of_attention_is_scaled_by_the_degree(graph_tokens):
    star = mt.batch(mt.Digraphs.from_edges([[0, 0, 0], [1, 2, 3]]))
    block = Block(WIDTH, norm="pre", degree_scaled=True).eval()
    plain = Block(WIDTH, norm="pre").eval()
    plain.load_state_dict(block.state_dict())
    states, biases = torch.randn(4 + graph_tokens, WIDTH), no_biases(star, graph_tokens)
    scaled, full = (each._attend(states, star, biases) for each in (block, plain))
    torch.testing.assert_close(scaled[0], full[0] / 2)
    torch.testing.assert_close(scaled[1:4], full[1:4] / 2**0.5)
    torch.testing.assert_close(scaled[4:], full[4:])


@pytest.mark.parametrize("graph_tokens", [False, True])
def test_length_scaled_attention_grows_with_the_logarithm_of_the_size(graph_tokens):
    torch.manual_seed(0)
    plain, scaled = Attention(WIDTH, heads=2), Attention(WIDTH, heads=2, length_scaled=True)
    sizes = [3, 63]
    both = mt.batch(mt.Digraphs.from_edges([path(size) for size in sizes]))
    states = torch.randn(both.num_nodes + 2 * graph_tokens, WIDTH)
    scaled.load_state_dict(plain.state_dict())
    together = scaled(states, states, both, no_biases(both, graph_tokens))
    tokens = [[*range(3), *[66] * graph_tokens], [*range(3, 66), *[67] * graph_tokens]]
    for size, own in zip(sizes, tokens, strict=True):
        plain.load_state_dict(scaled.state_dict())
        with torch.no_grad():
            plain.query_key.weight[:WIDTH] *= math.log(size + 1) / math.log(64)
            plain.query_key.bias[:WIDTH] *= math.log(size + 1) / math.log(64)
        alone = mt.batch(mt.Digraphs.from_edges(path(size)))
        expected = plain(states[own], states[own], alone, no_biases(alone, graph_tokens))
        torch.testing.assert_close(together[own], expected, rtol=1e-5, atol=1e-5)


def test_wrong_options_are_rejected():
    with pytest.raises(ValueError, match="width must be a multiple of heads, got width=10 and heads=4"):
        Attention(10, heads=4)
    with pytest.raises(ValueError, match="norm must be 'post' or 'pre', got 'batch'"):
        Block(WIDTH, norm="batch")
    with pytest.raises(ValueError, match="activation must be one of gelu, relu, got 'tanh'"):
        Block(WIDTH, activation="tanh")


def reaches(count: int, edges: list[tuple[int, int]]) -> list[set[int]]:
    """The nodes that each node reaches, itself included, by a search."""
    found = []
    for start in range(count):
        seen, open_nodes = {start}, [start]
        while open_nodes:
            node = open_nodes.pop()
            new = {target for source, target in edges if source == node} - seen
            seen |= new
            open_nodes += new
        found.append(seen)
    return found


def test_nodes_see_their_ancestors_and_descendants_and_the_graph_token():
    edges = [(0, 1), (1, 2), (3, 2), (2, 4), (5, 4), (6, 0)]
    graphs = mt.Digraphs.from_edges([[u for u, _ in edges], [v for _, v in edges]])
    batch = mt.batch(mt.Digraphs.concat([graphs, mt.Digraphs.from_edges([[0], [1]])]))
    relatives = seen_nodes(batch, "relatives", 4)[0][0, 0]
    directions = seen_nodes(batch, "directions", 4)[0][0]
    after = reaches(7, edges)
    for u in range(7):
        for v in range(7):
            assert bool(relatives[u, v]) == (v in after[u] or u in after[v])
            assert directions[:, u, v].tolist() == [u in after[v]] * 2 + [v in after[u]] * 2
    assert bool(relatives[:7, 7:].all()) and bool(relatives[7:].all())


def test_a_node_does_not_depend_on_nodes_that_it_does_not_see():
    torch.manual_seed(0)
    batch = mt.batch(mt.Digraphs.from_edges([[0, 2], [1, 3]]))  # two parts
    model = nn.DigraphTransformer(WIDTH, 2, nn.NodeHead(3), nn.SinusoidalEncoder(WIDTH), reach="directions").eval()
    states = torch.randn(4, WIDTH, requires_grad=True)
    (model.body(states, batch, Positions())[0] * torch.randn(WIDTH)).sum().backward()
    assert states.grad is not None
    assert bool((states.grad[:2] != 0).any(1).all()) and not bool(states.grad[2:].any())


def test_repeated_layers_are_deeper_models_with_the_same_parameters():
    torch.manual_seed(0)
    graphs = generic_digraphs(0, count=2)
    once, thrice = (
        nn.DigraphTransformer(WIDTH, layers, nn.GraphHead(2), nn.SinusoidalEncoder(WIDTH), repeats=repeats).eval()
        for layers, repeats in ((3, 1), (1, 3))
    )
    assert thrice.parameter_count < once.parameter_count
    shared = thrice.state_dict()
    once.load_state_dict({name: shared[re.sub(r"^blocks.\d", "blocks.0", name)] for name in once.state_dict()})
    torch.testing.assert_close(once(graphs), thrice(graphs))


def test_bad_reaches_are_named():
    with pytest.raises(ValueError, match="unknown reach 'up': choose one of all, relatives, directions"):
        nn.DigraphTransformer(WIDTH, 1, nn.GraphHead(2), reach="up")
    with pytest.raises(ValueError, match="needs at least two heads, got heads=1"):
        nn.DigraphTransformer(WIDTH, 1, nn.GraphHead(2), reach="directions", heads=1)


def test_dropout_inside_the_feed_forward_network_follows_the_activation():
    torch.manual_seed(0)
    plain, dropping = (Block(8, heads=2, dropout=0.5, inner_dropout=inner) for inner in (False, True))
    assert plain.state_dict().keys() == dropping.state_dict().keys()
    dropping.load_state_dict(plain.state_dict())
    states = torch.randn(5, 8)
    torch.testing.assert_close(dropping.eval().feed_forward(states), plain.eval().feed_forward(states))
    hidden = []
    dropping.train().feed_forward[2].register_forward_pre_hook(lambda _, given: hidden.append(given[0]))
    dropping.feed_forward(states)
    active = torch.nn.functional.gelu(plain.feed_forward[0](states))
    kept = hidden[0] != 0
    assert 0.3 < kept.float().mean() < 0.7
    torch.testing.assert_close(hidden[0][kept], 2 * active[kept])


@pytest.mark.gpu
@pytest.mark.parametrize("size", [63, 64, 192, 200])
def test_gradients_of_very_small_logits_are_finite_in_half_precision(size):
    """Half of cuDNN's last tile of keys is empty at 64 and 192; one column moves all logits to −120."""
    torch.manual_seed(0)
    query, key, value = (torch.randn(2, 2, size, 16) for _ in range(3))
    query[..., 0], key[..., 0] = 1.0, -120.0 * 4
    bias = torch.zeros(2, 1, size, size)
    bias[1, ..., size // 2 :] = -torch.inf
    upper = torch.randn(2, 2, size, 16)
    gradients = {}
    for device, dtype in (("cpu", torch.float64), ("cuda", torch.bfloat16)):
        given = [each.bfloat16().to(device, dtype).requires_grad_() for each in (query, key, value)]
        attend(*given, bias.to(device, dtype)).backward(upper.to(device, dtype))
        gradients[device] = [each.grad.double().cpu() for each in given]
    for expected, found in zip(gradients["cpu"], gradients["cuda"], strict=True):
        assert (found[..., 1:] - expected[..., 1:]).norm() < 0.05 * expected[..., 1:].norm()
        assert found.isfinite().all()
