import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import Parameter

from magnetite.training.optim import AdaptiveClipping, adamw, learning_rate, set_learning_rate


def clipped_one_by_one(parameter: Parameter, gradient: torch.Tensor, factor: float) -> torch.Tensor:
    result = gradient.clone()
    rows = range(parameter.shape[0]) if parameter.ndim > 1 else [...]
    for row in rows:
        weight, norm = float(parameter.data[row].norm()), float(gradient[row].norm())
        most = factor * max(weight, 1e-3)
        if norm > most:
            result[row] = gradient[row] * most / norm
    return result


@given(st.integers(0, 1000), st.sampled_from([0.005, 0.075, 10.0]))
def test_clipping_is_that_of_each_row(seed, factor):
    generator = torch.Generator().manual_seed(seed)
    shapes = [(6, 4), (3, 4), (4,), (7,), (2, 3, 4), (), (5, 1), (1, 4)]
    parameters = [Parameter(torch.randn(shape, generator=generator)) for shape in shapes]
    parameters.append(Parameter(torch.zeros(3, 4)))
    gradients = [torch.randn(parameter.shape, generator=generator) for parameter in parameters]
    for parameter, gradient in zip(parameters, gradients, strict=True):
        parameter.grad = gradient.clone()
    unused = Parameter(torch.ones(4))
    AdaptiveClipping([*parameters, unused], factor)()
    assert unused.grad is None
    for parameter, gradient in zip(parameters, gradients, strict=True):
        torch.testing.assert_close(parameter.grad, clipped_one_by_one(parameter, gradient, factor))


def test_a_gradient_of_zero_stays_and_nan_is_not_hidden():
    weight = Parameter(torch.ones(2, 3))
    weight.grad = torch.tensor([[0.0, 0.0, 0.0], [math.nan, 1.0, 1.0]])
    AdaptiveClipping([weight], 0.1)()
    assert weight.grad[0].tolist() == [0, 0, 0]
    assert bool(weight.grad[1].isnan().any())


def test_the_rate_rises_to_its_peak_and_falls_to_zero():
    rates = [learning_rate(step, steps=1000, warmup=100, peak=3e-4) for step in range(1000)]
    assert max(rates) == pytest.approx(3e-4)
    assert rates[:100] == sorted(set(rates[:100]))
    assert rates[100:] == sorted(rates[100:], reverse=True)
    assert rates[550] == pytest.approx(1.5e-4)
    assert rates[-1] < 1e-8
    assert learning_rate(0, steps=5, warmup=0, peak=1.0) == 1.0


def test_the_rate_in_a_tensor_moves_parameters_as_a_number_does():
    first, second = (Parameter(torch.ones(3)) for _ in range(2))
    ours = adamw([first], (0.7, 0.9), 0.01, torch.device("cpu"))
    theirs = torch.optim.AdamW([second], lr=0.0, betas=(0.7, 0.9), weight_decay=0.01)
    for step in range(5):
        rate = learning_rate(step, 5, 2, 0.1)
        set_learning_rate(ours, rate)
        theirs.param_groups[0]["lr"] = rate
        for parameter, optimizer in ((first, ours), (second, theirs)):
            parameter.grad = torch.full((3,), float(step))
            optimizer.step()
    torch.testing.assert_close(first, second)
