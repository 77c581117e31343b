import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import Parameter

from magnetite.training.optim import (
    AdaptiveClipping,
    Average,
    UpdateClipping,
    adamw,
    learning_rate,
    set_learning_rate,
)


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


@pytest.mark.parametrize("factor", [1e-3, 0.075, 1e3])
def test_a_clipped_update_is_that_of_adamw_row_by_row(factor):
    generator = torch.Generator().manual_seed(0)
    shapes = [(6, 4), (4,), (3, 4), (2, 3, 4), (7,)]
    ours, theirs = ([Parameter(torch.randn(shape, generator=generator)) for shape in shapes] for _ in range(2))
    for one, other in zip(ours, theirs, strict=True):
        one.data.copy_(other.data)
    first, second = (adamw(one, (0.7, 0.9), 0.01, torch.device("cpu")) for one in (ours, theirs))
    clip = UpdateClipping(ours, factor)
    for step in range(3):
        before = [parameter.detach().clone() for parameter in ours]
        for one, other in zip(ours, theirs, strict=True):
            other.data.copy_(one.data)
            one.grad = torch.randn(one.shape, generator=generator)
            other.grad = one.grad.clone()
        for optimizer in (first, second):
            set_learning_rate(optimizer, 0.1 / (step + 1))
        with clip():
            first.step()
        second.step()
        for old, one, other in zip(before, ours, theirs, strict=True):
            expected = old + clipped_one_by_one(Parameter(old), other.data - old, factor)
            torch.testing.assert_close(one.data, expected, rtol=1e-5, atol=1e-6)


def test_the_average_is_a_mean_at_first_and_exponential_later():
    weight, values = Parameter(torch.zeros(2)), torch.randn(30, 2, generator=torch.Generator().manual_seed(0))
    average, expected = Average({"weight": weight}, decay=0.9), None
    for step, value in enumerate(values):
        weight.data.copy_(value)
        average.prepare(step)
        average.update()
        share = 1 / (step + 1) if step < 10 else 0.1
        expected = value if expected is None else (1 - share) * expected + share * value
        if step == 9:
            torch.testing.assert_close(average.values["weight"], values[:10].mean(0))
    torch.testing.assert_close(average.values["weight"], expected)
    address = weight.data_ptr()
    with pytest.raises(KeyError), average.used():
        assert weight.data_ptr() == address
        torch.testing.assert_close(weight.data, expected)
        raise KeyError
    assert torch.equal(weight.data, values[-1])


def test_without_a_decay_there_is_no_average():
    weight = Parameter(torch.ones(2))
    average = Average({"weight": weight}, decay=0.0)
    average.prepare(0)
    average.update()
    with average.used():
        assert average.values == {} and bool((weight == 1).all())
