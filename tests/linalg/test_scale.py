"""Weights divided by powers of two: exact, without overflow, and no edge disappears."""

import numpy as np
import torch

from magnetite.linalg.scale import FLOOR, divided, root_power, times_power


def test_the_largest_weight_of_each_graph_is_about_one():
    weights = torch.tensor([1e308, 3e-320, 7.0, 8.0, 5e-324], dtype=torch.float64)
    small, exponent = divided(weights, torch.tensor([0, 2, 2, 4, 5]))
    assert small is not None and exponent.tolist() == [1023, 0, 3, -1074]
    assert 1 <= small[0] < 2 and small[1] == FLOOR and small[2:].tolist() == [0.875, 1.0, 1.0]
    assert times_power(small[[0]], exponent[[0]]) == weights[0]


def test_integers_and_no_weights():
    small, exponent = divided(torch.tensor([3, 4]), torch.tensor([0, 2]))
    assert small is not None and small.tolist() == [0.75, 1.0] and exponent.tolist() == [2]
    assert divided(None, torch.tensor([0, 2]))[0] is None


def test_powers_are_exact():
    exponents = torch.arange(-1000, 1000)
    expected = np.ldexp(1.3, exponents.numpy())
    assert times_power(torch.tensor(1.3, dtype=torch.float64), exponents).numpy().tolist() == expected.tolist()
    factor, half = root_power(exponents)
    assert (factor * times_power(torch.ones((), dtype=torch.float64), 2 * half)).numpy().tolist() == np.ldexp(
        1.0, exponents.numpy()
    ).tolist()
