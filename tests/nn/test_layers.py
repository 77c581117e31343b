"""Small parts: sums of slopes stay whole where states are in half precision."""

import torch

from magnetite.nn.layers import Norm


def test_slopes_of_a_norm_are_summed_in_single_precision():
    norm = Norm(4)
    states = torch.randn(10_000, 4, generator=torch.Generator().manual_seed(0)).bfloat16()
    with torch.autocast("cpu", torch.bfloat16):
        norm(states).sum().backward()
    assert norm.bias.grad.tolist() == [10_000.0] * 4
