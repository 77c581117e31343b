"""LayerNorm: single precision for any input, in both of its forms."""

import pytest
import torch

from magnetite.nn.layers import Norm, start_by_fan_in


def test_gradients_of_a_norm_are_summed_in_single_precision():
    norm = Norm(4)
    states = torch.randn(10_000, 4, generator=torch.Generator().manual_seed(0)).bfloat16()
    with torch.autocast("cpu", torch.bfloat16):
        norm(states).sum().backward()
    assert norm.bias.grad.tolist() == [10_000.0] * 4


@pytest.mark.gpu
@pytest.mark.parametrize(("width", "by_moments"), [(16, False), (17, True)])
def test_a_gpu_uses_the_faster_form(width, by_moments, monkeypatch):
    used = []
    monkeypatch.setattr(Norm, "by_moments", lambda self, rows: used.append(self) or rows)
    Norm(width).cuda()(torch.ones(2, width, device="cuda"))
    assert bool(used) == by_moments


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
@pytest.mark.parametrize("width", [1, 17])
def test_both_forms_of_a_norm_are_the_same(width, device):
    generator = torch.Generator().manual_seed(0)
    norm = Norm(width).double().to(device)
    for parameter in norm.parameters():
        parameter.data = torch.randn(width, generator=generator, dtype=torch.float64).to(device)
    outputs, gradients = [], []
    for form in (norm.by_moments, super(Norm, norm).forward):
        rows = torch.randn(50, 3, width, generator=torch.Generator().manual_seed(1), dtype=torch.float64).to(device)
        outputs.append(form(rows.requires_grad_()))
        gradients.append(torch.autograd.grad(outputs[-1].square().sum(), [rows, *norm.parameters()]))
    torch.testing.assert_close(outputs[0], outputs[1])
    torch.testing.assert_close(gradients[0], gradients[1])


def test_matrices_that_start_by_fan_in():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(64, 512), torch.nn.LayerNorm(512), torch.nn.Linear(512, 3, bias=False))
    start_by_fan_in(model)
    for layer in (model[0], model[2]):
        scaled = layer.weight.detach() * layer.in_features**0.5
        assert scaled.abs().max() <= 2
        assert float(scaled.std()) == pytest.approx(0.8796, abs=0.03)  # of a standard normal, truncated to [−2, 2]
        assert float(scaled.mean()) == pytest.approx(0, abs=0.06)
    assert not model[0].bias.any()
    assert bool((model[1].weight == 1).all())
