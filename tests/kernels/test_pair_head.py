"""The kernels of the first and last layer of `PairHead` equal their formulas."""

from pathlib import Path
from unittest import mock

import pytest
import torch
from torch import Tensor
from torch._dynamo.testing import CompileCounter

from magnetite.kernels.cuda import pair_head
from tests.kernels.cases import DEVICES, assert_near, gradients, kernels

ROWS = 23


def random_case(hidden: int, pairs: int, device: str) -> dict[str, Tensor]:
    """Rows with an offset, and pairs many of which share an end."""
    torch.manual_seed(hidden)
    source, target = 3 * torch.randn(2, ROWS, hidden) + 40
    u, v = torch.randint(ROWS, (2, pairs))
    scale, shift, weight = torch.randn(3, hidden)
    case = {"source": source, "target": target, "u": u.sort().values, "v": v, "scale": scale, "shift": shift}
    return {name: tensor.to(device) for name, tensor in {**case, "weight": weight}.items()}


def normalised(x: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
    return torch.nn.functional.gelu(torch.nn.functional.layer_norm(x, x.shape[-1:], scale, shift))


def leaves(case: dict[str, Tensor], names: tuple[str, ...], dtype: torch.dtype) -> list[Tensor]:
    return [case[name].detach().to(dtype).requires_grad_() for name in names]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("hidden", "pairs"), [(64, 50), (256, 37), (512, 9)])
def test_the_first_layer_of_pairs_is_the_formula(hidden: int, pairs: int, device: str, tmp_path: Path) -> None:
    case, names = random_case(hidden, pairs, device), ("source", "target", "scale", "shift")
    u, v = case["u"], case["v"]
    upper = torch.randn(pairs, hidden).bfloat16().to(device)
    upper[::3] = 0  # as for pairs that pad a batch
    source, target, scale, shift = given = leaves(case, names, torch.float64)
    expected = normalised(source[u] + target[v], scale, shift)
    exact = gradients(expected, upper, given)
    with kernels(tmp_path, device):
        source, target, scale, shift = given = leaves(case, names, torch.float32)
        found = pair_head.first(source, target, u, v, scale, shift)
        mine = gradients(found, upper, given)
    assert found.dtype == torch.bfloat16
    assert_near(found, expected, 4e-3)
    for one, two in zip(mine, exact, strict=True):
        assert_near(one, two, 2e-5)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("hidden", "pairs"), [(64, 50), (128, 9), (256, 37), (512, 9)])
def test_the_last_layers_of_pairs_are_the_formula(hidden: int, pairs: int, device: str, tmp_path: Path) -> None:
    case = random_case(hidden, pairs, device)
    case["rows"] = (torch.randn(pairs, hidden) * 2 + 5).bfloat16().to(device)
    names, upper = ("scale", "shift", "weight"), torch.randn(pairs).to(device)
    upper[::4] = 0
    rows, given = case["rows"].double().requires_grad_(), leaves(case, names, torch.float64)
    expected = (normalised(rows, *given[:2]) * given[2]).sum(-1)
    exact = gradients(expected, upper, [rows, *given])
    with kernels(tmp_path, device):
        rows, given = case["rows"].clone().requires_grad_(), leaves(case, names, torch.float32)
        found = pair_head.last(rows, *given)
        mine = gradients(found, upper, [rows, *given])
    assert_near(found, expected, 1e-5)
    for one, two, error in zip(mine, exact, (4e-3, 2e-5, 2e-5, 2e-5), strict=True):
        assert_near(one, two, error)


@pytest.mark.parametrize("device", DEVICES)
def test_no_pairs_have_no_gradients(device: str, tmp_path: Path) -> None:
    case = random_case(64, 0, device)
    given = leaves(case, ("source", "target", "scale", "shift"), torch.float32)
    with kernels(tmp_path, device):
        found = pair_head.first(*given[:2], case["u"], case["v"], *given[2:])
        last = pair_head.last(found, *given[2:], case["weight"])
        assert not any(gradient.any() for gradient in gradients(last, last.detach(), given))


def test_another_number_of_pairs_is_not_compiled_again(tmp_path: Path) -> None:
    counter = CompileCounter()

    def ends(case: dict[str, Tensor]) -> Tensor:
        return pair_head.first(*(case[name] for name in ("source", "target", "u", "v", "scale", "shift")))

    compiled = torch.compile(ends, backend=counter)
    with kernels(tmp_path, "cpu"):
        for pairs in (5, 6, 7, 8):
            assert compiled(random_case(64, pairs, "cpu")).shape == (pairs, 64)
    assert counter.frame_count <= 2


@pytest.mark.parametrize("deterministic", [True, False])
def test_deterministic_algorithms_exclude_kernels_whose_order_depends_on_timing(deterministic: bool) -> None:
    norm, gelu = torch.nn.LayerNorm(64), torch.nn.GELU()
    available = mock.patch.multiple(pair_head, CAN_COMPILE=True, knows_bfloat16=lambda _: True)
    halved = {"is_autocast_enabled": lambda _: True, "get_autocast_dtype": lambda _: torch.bfloat16}
    with available, mock.patch.multiple(torch, **halved):
        torch.use_deterministic_algorithms(deterministic)
        try:
            assert pair_head.suits(norm, gelu, torch.device("cuda")) != deterministic
        finally:
            torch.use_deterministic_algorithms(False)


@pytest.mark.slow
def test_operators_are_registered_as_torch_requires(tmp_path: Path) -> None:
    case = random_case(64, 9, "cpu")
    inputs = [case[name] for name in ("source", "target", "u", "v", "scale", "shift")]
    rows, rest = torch.randn(9, 64).bfloat16(), [case[name] for name in ("scale", "shift", "weight")]
    with kernels(tmp_path, "cpu"):
        torch.library.opcheck(pair_head.first, inputs)
        torch.library.opcheck(pair_head.first_backward, [*inputs, rows])
        torch.library.opcheck(pair_head.last, [rows, *rest])
        torch.library.opcheck(pair_head.last_backward, [rows, *rest, torch.randn(9)])
