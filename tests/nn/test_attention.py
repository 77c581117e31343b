"""Attention: keys in empty slots are closed, biases are added to logits, local networks feed query and key only."""

import math

import pytest
import torch

import magnetite as mt
from magnetite import nn
from magnetite.batching import Shape
from magnetite.nn.tokens import Tokens
from magnetite.nn.transformer import Attention, Block, attention_bias
from tests.nn.zoo import WIDTH, generic_digraphs


def test_attention_is_softmax_of_logits_and_bias():
    torch.manual_seed(0)
    attention = Attention(WIDTH, heads=2)
    states, bias = torch.randn(3, 5, WIDTH), torch.randn(3, 2, 5, 5)
    query, key = attention.query_key(states).unflatten(-1, (2, 2, WIDTH // 2)).unbind(2)
    value = attention.value(states).unflatten(-1, (2, WIDTH // 2))
    logits = torch.einsum("buhc,bvhc->bhuv", query, key) / (WIDTH // 2) ** 0.5 + bias
    mixed = torch.einsum("bhuv,bvhc->buhc", logits.softmax(-1), value).flatten(2)
    rows = states.flatten(0, 1)
    batch = mt.pad(mt.Digraphs.from_edges([torch.tensor([[0], [1]])] * 3), shape=Shape(3, 5, 1))
    result = attention(rows, rows, Tokens([batch], None), [bias]).view(3, 5, WIDTH)
    torch.testing.assert_close(result, attention.out(mixed), rtol=1e-5, atol=1e-5)


def test_empty_slots_are_never_heard_and_empty_graphs_stay_finite():
    keys = torch.tensor([[True, True, False], [False, False, False]])
    plain = attention_bias(keys, None, torch.float32)
    assert plain[0, 0].isneginf().tolist() == [[False, False, True]] * 3
    assert plain[1, 0].isneginf().tolist() == [[False, True, True]] * 3
    assert plain[plain.isfinite()].tolist() == [0.0] * 9
    biased = attention_bias(keys, torch.ones(2, 4, 3, 3), torch.bfloat16)
    assert biased.dtype == torch.bfloat16
    assert biased[0, :, :, 2].isneginf().all()
    assert (biased[0, :, :, :2] == 1).all()


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_values_do_not_come_from_the_local_network(norm):
    torch.manual_seed(0)
    batch = mt.pad(generic_digraphs(0, count=1))
    block = Block(WIDTH, local=nn.GNN(WIDTH), norm=norm).eval()
    states = torch.randn(batch.mask.shape[1], WIDTH)
    one_key = torch.zeros(1, 1, 8, 8).masked_fill(torch.arange(8) != 2, -torch.inf)
    expected = block(
        states, Tokens([batch], None), [one_key]
    )  # with one key open, the softmax is 1: query and key cannot matter
    for parameter in block.local.parameters():
        torch.nn.init.normal_(parameter)
    torch.testing.assert_close(block(states, Tokens([batch], None), [one_key]), expected)


def test_the_residual_is_scaled_by_the_degree():
    star = mt.pad(mt.Digraphs.from_edges([[0, 0, 0], [1, 2, 3]]))
    block = Block(WIDTH, norm="pre", degree_scaled=True).eval()
    plain = Block(WIDTH, norm="pre").eval()
    plain.load_state_dict(block.state_dict())
    states, bias = torch.randn(8, WIDTH), attention_bias(star.mask, None, torch.float32)
    scaled, full = (each._attend(states, Tokens([star], None), [bias]) for each in (block, plain))
    torch.testing.assert_close(scaled[0], full[0] / 2)
    torch.testing.assert_close(scaled[1], full[1] / 2**0.5)


def test_length_scaled_attention_sharpens_with_the_logarithm_of_the_size():
    torch.manual_seed(0)
    plain, scaled = Attention(WIDTH, heads=2), Attention(WIDTH, heads=2, length_scaled=True)
    scaled.load_state_dict(plain.state_dict())
    sizes = [3, 63]
    batches = [mt.pad(mt.Digraphs.from_edges([list(range(n - 1)), list(range(1, n))])) for n in sizes]
    states = [torch.randn(batch.mask.numel(), WIDTH) for batch in batches]
    biases = [attention_bias(batch.mask, None, torch.float32) for batch in batches]
    rows = torch.cat(states)
    first, second = scaled(rows, rows, Tokens(batches, None), biases).split([part.shape[0] for part in states])
    with torch.no_grad():
        plain.query_key.weight[:WIDTH] *= math.log(4) / math.log(64)
        plain.query_key.bias[:WIDTH] *= math.log(4) / math.log(64)
    torch.testing.assert_close(
        first, plain(states[0], states[0], Tokens(batches[:1], None), biases[:1]), rtol=1e-5, atol=1e-5
    )
    plain.load_state_dict(scaled.state_dict())
    torch.testing.assert_close(
        second, plain(states[1], states[1], Tokens(batches[1:], None), biases[1:]), rtol=1e-5, atol=1e-5
    )


def test_bad_options_are_refused():
    with pytest.raises(ValueError, match="width=10 cannot be cut into 4 heads"):
        Attention(10, heads=4)
    with pytest.raises(ValueError, match="norm='batch' is not known"):
        Block(WIDTH, norm="batch")
    with pytest.raises(ValueError, match="activation='tanh' is not known"):
        Block(WIDTH, activation="tanh")
