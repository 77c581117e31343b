"""The CUDA kernels at the ends of `PairHead`: emulated on the processor, or on a GPU, they equal its formula."""

from contextlib import contextmanager
from pathlib import Path
from unittest import mock

import pytest
import torch
from torch import Tensor
from torch._dynamo.testing import CompileCounter

import magnetite as mt
from magnetite import nn
from magnetite.kernels.cuda import pair_head as pair_head_cuda
from magnetite.nn.positions import Positions
from tests.nn.emulation import emulated
from tests.nn.test_pair_sum import assert_near
from tests.nn.zoo import generic_digraphs, some_pairs

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]
ROWS = 23


@contextmanager
def kernels(folder: Path, device: str):
    """Kernels run where the tensors are."""
    if device == "cuda":
        yield
    else:
        with emulated(folder), mock.patch.object(pair_head_cuda, "suits", lambda *_: True):
            yield


def random_case(hidden: int, pairs: int, device: str) -> dict[str, Tensor]:
    """Rows with an offset, and pairs of which many share an end."""
    torch.manual_seed(hidden)
    source, target = 3 * torch.randn(2, ROWS, hidden) + 40
    u, v = torch.randint(ROWS, (2, pairs))
    scale, shift, weight = torch.randn(3, hidden)
    case = {"source": source, "target": target, "u": u.sort().values, "v": v, "scale": scale, "shift": shift}
    return {name: tensor.to(device) for name, tensor in {**case, "weight": weight}.items()}


def normalised(x: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
    return torch.nn.functional.gelu(torch.nn.functional.layer_norm(x, x.shape[-1:], scale, shift))


def slopes(result: Tensor, upper: Tensor, inputs: list[Tensor]) -> list[Tensor]:
    return list(torch.autograd.grad(result, inputs, upper.to(result.dtype)))


def leaves(case: dict[str, Tensor], names: tuple[str, ...], dtype: torch.dtype) -> list[Tensor]:
    return [case[name].detach().to(dtype).requires_grad_() for name in names]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("hidden", "pairs"), [(64, 50), (256, 37), (512, 9)])
def test_the_first_layer_of_pairs_is_the_formula(hidden: int, pairs: int, device: str, tmp_path: Path) -> None:
    case, names = random_case(hidden, pairs, device), ("source", "target", "scale", "shift")
    u, v = case["u"], case["v"]
    upper = torch.randn(pairs, hidden).bfloat16().to(device)
    upper[::3] = 0  # as those that fill up a batch have it
    source, target, scale, shift = given = leaves(case, names, torch.float64)
    expected = normalised(source[u] + target[v], scale, shift)
    wanted = slopes(expected, upper, given)
    with kernels(tmp_path, device):
        source, target, scale, shift = given = leaves(case, names, torch.float32)
        found = pair_head_cuda.first(source, target, u, v, scale, shift)
        mine = slopes(found, upper, given)
    assert found.dtype == torch.bfloat16
    assert_near(found, expected, 4e-3)
    for one, two in zip(mine, wanted, strict=True):
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
    wanted = slopes(expected, upper, [rows, *given])
    with kernels(tmp_path, device):
        rows, given = case["rows"].clone().requires_grad_(), leaves(case, names, torch.float32)
        found = pair_head_cuda.last(rows, *given)
        mine = slopes(found, upper, [rows, *given])
    assert_near(found, expected, 1e-5)
    for one, two, error in zip(mine, wanted, (4e-3, 2e-5, 2e-5, 2e-5), strict=True):
        assert_near(one, two, error)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("channels", [0, 3])
def test_a_head_with_kernels_answers_as_one_without(channels: int, device: str, tmp_path: Path) -> None:
    graphs = generic_digraphs(3)
    batch = mt.pad(graphs, asked=some_pairs(graphs, 3), device=device)
    torch.manual_seed(0)
    head = nn.PairHead(positive=True, pair_channels=channels)
    head.setup(64)
    head.to(device)
    states = torch.randn(*batch.mask.shape, 64).to(device)
    n = batch.mask.shape[1]
    pairs = torch.randn(len(batch), n, n, channels).to(device) if channels else None
    found = []
    for fused in (True, False):
        with kernels(tmp_path, device), mock.patch.object(pair_head_cuda, "suits", lambda *_, on=fused: on):
            head.zero_grad()
            with torch.autocast(device, torch.bfloat16):
                answer = head(states, batch, Positions(pairs=pairs))
            (answer[batch.asked.mask] ** 2).sum().backward()
        found.append([answer.detach(), *(p.grad.clone() for p in head.parameters())])
    for one, two in zip(*found, strict=True):
        assert_near(one, two, 3e-2)


@pytest.mark.parametrize("device", DEVICES)
def test_no_pairs_have_no_slopes(device: str, tmp_path: Path) -> None:
    case = random_case(64, 0, device)
    given = leaves(case, ("source", "target", "scale", "shift"), torch.float32)
    with kernels(tmp_path, device):
        found = pair_head_cuda.first(*given[:2], case["u"], case["v"], *given[2:])
        last = pair_head_cuda.last(found, *given[2:], case["weight"])
        assert not any(slope.any() for slope in slopes(last, last.detach(), given))


def test_another_number_of_pairs_is_not_compiled_again(tmp_path: Path) -> None:
    counter = CompileCounter()

    def ends(case: dict[str, Tensor]) -> Tensor:
        return pair_head_cuda.first(*(case[name] for name in ("source", "target", "u", "v", "scale", "shift")))

    compiled = torch.compile(ends, backend=counter)
    with emulated(tmp_path):
        for pairs in (5, 6, 7, 8):
            assert compiled(random_case(64, pairs, "cpu")).shape == (pairs, 64)
    assert counter.frame_count <= 2


@pytest.mark.parametrize("wanted", [True, False])
def test_who_wants_the_same_sum_every_time_gets_no_kernel_whose_order_depends_on_timing(wanted: bool) -> None:
    norm, gelu = nn.layers.Norm(64), torch.nn.GELU()
    available = mock.patch.multiple(pair_head_cuda, CAN_COMPILE=True, knows_bfloat16=lambda _: True)
    halved = {"is_autocast_enabled": lambda _: True, "get_autocast_dtype": lambda _: torch.bfloat16}
    with available, mock.patch.multiple(torch, **halved):
        torch.use_deterministic_algorithms(wanted)
        try:
            assert pair_head_cuda.suits(norm, gelu, torch.device("cuda")) != wanted
        finally:
            torch.use_deterministic_algorithms(False)


@pytest.mark.slow
def test_operators_are_registered_as_torch_wants_them(tmp_path: Path) -> None:
    case = random_case(64, 9, "cpu")
    inputs = [case[name] for name in ("source", "target", "u", "v", "scale", "shift")]
    rows, rest = torch.randn(9, 64).bfloat16(), [case[name] for name in ("scale", "shift", "weight")]
    with emulated(tmp_path):
        torch.library.opcheck(pair_head_cuda.first, inputs)
        torch.library.opcheck(pair_head_cuda.first_backward, [*inputs, rows])
        torch.library.opcheck(pair_head_cuda.last, [rows, *rest])
        torch.library.opcheck(pair_head_cuda.last_backward, [rows, *rest, torch.randn(9)])
